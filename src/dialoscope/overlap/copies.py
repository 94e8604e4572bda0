"""Identical bags, joined once: which bags are the same, and pairs of distinct bags spelt out for every copy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dialoscope.cores import in_ranges
from dialoscope.overlap.index import Pairs
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.tokens import Bags

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class Copies:
    """Distinct bags in order of size, and the places each one stands for."""

    def __init__(self, bags: Bags) -> None:
        order = _identical_order(bags)
        starts = np.flatnonzero(_begins(bags.offsets, bags.tokens, order))
        self.bags = bags.take(order[starts])
        self.members = order  # places, identical bags side by side, each group in order of place
        self.edges = np.append(starts, len(order))

    @property
    def counts(self) -> Ints:
        """How many places each distinct bag stands for."""
        return np.diff(self.edges)

    @property
    def firsts(self) -> Ints:
        """The first place of each distinct bag."""
        return np.asarray(self.members[self.edges[:-1]])

    def own_pairs(self) -> int:
        """How many pairs the copies of one bag make; empty bags overlap with nothing."""
        return int((self.counts * (self.counts - 1) // 2)[self.bags.sizes > 0].sum())

    def spelt_out(self, met: Pairs, right: Copies) -> Pairs:
        """Pairs of distinct bags as pairs of places."""
        total = int((self.counts[met.first] * right.counts[met.second]).sum())
        return Pairs(*_expand(self.members, self.edges, right.members, right.edges, *met.columns, total))

    def with_copies(self, pairs: Pairs) -> Pairs:
        """The same, and every pair of copies of one bag."""
        own = Pairs(*_expand_own(self.members, self.edges, self.bags.sizes, self.own_pairs()))
        return Pairs(*(np.concatenate(both) for both in zip(pairs.columns, own.columns, strict=True)))


def _identical_order(bags: Bags) -> Ints:
    """Places with identical bags side by side, each group in order of place."""
    keys = np.zeros((2, len(bags)), dtype=np.uint64)
    in_ranges(len(bags), lambda low, high: _hash(bags.offsets, bags.tokens, keys, low, high))
    order = np.lexsort((np.arange(len(bags)), keys[1], keys[0], bags.sizes))
    return np.asarray(order, dtype=np.int64)


def in_order(pairs: Pairs, count: int) -> Pairs:
    """Pairs of `count` first places, sorted by first, then second."""
    starts, second, shared = _by_first(*pairs.columns, count)
    in_ranges(count, lambda low, high: _by_second(starts, second, shared, low, high))
    return Pairs(np.repeat(np.arange(count), np.diff(starts)), second, shared)


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _hash(offsets: Ints, tokens: Ranks, hashes: Hashes, low: int, high: int) -> None:
    """Two independent hashes of every bag."""
    for bag in range(low, high):
        one, other = np.uint64(14695981039346656037), np.uint64(0x9E3779B97F4A7C15)
        for place in range(offsets[bag], offsets[bag + 1]):
            token = np.uint64(tokens[place])
            one = (one ^ token) * np.uint64(1099511628211)
            other = (other + token + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
            other ^= other >> np.uint64(32)
        hashes[0, bag], hashes[1, bag] = one, other


@numba.njit(cache=True, nogil=True)
def _begins(offsets: Ints, tokens: Ranks, order: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where in this order a bag differs from the one before; tokens are compared, hashes only brought them together."""
    begins = np.ones(len(order), dtype=np.bool_)
    for place in range(1, len(order)):
        one, other = order[place - 1], order[place]
        size = offsets[one + 1] - offsets[one]
        if size == offsets[other + 1] - offsets[other]:
            same = True
            for step in range(size):
                if tokens[offsets[one] + step] != tokens[offsets[other] + step]:
                    same = False
                    break
            begins[place] = not same
    return begins


@numba.njit(cache=True, nogil=True)
def _expand(
    left: Ints, left_edges: Ints, right: Ints, right_edges: Ints, one: Ints, other: Ints, shared: Ints, total: int
) -> tuple[Ints, Ints, Ints]:
    """Every place of one distinct bag with every place of its partner."""
    first, second, common = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    filled = 0
    for pair in range(len(one)):
        for i in range(left_edges[one[pair]], left_edges[one[pair] + 1]):
            for j in range(right_edges[other[pair]], right_edges[other[pair] + 1]):
                first[filled], second[filled], common[filled] = left[i], right[j], shared[pair]
                filled += 1
    return first, second, common


@numba.njit(cache=True, nogil=True)
def _expand_own(members: Ints, edges: Ints, sizes: Ints, total: int) -> tuple[Ints, Ints, Ints]:
    """Every pair of copies of one bag."""
    first, second, common = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    filled = 0
    for bag in range(len(sizes)):
        if sizes[bag] == 0:
            continue
        for i in range(edges[bag], edges[bag + 1]):
            for j in range(i + 1, edges[bag + 1]):
                first[filled], second[filled], common[filled] = members[i], members[j], sizes[bag]
                filled += 1
    return first, second, common


@numba.njit(cache=True, nogil=True)
def _by_first(first: Ints, second: Ints, shared: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Pairs with one first place side by side, by counting; and where those of each place start."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for place in first:
        starts[place + 1] += 1
    starts = np.cumsum(starts)
    free = starts.copy()
    partner, common = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    for pair in range(len(first)):
        to = free[first[pair]]
        partner[to], common[to] = second[pair], shared[pair]
        free[first[pair]] += 1
    return starts, partner, common


@numba.njit(cache=True, nogil=True)
def _by_second(starts: Ints, second: Ints, shared: Ints, first: int, last: int) -> None:
    """Order the pairs of each first place by the second, where they stand."""
    for place in range(first, last):
        low, high = starts[place], starts[place + 1]
        if high - low > 64:
            order = np.argsort(second[low:high])
            second[low:high], shared[low:high] = second[low:high][order], shared[low:high][order]
            continue
        for pair in range(low + 1, high):
            other, common = second[pair], shared[pair]
            free = pair
            while free > low and second[free - 1] > other:
                second[free], shared[free] = second[free - 1], shared[free - 1]
                free -= 1
            second[free], shared[free] = other, common
