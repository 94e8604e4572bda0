"""Intervals: how far a number would move if other dialogues of the same kind had been measured.

The default is the jackknife of `jackknife.py`. `percentile` and `bca` (bias-corrected and accelerated) are the
bootstrap of Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapters 13 and 14, with whole dialogues
as the units that are drawn. It is too narrow with few dialogues, for it knows neither Student's t nor the n − 1 of a
variance, so below 30 the jackknife takes its place, as it does for a statistic that cannot be bootstrapped
(`distinct`). The median, which moves in steps, is bootstrapped whatever was asked for, and so are correlations and
agreement over more dialogues than can be left out one by one. Values that are 0 or 1, and means at or
beside a bound, have the interval of `exact.py`. Where there is no interval, the score says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics.exact import exact
from dialoscope.metrics.jackknife import Made, centred, jackknife, snapped
from dialoscope.metrics.kernels import compiled
from dialoscope.metrics.resample import left_out_by_counts, resample
from dialoscope.metrics.statistic import (
    Clusters,
    FloatArray,
    Ids,
    IntArray,
    Interval,
    Itemised,
    Resampled,
    Statistic,
    Sums,
    columns,
    is_grouped,
    is_recomputed,
    is_stepwise,
    mean_of,
    ratio,
)
from dialoscope.record import Origin, Score

FEWEST_DIALOGUES = 3  # with one or two there is hardly anything to leave out
FEW_DIALOGUES = 30  # below this bootstraps are too narrow: docs/metrics.md, the grid by method
MANY_DIALOGUES = 10_000  # above this computing a statistic anew for each costs more than 10,000 resamples do
DEFINED_SHARE = 0.95  # of the resamples; with fewer the interval would describe a selection of them


@dataclass(frozen=True)
class Resampling:
    """How intervals are made; `resamples=0` asks for none."""

    resamples: int = 10_000
    level: float = 0.95
    method: str = "jackknife"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in INTERVALS:
            raise unknown_name("interval", self.method, INTERVALS)
        if not 0 < self.level < 1:
            raise UsageError(f"level {self.level}: expected a share between 0 and 1, such as 0.95.")
        if self.resamples < 0:
            raise UsageError(f"resamples {self.resamples}: expected 0 (no interval) or more.")
        if self.seed < 0:
            raise UsageError(f"seed {self.seed}: expected 0 or more.")

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator: the same seed gives the same draws to every statistic, whatever else is measured."""
        return np.random.default_rng(self.seed)


def percentile(values: FloatArray, statistic: Resampled, level: float) -> Interval:
    """The middle share of the resampled values."""
    return _quantiles(values, (1 - level) / 2, (1 + level) / 2)


def bca(values: FloatArray, statistic: Resampled, level: float) -> Interval | None:
    """The percentile interval, moved for the bias of the resamples and for skewness (equations 14.9 to 14.15)."""
    from scipy.special import ndtr, ndtri

    value = statistic.value()
    below = ((values < value).mean() + (values <= value).mean()) / 2
    if not 0 < below < 1:
        return None
    left_out = statistic.left_out()
    bias, acceleration = ndtri(below), _acceleration(snapped(left_out[np.isfinite(left_out)], value))
    edges = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = ndtr(bias + edges / (1 - acceleration * edges))
    return _quantiles(values, float(low), float(high)) if low <= high else None


# Ways to an interval by resampling: `percentile` where the resamples are nearly symmetric, `bca` for skewed
# statistics; it also leaves out every dialogue in turn.
BOOTSTRAPS: Mapping[str, Callable[[FloatArray, Resampled, float], Interval | None]] = {
    "percentile": percentile,
    "bca": bca,
}
INTERVALS = ("jackknife", *BOOTSTRAPS)
DEFAULT = Resampling()


def estimate(statistic: Statistic, *, resampling: Resampling = DEFAULT) -> Made:
    """The interval of a statistic, or the reason why too few dialogues or resamples carry it."""
    found, is_few = statistic.dialogues, statistic.dialogues < FEW_DIALOGUES
    if resampling.resamples == 0:
        return Made(None, "no resamples were asked for")
    if found < FEWEST_DIALOGUES:
        return Made(None, f"an interval needs at least {FEWEST_DIALOGUES} dialogues, found {found}")
    if is_stepwise(statistic) and is_few:
        steps = "an interval of a statistic that moves in steps, as the median does,"
        return Made(None, f"{steps} needs at least {FEW_DIALOGUES} dialogues, found {found}")
    is_long = found > MANY_DIALOGUES and is_recomputed(statistic)
    is_wanted = resampling.method in BOOTSTRAPS or is_stepwise(statistic) or is_long
    if isinstance(statistic, Resampled) and is_wanted and not is_few:
        return bootstrap(statistic, resampling)
    return exact(statistic, resampling.level) or jackknife(statistic, resampling.level)


