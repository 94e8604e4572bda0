"""Intervals from leaving out one dialogue at a time: Student's t on a scale without bounds, corrected for skewness.

value ± t · standard error, with the jackknife's error and m − 1 degrees of freedom for m dialogues (Efron and
Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 11), and three things that make it keep its promise:

- Between bounds all this happens to logit((value − low) / (high − low)), for a correlation Fisher's z, above a single
  bound to log(value − low), and the ends are mapped back.
- The t of a skewed statistic is itself skewed. Hall's cubic (*On the removal of skewness by transformation*, 1992)
  takes that out, with the three constants of DiCiccio and Efron (*More accurate confidence intervals in exponential
  families*, 1992): acceleration, curvature and bias. It needs a statistic that is a smooth function of sums. Few
  values with heavy tails look skewed where they are not, so the cubic moves an end outwards, never inwards.
- Where leaving out one dialogue is known to overstate the error, the statistic says by how much (`error_share`): rank
  correlations of independent items by their degree as U-statistics, distinct-n by the words that occur in two
  dialogues, three, and so on.

docs/metrics.md shows how often these intervals hold the truth, by statistic and number of dialogues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dialoscope.metrics.statistic import FloatArray, Interval, Statistic, bounds_of, error_share, weighted

ROUNDING = 1e-12  # of a value or a spread; sums in another order differ in their last digits
STEP = 0.1  # of a standard error, along which the curvature is taken
STRAIGHT = 1e-6  # a cubic as flat as this is a line


@dataclass(frozen=True)
class Made:
    """An interval and how it was made, or why there is none."""

    ends: Interval | None
    reason: str | None = None
    how: Mapping[str, Any] = field(default_factory=dict)  # what the signature says of it


def jackknife(statistic: Statistic, level: float) -> Made:
    """Value ± Student's t times the standard error, on the statistic's scale and corrected for its skewness."""
    from scipy.special import stdtrit

    left_out = statistic.left_out()
    placed = place(statistic, left_out)
    scale, centre = placed.scale, placed.centre
    if reason := _refuse(statistic, left_out, placed):
        return Made(None, reason)
    skewness, share = _skewness(statistic, placed), error_share(statistic)
    reach = stdtrit(statistic.dialogues - 1, (1 + level) / 2) * np.array([-1.0, 1.0])
    moved = skewness.widen(reach) if skewness else reach
    low, high = scale.restore(centre + share * placed.error * moved).tolist()
    if not (math.isfinite(low) and math.isfinite(high)):
        return Made(None, "an end of the interval is larger than any number that can be written")
    said = {
        "scale": scale.name,
        "skewness": "hall" if skewness else None,
        "error": f"{share:.3g}" if share < 1 else None,
    }
    return Made((low, high), how={"interval": f"jackknife-{level:g}", **said})


@dataclass(frozen=True)
class Scale:
    """Where the jackknife takes place: values at a bound go to infinity, and nothing comes back from beyond it."""

    name: str | None
    place: Callable[[FloatArray], FloatArray]
    restore: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Placed:
    """A value, and the values with each dialogue left out, on that scale."""

    scale: Scale
    centre: float
    left_out: FloatArray  # (dialogues,)

    @cached_property
    def spread(self) -> tuple[FloatArray, float]:
        """Differences from their mean in units of the largest, and that."""
        return centred(snapped(self.left_out, self.centre))

    @property
    def direction(self) -> FloatArray:
        """The same differences, of length 1."""
        differences = self.spread[0]
        return np.asarray(differences / math.sqrt(float((differences**2).sum())))

    @property
    def error(self) -> float:
        """The jackknife's standard error (equation 11.5)."""
        (differences, largest), m = self.spread, len(self.left_out)
        return largest * math.sqrt((m - 1) / m * float((differences**2).sum()))

    @property
    def bias(self) -> float:
        """The jackknife's bias (equation 11.8)."""
        return float((len(self.left_out) - 1) * (self.left_out - self.centre).mean())


