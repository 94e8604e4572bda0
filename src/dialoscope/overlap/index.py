"""An index of bags by the tokens of their prefixes, and the loop that probes it.

With rarest tokens first, two bags that overlap enough share a token among their first few (prefix filter) and are of
similar size (length filter); postings carry a signature of their bag, a few words whose differing bits bound the
overlap from above before any token is compared. A pair is met once for each prefix token it shares and is verified only
at the first. Thresholds are fractions, all bounds integers: a ratio at exactly the threshold is decided exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from dialoscope.cores import cores, in_ranges
from dialoscope.errors import UsageError
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.tokens import Bags

Signatures = np.ndarray[Any, np.dtype[np.uint64]]
BAG_BITS, SIZE_BITS, PLACE_BITS = 28, 20, 16  # of a posting: which bag, how large, where in it the token stands
TOKENS_PER_WORD = 24  # of a signature
RANGES_PER_CORE = 16  # bags differ in cost; small ranges keep all cores busy to the end
FEW = 256  # bags probed by one thread


@dataclass(frozen=True)
class Pairs:
    """Pairs of bags and how many tokens they share; `first` and `second` are places in the joined bags."""

    first: Ints
    second: Ints
    shared: Ints

    def __len__(self) -> int:
        return len(self.first)

    @property
    def columns(self) -> tuple[Ints, Ints, Ints]:
        """First, second, shared."""
        return self.first, self.second, self.shared


class Index:
    """Postings of prefix tokens of bags in order of size, ready to be probed from all cores.

    Because the bags are in order of size, so is every posting list, and the length filter is a binary search and an
    end. Where bags are joined with themselves each one looks for smaller partners only, which needs shorter prefixes.
    """

    def __init__(self, bags: Bags, limit: Fraction, *, is_self: bool) -> None:
        if len(bags) >= 1 << BAG_BITS or (len(bags) and int(bags.sizes.max()) >= 1 << SIZE_BITS):
            raise UsageError(
                f"An index holds 2^{BAG_BITS} bags of 2^{SIZE_BITS} tokens: split the corpus, or use Spark."
            )
        self.bags, self.limit, self.is_self = bags, limit, is_self
        self.signatures = _signatures(bags, signature_words(len(bags.tokens), len(bags)))
        vocabulary = int(bags.tokens.max()) + 1 if len(bags.tokens) else 0
        self.starts, self.postings = _build(
            bags.offsets, bags.tokens, self.signatures, vocabulary, limit.numerator, limit.denominator, is_self
        )

    def pairs_with(self, bags: Bags, *, is_strict: bool) -> Pairs:
        """Probe with other bags, or with the index's own."""
        width = self.signatures.shape[1]
        signatures = self.signatures if self.is_self else _signatures(bags, width)

        def probe(low: int, high: int) -> tuple[Ints, Ints, Ints]:
            found: tuple[Ints, Ints, Ints] = _probe(
                bags.offsets,
                bags.tokens,
                signatures,
                self.bags.offsets,
                self.bags.tokens,
                self.starts,
                self.postings,
                self.limit.numerator,
                self.limit.denominator,
                is_strict,
                self.is_self,
                low,
                high,
            )
            return found

        found = in_ranges(len(bags), probe, ranges=RANGES_PER_CORE * cores(), few=FEW)
        return Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _signatures(bags: Bags, words: int) -> Signatures:
    """A bit for each token: where two signatures differ in n bits, the bags differ in at least n tokens."""
    signatures = np.zeros((len(bags), words), dtype=np.uint64)
    in_ranges(len(bags), lambda low, high: _sign(bags.offsets, bags.tokens, signatures, low, high))
    return signatures


def signature_words(tokens: int, bags: int) -> int:
    """Words of 64 bits in a signature: enough that a bag leaves most of its bits unset, or they would say nothing."""
    return 1 + min(7, int(tokens / max(1, bags) / TOKENS_PER_WORD))


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _popcount(x: np.uint64) -> np.int64:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True, inline="always")
def _needed(one: Any, other: Any, top: int, bottom: int) -> Any:
    """Least overlap o with 2o / (one + other) ≥ top / bottom."""
    return (top * (one + other) + 2 * bottom - 1) // (2 * bottom)


@numba.njit(cache=True, nogil=True, inline="always")
def _needed_over(one: Any, other: Any, top: int, bottom: int, is_strict: bool) -> Any:
    """Least overlap that reaches, or (strict) passes, the threshold."""
    needed = _needed(one, other, top, bottom)
    return needed + (is_strict and 2 * bottom * needed == top * (one + other))


@numba.njit(cache=True, nogil=True, inline="always")
def _least_partner(size: int, top: int, bottom: int) -> int:
    """Least size b with which a bag can reach the threshold: 2b / (size + b) ≥ top / bottom."""
    return (top * size + (2 * bottom - top) - 1) // (2 * bottom - top)


@numba.njit(cache=True, nogil=True, inline="always")
def prefix_length(size: int, top: int, bottom: int) -> int:
    """How many of a bag's first tokens must be looked up: one more than may be missing from its smallest partner."""
    return int(size - _needed(size, _least_partner(size, top, bottom), top, bottom) + 1)


