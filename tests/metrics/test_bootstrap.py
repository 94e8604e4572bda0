from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.metrics import (
    Resampling,
    annotator_ceiling,
    bootstrap,
    compare_correlations,
    correlate,
    mean_score,
    median_score,
    ratio_score,
)
from dialoscope.metrics.bootstrap import MANY_DIALOGUES, Median
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums
from dialoscope.record import Score

PERCENTILE = Resampling(method="percentile")
SKEWED = np.random.default_rng(5).exponential(size=40)
MANY = 100_000


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_intervals_agree_with_scipy(method: str, theirs: str) -> None:
    from scipy import stats

    expected = stats.bootstrap((SKEWED,), np.mean, n_resamples=MANY, method=theirs, batch=2000, rng=1)
    found = mean_score(SKEWED, resampling=Resampling(MANY, method=method)).interval
    # Both are random: with 100,000 draws each end has a standard error near 0.01 standard deviations.
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.05 * float(expected.standard_error))


def variance_of_sums(sums: FloatArray) -> FloatArray:
    """Over n, so too small on average: a biased statistic."""
    return np.asarray(sums[:, 1] / sums[:, 2] - (sums[:, 0] / sums[:, 2]) ** 2)


def variance_score(values: FloatArray, resampling: Resampling) -> Score:
    items = np.stack([values, values**2, np.ones_like(values)], axis=1)
    statistic = Sums.over(items, variance_of_sums, clusters=Clusters.of(None, n=len(values)), undefined="")
    return bootstrap.score(statistic, resampling=resampling)


def test_bca_corrects_the_bias_of_a_variance_as_scipy_does() -> None:
    from scipy import stats

    expected = stats.bootstrap((SKEWED,), np.var, n_resamples=MANY, method="BCa", batch=2000, rng=1)
    found = variance_score(SKEWED, Resampling(MANY, method="bca")).interval
    # Without the correction for bias the low end would lie 0.13, the high end 0.5 standard errors lower.
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.06 * float(expected.standard_error))


def test_bca_halves_ties_as_scipy_does() -> None:
    from scipy import stats

    # With 9 or 12 ones a quantile falls between two multiples of 1/30, and scipy's own seeds disagree.
    values = np.repeat([1.0, 0.0], [6, 24])
    expected = stats.bootstrap((values,), np.mean, n_resamples=MANY, method="BCa", batch=2000, rng=1)
    found = mean_score(values, resampling=Resampling(MANY, method="bca")).interval
    assert found == pytest.approx(tuple(expected.confidence_interval))  # multiples of 1/30: the same, not nearly


def test_whole_dialogues_are_drawn() -> None:
    # Thirty dialogues of a hundred equal items have the interval of thirty items, not of three thousand.
    alone = np.repeat([0.0, 0.0, 3.0], 10)
    ids = np.repeat(np.arange(30), 100)
    for resampling in (Resampling(), PERCENTILE):
        grouped = mean_score(np.repeat(alone, 100), clusters=ids, resampling=resampling).interval
        assert grouped == pytest.approx(mean_score(alone, resampling=resampling).interval)
    narrow = mean_score(np.repeat(alone, 100)).interval
    assert narrow is not None
    assert 0.94 < narrow[0] < narrow[1] < 1.06


def test_the_same_seed_gives_the_same_interval() -> None:
    assert mean_score(SKEWED, resampling=PERCENTILE) == mean_score(SKEWED, resampling=PERCENTILE)
    other = Resampling(method="percentile", seed=1)
    assert mean_score(SKEWED, resampling=PERCENTILE).interval != mean_score(SKEWED, resampling=other).interval


@pytest.mark.parametrize(
    ("n", "asked", "made"),
    [
        (40, "jackknife", "jackknife"),
        (40, "percentile", "percentile"),
        (40, "bca", "bca"),
        (29, "percentile", "jackknife"),  # a bootstrap of few is too narrow
        (29, "bca", "jackknife"),
        (MANY_DIALOGUES, "jackknife", "jackknife"),
        (MANY_DIALOGUES + 1, "jackknife", "jackknife"),  # a sum without one of its terms costs nothing
    ],
)
def test_the_signature_names_the_method_that_was_used(n: int, asked: str, made: str) -> None:
    scored = mean_score(np.arange(float(n)), resampling=Resampling(100, method=asked))
    assert f"interval:{made}-0.95|" in scored.signature


@pytest.mark.parametrize(("more", "made"), [(0, "jackknife"), (1, "percentile")])
def test_what_is_computed_anew_for_each_dialogue_is_bootstrapped_where_there_are_too_many(
    more: int, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "MANY_DIALOGUES", 200)
    first, second, third = np.random.default_rng(0).normal(size=(3, 200 + more))
    single = correlate(first, second, resampling=Resampling(100))
    both = compare_correlations(first, second, third, resampling=Resampling(100)).difference
    ceiling = annotator_ceiling(np.stack([first, second], axis=1), resampling=Resampling(100))
    assert all(f"interval:{made}-0.95|" in one.signature for one in (single, both, ceiling))
    assert "interval:jackknife-0.95|" in mean_score(first).signature


