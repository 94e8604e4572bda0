"""A corpus-level value that can be computed again for any multiset of dialogues.

Resampling needs no text: what each item contributes is computed once and kept by dialogue, and a resample is
a vector of counts that says how often each dialogue was drawn. A mean, a ratio, corpus BLEU and perplexity
are functions of sums over items (`Sums`), so a thousand resamples are one matrix product. sacreBLEU
bootstraps from sufficient statistics in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from turnwise.errors import UsageError
from turnwise.metrics.kernels import weighted_sums

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
Ids = Sequence[Hashable] | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which dialogue each item belongs to. Whole dialogues are drawn, because turns of one dialogue are alike."""

    codes: IntArray  # (items,), numbered by first appearance
    count: int

    @classmethod
    def of(cls, ids: Ids | None, *, n: int) -> Clusters:
        """Number the dialogues; without ids every item is a dialogue of its own."""
        if ids is None:
            return cls(np.arange(n), n)
        if len(ids) != n:
            raise UsageError(f"{len(ids)} dialogue ids for {n} items: give one id for each item.")
        numbers: dict[Hashable, int] = {}
        codes = [numbers.setdefault(one, len(numbers)) for one in np.asarray(ids, dtype=object).tolist()]
        return cls(np.asarray(codes, dtype=np.int64), len(numbers))

    def select(self, kept: BoolArray) -> Clusters:
        """Leave items out; the dialogues keep their numbers, so that statistics stay comparable."""
        return Clusters(self.codes[kept], self.count)

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


@dataclass(frozen=True, eq=False)
class Sums:
    """A value that is a function of sums over items, kept by dialogue."""

    totals: FloatArray  # (dialogues, k)
    of_sums: Callable[[FloatArray], FloatArray]  # (rows, k) -> (rows,)
    n: int
    undefined: str

    @classmethod
    def over(
        cls, items: FloatArray, of_sums: Callable[[FloatArray], FloatArray], *, clusters: Clusters, undefined: str
    ) -> Sums:
        """Collect items (n, k) by dialogue; an item with a NaN could not be scored and counts for nothing."""
        scored = np.asarray(np.isfinite(items).all(axis=1))
        return cls(clusters.select(scored).totals(items[scored]), of_sums, int(scored.sum()), undefined)

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return len(self.totals)

    def value(self) -> float:
        """The value over all items, or NaN."""
        return float(self.of_sums(self.totals.sum(axis=0)[None, :])[0])

    def left_out(self) -> FloatArray:
        """The value without each dialogue in turn."""
        return self.of_sums(self.totals.sum(axis=0) - self.totals)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The value of each resample."""
        return self.of_sums(weighted_sums(counts, self.totals))

    def swapped(self, other: Sums, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values of both systems after the marked dialogues change sides."""
        moved = weighted_sums(swaps, other.totals - self.totals)
        return self.of_sums(self.totals.sum(axis=0) + moved), other.of_sums(other.totals.sum(axis=0) - moved)


def ratio(sums: FloatArray) -> FloatArray:
    """First sum over second, NaN where the second is 0: means are ratios of a sum and a count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] != 0, sums[:, 0] / sums[:, 1], np.nan)


def mean_of(values: npt.ArrayLike, *, clusters: Clusters, undefined: str) -> Sums:
    """The mean as a statistic; values that are not finite are left out and not counted."""
    column = np.asarray(values, dtype=np.float64)
    return Sums.over(np.stack([column, np.ones_like(column)], axis=1), ratio, clusters=clusters, undefined=undefined)
