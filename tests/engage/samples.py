"""Toy dialogues, and a network that counts its work."""

from __future__ import annotations

from collections.abc import Sequence
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
