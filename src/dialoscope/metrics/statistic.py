"""A corpus-level value that can be computed again for any multiset of dialogues.

Resampling needs no text: what each item contributes is computed once and kept by dialogue, and a resample is
a vector of counts that says how often each dialogue was drawn. A mean, a ratio, corpus BLEU and perplexity
are functions of sums over items (`Sums`), so a thousand resamples are one matrix product. sacreBLEU
bootstraps from sufficient statistics in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from dialoscope.errors import UsageError
from dialoscope.metrics.kernels import weighted_sums

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
Ids = Sequence[Hashable] | npt.NDArray[Any]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which dialogue each item belongs to. Whole dialogues are drawn, because turns of one dialogue are alike."""

    codes: IntArray  # (items,), numbered by first appearance
    count: int
    is_grouped: bool = False  # whether dialogues were named; without names every item is one

    @classmethod
    def of(cls, ids: Ids | None, *, n: int) -> Clusters:
        """Number the dialogues; without ids every item is a dialogue of its own."""
        if ids is None:
            return cls(np.arange(n), n)
        if len(ids) != n:
            raise UsageError(f"{len(ids)} dialogue ids for {n} items: give one id for each item.")
        numbers: dict[Hashable, int] = {}
        try:
            codes = [numbers.setdefault(one, len(numbers)) for one in _listed(ids)]
        except TypeError as error:
            raise UsageError(f"Dialogue ids must be hashable, such as text or numbers: {error}.") from error
        return cls(np.asarray(codes, dtype=np.int64), len(numbers), is_grouped=True)

    def select(self, kept: BoolArray) -> Clusters:
        """Leave items out; the dialogues keep their numbers, so that statistics stay comparable."""
        return replace(self, codes=self.codes[kept])

    def drawable(self) -> Clusters:
        """Number anew the dialogues that have items: one without any brings nothing when it is drawn."""
        used = np.bincount(self.codes, minlength=self.count) > 0
        if used.all():
            return self
        return replace(self, codes=(np.cumsum(used) - 1)[self.codes], count=int(used.sum()))

    def totals(self, items: FloatArray) -> FloatArray:
        """Sum the items of each dialogue: (items, k) to (dialogues, k)."""
        columns = [np.bincount(self.codes, column, minlength=self.count) for column in items.T]
        return np.stack(columns, axis=1) if columns else np.zeros((self.count, 0))


class Statistic(Protocol):
    """What an interval needs to know: the value, and the value without each dialogue in turn."""

    @property
    def n(self) -> int:
        """Items behind the value."""

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""

    @property
    def undefined(self) -> str:
        """Why there is no value, where there is none."""

    def value(self) -> float:
        """The value over all items, or NaN."""

    def left_out(self) -> FloatArray:
        """The value without dialogue 1, without dialogue 2, …: (dialogues,)."""


@runtime_checkable
class Resampled(Statistic, Protocol):
    """A statistic that changes smoothly when dialogues are drawn more or less often, so it can be bootstrapped."""

    def resampled(self, counts: IntArray) -> FloatArray:
        """The value of each resample: (resamples, dialogues) to (resamples,)."""


