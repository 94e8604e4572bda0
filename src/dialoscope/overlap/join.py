"""The exact join: all pairs of bags whose overlap ratio R(u, v) = 2|u ∩ v| / (|u| + |v|) reaches a threshold.

No approximation: see `index` for how few pairs have to be looked at, and `copies` for bags that are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.overlap.copies import Copies, in_order
from dialoscope.overlap.index import Index, Pairs
from dialoscope.overlap.scan import Ints
from dialoscope.overlap.tokens import Bags

Threshold = float | str | Fraction
MOST_DENOMINATOR = 10**9  # times the largest bag it still fits into 64 bits, with room to spare
MOST_PAIRS = 400_000_000  # 10 GB as three columns; more are of no use to anyone


class TooManyPairsError(UsageError):
    """More pairs than anyone can store; whoever asked for them knows what to ask for instead."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"There are {number:,} pairs, most of them copies: ask for pairs of distinct texts (--distinct)."
        )
        self.number = number


def exact_threshold(threshold: Threshold) -> Fraction:
    """A threshold as the fraction its decimal digits say: 0.8 is 4/5, not the nearest binary number.

    >>> exact_threshold("0.75"), exact_threshold("2/3")
    (Fraction(3, 4), Fraction(2, 3))
    """
    try:
        fraction = threshold if isinstance(threshold, Fraction) else Fraction(str(threshold))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"A threshold is a number such as 0.75, or a fraction such as 2/3, found {threshold}."
        ) from None
    if not 0 < fraction <= 1:
        raise UsageError(f"A threshold lies above 0 and at most at 1, found {threshold}.")
    if fraction.denominator > MOST_DENOMINATOR:
        raise UsageError(
            f"A threshold has nine decimals at most, or is written as a fraction ('2/3'), found {threshold}."
        )
    return fraction


def join(first: Bags, second: Bags | None = None, *, threshold: Threshold, is_strict: bool = False) -> Pairs:
    """All pairs at or (strict) over a threshold: within one set of bags, or between two.

    Within one set each pair is given once, the smaller place first. Pairs come sorted by `first`, then `second`.
    Empty bags overlap with nothing.
    """
    limit = exact_threshold(threshold)
    left, right, met = _met(first, second, limit, is_strict=is_strict)
    _check_number(left, right, met)
    pairs = left.spelt_out(met, right)
    if second is None:
        pairs = Pairs(np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second), pairs.shared)
        pairs = pairs if is_strict and limit == 1 else left.with_copies(pairs)
    return in_order(pairs, len(first))


@dataclass(frozen=True)
class DistinctPairs:
    """Pairs of distinct bags: of each, the first place that has it, and how many have it."""

    pairs: Pairs
    copies: Ints  # (bags of the first side,) how many share the bag of a place; 0 where an earlier place has it
    other_copies: Ints  # the same of the second side, or of the only one


def join_distinct(
    first: Bags, second: Bags | None = None, *, threshold: Threshold, is_strict: bool = False
) -> DistinctPairs:
    """The same pairs where copies would make too many of them: ten thousand times "yes" are fifty million pairs."""
    left, right, met = _met(first, second, exact_threshold(threshold), is_strict=is_strict)
    one, other = left.firsts[met.first], right.firsts[met.second]
    if second is None:
        one, other = np.minimum(one, other), np.maximum(one, other)
    pairs = in_order(Pairs(one, other, met.shared), len(first))
    return DistinctPairs(pairs, _copies(left, first), _copies(right, first if second is None else second))


def _met(first: Bags, second: Bags | None, limit: Fraction, *, is_strict: bool) -> tuple[Copies, Copies, Pairs]:
    """Pairs of distinct bags."""
    left = Copies(first)
    right = left if second is None else Copies(second)
    met = Index(right.bags, limit, is_self=second is None).pairs_with(left.bags, is_strict=is_strict)
    return left, right, met


def _copies(side: Copies, bags: Bags) -> Ints:
    copies = np.zeros(len(bags), dtype=np.int64)
    copies[side.firsts] = side.counts
    return copies


def _check_number(left: Copies, right: Copies, met: Pairs) -> None:
    number = int((left.counts[met.first] * right.counts[met.second]).sum()) + (left.own_pairs() if left is right else 0)
    if number > MOST_PAIRS:
        raise TooManyPairsError(number)
