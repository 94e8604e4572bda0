r"""The compiled tokeniser: one pass over the bytes of all texts, from text to distinct token numbers.

Each core takes a range of texts and numbers tokens in a hash table of its own as it meets them, each once a text; the
cores' vocabularies are then numbered together. UTF-8 is read by two tables, of what a character is (blank, word,
other) and of its lower case. Where lower case is no matter of one character (a Greek sigma at the end of a word, a
dotted capital I) or lies beyond the tables, the text is left to Python.
"""

from __future__ import annotations

import re
import string
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from dialoscope.cores import cores

Ints = np.ndarray[Any, np.dtype[np.int64]]
Ranks = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Codes = np.ndarray[Any, np.dtype[np.uint64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Part = tuple[Ranks, Ints, Bytes, Ints]  # numbers, where each text starts, the vocabulary's bytes, where each word ends

CUT = b"\xff"  # between tokens found in Python: no byte of UTF-8
BLANK, WORD, OTHER, PYTHON = 0, 1, 2, 3
READABLE = 0x20000  # characters that the tables hold; beyond lie rare ideographs
SMALLEST = 1 << 16  # bytes worth a thread of their own
PUNCTUATION = np.frombuffer(string.punctuation.encode(), dtype=np.uint8)
PLACE = np.full(256, -1, dtype=np.int64)  # of a byte in the punctuation
PLACE[PUNCTUATION] = np.arange(len(PUNCTUATION))


@cache
def _tables() -> tuple[Bytes, Ranks]:
    """Of every character: what its lower case is, blank, word or other; and its lower case."""
    characters = [chr(code) for code in range(READABLE)]
    lower = [character.lower() for character in characters]
    kinds = np.full(READABLE, OTHER, dtype=np.uint8)
    lowered = np.arange(READABLE, dtype=np.int32)
    single = "".join(one if len(one) == 1 else "!" for one in lower)
    for kind, pattern in ((BLANK, r"\s+"), (WORD, r"\w+")):
        for found in re.finditer(pattern, single):
            kinds[found.start() : found.end()] = kind
    for code in np.flatnonzero([one != other for one, other in zip(characters, lower, strict=True)]).tolist():
        if len(lower[code]) > 1 or code == ord("Σ") or _width(ord(lower[code])) > _width(code):
            kinds[code] = PYTHON
        else:
            lowered[code] = ord(lower[code])
    return kinds, lowered


def _width(code: int) -> int:
    """Bytes of a character in UTF-8."""
    return 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)


def left_to_python(data: Bytes, offsets: Ints) -> Flags:
    """Which texts hold a character that the tables cannot lower."""
    flags = np.zeros(len(offsets) - 1, dtype=np.bool_)
    _flag(data, offsets, _tables()[0], flags)
    return flags


def scan(data: Bytes, offsets: Ints, is_cut: Flags) -> tuple[Ranks, Ints, pa.Array]:
    """Distinct token numbers of each text in order of appearance, where each text starts, and the words."""
    kinds, lowered = _tables()
    edges = _ranges(offsets)

    def work(low: int, high: int) -> Part:
        part: Part = _scan(data, offsets, is_cut, kinds, lowered, low, high)
        return part

    with ThreadPoolExecutor(len(edges)) as threads:
        parts = list(threads.map(work, edges[:-1], edges[1:]))
    return _together(parts)


def _ranges(offsets: Ints) -> list[int]:
    """Edges of ranges of texts with about as many bytes, one for each core."""
    count = max(1, min(cores(), int(offsets[-1]) // SMALLEST))
    inner = np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1)[1:-1])
    return [0, *inner.tolist(), len(offsets) - 1]


def _together(parts: list[Part]) -> tuple[Ranks, Ints, pa.Array]:
    """One numbering for all parts, in order of appearance."""
    words = pa.concat_arrays([_strings(spelt, ends) for *_, spelt, ends in parts])
    encoded = words.dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int32)
    edges = np.cumsum([0, *(len(ends) - 1 for *_, ends in parts)]).tolist()
    ids = [numbers[low:high][part[0]] for part, (low, high) in zip(parts, pairwise(edges), strict=True)]
    starts = np.concatenate([[0], *(np.diff(part[1]) for part in parts)]).cumsum()
    return np.concatenate(ids), starts, encoded.dictionary


def _strings(data: Bytes, ends: Ints) -> pa.Array:
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _character(data: Bytes, place: int) -> tuple[Any, int]:
    """The character at a place of valid UTF-8, and its width in bytes."""
    byte = np.int64(data[place])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | (data[place + 1] & 0x3F), 2
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | (data[place + 1] & 0x3F) << 6 | (data[place + 2] & 0x3F), 3
    top = (byte & 0x07) << 18 | (data[place + 1] & 0x3F) << 12
    return top | (data[place + 2] & 0x3F) << 6 | (data[place + 3] & 0x3F), 4


@numba.njit(cache=True, nogil=True, inline="always")
def _spell(code: int, words: Bytes, filled: int) -> int:
    """Write a character as UTF-8; where the next one goes."""
    if code < 0x80:
        words[filled] = code
        return filled + 1
    if code < 0x800:
        words[filled] = 0xC0 | code >> 6
        words[filled + 1] = 0x80 | code & 0x3F
        return filled + 2
    if code < 0x10000:
        words[filled] = 0xE0 | code >> 12
        words[filled + 1] = 0x80 | code >> 6 & 0x3F
        words[filled + 2] = 0x80 | code & 0x3F
        return filled + 3
    words[filled] = 0xF0 | code >> 18
    words[filled + 1] = 0x80 | code >> 12 & 0x3F
    words[filled + 2] = 0x80 | code >> 6 & 0x3F
    words[filled + 3] = 0x80 | code & 0x3F
    return filled + 4