def bootstrap(statistic: Resampled, resampling: Resampling) -> Made:
    """The interval by resampling dialogues: the percentiles where no other way was asked for."""
    method = resampling.method if resampling.method in BOOTSTRAPS else "percentile"
    values = resample(statistic, resamples=resampling.resamples, rng=resampling.rng)
    defined = snapped(values[np.isfinite(values)], statistic.value())
    if reason := too_few_defined(len(defined), len(values)):
        return Made(None, reason)
    ends = BOOTSTRAPS[method](defined, statistic, resampling.level)
    if ends is None:
        return Made(None, "all resamples lie on one side of the value, more bias than can be corrected")
    return Made(ends, how={"interval": f"{method}-{resampling.level:g}", "resamples": resampling.resamples})


def too_few_defined(defined: int, drawn: int) -> str | None:
    """Why resamples without a value forbid an answer, if they do: the others would be a selection."""
    if defined >= DEFINED_SHARE * drawn:
        return None
    return f"only {defined} of {drawn} resamples have a value, expected at least {DEFINED_SHARE:.0%}"


def score(
    statistic: Statistic,
    *,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
    skipped: int = 0,
    **settings: Any,
) -> Score:
    """Value, n, interval and signature of a statistic, or the reason why it has no value.

    Dialogues without a scored item are not drawn. `settings` go into the signature; `rounds`, which a test draws by
    the same seed, has it signed as well.
    """
    used = statistic.only(statistic.scored) if isinstance(statistic, Itemised) else statistic
    value = used.value()
    made = estimate(used, resampling=resampling) if math.isfinite(value) else Made(None)
    signature = sign(used, made, resampling=resampling, origin=origin, skipped=skipped, **settings)
    if not math.isfinite(value):
        return Score.missing(used.undefined, n=used.n, signature=signature)
    return Score(value, used.n, made.ends, signature, interval_reason=made.reason)


def sign(
    statistic: Statistic, made: Made, *, resampling: Resampling, origin: Origin | None, skipped: int, **settings: Any
) -> str:
    """The signature: what was asked for, how its interval was made, and how many items could not be used."""
    origin = origin or unstated()
    dialogues = statistic.dialogues if is_grouped(statistic) else None
    said = {**origin.settings, **settings, **made.how, "dialogues": dialogues, "skipped": skipped or None}
    is_random = "resamples" in made.how or settings.get("rounds") is not None
    return replace(origin, settings=said, seed=resampling.seed if is_random else origin.seed).signature


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

    Of truth values it is the share that is true, between 0 and 1.

    >>> mean_score([1.0, 2.0, 3.0, 4.0], clusters=["a", "a", "b", "c"]).value
    2.5
    """
    column = columns(values)[0]
    groups, is_share = Clusters.of(clusters, n=len(column)), len(column) > 0 and np.asarray(values).dtype == np.bool_
    bounds = (0.0, 1.0) if is_share else None
    statistic = mean_of(column, clusters=groups, undefined="there are no values to average", bounds=bounds)
    return score(statistic, resampling=resampling, origin=origin, skipped=len(column) - statistic.n)


def ratio_score(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
    bounds: Interval | None = None,
    undefined: str = "the denominators sum to 0",
) -> Score:
    """The ratio of two means over the same items, such as attention to distractions against attention to History.

    bounds: the lowest and the highest value that it can have, which its interval does not leave.
    undefined: the reason where there is no ratio.
    """
    items = columns(numerators, denominators).T
    dialogues = Clusters.of(clusters, n=len(items))
    statistic = Sums.over(items, ratio, clusters=dialogues, undefined=undefined, bounds=bounds)
    return score(statistic, resampling=resampling, origin=origin, skipped=len(items) - statistic.n)


def median_score(
    values: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The median with its interval, from 30 dialogues on; values that are not finite are skipped and counted."""
    column = columns(values)[0]
    statistic = Median.over(column, clusters=Clusters.of(clusters, n=len(column)))
    return score(statistic, resampling=resampling, origin=origin, skipped=len(column) - statistic.n)


@dataclass(frozen=True, eq=False)
class Median:
    """The median as a statistic: values are sorted once, a resample walks them until half its weight is behind."""

    values: FloatArray  # (items,), ascending
    codes: IntArray  # (items,), the dialogue of each
    dialogues: int
    is_grouped: bool = False
    undefined: str = "there are no values to take the median of"
    is_stepwise: bool = True

    @classmethod
    def over(cls, values: FloatArray, *, clusters: Clusters) -> Median:
        """Sort the values that are finite."""
        kept = np.isfinite(values)
        used, values = clusters.select(kept).drawable(), values[kept]
        order = np.argsort(values, kind="stable")
        return cls(values[order], used.codes[order].astype(np.int64), used.count, used.is_grouped)

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
    differences, _ = centred(-left_out)
    spread = float((differences**2).sum())
    return float((differences**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def _quantiles(values: FloatArray, low: float, high: float) -> Interval:
    bottom, top = np.quantile(values, [low, high])
    return float(bottom), float(top)
