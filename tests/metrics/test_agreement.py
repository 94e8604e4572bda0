from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling, agreement, annotator_ceiling, krippendorff_alpha, ratings_matrix
from dialoscope.metrics.agreement import LEVELS, Alpha
from dialoscope.metrics.statistic import Clusters

GAP = math.nan
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section E: 4 observers, 12 units, gaps
UNITS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    ]
).T


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_is_that_of_krippendorffs_worked_example(level: str, expected: float) -> None:
    found = krippendorff_alpha(UNITS, level=level)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert found.n == 11  # one unit has a single rating


def test_alpha_equals_the_package() -> None:
    import krippendorff

    ratings = np.random.default_rng(0).integers(1, 6, size=(50, 3)).astype(float)
    expected = krippendorff.alpha(ratings.T, level_of_measurement="ordinal")
    assert krippendorff_alpha(ratings).value == pytest.approx(expected)


def test_alpha_has_an_interval_around_it() -> None:
    found = krippendorff_alpha(UNITS)
    assert found.value is not None
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1] <= 1


@settings(deadline=None, max_examples=40)  # kernels are compiled in the first example
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from([1, 2, 4, 5, GAP]), min_size=3, max_size=3), st.integers(0, 3)),
        min_size=2,
        max_size=9,
    ),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
@pytest.mark.parametrize("level", LEVELS)
def test_alpha_of_a_resample_is_the_packages_of_the_rows_of_the_dialogues_drawn(
    level: str, items: list[tuple[list[float], int]], draws: list[int]
) -> None:
    import krippendorff

    rows = np.array([row for row, _ in items], dtype=np.float64)
    shared = np.isfinite(rows).sum(axis=1) >= 2
    statistic = Alpha.over(rows, level=level, clusters=Clusters.of([code for _, code in items], n=len(items)))
    counts = np.array([draws[: statistic.dialogues]], dtype=np.int32)
    drawn = np.repeat(rows[shared], counts[0][statistic.clusters.codes], axis=0)
    is_defined = len(np.unique(drawn[np.isfinite(drawn)])) > 1
    library: Any = krippendorff.alpha  # which takes four literals where we have a str
    expected = library(drawn.T, level_of_measurement=level) if is_defined else math.nan
    assert statistic.resampled(counts)[0] == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_is_the_same_with_the_package_and_without(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = krippendorff_alpha(UNITS, level=level)
    monkeypatch.setattr(agreement, "PACKAGE_CELLS", 0)
    monkeypatch.setattr(agreement, "_package", None)
    found = krippendorff_alpha(UNITS, level=level)
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval == pytest.approx(expected.interval, abs=1e-9)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_continuous_ratings_of_many_items_fit_in_memory(level: str) -> None:
    ratings = np.random.default_rng(0).normal(size=(2000, 3))  # the package would take 536 GiB
    found = krippendorff_alpha(ratings + ratings[:, :1], level=level, resampling=Resampling(200))
    assert found.value is not None
    # No two ratings are the same, so nominal agreement is 0 whichever item is left out.
    assert (found.interval is None) == (level == "nominal")


def test_ratios_of_too_many_values_are_refused_with_advice() -> None:
    with pytest.raises(UsageError, match=r"6000 different ratings: .* at most 500\. Round them"):
        krippendorff_alpha(np.random.default_rng(0).random(size=(2000, 3)), level="ratio")


def test_dialogues_widen_the_interval_of_alpha() -> None:
    rng = np.random.default_rng(3)
    ratings = np.repeat(rng.integers(1, 6, size=(40, 3)), 5, axis=0)  # five times the same item in each dialogue
    alone = krippendorff_alpha(ratings[::5]).interval
    grouped = krippendorff_alpha(ratings, clusters=np.repeat(np.arange(40), 5))
    narrow = krippendorff_alpha(ratings).interval
    assert grouped.interval is not None
    assert alone is not None
    assert narrow is not None
    assert grouped.interval[1] - grouped.interval[0] == pytest.approx(alone[1] - alone[0], abs=0.01)
    assert narrow[1] - narrow[0] < 0.6 * (alone[1] - alone[0])
    assert "|dialogues:40|" in grouped.signature


@pytest.mark.parametrize("ratings", [np.zeros(3), np.zeros((2, 2, 2)), [["a", "b"]]])
def test_ratings_that_are_no_table_of_numbers_are_usage_errors(ratings: Any) -> None:
    for measure in (krippendorff_alpha, annotator_ceiling):
        with pytest.raises(UsageError, match=r"atings [^\n]*$"):
            measure(ratings)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[1, 1], [1, 1]], "all ratings are the same"),
        ([[1], [2]], "no item has ratings by at least two"),
        ([], "no item has ratings by at least two"),
    ],
)
def test_alpha_that_is_not_defined_says_why(ratings: list[list[float | None]], reason: str) -> None:
    assert reason in str(krippendorff_alpha(ratings).reason)


