"""Intervals: how far a number would move if other dialogues of the same kind had been measured.

`percentile` and `bca` (bias-corrected and accelerated) are the bootstrap of Efron and Tibshirani, *An
Introduction to the Bootstrap* (1993), chapters 13 and 14, with whole dialogues as the units that are drawn.
A statistic that cannot be bootstrapped (`distinct`) gets the jackknife of its chapter 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from turnwise.errors import UsageError, unknown_name
from turnwise.metrics.kernels import compiled
from turnwise.metrics.resample import left_out_by_counts, resample
from turnwise.metrics.statistic import Clusters, FloatArray, Ids, IntArray, Resampled, Statistic, Sums, mean_of, ratio
from turnwise.record import Origin, Score

Interval = tuple[float, float]
FEWEST_DIALOGUES = 3  # with one or two there is hardly anything to draw
DEFINED_SHARE = 0.95  # of the resamples; with fewer the interval would describe a selection of them


@dataclass(frozen=True)
class Resampling:
    """How intervals are made; `resamples=0` asks for none."""

    resamples: int = 10_000
    level: float = 0.95
    method: str = "percentile"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in INTERVALS:
            raise unknown_name("interval", self.method, INTERVALS)
        if not 0 < self.level < 1:
            raise UsageError(f"level {self.level}: expected a share between 0 and 1, such as 0.95.")
        if self.resamples < 0:
            raise UsageError(f"resamples {self.resamples}: expected 0 (no interval) or more.")

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator: the same seed gives the same draws to every statistic, whatever else is measured."""
        return np.random.default_rng(self.seed)


def percentile(values: FloatArray, statistic: Resampled, level: float) -> Interval:
    """The middle share of the resampled values."""
    return _quantiles(values, (1 - level) / 2, (1 + level) / 2)


def bca(values: FloatArray, statistic: Resampled, level: float) -> Interval:
    """The percentile interval, moved for the bias of the resamples and for skewness (equations 14.9 to 14.15)."""
    from scipy.special import ndtr, ndtri

    value = statistic.value()
    below = ((values < value).mean() + (values <= value).mean()) / 2
    if not 0 < below < 1:  # all resamples on one side, as for a constant: nothing to correct by
        return percentile(values, statistic, level)
    bias, acceleration = ndtri(below), _acceleration(statistic.left_out())
    edges = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = ndtr(bias + edges / (1 - acceleration * edges))
    return _quantiles(values, float(low), float(high))


# Ways to an interval by resampling. How to choose: `percentile` where the resamples are nearly symmetric,
# `bca` for skewed statistics; it also leaves out every dialogue in turn.
INTERVALS: Mapping[str, Callable[[FloatArray, Resampled, float], Interval]] = {"percentile": percentile, "bca": bca}
DEFAULT = Resampling()


def jackknife(statistic: Statistic, level: float) -> Interval | None:
    """Value ± Student's t times the jackknife standard error, leaving out one dialogue at a time (equation 11.5)."""
    from scipy.stats import t

    values, m = statistic.left_out(), statistic.dialogues
    if not np.isfinite(values).all():
        return None
    error = math.sqrt((m - 1) / m * float(((values - values.mean()) ** 2).sum()))
    reach = float(t.ppf((1 + level) / 2, m - 1)) * error
    return statistic.value() - reach, statistic.value() + reach


def interval(statistic: Statistic, *, resampling: Resampling = DEFAULT) -> Interval | None:
    """The interval of a statistic, or None where too few dialogues or resamples carry it."""
    if resampling.resamples == 0 or statistic.dialogues < FEWEST_DIALOGUES or not math.isfinite(statistic.value()):
        return None
    if not isinstance(statistic, Resampled):
        return jackknife(statistic, resampling.level)
    values = resample(statistic, resamples=resampling.resamples, rng=resampling.rng)
    defined = values[np.isfinite(values)]
    if len(defined) < DEFINED_SHARE * len(values):
        return None
    return INTERVALS[resampling.method](defined, statistic, resampling.level)


def score(
    statistic: Statistic, *, resampling: Resampling = DEFAULT, origin: Origin | None = None, skipped: int = 0
) -> Score:
    """Value, n, interval and signature of a statistic, or the reason why it has no value."""
    signature = sign(statistic, resampling=resampling, origin=origin, skipped=skipped)
    value = statistic.value()
    if not math.isfinite(value):
        return Score.missing(statistic.undefined, n=statistic.n, signature=signature)
    return Score(value, statistic.n, interval(statistic, resampling=resampling), signature)


