"""Do the intervals cover and the tests err as often as they say? Seeded simulations with known truth.

The grid of statistics and sizes is that of benchmarks/interval_coverage.py. All of its statistics run here at 20 and 60
dialogues, with another seed; the whole grid's committed results are checked against the same limits.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialoscope.metrics import Resampling, compare_means, mean_score

ROOT = Path(__file__).parents[2]
SEED = 7
SIZES = (20, 60)  # dialogues, at which every statistic of the grid is simulated here
STEPS = "moves in steps of 1/n, and its exact interval covers at least 95 %"
RARE = "is mostly 0, and its interval has to allow for what was not seen"
BESIDE = "lies close to its bound, where the jackknife overstates the error"
APART = "has an error that grows with the difference: one of two correlations is then low, and noisier"
# Statistics whose intervals may cover more than 97 %, and why; none may cover less than 93 %.
SAFE = {
    "proportion of 0.3": STEPS,
    "proportion of 0.05": STEPS,
    "mean of shares, 95 % of them 0": RARE,
    "the same over dialogues": RARE,
    "proportion of 0.05 over dialogues, hardly alike": RARE,
    "proportion of 0.05 over dialogues, much alike": RARE,
    "kendall 0.9": BESIDE,
    "difference of spearman 0.7": APART,
}

# Of the committed grid, what lies outside the limits, by number of dialogues; docs/metrics.md says why.
WIDE = {
    "proportion of 0.3": [10, 30, 60],
    "mean of Laplace values": [20],
    "kendall 0.6": [10],
    "kendall 0.9": [10, 20],
    "annotator ceiling": [10],
    "difference of spearman 0.7": [10, 20],
    "proportion of 0.05": [10, 20, 30, 40, 60, 100, 200],
    "mean of shares, 95 % of them 0": [10, 20, 30, 40, 60, 100, 200],
    "the same over dialogues": [10, 20, 30, 40, 60],
    "proportion of 0.05 over dialogues, hardly alike": [10, 20, 30, 40],
    "proportion of 0.05 over dialogues, much alike": [10, 20, 30, 40, 60],
}
NARROW = {"distinct-1": [10]}
TIMID = {
    "randomisation": {"proportion of 0.3": [10, 20, 30], "distinct-2": [10]},
    "bootstrap": {"pearson 0.7": [10, 20], "spearman 0.7": [10, 20, 30, 40, 60]},
}


@cache
def grid() -> Any:
    """The benchmark as a module."""
    path = ROOT / "benchmarks" / "interval_coverage.py"
    spec = importlib.util.spec_from_file_location("interval_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["interval_coverage"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def committed() -> Any:
    return json.loads((ROOT / "benchmarks" / "interval_coverage.json").read_text(encoding="utf-8"))


def covered(name: str, n: int, *, rounds: int, others: int = 0) -> Any:
    return grid().measure_intervals((name, n), rounds=rounds, others=others, seed=SEED)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", grid().CASES)
def test_intervals_cover_the_truth_in_93_to_97_percent(name: str, n: int) -> None:
    # All of the grid, by rule. A thousand samples have a standard error of 0.7 %: their Wilson interval has to reach
    # the limits. The committed results are held to the limits themselves.
    low, high = covered(name, n, rounds=1000)["default"]["wilson"]
    assert high >= 0.93
    assert low <= (1.0 if name in SAFE else 0.97)


@pytest.mark.parametrize("name", ["mean over dialogues", "ratio of gammas", "pearson 0.6", "spearman 0.6"])
def test_bootstraps_of_many_dialogues_cover_the_truth_in_93_to_97_percent(name: str) -> None:
    found = covered(name, 200, rounds=1000, others=1000)
    for method in ("percentile", "bca"):
        assert 0.93 <= found[method]["share"] <= 0.97


def test_methods_are_compared_on_the_same_samples_and_as_many() -> None:
    for sizes in committed()["intervals"].values():
        compared = [one for at in sizes.values() for name, one in at.items() if name != "default"]
        drawn = {round(one["n"] / (1 - one["missing"])) for one in compared if one["missing"] < 1}
        assert drawn == {committed()["about"]["others"]}


def test_ignoring_dialogues_covers_far_too_seldom() -> None:
    rng = np.random.default_rng(20)
    ids = np.repeat(np.arange(100), 6)
    found = [mean_score(rng.normal(size=100)[ids] + rng.normal(size=600)).interval or (1, 0) for _ in range(300)]
    assert np.mean([low <= 0 <= high for low, high in found]) < 0.75


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", grid().NULLS)
def test_equal_systems_are_told_apart_in_3_to_7_percent(name: str, n: int) -> None:
    for test, one in grid().measure_tests((name, n), rounds=1000, seed=SEED).items():
        low, high = one["wilson"]
        assert low <= 0.07
        assert high >= (0.0 if name in TIMID[test] else 0.03)


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(12)
    theirs = rng.normal(size=200)
    for test in ("randomisation", "bootstrap"):
        found = compare_means(theirs + rng.normal(0.5, 1, size=200), theirs, test=test, resampling=Resampling())
        assert found.p_value is not None
        assert found.p_value < 0.001


def test_the_committed_grid_is_whole() -> None:
    found, names = committed(), grid()
    assert list(found["intervals"]) == list(names.CASES)
    assert list(found["tests"]) == list(names.NULLS)
    assert all(list(map(int, sizes)) == list(names.SIZES) for sizes in found["intervals"].values())


def outside(results: dict[str, Any], name: str, low: float, high: float) -> dict[str, list[int]]:
    """The sizes of each statistic at which the committed share of a method or test lies outside the limits."""
    found = {
        statistic: [int(n) for n, at in sizes.items() if name in at and not low <= at[name]["share"] <= high]
        for statistic, sizes in results.items()
    }
    return {statistic: sizes for statistic, sizes in found.items() if sizes}


def test_the_committed_coverage_is_93_to_97_percent_but_for_what_is_named_here() -> None:
    assert outside(committed()["intervals"], "default", 0, 0.97) == WIDE
    assert outside(committed()["intervals"], "default", 0.93, 1) == NARROW
    assert outside(committed()["intervals"], "default", 0.915, 1) == {}


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_the_committed_sizes_of_tests_are_3_to_7_percent_but_for_what_is_named_here(test: str) -> None:
    assert outside(committed()["tests"], test, 0, 0.07) == {}
    assert outside(committed()["tests"], test, 0.03, 1) == TIMID[test]


@pytest.mark.parametrize("table", ["coverage", "sides", "methods", "sizes"])
def test_the_document_shows_the_committed_results(table: str) -> None:
    document = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    shown = re.findall(rf"<!-- {table} -->\n(.*?)\n<!-- end -->", document, re.DOTALL)
    assert shown == [grid().TABLES[table](committed())]
