from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.metrics import mean_score, ratio_score
from dialoscope.metrics.jackknife import curvature, jackknife, place
from dialoscope.metrics.statistic import Clusters, FloatArray, Interval, Sums, mean_of, ratio

SKEWED = np.random.default_rng(5).exponential(size=40)


@dataclass(frozen=True)
class MeanOf:
    """A mean that cannot be weighted, so nothing is known of its skewness."""

    values: tuple[float, ...]
    bounds: Interval | None = None
    undefined: str = ""
    error_share: float = 1.0

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def dialogues(self) -> int:
        return len(self.values)

    def value(self) -> float:
        return sum(self.values) / self.n

    def left_out(self) -> FloatArray:
        return (sum(self.values) - np.array(self.values)) / (self.n - 1)


def hall(values: FloatArray) -> Interval:
    """The interval of a mean by "On the removal of skewness by transformation" (Hall 1992), with t in place of z.

    An end that this draws closer to the mean than Student's t stays where that is.
    """
    from scipy import stats

    n, skewness = len(values), stats.skew(values) / math.sqrt(len(values))
    ends = [
        values.mean() - stats.sem(values) * 3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1)
        for x in stats.t.ppf([0.975, 0.025], n - 1)
    ]
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    return float(min(low, ends[0])), float(max(high, ends[1]))


@pytest.mark.parametrize("n", [3, 10, 29, 40])
def test_the_interval_of_a_mean_is_halls_with_students_t_where_that_is_wider(n: int) -> None:
    assert mean_score(SKEWED[:n]).interval == pytest.approx(hall(SKEWED[:n]))


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=30).filter(lambda values: np.std(values) > 1e-3))
def test_skewness_never_draws_an_end_towards_the_value(values: list[float]) -> None:
    # Few values with heavy tails look skewed where they are not, and narrowing by that would cost coverage.
    plain, made = jackknife(MeanOf(tuple(values)), 0.95), mean_score(values)
    if plain.ends is None or made.interval is None or "jackknife" not in made.signature:
        return
    dust = 1e-9 * (plain.ends[1] - plain.ends[0])
    assert made.interval[0] <= plain.ends[0] + dust
    assert made.interval[1] >= plain.ends[1] - dust


def test_without_skewness_it_is_students_interval() -> None:
    from scipy import stats

    values = np.arange(20.0)
    expected = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert mean_score(values).interval == pytest.approx(expected)
    assert jackknife(MeanOf(tuple(SKEWED)), 0.95).ends == pytest.approx(
        stats.t.interval(0.95, 39, SKEWED.mean(), stats.sem(SKEWED))
    )


def test_the_error_is_what_the_statistic_leaves_of_it() -> None:
    low, high = jackknife(MeanOf(tuple(SKEWED)), 0.95).ends or (0, 0)
    made = jackknife(MeanOf(tuple(SKEWED), error_share=0.5), 0.95)
    assert made.ends == pytest.approx((SKEWED.mean() - (high - low) / 4, SKEWED.mean() + (high - low) / 4))
    assert made.how["error"] == "0.5"


def test_a_curved_function_of_a_mean_has_the_interval_of_the_mean() -> None:
    # The exponential of a mean lies above 0, so its interval is made on the scale of logarithms, where it is the mean.
    items = np.stack([SKEWED, np.ones(40)], axis=1)
    curved = Sums.over(
        items,
        lambda sums: np.exp(ratio(sums)),
        clusters=Clusters.of(None, n=40),
        undefined="",
        bounds=(0.0, math.inf),
    )
    made = jackknife(curved, 0.95)
    assert made.ends == pytest.approx(tuple(np.exp(hall(SKEWED))))


def exponential_of_mean(values: FloatArray, unit: float = 100) -> Sums:
    items = np.stack([values, np.ones_like(values)], axis=1)
    clusters = Clusters.of(None, n=len(values))
    return Sums.over(items, lambda sums: np.exp(ratio(sums) / unit), clusters=clusters, undefined="")


@pytest.mark.parametrize("m", [5, 10, 40])
def test_the_curvature_is_that_of_a_step_of_the_standard_error(m: int) -> None:
    # Of exp(x / 100), x moving by s: half the second derivative times s², in units of the first derivative times s.
    from scipy import stats

    statistic = exponential_of_mean(SKEWED[:m])
    expected = stats.sem(SKEWED[:m]) / 100 / 2
    assert curvature(statistic, place(statistic, statistic.left_out())) == pytest.approx(expected, rel=0.01)


