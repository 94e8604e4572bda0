from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics import Comparison, Options, Pairs, Resampling, compare_means, correct, holm
from dialoscope.metrics.paired import compare, paired_bootstrap, smallest_p_value
from dialoscope.metrics.score import statistics_of
from dialoscope.metrics.statistic import Clusters, FloatArray, IntArray, Sums, mean_of, ratio

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
    many = np.tile(OURS, 4)
    for test in ("randomisation", "bootstrap"):
        found = compare_means(many, many, test=test)
        assert (found.difference.value, found.p_value) == (0, 1)


def test_bootstrap_and_randomisation_agree_on_a_plain_difference() -> None:
    rng = np.random.default_rng(0)
    ours = rng.normal(size=300)
    theirs = ours + rng.normal(0.06, 0.5, size=300)
    p_values = [compare_means(ours, theirs, test=test).p_value for test in ("randomisation", "bootstrap")]
    assert p_values[0] == pytest.approx(p_values[1], abs=0.02)


@dataclass(frozen=True)
class Known:
    """A statistic whose resamples are known: how often the first dialogue was drawn."""

    at: float
    n: int = 30
    dialogues: int = 30
    undefined: str = ""

    def value(self) -> float:
        return self.at

    def left_out(self) -> FloatArray:
        return np.zeros(30)

    def resampled(self, counts: IntArray) -> FloatArray:
        return np.asarray(counts[:, 0], dtype=np.float64)


def test_the_bootstrap_is_shifted_by_the_mean_of_its_resamples_not_by_the_observed_difference() -> None:
    # The first dialogue is drawn once on average. Shifted by that, straying by 1.9 or more takes three draws or more,
    # 7.8 %; shifted by the observed 1.9 it would take none, or four and more. Of a t with 29 degrees it is 9.4 %.
    from scipy.stats import binom, norm, t

    found = paired_bootstrap(Known(1.9), Still(0.0), rounds=40_000, rng=np.random.default_rng(0))
    away = norm.isf(binom.sf(2, 30, 1 / 30) / 2) * math.sqrt(29 / 30)
    assert found.p_value == pytest.approx(2 * float(t.sf(away, 29)), abs=0.004)


def test_the_bootstrap_of_normal_differences_agrees_with_students_test() -> None:
    from scipy.stats import ttest_rel

    ours, theirs = np.random.default_rng(3).normal([[0.5], [0.0]], 1, size=(2, 12))
    found = compare_means(ours, theirs, test="bootstrap", resampling=Resampling(50_000)).p_value
    assert found == pytest.approx(ttest_rel(ours, theirs).pvalue, abs=0.01)


class Still(Known):
    """A statistic that no resample moves."""

    def resampled(self, counts: IntArray) -> FloatArray:
        return np.zeros(len(counts))


def test_the_observed_difference_counts_as_one_of_the_rounds() -> None:
    ours, theirs = np.arange(200.0) + 100, np.zeros(200)
    assert compare_means(ours, theirs, resampling=Resampling(99)).p_value == 1 / 100


def test_what_no_resample_reaches_is_read_from_how_dialogues_vary_around_no_difference() -> None:
    # Of 20 coins 18 fall on one side: mean 0.8, squares 1, so z = sqrt(20) 0.8, p = 0.00035; of all ways to turn them
    # 2 (1 + 20 + 190) / 2^20 = 0.0004 are as far off. Student's t would say 0.00001.
    from scipy.stats import norm

    coins = np.array([1.0] * 18 + [-1.0] * 2)
    found = compare_means(coins, np.zeros(20), test="bootstrap").p_value
    assert found == pytest.approx(2 * norm.sf(math.sqrt(20) * 0.8), rel=0.1)


@pytest.mark.parametrize(("dialogues", "least"), [(10, 2**-9), (12, 0.000532), (40, 2.5e-10)])
def test_the_bootstrap_never_says_less_than_so_many_dialogues_can(dialogues: int, least: float) -> None:
    found = compare_means(np.ones(dialogues), np.zeros(dialogues), test="bootstrap").p_value
    assert found == smallest_p_value(dialogues) == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize("dialogues", [1, 3, 9])
def test_the_bootstrap_gives_no_p_value_for_few_dialogues(dialogues: int) -> None:
    found = compare_means(np.arange(dialogues) + 1.0, np.zeros(dialogues), test="bootstrap")
    assert (found.p_value, found.p_holm) == (None, None)
    assert found.reason == f"the bootstrap needs at least 10 dialogues, found {dialogues}"
    assert found.to_dict()["reason"] == found.reason
    assert found.difference.value is not None


