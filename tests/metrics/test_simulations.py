"""Do the intervals cover and the tests err as often as they say? Seeded simulations with known truth.

The grid of statistics and sizes is that of benchmarks/interval_coverage.py, fixed before its results were seen. A part
of it runs here, with another seed; the whole grid's committed results are checked against the same limits.
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

from turnwise.metrics import Resampling, compare_means, mean_score
from turnwise.metrics.bootstrap import DEFAULT

ROOT = Path(__file__).parents[2]
SEED = 7
MEANS = ["mean of normal values", "mean over dialogues", "mean of shares", "mean of exponential values"]
CORRELATIONS = ["pearson 0", "pearson 0.6", "pearson 0.9", "spearman 0", "spearman 0.6", "spearman 0.9", "kendall 0"]
OTHERS = ["partial spearman", "corpus BLEU-2", "distinct-1", "Krippendorff's alpha", "annotator ceiling"]

# Of the committed grid, what lies outside the limits, by number of dialogues; docs/metrics.md says why.
WIDE = {
    "proportion of 0.3": [10, 20, 30, 40],
    "kendall 0.6": [10],
    "kendall 0.9": [10, 20, 40],
}
NARROW = {"ratio of gammas": [10], "annotator ceiling": [10]}
TIMID = {
    "randomisation": {"proportion of 0.3": [10, 20, 30, 40], "distinct-2": [10]},
    "bootstrap": {"pearson 0.7": [10, 20, 30], "spearman 0.7": [10, 20, 30, 40]},
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


def covered(name: str, n: int, *, rounds: int, others: int = 0) -> dict[str, float]:
    found = grid().measure_intervals((name, n), rounds=rounds, others=others, seed=SEED)
    return {method: one["share"] for method, one in found.items()}


@pytest.mark.parametrize(
    ("name", "n"),
    [(name, n) for name in [*MEANS, "ratio of gammas"] for n in (10, 20, 40) if n not in NARROW.get(name, [])],
)
def test_intervals_of_means_and_ratios_cover_the_truth_in_93_to_97_percent(name: str, n: int) -> None:
    # No tolerance is added for the simulation: its standard error of 0.5 % is why the limits are not at 95 %.
    assert 0.93 <= covered(name, n, rounds=2000)[DEFAULT.method] <= 0.97


@pytest.mark.parametrize("name", [*CORRELATIONS, *OTHERS])
def test_intervals_of_twenty_dialogues_cover_the_truth_in_93_to_97_percent(name: str) -> None:
    assert 0.93 <= covered(name, 20, rounds=1000)[DEFAULT.method] <= 0.97


@pytest.mark.parametrize("name", ["pearson 0.6", "spearman 0.6", "kendall 0.6", "distinct-1", "distinct-2"])
def test_intervals_of_sixty_dialogues_cover_the_truth_in_93_to_97_percent(name: str) -> None:
    assert 0.93 <= covered(name, 60, rounds=1000)[DEFAULT.method] <= 0.97


@pytest.mark.parametrize(("name", "n"), [("proportion of 0.3", 20), ("kendall 0.6", 10), ("kendall 0.9", 20)])
def test_what_cannot_keep_to_95_percent_with_few_dialogues_errs_on_the_safe_side(name: str, n: int) -> None:
    assert covered(name, n, rounds=500)[DEFAULT.method] >= 0.95


@pytest.mark.parametrize("name", ["mean over dialogues", "ratio of gammas", "pearson 0.6", "spearman 0.6"])
def test_bootstraps_of_many_dialogues_cover_the_truth_in_93_to_97_percent(name: str) -> None:
    found = covered(name, 200, rounds=1000, others=1000)
    for method in ("percentile", "bca"):
        assert 0.93 <= found[method] <= 0.97


def test_ignoring_dialogues_covers_far_too_seldom() -> None:
    rng = np.random.default_rng(20)
    ids = np.repeat(np.arange(100), 6)
    found = [mean_score(rng.normal(size=100)[ids] + rng.normal(size=600)).interval or (1, 0) for _ in range(300)]
    assert np.mean([low <= 0 <= high for low, high in found]) < 0.75


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("name", ["mean over dialogues", "mean of exponential values", "corpus BLEU-2"])
def test_equal_systems_are_told_apart_in_3_to_7_percent(name: str, n: int) -> None:
    found = grid().measure_tests((name, n), rounds=2000, seed=SEED)
    assert set(found) == {"randomisation", "bootstrap"}
    for one in found.values():
        assert 0.03 <= one["share"] <= 0.07


def test_equal_systems_differ_in_distinct_2_in_3_to_7_percent() -> None:
    assert 0.03 <= grid().measure_tests(("distinct-2", 20), rounds=500, seed=SEED)["randomisation"]["share"] <= 0.07


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
    assert outside(committed()["intervals"], DEFAULT.method, 0, 0.97) == WIDE
    assert outside(committed()["intervals"], DEFAULT.method, 0.93, 1) == NARROW
    assert outside(committed()["intervals"], DEFAULT.method, 0.915, 1) == {}


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_the_committed_sizes_of_tests_are_3_to_7_percent_but_for_what_is_named_here(test: str) -> None:
    assert outside(committed()["tests"], test, 0, 0.07) == {}
    assert outside(committed()["tests"], test, 0.03, 1) == TIMID[test]


@pytest.mark.parametrize("table", ["coverage", "methods", "sizes"])
def test_the_document_shows_the_committed_results(table: str) -> None:
    document = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    shown = re.findall(rf"<!-- {table} -->\n(.*?)\n<!-- end -->", document, re.DOTALL)
    assert shown == [grid().TABLES[table](committed())]
