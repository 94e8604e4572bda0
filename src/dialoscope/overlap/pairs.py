"""All pairs over a threshold: within one corpus or between two, of dialogues, turns, samples or texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from dialoscope.cores import in_ranges
from dialoscope.errors import UsageError
from dialoscope.overlap.index import Pairs
from dialoscope.overlap.join import TooManyPairsError, exact_threshold, join, join_distinct
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.sides import Data, Side, check_same_form, side_of
from dialoscope.overlap.tokens import Bags, bags_of

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, eq=False)
class OverlapPairs:
    """Pairs of units, by id, with their overlap ratio; sorted by the first, then the second.

    Where only distinct bags of words were asked for, `first` and `second` are the first units that have them, and
    `first_copies` and `second_copies` tell how many do.
    """

    table: pa.Table  # first, second, ratio
    unit: str
    threshold: str
    units: int
    distinct: int | None = None  # bags of words among the units
    other_units: int | None = None  # of the other corpus, where there is one

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_dict(self) -> dict[str, Any]:
        """The pairs' number as JSON has it; the pairs themselves go to a file."""
        counts = {"units": self.units, "other_units": self.other_units, "distinct": self.distinct}
        known = {name: count for name, count in counts.items() if count is not None}
        return {"unit": self.unit, "threshold": self.threshold, **known, "pairs": len(self)}

    @property
    def is_whole(self) -> bool:
        """Whether the table holds all pairs; those that Spark wrote to a folder are there, and not here."""
        return int(self.table.num_rows) == len(self)

    def closest(self, most: int) -> list[dict[str, Any]]:
        """The pairs of the highest ratio, the first of equals before."""
        ratios = self.table["ratio"].to_numpy() if len(self) else np.zeros(0)
        if len(ratios) > most:
            cut = np.partition(ratios, -most)[-most]
            places = np.concatenate([np.flatnonzero(ratios > cut), np.flatnonzero(ratios == cut)])[:most]
        else:
            places = np.arange(len(ratios))
        order = places[np.argsort(-ratios[places], kind="stable")]
        return list(self.table.take(pa.array(order)).to_pylist())


def pairs(
    data: Data,
    against: Data | None = None,
    *,
    unit: str = "dialogue",
    threshold: float | str = 0.75,
    column: str | None = None,
    context_turns: int = 1,
    tokeniser: str = "reference",
    is_distinct: bool = False,
) -> OverlapPairs:
    """Find all pairs of units whose overlap ratio is at least the threshold: exact, nothing is sampled or hashed away.

    A sample (context, response) overlaps by the least of its two parts. Units with the same words make a pair each,
    which in a large corpus of short turns is too many; `is_distinct` gives each bag of words once.

    >>> pairs(["a b c", "x", "a b d"], threshold="0.6").table["ratio"].to_pylist()
    [0.6666666666666666]
    """
    given = [data] if against is None else [data, against]
    sides = [side_of(one, unit=unit, column=column, context_turns=context_turns) for one in given]
    first, last = sides[0], sides[-1]
    check_same_form(first.unit, len(first.texts), last.unit, len(last.texts))
    bags, _ = bags_of(*(column for side in sides for column in side.texts), tokeniser=tokeniser)
    width = len(first.texts)
    other_units = None if against is None else len(last)
    if is_distinct:
        return replace(_distinct(first, last, bags, str(threshold)), other_units=other_units)
    found, ratios = _joined(bags[:width], bags[width:] or None, threshold)
    names = {"first": first.ids.take(pa.array(found.first)), "second": last.ids.take(pa.array(found.second))}
    table = pa.table({**names, "ratio": ratios})
    return OverlapPairs(table, first.unit, str(threshold), len(first), other_units=other_units)


def _distinct(first: Side, last: Side, bags: list[Bags], threshold: str) -> OverlapPairs:
    """Pairs of the first units of each bag, with the number of units that have it."""
    if len(first.texts) > 1:
        raise UsageError(
            "Distinct pairs are of whole texts: choose the unit dialogue or turn, or leave --distinct out."
        )
    found = join_distinct(*bags, threshold=threshold)
    one, other = found.pairs.first, found.pairs.second
    columns = {
        "first": first.ids.take(pa.array(one)),
        "second": last.ids.take(pa.array(other)),
        "ratio": _ratios(bags[0], bags[-1], found.pairs),
        "first_copies": found.copies[one],
        "second_copies": found.other_copies[other],
    }
    return OverlapPairs(pa.table(columns), first.unit, threshold, len(first), int((found.copies > 0).sum()))


def _joined(left: list[Bags], right: list[Bags] | None, threshold: float | str) -> tuple[Pairs, np.ndarray[Any, Any]]:
    """Join one part and hold the others against the threshold as well."""
    main = rarest_part(left, right)
    try:
        found = join(left[main], right[main] if right else None, threshold=threshold)
    except TooManyPairsError as error:
        if len(left) == 1:
            raise
        raise UsageError(
            f"There are {error.number:,} pairs of samples to look at: too many. "
            "Raise the threshold, or choose the unit dialogue or turn."
        ) from error
    ratios = _ratios(left[main], (right or left)[main], found)
    for part, (one, other) in enumerate(zip(left, right or left, strict=True)):
        if part == main:
            continue
        shared = shared_tokens(one.offsets, one.tokens, other.offsets, other.tokens, found.first, found.second)
        sizes = one.sizes[found.first] + other.sizes[found.second]
        limit = exact_threshold(threshold)
        is_over = (2 * limit.denominator * shared >= limit.numerator * sizes) & (sizes > 0)
        ratios = np.minimum(ratios, 2 * shared / np.maximum(sizes, 1))[is_over]
        found = Pairs(found.first[is_over], found.second[is_over], found.shared[is_over])
    return found, ratios


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


def _ratios(one: Bags, other: Bags, found: Pairs) -> np.ndarray[Any, Any]:
    return np.asarray(2 * found.shared / np.maximum(1, one.sizes[found.first] + other.sizes[found.second]))


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
