"""Toy dialogues, and a network that counts its work."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialoscope.engage.examples import Examples, remaining_depth

OPENINGS = ("hello there", "hi, how are you?", "good morning")
MIDDLES = ("i like the old bridge", "where is the station?", "it is near the river", "i see, tell me more")
ENDINGS = ("thank you, bye", "good night", "see you soon, bye")


class Counting:
    """Stands before a network, and counts the passes through it and the texts in them."""

    def __init__(self, network: Any) -> None:
        self.network, self.passes, self.texts = network, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def __call__(self, *, input_ids: torch.Tensor, **others: Any) -> Any:
        self.passes += 1
        self.texts += len(input_ids)
        return self.network(input_ids=input_ids, **others)


def conversations(count: int, *, seed: int, name: str = "toy") -> Examples:
    """Dialogues of two to six turns that open, go on and end in words of their own, so that depth can be learnt."""
    rng = np.random.default_rng(seed)
    dialogues = [_conversation(rng) for _ in range(count)]
    return of(dialogues, name=name)


def _conversation(rng: np.random.Generator) -> list[str]:
    middles = [str(one) for one in rng.choice(MIDDLES, rng.integers(0, 5))]
    return [str(rng.choice(OPENINGS)), *middles, str(rng.choice(ENDINGS))]


def of(dialogues: Sequence[Sequence[str]], *, name: str = "toy") -> Examples:
    """Dialogues with the remaining depth of their turns."""
    targets = np.concatenate([remaining_depth(len(one)) for one in dialogues])
    texts = [text for one in dialogues for text in one]
    return Examples(name, texts, np.cumsum([0, *map(len, dialogues)]), targets)


POSITIONS = 128


def word_piece() -> Any:
    """BERT's own pipeline over words and letters; written down, for training a vocabulary breaks ties by chance."""
    from tokenizers import BertWordPieceTokenizer

    letters = list("abcdefghijklmnopqrstuvwxyz,?[]")
    words = sorted(set(" ".join([*OPENINGS, *MIDDLES, *ENDINGS]).replace(",", "").replace("?", "").split()))
    special = [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
    tokens = [*special, *letters, *(f"##{one}" for one in letters[:26]), *(one for one in words if len(one) > 1)]
    inner = BertWordPieceTokenizer(vocab={token: place for place, token in enumerate(tokens)})
    made: Any = import_module("transformers").PreTrainedTokenizerFast
    names = {f"{name[1:-1].lower()}_token": name for name in special}
    return made(tokenizer_object=inner._tokenizer, model_max_length=POSITIONS, **names)


def save_bert(folder: Path) -> Path:
    """Write a BERT of two layers and width 32 with random weights."""
    t: Any = import_module("transformers")
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = t.BertConfig(vocab_size=200, max_position_embeddings=POSITIONS, initializer_range=0.3, **shape)
        t.BertModel(config).save_pretrained(folder)
    word_piece().save_pretrained(folder)
    return folder


def save_predictor(folder: Path) -> Path:
    """Write a predictor on that encoder whose linear layer is random."""
    from dialoscope.engage import storage
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.shape import Shape

    made = Predictor.untrained(Encoder.load(save_bert(folder / "tiny")), Shape(history=1), seed=3)
    with torch.no_grad():  # so that not all scores are at the ends of the clamp
        made.head.weight.mul_(0.3)
        made.head.bias.fill_(0.5)
    storage.save(folder / "predictor", made)
    return folder / "predictor"