@numba.njit(cache=True, nogil=True)
def _flag(data: Bytes, offsets: Ints, kinds: Bytes, flags: Flags) -> None:
    for text in range(len(flags)):
        place, stop = offsets[text], offsets[text + 1]
        while place < stop:
            if data[place] < 0x80:
                place += 1
                continue
            code, width = _character(data, place)
            if code >= READABLE or kinds[code] == PYTHON:
                flags[text] = True
                break
            place += width


@numba.njit(cache=True, nogil=True)
def _is_dropped(words: Bytes, start: int, stop: int) -> bool:
    """Whether a token is a contiguous piece of the punctuation."""
    first = PLACE[words[start]]
    if first < 0 or first + stop - start > len(PUNCTUATION):
        return False
    for step in range(1, stop - start):  # noqa: SIM110
        if words[start + step] != PUNCTUATION[first + step]:
            return False
    return True


@numba.njit(cache=True, nogil=True, inline="always")
def _copy_cut(data: Bytes, place: int, stop: int, words: Bytes, filled: int) -> tuple[int, int]:
    """A token that Python found, as it is; past it and its separator, and where the next byte goes."""
    while place < stop and data[place] != 0xFF:
        words[filled] = data[place]
        filled += 1
        place += 1
    return place + 1, filled


@numba.njit(cache=True, nogil=True, inline="always")
def _copy_run(
    data: Bytes, place: int, stop: int, words: Bytes, filled: int, kinds: Bytes, lowered: Ranks
) -> tuple[int, int]:
    """A run of characters of one kind in lower case, nothing for blanks; past it, and where the next byte goes."""
    code, width = _character(data, place)
    kind = kinds[code]
    while kinds[code] == kind:
        if kind != BLANK:
            filled = _spell(lowered[code], words, filled)
        place += width
        if place >= stop:
            break
        code, width = _character(data, place)
    return place, filled


@numba.njit(cache=True, nogil=True)
def _scan(
    data: Bytes, offsets: Ints, is_cut: Flags, kinds: Bytes, lowered: Ranks, low: int, high: int
) -> tuple[Ranks, Ints, Bytes, Ints]:
    """Texts from `low` up to `high`. A token is spelt behind the vocabulary, where it stays if it is new."""
    size = offsets[high] - offsets[low]
    ids = np.empty(size // 5 + 16, dtype=np.int32)
    starts = np.zeros(high - low + 1, dtype=np.int64)
    words = np.empty(4096, dtype=np.uint8)
    ends, codes = np.zeros(1025, dtype=np.int64), np.zeros(1024, dtype=np.uint64)
    last = np.full(1024, -1, dtype=np.int64)  # the last text that held a word
    slots = np.zeros(4096, dtype=np.int32)  # open addressing: a number plus one, or 0
    known = count = 0
    for text in range(low, high):
        place, stop = offsets[text], offsets[text + 1]
        if ends[known] + stop - place > len(words):
            words = _grown(words, 2 * (ends[known] + stop - place))
        while place < stop:
            start = ends[known]
            if is_cut[text]:
                place, filled = _copy_cut(data, place, stop, words, start)
            else:
                place, filled = _copy_run(data, place, stop, words, start, kinds, lowered)
            if filled == start or (not is_cut[text] and _is_dropped(words, start, filled)):
                continue
            code = _hash(words, start, filled)
            slot = _find(slots, codes, words, ends, start, filled, code)
            if slots[slot] == 0:
                codes[known], ends[known + 1] = code, filled
                known += 1
                slots[slot] = known
                if known == len(codes):
                    codes, last = _grown(codes, 2 * known), _grown(last, 2 * known)
                    ends = _grown(ends, 2 * known + 1)
                    last[known:] = -1
                if ends[known] + stop - place > len(words):
                    words = _grown(words, 2 * (ends[known] + stop - place))
                if 2 * known > len(slots):
                    slots = _spread(codes, known, 4 * len(slots))
                number = known - 1
            else:
                number = slots[slot] - 1
            if last[number] != text:
                last[number] = text
                if count == len(ids):
                    ids = _grown(ids, 2 * count)
                ids[count] = number
                count += 1
        starts[text - low + 1] = count
    return ids[:count].copy(), starts, words[: ends[known]].copy(), ends[: known + 1].copy()


@numba.njit(cache=True, nogil=True)
def _grown(old: Any, size: int) -> Any:
    new = np.zeros(size, dtype=old.dtype)
    new[: len(old)] = old
    return new


@numba.njit(cache=True, nogil=True, inline="always")
def _hash(words: Bytes, start: int, stop: int) -> np.uint64:
    code = np.uint64(14695981039346656037)
    for place in range(start, stop):
        code = (code ^ np.uint64(words[place])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(32))


@numba.njit(cache=True, nogil=True, inline="always")
def _find(slots: Ranks, codes: Codes, words: Bytes, ends: Ints, start: int, stop: int, code: np.uint64) -> np.int64:
    """The slot of a token, or the free one where it would go. Bytes are compared: a hash alone decides nothing."""
    mask = np.uint64(len(slots) - 1)
    slot = code & mask
    while slots[slot] != 0:
        other = slots[slot] - 1
        if codes[other] == code and ends[other + 1] - ends[other] == stop - start:
            step = 0
            while step < stop - start and words[ends[other] + step] == words[start + step]:
                step += 1
            if step == stop - start:
                break
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@numba.njit(cache=True, nogil=True)
def _spread(codes: Codes, known: int, size: int) -> Ranks:
    """The table again, larger."""
    slots = np.zeros(size, dtype=np.int32)
    mask = np.uint64(size - 1)
    for number in range(known):
        slot = codes[number] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number + 1
    return slots
