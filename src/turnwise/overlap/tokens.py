r"""Texts into bags: sorted sets of integer tokens, the rarest first.

The reference tokens are those of the paper's code: lower-case, runs of word characters and runs of other characters
that are no blanks (``\w+|[^\w\s]+``), less every token that is a contiguous piece of the ASCII punctuation in its
usual order. ASCII texts are cut by a compiled loop over their bytes; texts with other characters by the regular
expression itself, and both meet in one vocabulary.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from turnwise.errors import unknown_name

Ints = np.ndarray[Any, np.dtype[np.int64]]
Ranks = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Codes = np.ndarray[Any, np.dtype[np.uint64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

REFERENCE = re.compile(r"\w+|[^\w\s]+")
SEPARATOR = "\0"  # between tokens that were found in Python; no text holds it


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
        return Bags(offsets, _gather(self.offsets, self.tokens, places, offsets))


@dataclass(frozen=True)
class Vocabulary:
    """What the integers stand for; rank 0 is the rarest token."""

    words: pa.Array

    def __len__(self) -> int:
        return len(self.words)

    def spell(self, ranks: Sequence[int] | Ranks) -> list[str]:
        """The tokens of these ranks."""
        return [str(self.words[int(rank)]) for rank in ranks]


def bags_of(*columns: pa.ChunkedArray | Iterable[str], tokeniser: str = "reference") -> tuple[list[Bags], Vocabulary]:
    """Bags of one or several columns of text, over one vocabulary ordered by how many texts hold a token."""
    if tokeniser not in TOKENISERS:
        raise unknown_name("tokeniser", tokeniser, TOKENISERS)
    texts = [_large(column) for column in columns]
    chunks = [chunk for text in texts for chunk in text.chunks] or [pa.array([], pa.large_string())]
    data, offsets, is_cut = _prepared(pa.concat_arrays(chunks), tokeniser)
    written, ends, counts = _cut(data, offsets, is_cut)
    numbers, firsts = _number(written, ends)
    ids, starts = _distinct(numbers, counts, len(firsts))
    order = _rare_first(ids, len(firsts))
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    tokens = _ranked(ids, starts, ranks)
    words = _words(written, ends).take(pa.array(firsts[order]))
    return _split(starts, tokens, [len(text) for text in texts]), Vocabulary(words)


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
    """All texts as bytes; those the compiled loop cannot cut are cut already, with a separator between tokens."""
    offsets = np.frombuffer(flat.buffers()[1], dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = np.frombuffer(flat.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    is_cut = _has_high(data, offsets - offsets[0]) if tokeniser == "reference" else np.ones(len(flat), dtype=bool)
    if not is_cut.any():
        return data, offsets - offsets[0], is_cut
    cut = TOKENISERS[tokeniser]
    places = np.flatnonzero(is_cut)
    texts = flat.take(pa.array(places)).to_pylist()
    mended = pa.array([SEPARATOR.join(cut(text)) for text in texts], pa.large_string())
    chosen = np.arange(len(flat))
    chosen[places] = len(flat) + np.arange(len(places))
    whole = pa.concat_arrays([flat, mended]).take(pa.array(chosen))
    ends = np.frombuffer(whole.buffers()[1], dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return np.frombuffer(whole.buffers()[2] or b"", dtype=np.uint8), ends, is_cut


def _words(data: Bytes, offsets: Ints) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def _rare_first(ids: Ranks, words: int) -> Ints:
    return np.argsort(np.bincount(ids, minlength=words), kind="stable")


# --- Compiled ---------------------------------------------------------------------------------------------------------

BLANK, WORD, OTHER = 0, 1, 2
KINDS = np.full(256, OTHER, dtype=np.uint8)
for _byte in (*range(9, 14), *range(28, 32), 32):  # what `\s` means in ASCII
    KINDS[_byte] = BLANK
for _character in string.ascii_letters + string.digits + "_":
    KINDS[ord(_character)] = WORD
PUNCTUATION = np.frombuffer(string.punctuation.encode(), dtype=np.uint8)
PLACE = np.full(256, -1, dtype=np.int64)  # of a byte in the punctuation
PLACE[PUNCTUATION] = np.arange(len(PUNCTUATION))


@numba.njit(cache=True, nogil=True)
def _has_high(data: Bytes, offsets: Ints) -> Flags:
    """Which texts hold bytes beyond ASCII."""
    found = np.zeros(len(offsets) - 1, dtype=np.bool_)
    for text in range(len(found)):
        for place in range(offsets[text], offsets[text + 1]):
            if data[place] > 127:
                found[text] = True
                break
    return found


@numba.njit(cache=True, nogil=True)
def _is_dropped(token: Bytes) -> bool:
    """Whether a token is a contiguous piece of the punctuation."""
    first = PLACE[token[0]]
    if first < 0 or first + len(token) > len(PUNCTUATION):
        return False
    return bool((PUNCTUATION[first : first + len(token)] == token).all())


@numba.njit(cache=True, nogil=True)
def _grown(old: Any, size: int) -> Any:
    new = np.zeros(size, dtype=old.dtype)
    new[: len(old)] = old
    return new


@numba.njit(cache=True, nogil=True)
def _cut(data: Bytes, offsets: Ints, is_cut: Flags) -> tuple[Bytes, Ints, Ints]:
    """Tokens of all texts, lower-cased and one after the other: their bytes, where each ends, and how many so far."""
    words = np.empty(len(data), dtype=np.uint8)
    ends = np.zeros(max(16, len(data) // 3), dtype=np.int64)
    counts = np.zeros(len(offsets), dtype=np.int64)
    token = filled = 0
    for text in range(len(offsets) - 1):
        place, stop = offsets[text], offsets[text + 1]
        while place < stop:
            kind = WORD if is_cut[text] else KINDS[data[place]]
            start = filled
            while place < stop and (data[place] != 0 if is_cut[text] else KINDS[data[place]] == kind):
                byte = data[place]
                words[filled] = byte + 32 if not is_cut[text] and 65 <= byte <= 90 else byte
                filled += 1
                place += 1
            place += is_cut[text]  # the separator
            if filled == start or kind == BLANK or (not is_cut[text] and _is_dropped(words[start:filled])):
                filled = start
                continue
            token += 1
            if token == len(ends):
                ends = _grown(ends, 2 * token)
            ends[token] = filled
        counts[text + 1] = token
    return words[:filled].copy(), ends[: token + 1].copy(), counts


@numba.njit(cache=True, nogil=True)
def _same(words: Bytes, ends: Ints, one: int, other: int) -> bool:
    """Whether two tokens are the same bytes."""
    if ends[one + 1] - ends[one] != ends[other + 1] - ends[other]:
        return False
    return bool((words[ends[one] : ends[one + 1]] == words[ends[other] : ends[other + 1]]).all())


@numba.njit(cache=True, nogil=True)
def _hash(words: Bytes, start: int, stop: int) -> np.uint64:
    code = np.uint64(14695981039346656037)
    for place in range(start, stop):
        code = (code ^ np.uint64(words[place])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
def _number(words: Bytes, ends: Ints) -> tuple[Ranks, Ints]:
    """Equal tokens get equal numbers, in order of appearance; and the first token of each number.

    An open-addressing table of numbers plus one. Tokens are compared byte by byte: a hash alone decides nothing.
    """
    ids = np.empty(len(ends) - 1, dtype=np.int32)
    firsts = np.zeros(1024, dtype=np.int64)
    codes = np.zeros(1024, dtype=np.uint64)
    slots = np.zeros(4096, dtype=np.int32)
    known = 0
    for token in range(len(ids)):
        code = _hash(words, ends[token], ends[token + 1])
        slot = _find(slots, codes, firsts, words, ends, token, code)
        if slots[slot] == 0:
            if known == len(firsts):
                firsts, codes = _grown(firsts, 2 * known), _grown(codes, 2 * known)
            firsts[known], codes[known] = token, code
            known += 1
            slots[slot] = known
            if 2 * known > len(slots):
                slots = _spread(codes, known, 4 * len(slots))
                slot = _find(slots, codes, firsts, words, ends, token, code)
        ids[token] = slots[slot] - 1
    return ids, firsts[:known].copy()


@numba.njit(cache=True, nogil=True)
def _find(slots: Ranks, codes: Codes, firsts: Ints, words: Bytes, ends: Ints, token: int, code: np.uint64) -> np.int64:
    """The slot of a token, or the free one where it would go."""
    slot = np.int64(code % np.uint64(len(slots)))
    while slots[slot] != 0:
        other = slots[slot] - 1
        if codes[other] == code and _same(words, ends, firsts[other], token):
            break
        slot = np.int64((slot + 1) % len(slots))
    return slot


@numba.njit(cache=True, nogil=True)
def _spread(codes: Codes, known: int, size: int) -> Ranks:
    """The table again, larger."""
    slots = np.zeros(size, dtype=np.int32)
    for number in range(known):
        slot = np.int64(codes[number] % np.uint64(size))
        while slots[slot] != 0:
            slot = np.int64((slot + 1) % size)
        slots[slot] = number + 1
    return slots


@numba.njit(cache=True, nogil=True)
def _distinct(ids: Ranks, counts: Ints, vocabulary: int) -> tuple[Ranks, Ints]:
    """Each number once a text, and where each text starts."""
    seen = np.full(vocabulary, -1, dtype=np.int64)  # the last text that held a word
    kept = np.empty(len(ids), dtype=np.int32)
    starts = np.zeros(len(counts), dtype=np.int64)
    filled = 0
    for text in range(len(counts) - 1):
        for token in range(counts[text], counts[text + 1]):
            if seen[ids[token]] != text:
                seen[ids[token]] = text
                kept[filled] = ids[token]
                filled += 1
        starts[text + 1] = filled
    return kept[:filled].copy(), starts


@numba.njit(cache=True, nogil=True, parallel=True)
def _ranked(ids: Ranks, starts: Ints, ranks: Ranks) -> Ranks:
    """Tokens by rank, ascending within each bag."""
    tokens = np.empty(len(ids), dtype=np.int32)
    for bag in numba.prange(len(starts) - 1):
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
    return tokens


@numba.njit(cache=True, nogil=True, parallel=True)
def _gather(offsets: Ints, tokens: Ranks, places: Ints, new: Ints) -> Ranks:
    taken = np.empty(new[-1], dtype=np.int32)
    for place in numba.prange(len(places)):
        start = offsets[places[place]]
        for step in range(new[place + 1] - new[place]):
            taken[new[place] + step] = tokens[start + step]
    return taken
