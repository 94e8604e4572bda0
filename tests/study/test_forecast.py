from __future__ import annotations

from typing import Any

import pytest

from dialoscope.study.forecast import forecast


def row(state: str, seconds: float | None = None, training: float | None = None) -> dict[str, Any]:
    return {"state": state, "seconds": seconds, "training_seconds": training}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("done"), row("done")], "Nothing is to do."),
        (
            [row("done"), row("to do"), row("would fail: no such file")],
            "How long it takes is not known: nothing that is to do was done in this folder before.",
        ),
        (
            [row("to do", 20.0), row("to do", 40.0)],
            "About 1.0 min for what is to do, by what it took when it was last done in this folder.",
        ),
        (
            [row("to do", 20.0), row("to do"), row("done")],
            "About 20 s for 1 of 2 steps of what is to do, by what it took when it was last done in this folder.",
        ),
        (
            [row("to do, with training", 3600.0, 3580.0), row("to do, with training", 3600.0)],
            "About 2.0 h for what is to do, by what it took when it was last done in this folder.",
        ),
        (
            [row("to do, with training", 20.0)],
            "About 20 s for what is to do, by what it took when it was last done in this folder. "
            "Training is not in it: how long that takes is not known.",
        ),
    ],
)
def test_the_time_is_that_of_the_last_time_or_not_known(rows: list[dict[str, Any]], told: str) -> None:
    assert forecast(rows) == told
