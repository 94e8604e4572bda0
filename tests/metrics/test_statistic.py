from __future__ import annotations

import math

import numpy as np
import pytest

from turnwise.errors import UsageError
from turnwise.metrics.statistic import Clusters, Sums, mean_of, ratio


def test_dialogues_are_numbered_by_first_appearance() -> None:
    clusters = Clusters.of(["b", "a", "b"], n=3)
    assert (clusters.codes.tolist(), clusters.count) == ([0, 1, 0], 2)


def test_ids_of_different_types_stay_apart() -> None:
    assert Clusters.of([1, "1", 1], n=3).codes.tolist() == [0, 1, 0]


def test_too_few_ids_are_an_error_that_names_both_counts() -> None:
    with pytest.raises(UsageError, match="2 dialogue ids for 3 items"):
        Clusters.of(["a", "b"], n=3)


def test_a_mean_is_over_items_not_over_dialogues() -> None:
    mean = mean_of([1.0, 1.0, 4.0], clusters=Clusters.of(["a", "a", "b"], n=3), undefined="")
    assert mean.value() == pytest.approx(2)
    assert mean.left_out() == pytest.approx([4, 1])
    assert mean.resampled(np.array([[2, 0], [0, 2], [1, 1]])) == pytest.approx([1, 4, 2])


def test_an_item_that_could_not_be_scored_counts_for_nothing() -> None:
    mean = mean_of([1.0, np.nan, 3.0], clusters=Clusters.of(None, n=3), undefined="")
    assert (mean.value(), mean.n) == (2, 2)


def test_swapping_moves_whole_dialogues_between_the_systems() -> None:
    clusters = Clusters.of(["a", "a", "b"], n=3)
    ours, theirs = (mean_of(side, clusters=clusters, undefined="") for side in ([1.0, 2.0, 3.0], [4.0, 5.0, 9.0]))
    mine, other = ours.swapped(theirs, np.array([[False, False], [True, False], [True, True]]))
    assert mine == pytest.approx([2, 4, 6])
    assert other == pytest.approx([6, 4, 2])


def test_a_ratio_to_nothing_is_not_a_number() -> None:
    statistic = Sums.over(np.array([[1.0, 0.0]]), ratio, clusters=Clusters.of(None, n=1), undefined="no denominator")
    assert math.isnan(statistic.value())
