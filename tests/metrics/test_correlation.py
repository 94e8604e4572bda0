from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling, correlate, partial_correlation
from dialoscope.metrics.correlation import Correlation
from dialoscope.metrics.statistic import Clusters

RNG = np.random.default_rng(11)
X = RNG.integers(0, 6, 60).astype(float)  # many ties
Y = np.round(X / 2 + RNG.normal(size=60), 1)
Z = X + RNG.normal(size=60)
KINDS = ["pearson", "spearman", "kendall"]


def scipy_correlation(kind: str) -> Callable[[Any, Any], float]:
    from scipy import stats

    library = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    return lambda first, second: float(library(first, second)[0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("pearson", 0.8),  # deviations -3 -1 1 3 against -3 1 -1 3, halved: (9 - 1 - 1 + 9) / 20
        ("spearman", 0.8),  # 1 - 6·(0 + 1 + 1 + 0) / (4·15)
        ("kendall", 4 / 6),  # five pairs agree, one does not
    ],
)
def test_correlation_is_the_number_worked_by_hand(kind: str, expected: float) -> None:
    assert correlate([1, 2, 3, 4], [1, 3, 2, 4], kind=kind).value == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_correlation_with_ties_equals_scipy(kind: str) -> None:
    assert correlate(X, Y, kind=kind).value == pytest.approx(scipy_correlation(kind)(X, Y), abs=1e-12)


@settings(deadline=None, max_examples=60)  # kernels are compiled in the first example
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=15))
@pytest.mark.parametrize("kind", KINDS)
def test_a_resample_is_ranked_as_scipy_ranks_the_drawn_items(kind: str, items: list[tuple[int, int, int]]) -> None:
    first, second, counts = np.array(items).T
    drawn = np.repeat(first, counts), np.repeat(second, counts)
    variables = np.stack([first, second]).astype(np.float64)
    statistic = Correlation(variables, Clusters.of(None, n=len(first)), kind)
    found = statistic.resampled(counts.astype(np.int32)[None])[0]
    is_defined = len(drawn[0]) > 1 and np.ptp(drawn[0]) > 0 and np.ptp(drawn[1]) > 0
    expected = scipy_correlation(kind)(*drawn) if is_defined else math.nan
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dialogue_brings_all_its_items(kind: str) -> None:
    ids = np.repeat(np.arange(12), 5)
    statistic = Correlation(np.stack([X, Y]), Clusters.of(ids, n=60), kind)
    counts = np.array([2, 0, 1, 1, 3, 0, 0, 1, 1, 1, 1, 1], dtype=np.int32)
    weights = counts[ids]
    expected = scipy_correlation(kind)(np.repeat(X, weights), np.repeat(Y, weights))
    assert statistic.resampled(counts[None])[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_agrees_with_scipys_bootstrap(kind: str) -> None:
    from scipy import stats

    expected = stats.bootstrap(
        (X, Y), scipy_correlation(kind), paired=True, vectorized=False, n_resamples=3000, method="percentile", rng=3
    )
    found = correlate(X, Y, kind=kind, resampling=Resampling(method="percentile")).interval
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.2 * float(expected.standard_error))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([1, 1, 1], [1, 2, 3], "the first variable is constant, every value is 1"),
        ([1, 2, 3], [5, 5, 5], "the second variable is constant, every value is 5"),
        ([1, 2], [1, 2], "a correlation needs at least 3 pairs, found 2"),
        ([], [], "a correlation needs at least 3 pairs, found 0"),
        ([math.nan, 1, 2], [1, 2, 3], "a correlation needs at least 3 pairs, found 2"),
    ],
)
def test_what_has_no_correlation_says_why(kind: str, first: list[float], second: list[float], reason: str) -> None:
    scored = correlate(first, second, kind=kind)
    assert scored.value is None
    assert scored.reason == reason


def test_a_constant_in_most_resamples_leaves_no_interval() -> None:
    # The 1 is missing from a third of the resamples, and from the sample that is left once it is left out.
    by_leaving_out = correlate([0] * 39 + [1], range(40))
    assert by_leaving_out.interval_reason == "there is no value once some dialogue is left out"
    scored = correlate([0] * 39 + [1], range(40), resampling=Resampling(method="percentile"))
    assert scored.value is not None
    assert scored.interval is None
    assert "of 10000 resamples have a value, expected at least 95%" in str(scored.interval_reason)


@pytest.mark.parametrize("kind", KINDS)
def test_few_items_have_an_interval_within_the_bounds(kind: str) -> None:
    scored = correlate(X[:10], Y[:10], kind=kind)
    assert scored.value is not None
    assert scored.interval is not None
    assert -1 < scored.interval[0] < scored.value < scored.interval[1] < 1
    assert "|interval:jackknife-0.95|scale:logit|" in scored.signature


