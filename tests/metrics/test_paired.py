from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from turnwise.errors import UsageError
from turnwise.metrics import Comparison, Options, Pairs, Resampling, compare_means, correct, holm, measure
from turnwise.metrics.paired import compare, paired_bootstrap
from turnwise.metrics.statistic import Clusters, mean_of

OURS = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
THEIRS = np.array([2.0, 1.5, 3.0, 1.0, 3.0, 6.0, 2.5, 4.0])


def test_randomisation_approaches_the_exact_permutation_test() -> None:
    differences = OURS - THEIRS
    flips = np.array(list(itertools.product([1, -1], repeat=len(differences))))
    exact = np.mean(np.abs((flips * differences).mean(axis=1)) >= abs(differences.mean()) - 1e-12)
    found = compare_means(OURS, THEIRS, resampling=Resampling(50_000)).p_value
    assert found == pytest.approx(exact, abs=0.006)


def test_randomisation_moves_whole_dialogues() -> None:
    # Within dialogues a, b and c everything changes sides together: 8 outcomes, 2 of them as large, p = 1/4.
    ids = np.repeat(["a", "b", "c"], 50)
    found = compare_means(np.ones(150), np.zeros(150), clusters=ids, resampling=Resampling(20_000)).p_value
    assert found == pytest.approx(1 / 4, abs=0.01)


def test_equal_systems_differ_by_nothing() -> None:
    for test in ("randomisation", "bootstrap"):
        found = compare_means(OURS, OURS, test=test)
        assert (found.difference.value, found.p_value) == (0, 1)


def test_bootstrap_and_randomisation_agree_on_a_plain_difference() -> None:
    rng = np.random.default_rng(0)
    ours = rng.normal(size=300)
    theirs = ours + rng.normal(0.06, 0.5, size=300)
    p_values = [compare_means(ours, theirs, test=test).p_value for test in ("randomisation", "bootstrap")]
    assert p_values[0] == pytest.approx(p_values[1], abs=0.02)


def test_items_that_either_system_could_not_score_are_left_out_of_both() -> None:
    found = compare_means([1.0, math.nan, 3.0, 4.0], [0.0, 5.0, math.nan, 3.0], clusters=["a", "b", "c", "d"])
    assert (found.difference.value, found.difference.n) == (1, 2)


def test_nothing_to_compare_is_said() -> None:
    found = compare_means([math.nan], [1.0])
    assert (found.p_value, found.difference.reason) == (None, "there are no values to compare")


def test_statistics_over_different_dialogues_cannot_be_compared() -> None:
    sides = [mean_of(np.ones(n), clusters=Clusters.of(None, n=n), undefined="") for n in (3, 4)]
    with pytest.raises(UsageError, match="3 and 4 dialogues"):
        compare(*sides)


def test_a_metric_that_cannot_be_bootstrapped_says_what_to_do() -> None:
    statistic = measure(Pairs(["a", "b"], ["", ""]), ["distinct-1"], Options())["distinct-1"]
    with pytest.raises(UsageError, match="randomisation"):
        paired_bootstrap(statistic, statistic, rounds=10, rng=np.random.default_rng(0))


def test_an_unknown_test_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'bootstrap'"):
        compare_means([1.0], [1.0], test="bootstraps")


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        # by hand: 0.01·3; 0.03·2; 0.04·1, but never below the one before
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        # R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
        ([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09]),
        ([0.6, None, 0.7], [1.0, None, 1.0]),
        ([], []),
    ],
)
def test_holm_corrects_step_by_step(p_values: list[float | None], expected: list[float | None]) -> None:
    for found, wanted in zip(holm(p_values), expected, strict=True):
        assert found == (None if wanted is None else pytest.approx(wanted))


def test_a_table_of_comparisons_is_corrected_together() -> None:
    score = compare_means(OURS, THEIRS).difference
    table = {"a": Comparison(score, 0.01, "bootstrap"), "b": Comparison(score, 0.04, "bootstrap")}
    assert [one.p_holm for one in correct(table).values()] == pytest.approx([0.02, 0.04])
