"""Do the intervals cover and the tests err as often as they say? Seeded simulations with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from turnwise.metrics import Options, Pairs, Resampling, compare_means, correlate, mean_score, measure, ratio_score
from turnwise.metrics.bootstrap import estimate
from turnwise.metrics.distinct import distinct_grams
from turnwise.metrics.paired import randomisation
from turnwise.metrics.statistic import Clusters
from turnwise.record import Score

ROUNDS = 1500  # the standard error of a coverage of 95 % is then 0.56 %
RHO = 0.6

Simulation = Callable[[np.random.Generator, Resampling], Score]


def independent(rng: np.random.Generator, resampling: Resampling) -> Score:
    return mean_score(rng.normal(size=150), resampling=resampling)


def in_dialogues(rng: np.random.Generator, resampling: Resampling) -> Score:
    ids = np.repeat(np.arange(200), rng.integers(1, 7, 200))
    values = rng.normal(size=200)[ids] + rng.normal(size=len(ids))
    return mean_score(values, clusters=ids, resampling=resampling)


def skewed_ratio(rng: np.random.Generator, resampling: Resampling) -> Score:
    below = rng.gamma(4, size=200)
    return ratio_score(below * rng.gamma(4, 1 / 4, size=200), below, resampling=resampling)


def correlation(kind: str) -> Simulation:
    def simulate(rng: np.random.Generator, resampling: Resampling) -> Score:
        first = rng.normal(size=150)
        second = RHO * first + math.sqrt(1 - RHO**2) * rng.normal(size=150)
        return correlate(first, second, kind=kind, resampling=resampling)

    return simulate


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("simulate", "truth"),
    [
        (independent, 0.0),
        (in_dialogues, 0.0),
        (skewed_ratio, 1.0),
        (correlation("pearson"), RHO),
        (correlation("spearman"), 6 / math.pi * math.asin(RHO / 2)),  # of a bivariate normal
        (correlation("kendall"), 2 / math.pi * math.asin(RHO)),
    ],
    ids=["mean", "mean-of-dialogues", "ratio", "pearson", "spearman", "kendall"],
)
def test_intervals_cover_the_truth_in_93_to_97_percent(simulate: Simulation, truth: float, method: str) -> None:
    rng = np.random.default_rng(20)
    covered = 0
    for seed in range(ROUNDS):
        low, high = simulate(rng, Resampling(600, method=method, seed=seed)).interval or (math.nan, math.nan)
        covered += low <= truth <= high
    assert 0.93 <= covered / ROUNDS <= 0.97


def few(n: int) -> dict[str, tuple[Simulation, float]]:
    def mean(rng: np.random.Generator, resampling: Resampling) -> Score:
        return mean_score(rng.normal(size=n), resampling=resampling)

    def mean_of_dialogues(rng: np.random.Generator, resampling: Resampling) -> Score:
        ids = np.repeat(np.arange(n), rng.integers(1, 7, n))
        return mean_score(rng.normal(size=n)[ids] + rng.normal(size=len(ids)), clusters=ids, resampling=resampling)

    def pearson(rng: np.random.Generator, resampling: Resampling) -> Score:
        first = rng.normal(size=n)
        second = RHO * first + math.sqrt(1 - RHO**2) * rng.normal(size=n)
        return correlate(first, second, kind="pearson", resampling=resampling)

    return {"mean": (mean, 0.0), "mean-of-dialogues": (mean_of_dialogues, 0.0), "pearson": (pearson, RHO)}


@pytest.mark.parametrize("n", [10, 20])
@pytest.mark.parametrize("name", ["mean", "mean-of-dialogues", "pearson"])
def test_intervals_of_few_dialogues_cover_the_truth_in_93_to_97_percent(name: str, n: int) -> None:
    # No tolerance is added for the simulation: its standard error of 0.56 % is why the limits are not at 95 %.
    simulate, truth = few(n)[name]
    rng = np.random.default_rng(21)
    found = [simulate(rng, Resampling()).interval or (math.nan, math.nan) for _ in range(ROUNDS)]
    assert 0.93 <= np.mean([low <= truth <= high for low, high in found]) <= 0.97


def test_the_fewest_dialogues_that_are_bootstrapped_are_covered_in_93_to_97_percent() -> None:
    rng = np.random.default_rng(22)
    covered = 0
    for seed in range(ROUNDS):
        scored = mean_score(rng.normal(size=30), resampling=Resampling(600, seed=seed))
        assert "percentile" in scored.signature
        low, high = scored.interval or (math.nan, math.nan)
        covered += low <= 0 <= high
    assert 0.93 <= covered / ROUNDS <= 0.97  # 93.6 % by Student's distribution


def test_ignoring_dialogues_covers_far_too_seldom() -> None:
    rng = np.random.default_rng(20)
    covered = 0
    for seed in range(300):
        ids = np.repeat(np.arange(100), 6)
        values = rng.normal(size=100)[ids] + rng.normal(size=600)
        low, high = mean_score(values, resampling=Resampling(600, seed=seed)).interval or (math.nan, math.nan)
        covered += low <= 0 <= high
    assert covered / 300 < 0.75


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n", [20, 60])
def test_the_jackknife_covers_the_expected_distinct_in_95_to_99_percent_and_stays_in_bounds(order: int, n: int) -> None:
    # A jackknife of a statistic with interactions (a type is lost only if all its dialogues are) is too wide.
    rng = np.random.default_rng(8)
    share = 1 / np.arange(1, 3001)  # Zipf's law
    words = np.array([f"w{rank}" for rank in range(3000)])
    drawn = words[rng.choice(3000, size=(1000, n, 12), p=share / share.sum())].tolist()
    clusters = Clusters.of(None, n=n)
    statistics = [distinct_grams(responses, clusters, order=order) for responses in drawn]
    truth = np.mean([one.value() for one in statistics])
    found = [made.ends for one in statistics if (made := estimate(one)).ends]
    assert len(found) >= 0.97 * len(statistics)  # the others have no bigram twice once some response is left out
    assert all(0 < low < high < 1 for low, high in found)
    assert 0.95 <= np.mean([low <= truth <= high for low, high in found]) <= 0.99


@pytest.mark.parametrize(
    ("test", "dialogues"),
    [
        ("randomisation", 10),
        ("randomisation", 20),
        ("randomisation", 80),
        ("bootstrap", 30),  # the fewest it takes; 6.4 % by Student's distribution
        ("bootstrap", 80),
    ],
)
@pytest.mark.parametrize("turns", [1, 4])
def test_equal_systems_are_told_apart_in_3_to_7_percent(test: str, dialogues: int, turns: int) -> None:
    rng = np.random.default_rng(9)
    ids = np.repeat(np.arange(dialogues), turns)
    p_values = []
    for seed in range(ROUNDS):
        ours, theirs = (rng.normal(size=dialogues)[ids] + rng.normal(size=len(ids)) for _ in range(2))
        found = compare_means(ours, theirs, clusters=ids, test=test, resampling=Resampling(600, seed=seed))
        p_values.append(found.p_value)
    assert 0.03 <= np.mean(np.array(p_values) <= 0.05) <= 0.07


def test_equal_systems_differ_in_bleu_in_3_to_7_percent() -> None:
    rng = np.random.default_rng(10)
    words = np.array(list("abcdefgh"))
    p_values = []
    for _ in range(500):
        said, other, targets = ([" ".join(one) for one in words[rng.integers(0, 8, (40, 5))]] for _ in range(3))
        sides = [measure(Pairs(side, targets), ["bleu-2"], Options("whitespace"))["bleu-2"] for side in (said, other)]
        p_values.append(randomisation(*sides, rounds=400, rng=rng).p_value)
    assert 0.03 <= np.mean(np.array(p_values) <= 0.05) <= 0.07


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(12)
    theirs = rng.normal(size=200)
    found = compare_means(theirs + rng.normal(0.5, 1, size=200), theirs)
    assert found.p_value is not None
    assert found.p_value < 0.001
