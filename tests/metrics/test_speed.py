from __future__ import annotations

import json
from pathlib import Path

import pytest

FOUND = json.loads((Path(__file__).parents[2] / "benchmarks" / "statistics_speed.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "task", ["mean of 10,000, percentile", "mean of 10,000, BCa", "spearman of 375", "kendall of 375"]
)
def test_the_committed_benchmark_keeps_the_promised_two_seconds(task: str) -> None:
    assert FOUND["about"]["resamples"] == 10_000
    assert FOUND["tasks"][task]["turnwise"]["seconds"] < FOUND["about"]["limit_seconds"] == 2
