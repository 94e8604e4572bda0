from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dialoscope.metrics import resample
from dialoscope.metrics.resample import draw_counts, draw_swaps, left_out_by_counts
from dialoscope.metrics.statistic import Clusters, mean_of


def test_every_resample_draws_as_many_dialogues_as_there_are() -> None:
    assert (draw_counts(1, 0, 50, 37).sum(axis=1) == 37).all()


def test_draws_follow_the_multinomial_distribution() -> None:
    from scipy.stats import chisquare

    counts = draw_counts(3, 0, 27_000, 3)
    outcomes = [row for row in itertools.product(range(4), repeat=3) if sum(row) == 3]
    observed = [int((counts == row).all(axis=1).sum()) for row in outcomes]
    expected = [1000 * math.factorial(3) / math.prod(map(math.factorial, row)) for row in outcomes]
    assert chisquare(observed, expected).pvalue > 0.001


def test_tosses_are_fair_and_independent() -> None:
    swaps = draw_swaps(5, 0, 20_000, 130).astype(float)
    assert np.abs(swaps.mean(axis=0) - 0.5).max() < 5 * math.sqrt(0.25 / 20_000)
    assert np.abs(np.corrcoef(swaps.T) - np.eye(130)).max() < 6 / math.sqrt(20_000)


@pytest.mark.parametrize("draw", [draw_counts, draw_swaps])
def test_a_resample_is_the_same_wherever_the_work_is_cut(draw: object) -> None:
    assert callable(draw)
    whole = draw(7, 0, 10, 100)
    assert (np.vstack([draw(7, 0, 4, 100), draw(7, 4, 10, 100)]) == whole).all()


def test_values_do_not_depend_on_the_size_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = mean_of(np.arange(40.0), clusters=Clusters.of(None, n=40), undefined="")
    whole = resample.resample(statistic, resamples=30, rng=np.random.default_rng(0))
    monkeypatch.setattr(resample, "CELLS", 100)
    monkeypatch.setattr(resample, "FEW_CELLS", 0)
    pieces = resample.resample(statistic, resamples=30, rng=np.random.default_rng(0))
    assert pieces == pytest.approx(whole, rel=1e-15)


def test_leaving_out_by_counts_equals_leaving_out() -> None:
    statistic = mean_of([1.0, 2.0, 6.0], clusters=Clusters.of(["a", "b", "b"], n=3), undefined="")
    assert left_out_by_counts(statistic) == pytest.approx([4, 1])