@dataclass(frozen=True)
class Skewness:
    """What a skewed statistic's t does: P(t ≤ x) = Φ(x + shift + curve x²), up to terms of order 1/m."""

    curve: float
    shift: float

    def widen(self, quantiles: FloatArray) -> FloatArray:
        """The same where an end moves outwards, and the quantile where it would move inwards."""
        moved = self.straighten(quantiles)
        return np.where(quantiles < 0, np.minimum(quantiles, moved), np.maximum(quantiles, moved))

    def straighten(self, quantiles: FloatArray) -> FloatArray:
        """How many errors from the value an end lies, for quantiles that hold without skewness (Hall 1992)."""
        away = quantiles + self.shift
        if abs(self.curve) < STRAIGHT:
            return away
        return np.asarray((1 - np.cbrt(1 - 3 * self.curve * away)) / self.curve)


def place(statistic: Statistic, left_out: FloatArray) -> Placed:
    """Put a statistic, and its values with each dialogue left out, on its scale."""
    scale = _scale_of(bounds_of(statistic))
    return Placed(scale, float(scale.place(np.array([statistic.value()]))[0]), scale.place(left_out))


def _skewness(statistic: Statistic, placed: Placed) -> Skewness | None:
    """Acceleration a, curvature c and bias b give curve 2a + c and shift a + c − b; None where they are not known."""
    acceleration, curved = -float((placed.direction**3).sum()) / 6, curvature(statistic, placed)
    shift = acceleration + curved - placed.bias / placed.error
    # As large as a whole error it is no small correction any more, and the expansion says nothing.
    return Skewness(2 * acceleration + curved, shift) if abs(shift) < 1 else None


def curvature(statistic: Statistic, placed: Placed) -> float:
    """How far the value bends, in errors, over one error in the direction in which it moves fastest.

    Dialogues are weighted so that the value moves by a step of an error either way; how far the two values lie from a
    straight line tells. NaN for a statistic that cannot be weighted.
    """
    m = statistic.dialogues
    # Weights moved by a vector of length 1 move the value by sqrt((m − 1)/m) of the jackknife's error.
    away = STEP * math.sqrt(m / (m - 1)) * placed.direction
    values = placed.scale.place(weighted(statistic, 1 + np.stack([away, 0 * away, -away])))
    return float((values[0] - values[1]) - (values[1] - values[2])) / (2 * STEP**2 * placed.error)


def _refuse(statistic: Statistic, left_out: FloatArray, placed: Placed) -> str | None:
    """Why there is no interval, if so."""
    if not np.isfinite(left_out).all():
        return "there is no value once some dialogue is left out"
    if not math.isfinite(placed.centre):
        return f"the value lies at its bound of {statistic.value():g}, where leaving out dialogues shows no error"
    if not np.isfinite(placed.left_out).all():
        return "the value reaches its bound once some dialogue is left out"
    if placed.error == 0:
        return "the value is the same whichever dialogue is left out, so there is no error to estimate"
    return None


def _scale_of(bounds: Interval | None) -> Scale:
    from scipy.special import expit, logit

    low, high = bounds or (-math.inf, math.inf)
    if math.isinf(low):
        return Scale(None, lambda values: values, lambda placed: placed)
    if math.isinf(high):
        return Scale("log", lambda values: _log(values - low), lambda placed: low + _exp(placed))
    width = high - low
    return Scale(
        "logit",
        lambda values: np.asarray(logit(_off_bounds((values - low) / width))),
        lambda placed: np.asarray(low + width * expit(placed)),
    )


def centred(values: FloatArray) -> tuple[FloatArray, float]:
    """Differences from the mean in units of the largest, and that; squares of large ones would overflow."""
    if not len(values) or values.min() == values.max():  # a mean of equal numbers may differ in its last digit
        return np.zeros_like(values), 0.0
    differences = values - values.mean()
    largest = float(np.abs(differences).max())
    return differences / largest, largest


def snapped(values: FloatArray, value: float) -> FloatArray:
    """Make equal what equals the value up to rounding: a constant lies in its own interval, and ties are ties."""
    if not len(values):
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(values - value) <= ROUNDING * max(abs(value), float(values.max() - values.min()))
    return np.where(near, value, values)


def _off_bounds(shares: FloatArray) -> FloatArray:
    """Put what lies at a bound, or beyond it by rounding, exactly there."""
    return np.where(shares <= ROUNDING, 0.0, np.where(shares >= 1 - ROUNDING, 1.0, shares))


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values))


def _exp(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(values))
