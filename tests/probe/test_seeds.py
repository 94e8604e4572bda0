from __future__ import annotations

import math

import pytest
from dialoscope.probe.report import pooled_table
from tests.probe.test_measure import CHAT, FEW, Blind, Counting, splits

from dialoscope.model.protocol import DialogueModel
from dialoscope.probe import Settings, chosen_tasks, examine
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
    assert Spread.of([0.2, 0.4, 0.9]).to_dict() == {
        "mean": pytest.approx(0.5),
        "standard_deviation": pytest.approx(math.sqrt(0.13)),
        "runs": 3,
    }


def test_a_score_that_one_run_lacks_has_no_mean() -> None:
    assert list(spreads([{"a": 0.5, "b": None}, {"a": 0.7, "b": 0.1}])) == ["a"]


def test_runs_of_one_model_are_pooled_in_the_result_and_on_the_page() -> None:
    """One run knows everything, the other as much as the majority does: 1 and 2/8."""
    models: dict[str, DialogueModel] = {"m#0": Counting(), "m#1": Blind("blind@0"), "other": Blind("blind@1")}
    how = Settings(has_controls=False)
    result = examine(models, *splits(CHAT), tasks=chosen_tasks(["UtteranceLoc"]), settings=how, resampling=FEW).result
    shown = result.to_dict()["pooled"]
    assert list(shown) == ["m"]
    assert shown["m"]["runs"] == ["m#0", "m#1"]
    expected = {"mean": pytest.approx(0.625), "standard_deviation": pytest.approx(0.75 / math.sqrt(2)), "runs": 2}
    assert shown["m"]["tasks"] == {"UtteranceLoc": expected}
    assert shown["m"]["groups"] == {"medium": expected}
    table = pooled_table(result)
    assert list(table.rows[0]) == ["UtteranceLoc", pytest.approx(0.625), pytest.approx(0.75 / math.sqrt(2))]