def sign(
    statistic: Statistic, *, resampling: Resampling, origin: Origin | None = None, skipped: int = 0, **more: Any
) -> str:
    """The signature: what was asked for, how its interval was made, and how many items could not be used."""
    origin = origin or unstated()
    method = resampling.method if isinstance(statistic, Resampled) else "jackknife"
    made = {"interval": f"{method}-{resampling.level:g}", "resamples": resampling.resamples}
    if resampling.resamples == 0:
        made = {}
    elif method == "jackknife":
        del made["resamples"]
    is_grouped = statistic.dialogues not in (statistic.n, statistic.n + skipped)
    drawn = {"dialogues": statistic.dialogues} if made and is_grouped else {}
    settings = {**origin.settings, **more, **made, **drawn, "skipped": skipped or None}
    return replace(origin, settings=settings, seed=resampling.seed if "resamples" in made else origin.seed).signature


@cache
def unstated() -> Origin:
    """The origin of numbers whose caller names none: the version alone, looked up once."""
    return Origin()


def mean_score(
    values: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The mean with its interval; values that are not finite could not be computed, are skipped and counted.

    >>> mean_score([1.0, 2.0, 3.0, 4.0], clusters=["a", "a", "b", "c"]).value
    2.5
    """
    column = np.asarray(values, dtype=np.float64)
    statistic = mean_of(
        column, clusters=Clusters.of(clusters, n=len(column)), undefined="there are no values to average"
    )
    return score(statistic, resampling=resampling, origin=origin, skipped=len(column) - statistic.n)


def ratio_score(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The ratio of two means over the same items, such as attention to distractions against attention to History."""
    items = np.stack([np.asarray(side, dtype=np.float64) for side in (numerators, denominators)], axis=1)
    statistic = Sums.over(
        items, ratio, clusters=Clusters.of(clusters, n=len(items)), undefined="the denominators sum to 0"
    )
    return score(statistic, resampling=resampling, origin=origin, skipped=len(items) - statistic.n)


def median_score(
    values: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The median with its interval; values that are not finite are skipped and counted."""
    column = np.asarray(values, dtype=np.float64)
    statistic = Median.over(column, clusters=Clusters.of(clusters, n=len(column)))
    return score(statistic, resampling=resampling, origin=origin, skipped=len(column) - statistic.n)


@dataclass(frozen=True, eq=False)
class Median:
    """The median as a statistic: values are sorted once, a resample walks them until half its weight is behind."""

    values: FloatArray  # (items,), ascending
    codes: IntArray  # (items,), the dialogue of each
    dialogues: int
    undefined: str = "there are no values to take the median of"

    @classmethod
    def over(cls, values: FloatArray, *, clusters: Clusters) -> Median:
        """Sort the values that are finite."""
        kept = np.flatnonzero(np.isfinite(values))
        order = kept[np.argsort(values[kept], kind="stable")]
        return cls(values[order], clusters.codes[order].astype(np.int64), clusters.count)

    @property
    def n(self) -> int:
        """Items behind the value."""
        return len(self.values)

    def value(self) -> float:
        """The median, or NaN where there is nothing."""
        return float(np.median(self.values)) if self.n else math.nan

    def left_out(self) -> FloatArray:
        """The median without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The median of each resample."""
        found = np.full(len(counts), np.nan)
        compiled(_weighted_medians)(counts, self.codes, self.values, found)
        return found


def _weighted_medians(counts: IntArray, codes: IntArray, values: FloatArray, found: FloatArray) -> None:
    for row in range(len(counts)):
        total = 0
        for item in range(len(codes)):
            total += counts[row, codes[item]]
        lower, upper, behind = (total - 1) // 2, total // 2, 0  # places of the middle one, or the middle two
        low = np.nan
        for item in range(len(codes)):
            weight = counts[row, codes[item]]
            if behind <= lower < behind + weight:
                low = values[item]
            if behind <= upper < behind + weight:
                found[row] = (low + values[item]) / 2
                break
            behind += weight


def _acceleration(left_out: FloatArray) -> float:
    """Skewness of the jackknife values over six (equation 14.15); 0 for a constant."""
    defined = left_out[np.isfinite(left_out)]
    differences = defined.mean() - defined
    spread = float((differences**2).sum())
    return float((differences**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def _quantiles(values: FloatArray, low: float, high: float) -> Interval:
    bottom, top = np.quantile(values, [low, high])
    return float(bottom), float(top)
