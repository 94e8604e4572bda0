from __future__ import annotations

import math

import numpy as np
import pytest

from turnwise.errors import UsageError
from turnwise.metrics import annotator_ceiling, krippendorff_alpha, ratings_matrix

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
