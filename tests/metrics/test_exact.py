from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.metrics import Pairs, mean_score, score_pairs
from dialoscope.metrics.bootstrap import estimate, score
from dialoscope.metrics.exact import clopper_pearson, korn_graubard
from dialoscope.metrics.statistic import Clusters, mean_of
from dialoscope.record import Score

UNIT = (0.0, 1.0)


def share(values: list[float], *, bounds: tuple[float, float] = UNIT, ids: list[int] | None = None) -> Score:
    return score(mean_of(values, clusters=Clusters.of(ids, n=len(values)), undefined="", bounds=bounds))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_is_scipys_exact_interval(counts: tuple[int, int]) -> None:
    from scipy import stats

    expected = stats.binomtest(*counts).proportion_ci(0.95, method="exact")
    assert clopper_pearson(*counts, 0.95) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("p", [0.01, 0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [3, 10, 20, 60])
def test_a_proportion_is_covered_at_least_as_often_as_it_says(p: float, n: int) -> None:
    # No simulation: the coverage is a sum over the n + 1 samples that there are.
    from scipy import stats

    ends = [share([1.0] * hits + [0.0] * (n - hits)).interval or (1.0, 0.0) for hits in range(n + 1)]
    covered = [hits for hits, (low, high) in enumerate(ends) if low <= p <= high]
    assert stats.binom.pmf(covered, n, p).sum() >= 0.95


@pytest.mark.parametrize("values", [[True, False, True, False], [1.0, 0.0, 1.0, 0.0], [1, 0, 1, 0]])
def test_zeros_and_ones_have_the_exact_interval(values: list[float]) -> None:
    scored = mean_score(values)
    assert scored.interval == pytest.approx(clopper_pearson(2, 4, 0.95))
    assert "interval:exact-0.95|" in scored.signature


def test_truth_values_have_an_interval_where_all_are_alike() -> None:
    assert mean_score([False] * 10).interval == pytest.approx((0, 1 - 0.025**0.1))
    assert mean_score([True] * 10).interval == pytest.approx((0.025**0.1, 1))
    assert mean_score([1.0] * 10).interval is None  # any number might have been 1


@pytest.mark.parametrize(
    ("values", "bounds", "expected"),
    [
        ([0.0] * 9 + [0.2], UNIT, (0, 0.445)),  # at most the share that is not 0, of which one of ten was seen
        ([1.0] * 9 + [0.2], UNIT, (0.555, 1)),
        ([0.0] * 9 + [20.0], (0.0, 100.0), (0, 44.5)),
        ([0.0] * 10, (0.0, 100.0), (0, 30.8)),
    ],
)
def test_a_mean_at_or_beside_a_bound_has_the_bound_and_a_far_end(
    values: list[float], bounds: tuple[float, float], expected: tuple[float, float]
) -> None:
    scored = share(values, bounds=bounds)
    assert scored.interval == pytest.approx(expected, rel=2e-3)
    assert "interval:exact-0.95|" in scored.signature


def test_two_values_off_the_bound_are_enough_for_the_jackknife() -> None:
    assert "interval:jackknife-0.95|" in share([0.0] * 8 + [0.2, 0.3]).signature


def test_dialogues_of_several_items_at_a_bound_have_none_and_say_why() -> None:
    scored = share([0.0] * 9 + [0.2], ids=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    assert scored.interval is None
    assert scored.interval_reason == "the value reaches its bound once some dialogue is left out"


def test_counts_have_no_upper_bound_and_so_no_exact_interval() -> None:
    lengths = score_pairs(Pairs(["a", "", "b", ""], [""] * 4), metrics=["length"]).scores["length"]
    assert "exact" not in lengths.signature


def test_no_sample_of_rare_values_goes_without_an_interval() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = (rng.random(10) < 0.05) * rng.random(10)
        statistic = mean_of(values, clusters=Clusters.of(None, n=10), undefined="", bounds=UNIT)
        low, high = estimate(statistic).ends or (1.0, 0.0)
        assert low <= values.mean() <= high


# --- Shares over dialogues --------------------------------------------------------------------------------------------


def test_a_share_over_dialogues_is_worked_out_by_hand() -> None:
    """2, 0, 1, 0 and 1 of four: a share of 0.2 with squares of 2.8, worth 0.16 / 0.00875 items before Student's t."""
    from scipy import stats

    worth = 0.16 / (5 / 4 * 2.8 / 20**2) * (stats.t.ppf(0.025, 19) / stats.t.ppf(0.025, 4)) ** 2
    expected = (
        stats.beta.ppf(0.025, 0.2 * worth, 0.8 * worth + 1),
        stats.beta.ppf(0.975, 0.2 * worth + 1, 0.8 * worth),
    )
    assert korn_graubard(np.array([2.0, 0, 1, 0, 1]), np.full(5, 4.0), 0.95) == pytest.approx(expected)
    values = [1.0, 1, 0, 0] + [0.0] * 4 + [1.0, 0, 0, 0] + [0.0] * 4 + [1.0, 0, 0, 0]
    scored = share(values, ids=[place // 4 for place in range(20)])
    assert scored.interval == pytest.approx(expected)
    assert "interval:korn-graubard-0.95|" in scored.signature


def test_a_share_over_uneven_dialogues_is_worked_out_by_hand() -> None:
    """7 of 20, squares of 2.225; Student's t has the freedom of 20² / 130 dialogues, not of five."""
    from scipy import stats

    hits, sizes, equal = np.array([1.0, 1, 0, 2, 3]), np.array([1.0, 2, 3, 4, 10]), 20**2 / 130
    t = stats.t.ppf(0.025, 19) / stats.t.ppf(0.025, equal - 1)
    worth = 0.35 * 0.65 / (5 / 4 * 2.225 / 20**2) * t**2
    assert korn_graubard(hits, sizes, 0.95) == pytest.approx(clopper_pearson(0.35 * worth, worth, 0.95))


@pytest.mark.parametrize(("hits", "expected"), [(0, (0, 1 - 0.025 ** (1 / 50))), (7, (0.025 ** (1 / 50), 1))])
def test_where_all_items_are_alike_every_dialogue_counts_as_one(hits: int, expected: tuple[float, float]) -> None:
    assert korn_graubard(np.full(50, float(hits)), np.full(50, 7.0), 0.95) == pytest.approx(expected)


def test_what_was_seen_in_two_dialogues_at_most_has_every_dialogue_count_as_one() -> None:
    hits = np.zeros(100)
    hits[:2] = 1  # of 7: as if items of a dialogue were unlike each other, which two cannot show
    assert korn_graubard(hits, np.full(100, 7.0), 0.95) == pytest.approx(clopper_pearson(2 / 7, 100, 0.95))
    hits[2] = 1
    assert korn_graubard(hits, np.full(100, 7.0), 0.95)[1] < clopper_pearson(3 / 7, 100, 0.95)[1] / 2


def test_items_that_repeat_their_dialogue_tell_nothing_more() -> None:
    hits = np.array([1.0] * 12 + [0.0] * 38)
    low, high = clopper_pearson(12, 50, 0.95)
    assert korn_graubard(7 * hits, np.full(50, 7.0), 0.95) == pytest.approx((low, high), abs=0.012)


@pytest.mark.parametrize("alike", [0.1, 0.5, 5.0])  # of a beta distribution: the smaller, the more alike a dialogue's
@pytest.mark.parametrize(("share_of_all", "dialogues"), [(0.01, 60), (0.03, 30), (0.1, 20)])
def test_rare_shares_are_covered_and_none_goes_without(share_of_all: float, dialogues: int, alike: float) -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        sizes = rng.poisson(6, dialogues) + 1
        hits = rng.binomial(sizes, rng.beta(share_of_all * alike, (1 - share_of_all) * alike, dialogues))
        low, high = korn_graubard(hits.astype(float), sizes.astype(float), 0.95)
        covered += low <= share_of_all <= high
    assert covered >= 0.92 * 400  # four standard errors of a simulation below 0.95 would be 0.906


@pytest.mark.parametrize("turns", [48, 49])  # shares that a float has, and has not
def test_dialogues_of_one_share_count_as_one_item_each_however_it_rounds(turns: int) -> None:
    found = korn_graubard(np.ones(10), np.full(10, float(turns)), 0.95)
    assert found == pytest.approx(clopper_pearson(10 / turns, 10, 0.95))


def test_dialogues_of_uneven_length_count_as_fewer() -> None:
    """Nothing in 100 dialogues, one of which has half of all turns: as if there were four."""
    sizes = np.array([99.0] + [1.0] * 99)
    equal = 198**2 / (99**2 + 99)
    assert korn_graubard(np.zeros(100), sizes, 0.95) == pytest.approx(clopper_pearson(0, equal, 0.95))


def test_counts_that_happen_to_be_0_or_1_are_no_shares() -> None:
    values = [0.0, 1, 0, 1, 1, 0, 0, 1]
    counted = score(mean_of(values, clusters=Clusters.of([0, 0, 1, 1, 2, 2, 3, 3], n=8), undefined=""))
    assert "korn-graubard" not in counted.signature
