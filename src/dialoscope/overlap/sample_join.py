"""Pairs of samples: one part, context or response, is joined; the other is compared for the pairs that were found."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dialoscope.cores import in_ranges
from dialoscope.errors import UsageError
from dialoscope.overlap.index import Pairs
from dialoscope.overlap.join import Threshold, TooManyPairsError, exact_threshold, join
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.tokens import Bags

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


def join_parts(left: list[Bags], right: list[Bags] | None, threshold: Threshold) -> tuple[Pairs, np.ndarray[Any, Any]]:
    """Pairs of units whose parts all reach the threshold, and the smallest ratio of their parts."""
    joined = rarest_part(left, right)
    try:
        pairs = join(left[joined], right[joined] if right else None, threshold=threshold)
    except TooManyPairsError as error:
        if len(left) == 1:
            raise
        raise UsageError(
            f"There are {error.number:,} pairs of samples to look at: too many. "
            "Raise the threshold, or choose the unit dialogue or turn."
        ) from error
    ratios = ratios_of(left[joined], (right or left)[joined], pairs)
    for part, (one, other) in enumerate(zip(left, right or left, strict=True)):
        if part == joined:
            continue
        shared = shared_tokens(one.offsets, one.tokens, other.offsets, other.tokens, pairs.first, pairs.second)
        sizes = one.sizes[pairs.first] + other.sizes[pairs.second]
        limit = exact_threshold(threshold)
        is_over = (2 * limit.denominator * shared >= limit.numerator * sizes) & (sizes > 0)
        ratios = np.minimum(ratios, 2 * shared / np.maximum(sizes, 1))[is_over]
        pairs = Pairs(pairs.first[is_over], pairs.second[is_over], pairs.shared[is_over])
    return pairs, ratios


def rarest_part(left: list[Bags], right: list[Bags] | None) -> int:
    """The part with the fewest identical bags: "yes" answers ten thousand questions, and few of those are the same."""
    if len(left) == 1:
        return 0
    return int(np.argmin([_identical_pairs(one, right[part] if right else None) for part, one in enumerate(left)]))


def _identical_pairs(left: Bags, right: Bags | None) -> int:
    mine, counts = np.unique(_hashes(left.offsets, left.tokens), return_counts=True)
    if right is None:
        return int((counts * (counts - 1) // 2).sum())
    theirs, others = np.unique(_hashes(right.offsets, right.tokens), return_counts=True)
    _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    return int((counts[here] * others[there]).sum())


def ratios_of(one: Bags, other: Bags, pairs: Pairs) -> np.ndarray[Any, Any]:
    """The overlap ratios of these pairs."""
    return np.asarray(2 * pairs.shared / np.maximum(1, one.sizes[pairs.first] + other.sizes[pairs.second]))


def shared_tokens(left: Ints, left_tokens: Ranks, right: Ints, right_tokens: Ranks, first: Ints, second: Ints) -> Ints:
    """How many tokens the bags of each pair share; tokens ascend within a bag, so one walk through both counts them."""
    shared = np.zeros(len(first), dtype=np.int64)
    given = (left, left_tokens, right, right_tokens, first, second, shared)
    in_ranges(len(first), lambda low, high: _share(*given, low, high))
    return shared


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _share(
    left: Ints,
    left_tokens: Ranks,
    right: Ints,
    right_tokens: Ranks,
    first: Ints,
    second: Ints,
    shared: Ints,
    low: int,
    high: int,
) -> None:
    for pair in range(low, high):
        one, one_end = left[first[pair]], left[first[pair] + 1]
        other, other_end = right[second[pair]], right[second[pair] + 1]
        count = 0
        while one < one_end and other < other_end:
            difference = left_tokens[one] - right_tokens[other]
            count += difference == 0
            one += difference <= 0
            other += difference >= 0
        shared[pair] = count


@numba.njit(cache=True, nogil=True)
def _hashes(offsets: Ints, tokens: Ranks) -> Hashes:
    """A hash of each bag, good enough to guess by; empty bags, which match nothing, all differ."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for bag in range(len(hashes)):
        code = np.uint64(14695981039346656037)
        for place in range(offsets[bag], offsets[bag + 1]):
            code = (code ^ np.uint64(tokens[place])) * np.uint64(1099511628211)
        hashes[bag] = code if offsets[bag] < offsets[bag + 1] else np.uint64(bag)
    return hashes
