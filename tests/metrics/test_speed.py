"""The promised speed, run here and now: 10,000 resamples in under two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from dialoscope.metrics import Resampling, correlate, mean_score
from dialoscope.record import Score

LIMIT_SECONDS = 2.0
PERCENTILE = Resampling(method="percentile")
RNG = np.random.default_rng(0)
VALUES = RNG.exponential(size=10_000)
WORDS = RNG.poisson(8, size=375).astype(float)
PEOPLE = np.round(np.clip(WORDS / 6 + RNG.normal(size=375), 0, 4)) / 2


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(lambda: mean_score(VALUES, resampling=PERCENTILE), id="mean of 10,000, percentile"),
        pytest.param(lambda: mean_score(VALUES, resampling=Resampling(method="bca")), id="mean of 10,000, BCa"),
        pytest.param(lambda: correlate(WORDS, PEOPLE, kind="spearman", resampling=PERCENTILE), id="spearman of 375"),
        pytest.param(lambda: correlate(WORDS, PEOPLE, kind="kendall", resampling=PERCENTILE), id="kendall of 375"),
    ],
)
def test_ten_thousand_resamples_take_less_than_two_seconds(score: Callable[[], Score]) -> None:
    assert "|resamples:10000|" in score().signature  # and the kernels are translated
    assert best_of_three(score) < LIMIT_SECONDS


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(lambda: mean_score(VALUES), id="mean of 10,000"),
        pytest.param(lambda: correlate(WORDS, PEOPLE, kind="spearman"), id="spearman of 375"),
        pytest.param(lambda: correlate(WORDS, PEOPLE, kind="kendall"), id="kendall of 375"),
    ],
)
def test_the_default_interval_takes_less_than_two_seconds(score: Callable[[], Score]) -> None:
    assert "interval:jackknife-0.95|" in score().signature
    assert best_of_three(score) < LIMIT_SECONDS


def best_of_three(score: Callable[[], Score]) -> float:
    seconds = []
    for _ in range(3):  # the best of three: a busy machine is not our doing
        start = time.perf_counter()
        score()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
