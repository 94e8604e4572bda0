r"""Texts into bags: sorted sets of integer tokens, the rarest first.

The reference tokens are those of the paper's code: lower-case, runs of word characters and runs of other characters
that are no blanks (``\w+|[^\w\s]+``), less every token that is a contiguous piece of the ASCII punctuation in its
usual order. A compiled loop finds them (see `scan`); the few texts it leaves to Python, and other tokenisers, meet it
in one vocabulary.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
import pyarrow as pa

from dialoscope.cores import in_ranges
from dialoscope.errors import unknown_name
from dialoscope.overlap.scan import CUT, Bytes, Flags, Ints, Ranks, left_to_python, scan

REFERENCE = re.compile(r"\w+|[^\w\s]+")


def reference_tokens(text: str) -> list[str]:
    """The paper's tokens of one text, as its code finds them."""
    return [token for token in REFERENCE.findall(text.lower()) if token not in string.punctuation]


def word_tokens(text: str) -> list[str]:
    """Runs of word characters only, lower-cased."""
    return re.findall(r"\w+", text.lower())


def blank_tokens(text: str) -> list[str]:
    """Whatever stands between blanks, as it is written."""
    return text.split()


TOKENISERS: dict[str, Callable[[str], list[str]]] = {
    "reference": reference_tokens,
    "words": word_tokens,
    "blanks": blank_tokens,
}


@dataclass(frozen=True)
class Bags:
    """Bags of several texts in one array: bag i holds `tokens[offsets[i]:offsets[i + 1]]`, ascending and distinct."""

    offsets: Ints
    tokens: Ranks

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Number of distinct tokens of each bag."""
        return np.diff(self.offsets)

    def bag(self, place: int) -> Ranks:
        """Tokens of one bag."""
        return self.tokens[self.offsets[place] : self.offsets[place + 1]]

    def take(self, places: Ints) -> Bags:
        """These bags, in this order."""
        sizes = self.sizes[places]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        taken = np.empty(offsets[-1], dtype=np.int32)
        in_ranges(len(places), lambda low, high: _gather(self.offsets, self.tokens, places, offsets, taken, low, high))
        return Bags(offsets, taken)


@dataclass(frozen=True)
class Vocabulary:
    """What the integers stand for; rank 0 is the rarest token."""

    words: pa.Array

    def __len__(self) -> int:
        return len(self.words)


def bags_of(*columns: pa.ChunkedArray | Iterable[str], tokeniser: str = "reference") -> tuple[list[Bags], Vocabulary]:
    """Bags of one or several columns of text, over one vocabulary ordered by how many texts hold a token."""
    if tokeniser not in TOKENISERS:
        raise unknown_name("tokeniser", tokeniser, TOKENISERS)
    texts = [_large(column) for column in columns]
    chunks = [chunk for text in texts for chunk in text.chunks] or [pa.array([], pa.large_string())]
    ids, starts, words = scan(*_prepared(pa.concat_arrays(chunks), tokeniser))
    order = np.argsort(np.bincount(ids, minlength=len(words)), kind="stable")  # equals keep the order they appeared in
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    tokens = np.empty(len(ids), dtype=np.int32)
    in_ranges(len(starts) - 1, lambda low, high: _rank(ids, starts, ranks, tokens, low, high))
    return _split(starts, tokens, [len(text) for text in texts]), Vocabulary(words.take(pa.array(order)))


def _split(starts: Ints, tokens: Ranks, counts: Sequence[int]) -> list[Bags]:
    edges = np.concatenate([[0], np.cumsum(counts)])
    return [
        Bags(starts[low : high + 1] - starts[low], tokens[starts[low] : starts[high]])
        for low, high in pairwise(edges.tolist())
    ]


def _large(column: pa.ChunkedArray | Iterable[str]) -> pa.ChunkedArray:
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column if isinstance(column, pa.Array) else pa.array(list(column), pa.string())])
    return column.cast(pa.large_string())


def _prepared(flat: pa.Array, tokeniser: str) -> tuple[Bytes, Ints, Flags]:
    """All texts as bytes, and which are cut already: those the compiled loop cannot cut."""
    data, offsets = _buffers(flat)
    is_cut = left_to_python(data, offsets) if tokeniser == "reference" else np.ones(len(flat), dtype=bool)
    if not is_cut.any():
        return data, offsets, is_cut
    places = np.flatnonzero(is_cut)
    texts = flat.take(pa.array(places)).to_pylist()
    tokens = ([token.encode() for token in TOKENISERS[tokeniser](text)] for text in texts)
    mended = pa.array([CUT.join(one) for one in tokens], pa.large_binary())
    chosen = np.arange(len(flat))
    chosen[places] = len(flat) + np.arange(len(places))
    whole = pa.concat_arrays([flat.view(pa.large_binary()), mended]).take(pa.array(chosen))
    return *_buffers(whole), is_cut


def _buffers(flat: pa.Array) -> tuple[Bytes, Ints]:
    offsets = np.frombuffer(flat.buffers()[1], dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = np.frombuffer(flat.buffers()[2] or b"", dtype=np.uint8)
    return data[offsets[0] : offsets[-1]], offsets - offsets[0]


@numba.njit(cache=True, nogil=True)
def _rank(ids: Ranks, starts: Ints, ranks: Ranks, tokens: Ranks, first: int, last: int) -> None:
    """Tokens by rank, ascending within each bag."""
    for bag in range(first, last):
        low, high = starts[bag], starts[bag + 1]
        for place in range(low, high):
            tokens[place] = ranks[ids[place]]
        if high - low > 64:
            tokens[low:high] = np.sort(tokens[low:high])
            continue
        for place in range(low + 1, high):
            token = tokens[place]
            free = place
            while free > low and tokens[free - 1] > token:
                tokens[free] = tokens[free - 1]
                free -= 1
            tokens[free] = token


@numba.njit(cache=True, nogil=True)
def _gather(offsets: Ints, tokens: Ranks, places: Ints, new: Ints, taken: Ranks, low: int, high: int) -> None:
    for place in range(low, high):
        start = offsets[places[place]]
        for step in range(new[place + 1] - new[place]):
            taken[new[place] + step] = tokens[start + step]