def test_the_mean_of_200_000_values_has_the_interval_without_a_random_part() -> None:
    values = np.random.default_rng(0).exponential(size=200_000)
    start = time.perf_counter()
    scored = mean_score(values)
    assert "interval:jackknife-0.95|" in scored.signature
    assert time.perf_counter() - start < 5  # by n², it would take hours


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("constant", [3.0, 0.1, 1 / 3, -1e-9, 1e200])
@pytest.mark.parametrize("n", [30, 77])
def test_a_constant_has_itself_as_the_interval(method: str, constant: float, n: int) -> None:
    scored = mean_score([constant] * n, resampling=Resampling(500, method=method))
    assert scored.interval == (scored.value, scored.value)


def test_resamples_that_equal_the_value_up_to_rounding_are_ties() -> None:
    # Of 29 zeros and a third, a resample with one third again has the mean 1/90, however it was added up.
    scored = mean_score([1 / 3] + [0.0] * 39, resampling=Resampling(20_000, method="bca"))
    expected = mean_score([1.0] + [0.0] * 39, resampling=Resampling(20_000, method="bca"))
    assert scored.interval is not None
    assert expected.interval is not None
    assert [3 * end for end in scored.interval] == pytest.approx(expected.interval, abs=1e-12)


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
    assert scored.interval_reason == f"an interval needs at least 3 dialogues, found {len(values)}"


def test_dialogues_without_values_are_not_drawn() -> None:
    ids = np.repeat(np.arange(100), 2)
    gaps = np.where(ids < 10, np.arange(200.0), np.nan)
    scored, alone = mean_score(gaps, clusters=ids), mean_score(gaps[:20], clusters=ids[:20])
    assert scored.interval == alone.interval
    assert "|dialogues:10|" in scored.signature


def test_values_that_are_not_finite_are_skipped_and_counted() -> None:
    scored = mean_score([1.0, math.nan, 2.0, 3.0, math.inf])
    assert (scored.value, scored.n) == (2, 3)
    assert "|skipped:2|" in scored.signature


def test_the_signature_tells_how_the_interval_was_made() -> None:
    ids = [1, *range(1, 40)]
    scored = mean_score(SKEWED, clusters=ids, resampling=Resampling(500, 0.9, "bca", 7))
    assert scored.signature.startswith("seed:7|interval:bca-0.9|resamples:500|dialogues:39|v:")


@pytest.mark.parametrize(
    ("values", "resamples", "signature", "reason"),
    [
        ([1.0, 2.0, 4.0], 10, "interval:jackknife-0.95|skewness:hall|dialogues:3|v:", None),
        ([1.0, 1.0, 1.0], 10, "dialogues:3|v:", "the value is the same whichever dialogue is left out"),
        ([1.0, 2.0], 10, "dialogues:2|v:", "an interval needs at least 3 dialogues, found 2"),
        ([1.0, 2.0, 4.0], 0, "dialogues:3|v:", "no resamples were asked for"),
    ],
)
def test_the_signature_names_only_what_was_made_and_the_reason_says_the_rest(
    values: list[float], resamples: int, signature: str, reason: str | None
) -> None:
    scored = mean_score(values, clusters=range(len(values)), resampling=Resampling(resamples))
    assert scored.signature.startswith(signature)
    assert (scored.interval is None) == (reason is not None)
    assert (scored.interval_reason or "").startswith(reason or "")


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


def test_a_median_of_few_has_no_interval_for_the_jackknife_fails_there() -> None:
    scored = median_score(np.arange(20.0))
    assert (scored.value, scored.interval) == (9.5, None)
    assert "moves in steps" in str(scored.interval_reason)


def test_the_median_has_an_interval_of_values() -> None:
    scored = median_score(np.arange(101.0))
    assert scored.value == 50
    assert "interval:percentile-0.95|" in scored.signature  # whatever the default is
    assert scored.interval is not None
    assert 35 < scored.interval[0] < 50 < scored.interval[1] < 65


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "percentil"}, "Did you mean 'percentile'"),
        ({"level": 95}, "expected a share between 0 and 1"),
        ({"resamples": -1}, "expected 0"),
        ({"seed": -1}, "seed -1: expected 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_usage_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Resampling(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: mean_score([[1.0, 2.0]]),
        lambda: median_score([[1.0, 2.0]]),
        lambda: ratio_score([1.0, 2.0], [1.0]),
        lambda: mean_score([1.0, 2.0], clusters=["a"]),
    ],
)
def test_input_of_the_wrong_shape_is_a_usage_error_of_one_line(make: Callable[[], Score]) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$"):
        make()