@numba.njit(cache=True, nogil=True)
def _sign(offsets: Ints, tokens: Ranks, signatures: Signatures, low: int, high: int) -> None:
    words = signatures.shape[1]
    for bag in range(low, high):
        for place in range(offsets[bag], offsets[bag + 1]):
            code = (np.uint64(tokens[place]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
            signatures[bag, (code >> np.uint64(6)) % np.uint64(words)] |= np.uint64(1) << (code & np.uint64(63))


@numba.njit(cache=True, nogil=True, inline="always")
def _indexed(size: int, top: int, bottom: int, is_self: bool) -> int:
    """How many of a bag's first tokens must be findable: fewer where all partners are at least as large."""
    if size == 0:
        return 0
    return size - _needed(size, size, top, bottom) + 1 if is_self else prefix_length(size, top, bottom)


@numba.njit(cache=True, nogil=True)
def _build(
    offsets: Ints, tokens: Ranks, signatures: Signatures, vocabulary: int, top: int, bottom: int, is_self: bool
) -> tuple[Ints, Signatures]:
    """Posting lists: for each token, the bags that have it in their prefix, as a packed word and a signature."""
    starts = np.zeros(vocabulary + 1, dtype=np.int64)
    for bag in range(len(offsets) - 1):
        for place in range(_indexed(offsets[bag + 1] - offsets[bag], top, bottom, is_self)):
            starts[tokens[offsets[bag] + place] + 1] += 1
    starts = np.cumsum(starts)
    free = starts.copy()
    postings = np.empty((starts[-1], 1 + signatures.shape[1]), dtype=np.uint64)
    for bag in range(len(offsets) - 1):
        size = offsets[bag + 1] - offsets[bag]
        for place in range(_indexed(size, top, bottom, is_self)):
            token = tokens[offsets[bag] + place]
            postings[free[token], 0] = _packed(bag, size, place)
            postings[free[token], 1:] = signatures[bag]
            free[token] += 1
    return starts, postings


@numba.njit(cache=True, nogil=True, inline="always")
def _packed(bag: int, size: int, place: int) -> np.uint64:
    """Size on top, so that words are in order of size; a place too large is told smaller, which costs time only."""
    place = min(place, (1 << PLACE_BITS) - 1)
    return np.uint64(size << (BAG_BITS + PLACE_BITS) | bag << PLACE_BITS | place)


@numba.njit(cache=True, nogil=True)
def _first_of_size(postings: Signatures, low: int, high: int, size: int) -> int:
    """First posting of a bag at least so large."""
    while low < high:
        middle = (low + high) // 2
        if np.int64(postings[middle, 0] >> np.uint64(BAG_BITS + PLACE_BITS)) < size:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _verified(one: Ranks, other: Ranks, token: int, needed: int) -> int:
    """Shared tokens of two bags; -1 if too few, or if this token is not the first they share."""
    i = j = shared = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            if shared == 0 and one[i] != token:
                return -1
            shared += 1
            i += 1
            j += 1
        elif one[i] < other[j]:
            i += 1
            if shared + len(one) - i < needed:
                return -1
        else:
            j += 1
            if shared + len(other) - j < needed:
                return -1
    return shared if shared >= needed else -1


@numba.njit(cache=True, nogil=True)
def _probe(
    offsets: Ints,
    tokens: Ranks,
    signatures: Signatures,
    index_offsets: Ints,
    index_tokens: Ranks,
    starts: Ints,
    postings: Signatures,
    top: int,
    bottom: int,
    is_strict: bool,
    is_self: bool,
    low: int,
    high: int,
) -> tuple[Ints, Ints, Ints]:
    """Pairs of the bags from `low` up to `high` with indexed ones."""
    found = np.empty((1024, 3), dtype=np.int64)
    words, count = signatures.shape[1], 0
    for bag in range(low, high):
        mine = tokens[offsets[bag] : offsets[bag + 1]]
        size = len(mine)
        if size == 0:
            continue
        signature = signatures[bag, 0]
        least = _least_partner(size, top, bottom)
        most = size if is_self else size * (2 * bottom - top) // top
        for place in range(prefix_length(size, top, bottom)):
            token = mine[place]
            if token + 1 >= len(starts):
                break
            end = starts[token + 1]
            other_size, needed, distance = np.int64(-1), 0, 0
            for posting in range(_first_of_size(postings, starts[token], end, least), end):
                word = postings[posting, 0]
                if np.int64(word >> np.uint64(BAG_BITS + PLACE_BITS)) != other_size:
                    other_size = np.int64(word >> np.uint64(BAG_BITS + PLACE_BITS))
                    if other_size > most:
                        break
                    needed = _needed_over(size, other_size, top, bottom, is_strict)
                    distance = size + other_size - 2 * needed  # as many tokens may stand in one of the two only
                    if size - place < needed:
                        break  # for larger ones as well
                other = np.int64((word >> np.uint64(PLACE_BITS)) & np.uint64((1 << BAG_BITS) - 1))
                if is_self and other >= bag:
                    break
                differing = _popcount(signature ^ postings[posting, 1])
                for extra in range(1, words):
                    differing += _popcount(signatures[bag, extra] ^ postings[posting, 1 + extra])
                if differing > distance:
                    continue
                if other_size - np.int64(word & np.uint64((1 << PLACE_BITS) - 1)) < needed:
                    continue
                theirs = index_tokens[index_offsets[other] : index_offsets[other + 1]]
                shared = _verified(mine, theirs, token, needed)
                if shared < 0:
                    continue
                if count == len(found):
                    larger = np.empty((2 * count, 3), dtype=np.int64)
                    larger[:count] = found
                    found = larger
                found[count, 0] = bag
                found[count, 1] = other
                found[count, 2] = shared
                count += 1
    return found[:count, 0].copy(), found[:count, 1].copy(), found[:count, 2].copy()
