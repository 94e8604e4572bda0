from __future__ import annotations

import math

import pytest
from tests.probe.fakes import Blind, Counting, probed

from dialoscope.probe.section import pooled_table
from dialoscope.probe.seeds import Spread, runs_of, spreads

NAMES = {
    ("lstm", "hred"): {},
    ("lstm#0", "lstm#1", "hred#0"): {"lstm": ["lstm#0", "lstm#1"]},  # one run is no several
    ("lstm#0@last", "lstm#0@best", "lstm#1@last"): {"lstm@last": ["lstm#0@last", "lstm#1@last"]},
    ("a#7, layer 2, last", "a#8, layer 2, last"): {"a, layer 2, last": ["a#7, layer 2, last", "a#8, layer 2, last"]},
    ("a#", "a#@last"): {},  # no seed is named
}


@pytest.mark.parametrize("names", NAMES)
def test_runs_are_called_alike_but_for_the_seed(names: tuple[str, ...]) -> None:
    assert runs_of(names) == NAMES[names]


def test_the_deviation_is_that_of_a_sample() -> None:
    """Distances from the mean 0.5 are 0.3, 0.1 and 0.4: squares sum to 0.26, over two that is 0.13."""
    spread = Spread.of([0.2, 0.4, 0.9])
    assert [spread.mean, spread.deviation, spread.n] == pytest.approx([0.5, math.sqrt(0.13), 3])


def test_a_score_that_one_run_lacks_has_no_mean() -> None:
    assert list(spreads([{"a": 0.5, "b": None}, {"a": 0.7, "b": 0.1}])) == ["a"]


def test_runs_of_one_model_are_pooled_in_the_result_and_on_the_page() -> None:
    """One run knows everything, the other as much as the majority does: 1 and 2/8."""
    result = probed({"m#0": Counting(), "m#1": Blind("blind@0"), "other": Blind("blind@1")}, controls=False)
    assert list(result.pooled) == ["m"]
    assert result.pooled["m"].runs == ("m#0", "m#1")
    for part in ("UtteranceLoc", "medium tasks"):
        mean, deviation = (result.scores()[f"m (mean of 2 runs)/{part}/{name}"] for name in ("f1", "f1_deviation"))
        assert mean.value == pytest.approx(0.625)
        assert mean.n == 2
        assert deviation.value == pytest.approx(0.75 / math.sqrt(2))
        assert mean.interval_reason == "over runs, not dialogues; their standard deviation is 0.5303"
    table = pooled_table(result)
    assert list(table.rows[0]) == ["UtteranceLoc", pytest.approx(0.625), pytest.approx(0.75 / math.sqrt(2))]
    assert result.summary().rows[0][:3] == ("UtteranceLoc", pytest.approx(2 / 8), "0.625 ± 0.530")