class Swappable(Statistic, Protocol):
    """A statistic of one system that can be computed with some dialogues taken from another system."""

    def swapped(self, other: Self, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values of both systems after the marked dialogues change sides: (rounds, dialogues) to two (rounds,)."""


@runtime_checkable
class Itemised(Protocol):
    """A statistic that knows which items it could score, and can be had over some of them."""

    @property
    def scored(self) -> BoolArray:
        """Whether each item could be scored: (items,)."""

    def only(self, kept: BoolArray) -> Self:
        """The same over the marked items and their dialogues."""


@runtime_checkable
class Bounded(Protocol):
    """A statistic that cannot leave its bounds, so neither may its interval."""

    @property
    def bounds(self) -> Interval | None:
        """The lowest and the highest value there can be; None where there are no such."""


@runtime_checkable
class Grouped(Protocol):
    """A statistic that knows whether its dialogues were named or are single items."""

    @property
    def is_grouped(self) -> bool:
        """Whether dialogues were named."""


@runtime_checkable
class Stepwise(Protocol):
    """A statistic that moves in steps, such as the median: leaving items out does not tell how it varies."""

    @property
    def is_stepwise(self) -> bool:
        """Whether the jackknife fails."""


@runtime_checkable
class Recomputed(Protocol):
    """A statistic that is computed anew for every dialogue left out, so that leaving out each takes time by n²."""

    @property
    def is_recomputed(self) -> bool:
        """Whether there is no shorter way."""


@runtime_checkable
class Weighted(Protocol):
    """A statistic that changes smoothly when dialogues weigh more or less, by any real number."""

    def weighted(self, weights: FloatArray) -> FloatArray:
        """The value with each dialogue weighted: (rows, dialogues) to (rows,)."""


@runtime_checkable
class Corrected(Protocol):
    """A statistic that knows how far the jackknife overstates its standard error."""

    @property
    def error_share(self) -> float:
        """What is left of the jackknife's standard error, above 0 and at most 1."""


def bounds_of(statistic: Statistic) -> Interval | None:
    """The bounds of a statistic that declares any."""
    return statistic.bounds if isinstance(statistic, Bounded) else None


def is_grouped(statistic: Statistic) -> bool:
    """Whether a statistic's dialogues are more than its items."""
    return statistic.is_grouped if isinstance(statistic, Grouped) else statistic.dialogues != statistic.n


def is_stepwise(statistic: Statistic) -> bool:
    """Whether the jackknife of a statistic fails."""
    return isinstance(statistic, Stepwise) and statistic.is_stepwise


def is_recomputed(statistic: Statistic) -> bool:
    """Whether a statistic is computed anew for every dialogue left out."""
    return isinstance(statistic, Recomputed) and statistic.is_recomputed


def weighted(statistic: Statistic, weights: FloatArray) -> FloatArray:
    """The values of a statistic with dialogues weighted; NaN for one that cannot be."""
    return statistic.weighted(weights) if isinstance(statistic, Weighted) else np.full(len(weights), np.nan)


def error_share(statistic: Statistic) -> float:
    """What is left of the jackknife's standard error of a statistic, all of it where nothing is known."""
    return statistic.error_share if isinstance(statistic, Corrected) else 1.0


@dataclass(frozen=True, eq=False)
class Sums:
    """A value that is a function of sums over items, kept by dialogue."""

    items: FloatArray  # (items, k), one with a NaN could not be scored and counts for nothing
    of_sums: Callable[[FloatArray], FloatArray]  # (rows, k) -> (rows,)
    clusters: Clusters
    undefined: str
    bounds: Interval | None = None

    @classmethod
    def over(
        cls,
        items: FloatArray,
        of_sums: Callable[[FloatArray], FloatArray],
        *,
        clusters: Clusters,
        undefined: str,
        bounds: Interval | None = None,
    ) -> Sums:
        """Collect items (n, k) by dialogue; an item with a NaN could not be scored and counts for nothing."""
        return cls(items, of_sums, clusters, undefined, bounds)

    @cached_property
    def scored(self) -> BoolArray:
        """Whether each item could be scored."""
        return np.asarray(np.isfinite(self.items).all(axis=1))

    @cached_property
    def totals(self) -> FloatArray:
        """Sums over the scored items of each dialogue: (dialogues, k)."""
        return self.clusters.select(self.scored).totals(self.items[self.scored])

    @property
    def n(self) -> int:
        """Items that could be scored."""
        return int(self.scored.sum())

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return self.clusters.count

    @property
    def is_grouped(self) -> bool:
        """Whether dialogues were named."""
        return self.clusters.is_grouped

    def only(self, kept: BoolArray) -> Sums:
        """The same over the marked items and their dialogues."""
        if kept.all():
            return self
        return replace(self, items=self.items[kept], clusters=self.clusters.select(kept).drawable())

    def value(self) -> float:
        """The value over all items, or NaN."""
        return float(self.of_sums(self.totals.sum(axis=0)[None, :])[0])

    def left_out(self) -> FloatArray:
        """The value without each dialogue in turn."""
        return self.of_sums(self.totals.sum(axis=0) - self.totals)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The value of each resample."""
        return self.of_sums(weighted_sums(counts, self.totals))

    def weighted(self, weights: FloatArray) -> FloatArray:
        """The value with each dialogue weighted."""
        return self.of_sums(weights @ self.totals)

    def swapped(self, other: Sums, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values of both systems after the marked dialogues change sides."""
        moved = weighted_sums(swaps, other.totals - self.totals)
        return self.of_sums(self.totals.sum(axis=0) + moved), other.of_sums(other.totals.sum(axis=0) - moved)


@dataclass(frozen=True, eq=False)
class Mean(Sums):
    """A mean over items, whose values are at hand."""

    @property
    def values(self) -> FloatArray:
        """The values that could be averaged."""
        return np.asarray(self.items[self.scored, 0])


def ratio(sums: FloatArray) -> FloatArray:
    """First sum over second, NaN where the second is 0: means are ratios of a sum and a count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] != 0, sums[:, 0] / sums[:, 1], np.nan)


def mean_of(values: npt.ArrayLike, *, clusters: Clusters, undefined: str, bounds: Interval | None = None) -> Mean:
    """The mean as a statistic; values that are not finite are left out and not counted."""
    column = columns(values)[0]
    items = np.stack([column, np.ones_like(column)], axis=1)
    return Mean(items, ratio, clusters, undefined, bounds)


def columns(*values: npt.ArrayLike) -> FloatArray:
    """One number for each item, of each variable: (variables, items); gaps are NaN."""
    try:
        arrays = [np.asarray(one, dtype=np.float64) for one in values]
    except (TypeError, ValueError) as error:
        raise UsageError(f"Expected one number for each item: {error}.") from error
    for array in arrays:
        if array.ndim != 1:
            raise UsageError(f"Values of shape {array.shape}: expected one number for each item, in one dimension.")
    lengths = sorted({len(array) for array in arrays})
    if len(lengths) > 1:
        raise UsageError(f"Variables of {lengths} values: expected one value of each for every item.")
    return np.array(arrays).reshape(len(arrays), -1)


def fingerprint(values: FloatArray) -> str:
    """A short hash of numbers, for signatures."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:12]


def _listed(ids: Ids) -> list[Hashable]:
    """Ids one by one; an array would take tuples apart."""
    if not isinstance(ids, np.ndarray):
        return list(ids)
    if ids.ndim != 1:
        raise UsageError(f"Dialogue ids of shape {ids.shape}: expected one id for each item.")
    listed: list[Hashable] = ids.tolist()
    return listed
