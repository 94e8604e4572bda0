"""The distract section of the report: what its verdict may say."""

from __future__ import annotations

import pytest

from turnwise.distract.report import _level
from turnwise.record import Score


@pytest.mark.parametrize(
    ("value", "interval", "level"),
    [
        (0.8, (0.7, 0.9), "good"),
        (1.2, (1.1, 1.3), "bad"),
        (0.95, (0.8, 1.1), "warn"),
        (0.95, None, "info"),  # of three dialogues: nothing is sure
        (None, None, "info"),
    ],
)
def test_a_verdict_needs_an_interval(value: float | None, interval: tuple[float, float] | None, level: str) -> None:
    score = Score(value, 3, interval, reason="no History" if value is None else None)
    assert _level(score) == level