def ratios(numerators: list[float], denominators: list[float]) -> Sums:
    items = np.stack([numerators, denominators], axis=1)
    return Sums.over(items, ratio, clusters=Clusters.of(None, n=len(items)), undefined="")


def test_resamples_without_a_value_forbid_a_p_value() -> None:
    only_one = [1.0] + [0.0] * 39  # is missing from 36 % of the resamples, which have no ratio then
    found = compare(ratios([1.0] * 40, only_one), ratios([2.0] * 40, only_one), test="bootstrap")
    assert found.p_value is None
    assert "resamples have a value, expected at least 95%" in str(found.reason)


def test_swaps_without_a_value_are_not_counted_as_small() -> None:
    # One system has all denominators in the first dialogue, the other in the second: whenever one of the two changes
    # sides alone, a side has none. The other half of the rounds must not make the difference look rare.
    ours, theirs = ratios([3.0] * 6, [1.0] + [0.0] * 5), ratios([1.0] * 6, [0.0, 1.0] + [0.0] * 4)
    found = compare(ours, theirs)
    assert found.p_value is None
    assert "resamples have a value" in str(found.reason)


@pytest.mark.parametrize("scale", [1e-200, 1e-15, 1e15, 1e200])
def test_a_p_value_does_not_depend_on_the_unit(scale: float) -> None:
    expected = compare_means(OURS, THEIRS).p_value
    assert compare_means(scale * OURS, scale * THEIRS).p_value == expected


def test_an_offset_of_both_systems_does_not_break_ties() -> None:
    expected = compare_means(OURS, THEIRS).p_value
    assert compare_means(OURS + 0.1 + 1e6, THEIRS + 0.1 + 1e6).p_value == expected


def test_only_items_that_both_statistics_scored_are_compared() -> None:
    gap, clusters = math.nan, Clusters.of(None, n=4)
    sides = [mean_of(one, clusters=clusters, undefined="") for one in ([1, 1, gap, 0], [0.9, 0.9, 1, gap])]
    found = compare(*sides)
    assert found.difference.value == pytest.approx(0.1)
    assert found.difference.n == 2
    assert "|skipped:2|" in found.difference.signature


@pytest.mark.parametrize("resampling", [Resampling(500, seed=7), Resampling(0, seed=7)])
def test_the_signature_of_a_comparison_tells_how_to_repeat_it(resampling: Resampling) -> None:
    found = compare_means([*OURS, math.nan], [*THEIRS, 1.0], clusters=range(9), resampling=resampling)
    parts = dict(part.split(":") for part in found.difference.signature.split("|"))
    expected = {"seed": "7", "test": "randomisation", "rounds": str(resampling.resamples or 10_000)}
    assert expected.items() <= parts.items()
    assert {"dialogues": "8", "skipped": "1"}.items() <= parts.items()
    assert parts.get("interval") == ("jackknife-0.95" if resampling.resamples else None)
    ours, theirs = parts["systems"].split("/")
    assert len(ours) == len(theirs) == 12
    assert ours != theirs


@pytest.mark.parametrize("second", [[1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_systems_of_other_shapes_are_usage_errors(second: list[float]) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$"):
        compare_means([1.0, 2.0], second)


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
    statistic = statistics_of(Pairs(["a", "b"], ["", ""]), ["distinct-1"], Options())["distinct-1"]
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
        ([0.01, math.nan, 0.03], [0.02, None, 0.03]),
        ([], []),
    ],
)
def test_holm_corrects_step_by_step(p_values: list[float | None], expected: list[float | None]) -> None:
    for found, wanted in zip(holm(p_values), expected, strict=True):
        assert found == (None if wanted is None else pytest.approx(wanted))


@pytest.mark.parametrize("p", [-0.01, 1.01, math.inf])
def test_holm_refuses_what_is_no_probability(p: float) -> None:
    with pytest.raises(UsageError, match="expected a number from 0 to 1"):
        holm([0.5, p])


def test_a_table_of_comparisons_is_corrected_together() -> None:
    score = compare_means(OURS, THEIRS).difference
    table = {"a": Comparison(score, 0.01, "bootstrap"), "b": Comparison(score, 0.04, "bootstrap")}
    assert [one.p_holm for one in correct(table).values()] == pytest.approx([0.02, 0.04])
