from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dialoscope.engage.depth import Depth, DepthResult
from dialoscope.engage.examples import Examples, remaining_depth
from dialoscope.engage.output import TURNS, write_depth
from dialoscope.record import Origin, Score
from dialoscope.study import compare

DIALOGUES = (("hello", "i like tea", "bye"), ("hi", "see you"))
EXAMPLES = Examples(
    "toy@1",
    [text for one in DIALOGUES for text in one],
    np.asarray([0, 3, 5]),
    np.concatenate([remaining_depth(len(one)) for one in DIALOGUES]),
    ids=("a", "b"),
)


def guessed(score: float) -> Depth:
    """The same guess of every turn."""
    nothing = Score(0.0, 5)
    ends = {k: {"pearson": nothing, "spearman": nothing} for k in (1, 2, 3)}
    return Depth(nothing, nothing, nothing, ends, np.full(5, score))


@pytest.mark.parametrize("name", ["random", "average", "ours"])
def test_a_model_called_as_a_baseline_keeps_its_scores_and_can_be_compared(tmp_path: Path, name: str) -> None:
    baselines = {"average": guessed(0.25), "random": guessed(0.125)}
    found = DepthResult({name: guessed(0.5)}, baselines, EXAMPLES, Origin("toy@1"))
    before = write_depth(found, tmp_path / "before")
    table = pq.read_table(before / TURNS).to_pydict()
    assert {key: rows[0] for key, rows in table.items() if " " in key} == {
        f"score {name}": 0.5,
        "baseline average": 0.25,
        "baseline random": 0.125,
    }
    after = write_depth(replace(found, models={name: guessed(0.0)}), tmp_path / "after")
    (change,) = compare(before, after).changes
    assert change.model == name
    # Depths are 1, 0.5, 0 and 1, 0: a half errs by 0.25 four times of five, nothing by 1 twice and by 0.25 once.
    assert [change.first, change.second] == pytest.approx([100 * 4 * 0.25 / 5, 100 * 2.25 / 5])