def test_an_unknown_level_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'ordinal'"):
        krippendorff_alpha([[1, 2]], level="ordinall")


def test_the_ceiling_is_each_annotator_against_the_mean_of_the_others() -> None:
    from scipy import stats

    ratings = np.random.default_rng(1).integers(1, 6, size=(40, 3)).astype(float)
    ratings += ratings[:, :1]
    each = [stats.spearmanr(ratings[:, j], np.delete(ratings, j, axis=1).mean(axis=1))[0] for j in range(3)]
    found = annotator_ceiling(ratings)
    assert found.value == pytest.approx(np.mean(each))
    assert found.interval is not None


def test_annotators_weigh_as_many_as_the_items_they_share() -> None:
    from scipy import stats

    rng = np.random.default_rng(2)
    ratings = rng.integers(1, 6, size=(60, 3)).astype(float)
    ratings[20:, 2] = GAP  # the third rated twenty items, the others all sixty
    rest = [np.nanmean(np.delete(ratings, j, axis=1), axis=1) for j in range(3)]
    rated = [slice(None), slice(None), slice(20)]
    each = [stats.spearmanr(ratings[rated[j], j], rest[j][rated[j]])[0] for j in range(3)]
    found = annotator_ceiling(ratings)
    assert found.value == pytest.approx(np.average(each, weights=[60, 60, 20]))
    assert "|weights:items|" in found.signature


def test_the_ceiling_keeps_the_whole_error_of_the_jackknife() -> None:
    # Annotators share items: their mean correlation is no U-statistic of the degree of one.
    assert "|error:" not in annotator_ceiling(np.random.default_rng(0).normal(size=(30, 3))).signature


def test_two_annotators_have_their_correlation_as_the_ceiling() -> None:
    assert annotator_ceiling([[1, 1], [2, 3], [3, 2], [4, 4]]).value == pytest.approx(0.8)


def test_annotators_who_rated_other_items_are_compared_where_they_meet() -> None:
    # Ann and Bob share items 1-4 (0.8), Cid meets them at one item only and does not count.
    ratings: list[list[float | None]] = [[1, 1, None], [2, 3, None], [3, 2, None], [4, 4, 4], [None, None, 2]]
    found = annotator_ceiling(ratings)
    assert found.value == pytest.approx(0.8)
    assert found.n == 4
    assert "|annotators:2/3|" in found.signature


def test_lists_of_different_lengths_are_ragged_annotators() -> None:
    assert annotator_ceiling([[1, 1], [2, 3], [3, 2], [4, 4], [5]]).value == pytest.approx(0.8)


def test_a_ceiling_without_shared_items_says_why() -> None:
    assert "no annotator shares" in str(annotator_ceiling([[1], [2], [3]]).reason)


def test_an_annotator_who_always_says_the_same_does_not_count() -> None:
    found = annotator_ceiling([[1, 1, 3], [2, 3, 3], [3, 2, 3], [4, 4, 3]])
    assert "|annotators:2/3|" in found.signature


def test_ratings_become_a_matrix_with_gaps() -> None:
    matrix = ratings_matrix([("q1", "Ann", 1), ("q1", "Bob", 2), ("q2", "Bob", 3)])
    assert np.array_equal(matrix, np.array([[1, 2], [GAP, 3]]), equal_nan=True)


def test_rating_an_item_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="'Ann' rated item 'q1' twice"):
        ratings_matrix([("q1", "Ann", 1), ("q1", "Ann", 2)])