@pytest.mark.parametrize(("kind", "degree"), [("pearson", 1), ("spearman", 3), ("kendall", 2)])
@pytest.mark.parametrize("n", [9, 10, 40])
def test_the_error_of_a_rank_correlation_is_sens(kind: str, degree: int, n: int) -> None:
    share = Correlation(np.stack([X[:n], Y[:n]]), Clusters.of(None, n=n), kind).error_share
    assert share == pytest.approx((n - degree) / (n - 1) if n >= 10 else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_dialogues_of_several_items_is_the_jackknifes(kind: str) -> None:
    # Sen's components are those of independent items; turns of a dialogue are not.
    ids = [0, *range(39)]
    assert Correlation(np.stack([X[:40], Y[:40]]), Clusters.of(ids, n=40), kind).error_share == 1
    assert "|error:" not in correlate(X[:40], Y[:40], kind=kind, clusters=ids).signature


def test_sens_error_of_kendalls_tau_is_that_of_its_structural_components() -> None:
    # Sen (1960): each item's own tau, against all others; the variance of their mean, times two squared.
    first, second = np.random.default_rng(8).normal(size=(2, 20))  # no ties
    agree = np.sign(first[:, None] - first) * np.sign(second[:, None] - second)
    own = agree.sum(axis=1) / 19
    statistic = Correlation(np.stack([first, second]), Clusters.of(None, n=20), "kendall")
    left_out = statistic.left_out()
    error = np.sqrt(19 / 20 * ((left_out - left_out.mean()) ** 2).sum())
    assert statistic.error_share * error == pytest.approx(2 * own.std(ddof=1) / np.sqrt(20))


def test_an_outlier_does_not_hide_how_the_others_vary() -> None:
    first, second = [*range(50), 1e8], [*RNG.permutation(50), 20]
    statistic = Correlation(np.array([first, second], dtype=np.float64), Clusters.of(None, n=51), "pearson")
    without = np.array([[1] * 50 + [0]], dtype=np.int32)
    expected = scipy_correlation("pearson")(first[:50], second[:50])
    assert statistic.resampled(without)[0] == pytest.approx(expected, abs=1e-12)
    assert correlate(first, second, kind="pearson").interval is not None


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e307])
@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_a_variable_does_not_matter(kind: str, scale: float) -> None:
    found, expected = correlate(scale * X, Y, kind=kind), correlate(X, Y, kind=kind)
    assert found.value == pytest.approx(expected.value)
    assert found.interval == pytest.approx(expected.interval)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [1e200, 1e-200, 0.1])
def test_a_constant_of_any_size_is_called_one(kind: str, constant: float) -> None:
    scored = correlate([constant] * 7, range(7), kind=kind)
    assert scored.reason == f"the first variable is constant, every value is {constant:g}"


def test_large_offsets_do_not_hurt_pearson() -> None:
    assert correlate(X + 1e9, Y, kind="pearson").value == pytest.approx(scipy_correlation("pearson")(X, Y), abs=1e-6)


def test_pairs_with_a_gap_are_skipped_and_counted() -> None:
    scored = correlate([1, 2, math.nan, 3, 4], [1, 3, 9, 2, 4])
    assert scored.value == pytest.approx(0.8)
    assert scored.n == 4
    assert "|skipped:1|" in scored.signature


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_a_partial_correlation_needs_three_items_and_one_for_each_variable_held_fixed(kind: str) -> None:
    scored = partial_correlation(X[:4], Y[:4], given=[Z[:4], Z[4:8]], kind=kind)
    assert scored.reason == "a correlation given 2 variables needs at least 5 pairs, found 4"
    assert partial_correlation(X[:5], Y[:5], given=[Z[:5], Z[5:10]], kind=kind).value is not None


def test_variables_of_two_dimensions_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"^Values of shape \(1, 3\)[^\n]*$"):
        correlate([[1, 2, 3]], [1, 2, 3])


def test_variables_of_different_lengths_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"\[2, 3\] values"):
        correlate([1, 2], [1, 2, 3])


def test_an_unknown_kind_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'spearman'"):
        correlate([1, 2, 3], [1, 2, 3], kind="spearmen")


def test_partial_pearson_is_the_correlation_of_residuals() -> None:
    from scipy import stats

    def residuals(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        design = np.column_stack([np.ones(60), Z, np.sin(Z)])
        return np.asarray(values - design @ np.linalg.lstsq(design, values, rcond=None)[0])

    expected = stats.pearsonr(residuals(X), residuals(Y))[0]
    found = partial_correlation(X, Y, given=[Z, np.sin(Z)], kind="pearson").value
    assert found == pytest.approx(expected)


def test_partial_spearman_follows_the_formula_for_one_variable() -> None:
    from scipy import stats

    xy, xz, yz = (stats.spearmanr(*pair)[0] for pair in ((X, Y), (X, Z), (Y, Z)))
    expected = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    scored = partial_correlation(X, Y, given=[Z])
    assert scored.value == pytest.approx(expected)
    assert scored.interval is not None


def test_holding_a_variable_itself_fixed_leaves_nothing() -> None:
    scored = partial_correlation(X, Y, given=[X])
    assert scored.reason == "nothing is left of a variable once the others are held fixed"


def test_holding_a_constant_fixed_changes_nothing() -> None:
    assert partial_correlation(X, Y, given=[np.ones(60)]).value == pytest.approx(correlate(X, Y).value)


def test_kendall_holds_nothing_fixed() -> None:
    with pytest.raises(UsageError, match="'pearson' or 'spearman'"):
        partial_correlation(X, Y, given=[Z], kind="kendall")


def test_bca_leaves_dialogues_out_one_by_one() -> None:
    ids = np.repeat(np.arange(30), 2)
    scored = correlate(X, Y, clusters=ids, resampling=Resampling(2000, method="bca"))
    assert scored.interval is not None
    assert "|interval:bca-0.95|resamples:2000|dialogues:30|" in scored.signature
