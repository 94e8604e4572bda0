from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.errors import UsageError
from turnwise.metrics import Resampling, mean_score, median_score, ratio_score
from turnwise.metrics.bootstrap import Median, jackknife
from turnwise.metrics.statistic import Clusters, mean_of

SKEWED = np.random.default_rng(5).exponential(size=40)
MANY = 100_000


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_intervals_agree_with_scipy(method: str, theirs: str) -> None:
    from scipy import stats

    expected = stats.bootstrap((SKEWED,), np.mean, n_resamples=MANY, method=theirs, batch=2000, rng=1)
    found = mean_score(SKEWED, resampling=Resampling(MANY, method=method)).interval
    # Both are random: with 100,000 draws each end has a standard error near 0.01 standard deviations.
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.05 * float(expected.standard_error))


def test_whole_dialogues_are_drawn() -> None:
    # Two dialogues of equal items: a resample of dialogues has mean 0, 1/2 or 1 only, with 1/4, 1/2, 1/4 chances,
    # here of three such dialogues: 0, 1/3, 2/3, 1, of which 0 has chance 8/27 and the low quantile is 0.
    values, ids = np.repeat([0.0, 0.0, 1.0], 100), np.repeat(["a", "b", "c"], 100)
    assert mean_score(values, clusters=ids).interval == (0, 1)
    narrow = mean_score(values).interval
    assert narrow is not None
    assert 0.25 < narrow[0] < narrow[1] < 0.42


def test_the_same_seed_gives_the_same_interval() -> None:
    assert mean_score(SKEWED) == mean_score(SKEWED)
    assert mean_score(SKEWED).interval != mean_score(SKEWED, resampling=Resampling(seed=1)).interval


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_constant_has_an_interval_without_width(method: str) -> None:
    assert mean_score([3.0] * 10, resampling=Resampling(method=method)).interval == (3, 3)


@pytest.mark.parametrize("score", [mean_score, median_score])
def test_nothing_to_average_is_said(score: object) -> None:
    assert callable(score)
    for values in ([], [math.nan]):
        scored = score(values)
        assert scored.value is None
        assert scored.reason.startswith("there are no values")


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_one_or_two_dialogues_have_a_value_but_no_interval(values: list[float]) -> None:
    scored = mean_score(values)
    assert scored.value == pytest.approx(np.mean(values))
    assert scored.interval is None


def test_values_that_are_not_finite_are_skipped_and_counted() -> None:
    scored = mean_score([1.0, math.nan, 2.0, 3.0, math.inf])
    assert (scored.value, scored.n) == (2, 3)
    assert "|skipped:2|" in scored.signature


def test_the_signature_tells_how_the_interval_was_made() -> None:
    scored = mean_score([1.0, 2.0, 3.0, 4.0], clusters=[1, 1, 2, 3], resampling=Resampling(500, 0.9, "bca", 7))
    assert scored.signature.startswith("seed:7|interval:bca-0.9|resamples:500|dialogues:3|v:")


def test_a_ratio_of_means_is_not_the_mean_of_ratios() -> None:
    scored = ratio_score([1.0, 3.0, 2.0], [1.0, 1.0, 4.0])  # 6/6; the ratios would average 1.5
    assert scored.value == pytest.approx(1)


def test_a_ratio_to_zero_is_said() -> None:
    assert ratio_score([1.0, 2.0], [0.0, 0.0]).reason == "the denominators sum to 0"


@settings(deadline=None)  # the kernel is compiled in the first example
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_the_median_of_a_resample_is_numpys_median_of_the_drawn_values(items: list[tuple[int, int]]) -> None:
    values, counts = np.array(items, dtype=np.float64).T
    statistic = Median.over(values, clusters=Clusters.of(None, n=len(values)))
    drawn = np.repeat(values, counts.astype(int))
    expected = np.median(drawn) if len(drawn) else math.nan
    assert statistic.resampled(counts.astype(np.int32)[None])[0] == pytest.approx(expected, nan_ok=True)


def test_the_median_has_an_interval_of_values() -> None:
    scored = median_score(np.arange(101.0))
    assert scored.value == 50
    assert scored.interval is not None
    assert 35 < scored.interval[0] < 50 < scored.interval[1] < 65


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    from scipy import stats

    statistic = mean_of(SKEWED, clusters=Clusters.of(None, n=len(SKEWED)), undefined="")
    expected = stats.t.interval(0.95, len(SKEWED) - 1, SKEWED.mean(), stats.sem(SKEWED))
    assert jackknife(statistic, 0.95) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "percentil"}, "Did you mean 'percentile'"),
        ({"level": 95}, "expected a share between 0 and 1"),
        ({"resamples": -1}, "expected 0"),
    ],
)
def test_settings_that_make_no_sense_are_usage_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Resampling(**options)  # type: ignore[arg-type]
