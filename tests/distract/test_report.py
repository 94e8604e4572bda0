"""The distract section of the report: what its verdict may say."""

from __future__ import annotations

import pytest

from dialoscope.distract.report import DETAILS, _level, section_of
from dialoscope.distract.result import DistractResult, ModelResult, SetResult
from dialoscope.record import Origin, Score


@pytest.mark.parametrize(
    ("value", "interval", "level"),
    [
        (0.8, (0.7, 0.9), "good"),
        (1.2, (1.1, 1.3), "bad"),
        (0.95, (0.8, 1.1), "warn"),
        (1.0003, (1.0001, 1.0006), "warn"),  # sure, but nothing that is written down
        (0.997, (0.996, 0.998), "warn"),
        (0.95, None, "info"),  # of three dialogues: nothing is sure
        (None, None, "info"),
    ],
)
def test_a_verdict_needs_an_interval(value: float | None, interval: tuple[float, float] | None, level: str) -> None:
    score = Score(value, 3, interval, reason="no History" if value is None else None)
    assert _level(score) == level


def measured(**ratios: tuple[float, tuple[float, float]]) -> ModelResult:
    """A model by its ratio on each set; names have _ for -."""
    sets = {
        name.replace("_", "-"): SetResult({key: Score(value, 40, interval) for key in DETAILS}, 40, 0, 0)
        for name, (value, interval) in ratios.items()
    }
    return ModelResult(None, sets)


def test_a_verdict_names_its_set_and_is_no_good_news_where_another_set_draws_the_model() -> None:
    steady = measured(random=(0.8, (0.7, 0.9)), rare_end=(0.9, (0.8, 1.1)))
    drawn = measured(random=(0.8, (0.7, 0.9)), rare_end=(1.2, (1.1, 1.3)), frequent_end=(1.3, (1.2, 1.4)))
    section = section_of(DistractResult({"steady": steady}, {}, Origin()))
    assert section.verdict is not None
    assert (section.verdict.level, "put in (random)" in section.verdict.headline) == ("good", True)
    assert "more on" not in section.lead
    section = section_of(DistractResult({"drawn": drawn}, {}, Origin()))
    assert section.verdict is not None and section.verdict.level == "warn"
    assert "drawn gives what was put in more on rare-end, frequent-end." in section.lead
    section = section_of(DistractResult({"steady": steady, "drawn": drawn}, {}, Origin()))
    assert section.verdict is not None
    assert [part.level for part in section.verdict.parts] == ["good", "warn"]
    assert section.verdict.headline.endswith("lower is better; drawn gives it more on rare-end, frequent-end")
