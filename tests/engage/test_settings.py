"""Settings refuse values that do nothing or do not go together; a study's table is read by the same rules."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dialoscope.engage.settings import DepthSettings, PredictorSettings, RatingsSettings, ScoreSettings
from dialoscope.errors import UsageError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "meen"}, "pooling is one of mean, cls, max, min; found 'meen'."),
        ({"activation": "relu"}, "activation is one of clamp, sigmoid; found 'relu'."),
        ({"history": -1}, "history takes a whole number of 0 or more, found -1."),
        ({"history": 1.0}, "history takes a whole number, found 1.0."),
        ({"tokens": 2}, "tokens takes a whole number of 3 or more, found 2."),
        ({"classes": 1}, "classes takes a whole number of 2 or more, found 1."),
        ({"steps": 0}, "steps takes a whole number of 1 or more, found 0."),
        ({"rate": 0.0}, "rate takes a number above 0, found 0.0."),
        ({"start": "x", "history": 0}, "start goes on with a predictor as it is: leave out --history."),
        ({"start": "x", "flat": True, "encoder": "y"}, "leave out --encoder, --flat."),
        ({"frozen": True, "batch_turns": 8, "select": "human"}, "leave out --batch-turns, --select."),
        ({"select": "human"}, "give --human."),
        ({"reproduce_paper": True}, "give --select human, or leave it out."),
        ({"least_turns": 5, "most_turns": 4}, "least_turns is at most most_turns; found 5 and 4."),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        PredictorSettings(**options)
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize("kind", [DepthSettings, RatingsSettings, ScoreSettings, PredictorSettings])
def test_defaults_survive_a_table(kind: Any) -> None:
    table = {name: value for name, value in kind().to_dict().items() if value is not None}
    assert kind.from_table(table, "[engage]") == kind()


def test_seeds_are_0_and_batches_decide_nothing() -> None:
    assert {kind().seed for kind in (DepthSettings, RatingsSettings, PredictorSettings)} == {0}
    assert DepthSettings(device="cpu", batch_size=3, dtype="bfloat16").changed() == {"dtype": "bfloat16"}


def test_the_settings_load_nothing_heavy() -> None:
    code = "import sys, dialoscope.engage.settings; print({'numpy', 'pyarrow', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
