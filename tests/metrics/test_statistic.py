from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics.statistic import Clusters, Sums, columns, mean_of, ratio


def test_dialogues_are_numbered_by_first_appearance() -> None:
    clusters = Clusters.of(["b", "a", "b"], n=3)
    assert (clusters.codes.tolist(), clusters.count) == ([0, 1, 0], 2)


def test_ids_of_different_types_stay_apart() -> None:
    assert Clusters.of([1, "1", 1], n=3).codes.tolist() == [0, 1, 0]


def test_tuples_are_ids_like_any_other() -> None:
    clusters = Clusters.of([("a", 1), ("a", 2), ("a", 1)], n=3)
    assert (clusters.codes.tolist(), clusters.count) == ([0, 1, 0], 2)


@pytest.mark.parametrize("ids", [np.zeros((3, 2)), [["a"], ["b"], ["a"]]])
def test_ids_that_are_not_one_hashable_thing_for_each_item_are_usage_errors(ids: Any) -> None:
    with pytest.raises(UsageError, match=r"^Dialogue ids [^\n]*$"):
        Clusters.of(ids, n=3)


def test_selecting_items_keeps_the_dialogues_and_their_numbers() -> None:
    clusters = Clusters.of(["a", "b", "b", "c"], n=4).select(np.array([True, False, False, True]))
    assert (clusters.codes.tolist(), clusters.count, clusters.is_grouped) == ([0, 2], 3, True)


def test_drawable_dialogues_are_those_with_items() -> None:
    kept = Clusters.of(["a", "b", "b", "c"], n=4).select(np.array([True, False, False, True])).drawable()
    assert (kept.codes.tolist(), kept.count, kept.is_grouped) == ([0, 1], 2, True)


@pytest.mark.parametrize(("ids", "is_grouped"), [(None, False), (["a", "b", "c"], True)])
def test_dialogues_are_grouped_when_they_were_named_however_many_there_are(
    ids: list[str] | None, is_grouped: bool
) -> None:
    assert Clusters.of(ids, n=3).is_grouped is is_grouped


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([1.0, 2.0], [1.0]), r"Variables of \[1, 2\] values"),
        (([[1.0, 2.0]],), r"Values of shape \(1, 2\)"),
        ((3.0,), r"Values of shape \(\)"),
        ((["a"],), "Expected one number for each item"),
    ],
)
def test_what_is_not_one_number_for_each_item_is_a_usage_error_of_one_line(values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        columns(*values)
    assert "\n" not in str(caught.value)


def test_a_statistic_over_some_items_forgets_the_others_and_their_dialogues() -> None:
    mean = mean_of([1.0, 5.0, 3.0], clusters=Clusters.of(["a", "b", "a"], n=3), undefined="")
    kept = mean.only(np.array([True, False, True]))
    assert (kept.value(), kept.n, kept.dialogues) == (2, 2, 1)


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