def test_the_curvature_of_a_function_moves_the_ends_as_the_expansion_says() -> None:
    # Without bounds the exponential of a mean x is curved by s/2, and biased by s²/2 exp(x) for a standard error s.
    from scipy import stats

    statistic = exponential_of_mean(SKEWED)
    error, acceleration = stats.sem(SKEWED) / 100, stats.skew(SKEWED) / math.sqrt(40) / 6
    curve, shift = 2 * acceleration + error / 2, acceleration + error / 2 - error / 2
    reach = stats.t.ppf(0.975, 39)
    ends = [(1 - np.cbrt(1 - 3 * curve * (x + shift))) / curve for x in (-reach, reach)]
    ends = [min(ends[0], -reach), max(ends[1], reach)]
    centre = math.exp(SKEWED.mean() / 100)
    expected = [centre + centre * error * end for end in ends]
    assert jackknife(statistic, 0.95).ends == pytest.approx(expected, abs=2e-3 * error)


def test_the_bias_moves_the_ends_back() -> None:
    """A unit of 5 makes the bias of exp(x) large: half of a standard error s, in units of s exp(x)."""
    from scipy import stats

    statistic = exponential_of_mean(SKEWED, unit=5)
    error, acceleration = stats.sem(SKEWED) / 5, stats.skew(SKEWED) / math.sqrt(40) / 6
    placed = place(statistic, statistic.left_out())
    curve, reach = 2 * acceleration + error / 2, stats.t.ppf(0.975, 39)
    (upper, without) = (
        placed.centre + placed.error * (1 - np.cbrt(1 - 3 * curve * (reach + shift))) / curve
        for shift in (acceleration, acceleration + error / 2)
    )
    assert (jackknife(statistic, 0.95).ends or (0, 0))[1] == pytest.approx(upper, abs=(without - upper) / 3)


def is_no_share(values: list[int]) -> bool:
    """Neither all alike nor all 0 or 1, in the mirror either: such have exact intervals of their own."""
    return len(set(values)) > 1 and not any({sign * one for one in values} <= {0, 1} for sign in (1, -1))


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=30).filter(is_no_share))
def test_the_mirror_image_has_the_mirrored_interval_around_the_value(values: list[int]) -> None:
    score, mirrored = mean_score(values), mean_score([-one for one in values])
    assert score.interval is not None
    assert mirrored.interval is not None
    assert score.value is not None
    assert score.interval[0] < score.value < score.interval[1]
    assert score.interval == pytest.approx((-mirrored.interval[1], -mirrored.interval[0]))


@pytest.mark.parametrize("unit", [1e-200, 1e-6, 1e6, 1e200])
def test_the_unit_of_the_values_does_not_matter(unit: float) -> None:
    low, high = mean_score(SKEWED).interval or (0, 0)
    assert mean_score(unit * SKEWED).interval == pytest.approx((unit * low, unit * high))


def test_a_ratio_has_the_interval_of_its_inverse_turned_around_nearly() -> None:
    rng = np.random.default_rng(1)
    above, below = rng.gamma(9, size=(2, 200))
    low, high = ratio_score(above, below).interval or (0, 0)
    assert ratio_score(below, above).interval == pytest.approx((1 / high, 1 / low), rel=0.005)


@pytest.mark.parametrize(
    ("bounds", "place", "restore", "scale"),
    [
        ((0.0, 1.0), lambda p: math.log(p / (1 - p)), lambda x: 1 / (1 + math.exp(-x)), "logit"),
        ((-1.0, 1.0), math.atanh, math.tanh, "logit"),  # Fisher's z is half the logit of (1 + r) / 2
        ((0.0, math.inf), math.log, math.exp, "log"),
    ],
)
def test_the_jackknife_of_a_bounded_statistic_is_taken_where_there_are_no_bounds(
    bounds: tuple[float, float], place: Callable[[float], float], restore: Callable[[float], float], scale: str
) -> None:
    from scipy import stats

    values = (0.9, 0.2, 0.7, 0.95)
    left = [place((sum(values) - one) / 3) for one in values]
    error = math.sqrt(3 / 4 * sum((one - sum(left) / 4) ** 2 for one in left))
    centre, reach = place(sum(values) / 4), stats.t.ppf(0.975, 3) * error
    made = jackknife(MeanOf(values, bounds), 0.95)
    assert made.ends == pytest.approx((restore(centre - reach), restore(centre + reach)))
    assert made.how["scale"] == scale


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, 1.0, 1.0], "the value lies at its bound of 1"),
        ([0.0, 0.0, 0.0], "the value lies at its bound of 0"),
        ([0.0, 0.0, 0.5], "the value reaches its bound once some dialogue is left out"),
        ([0.5, 0.5, 0.5], "the value is the same whichever dialogue is left out"),
    ],
)
def test_a_bounded_statistic_without_an_error_has_no_jackknife(values: list[float], reason: str) -> None:
    made = jackknife(mean_of(values, clusters=Clusters.of(None, n=3), undefined="", bounds=(0.0, 1.0)), 0.95)
    assert made.ends is None
    assert str(made.reason).startswith(reason)
