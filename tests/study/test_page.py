from __future__ import annotations

import pytest

from dialoscope.report import Card, Part, Section
from dialoscope.report.verdict import Level
from dialoscope.study.page import overall
from dialoscope.study.steps import State, Step

BOTH = Card("times", None, "concern", parts=[Part("base", 1.5, "concern"), Part("ours", 0.5, "good")])
ALL = Card("times", None, "concern", parts=[Part("base", 1.5, "concern"), Part("ours", 1.0, "concern")])


def found(
    title: str, card: Card | Level | None, *, instrument: str = "overlap", state: State = "done"
) -> tuple[Step, Section]:
    shown = Card("of it", 1, card) if isinstance(card, str) else card
    return Step(title, instrument, "", state), Section(title, "", "", [], verdict=shown)


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        (
            [found("Overlap", "concern"), found("Attention", BOTH), found("Probe", "good"),
             found("Depth", "cannot_tell")],
            "2 of 3 findings raise a concern: Overlap; Attention (base). Not judged: Depth.",
        ),
        ([found("Attention", ALL), found("Probe", "good")], "1 of 2 findings raises a concern: Attention."),
        ([found("Overlap", "concern")], "1 of 1 finding raises a concern: Overlap."),
        ([found("Overlap", "good"), found("Probe", "good")], "No concern is raised by any of the 2 findings."),
        ([found("Overlap", "good")], "No concern is raised by the one finding."),
        (
            [found("Depth", None), found("Comparison", "not_measurable")],
            "No finding could be judged good or a concern.",
        ),
        (
            [found("Overlap", "good"), found("Probe", "not_measurable", state="failed"), found("Depth", None)],
            "No concern is raised by the one finding. Not judged: Depth. Failed: Probe.",
        ),
        ([found("Corpus", None, instrument="corpus")], ""),
    ],
)  # fmt: skip
def test_the_cards_are_counted_and_those_that_raise_a_concern_are_named(
    sections: list[tuple[Step, Section]], told: str
) -> None:
    assert overall(sections) == told
