from __future__ import annotations

import pytest

from dialoscope.report import Section, Verdict
from dialoscope.report.section import Level
from dialoscope.study import Step
from dialoscope.study.book import State
from dialoscope.study.page import overall

BOTH = Verdict.of({"base": Verdict("times", 1.5, "bad"), "ours": Verdict("times", 0.5, "good")})
ALL = Verdict.of({"base": Verdict("times", 1.5, "bad"), "ours": Verdict("times", 1.0, "warn")})


def found(
    title: str, verdict: Verdict | Level | None, *, instrument: str = "overlap", state: State = "done"
) -> tuple[Step, Section]:
    shown = Verdict("of it", 1, verdict) if isinstance(verdict, str) else verdict
    return Step(title, instrument, "", state), Section(title, "", "", [], verdict=shown)


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        (
            [found("Overlap", "bad"), found("Distraction", BOTH), found("Probes", "good"), found("Engagement", "info")],
            "2 of 3 findings raise a concern: Overlap; Distraction (base). Not judged: Engagement.",
        ),
        ([found("Distraction", ALL), found("Probes", "good")], "1 of 2 findings raises a concern: Distraction."),
        ([found("Overlap", "warn")], "1 of 1 finding raises a concern: Overlap."),
        ([found("Overlap", "good"), found("Probes", "good")], "No concern is raised by any of the 2 findings."),
        ([found("Overlap", "good")], "No concern is raised by the one finding."),
        (
            [found("Engagement", None), found("Compared", "info")],
            "Nothing can be said: none of the findings is good or bad in itself.",
        ),
        (
            [found("Overlap", "good"), found("Probes", "bad", state="failed"), found("Engagement", None)],
            "No concern is raised by the one finding. Not judged: Engagement. Failed: Probes.",
        ),
        ([found("Corpus", "info", instrument="corpus")], ""),
    ],
)
def test_the_verdicts_are_counted_and_those_that_raise_a_concern_are_named(
    sections: list[tuple[Step, Section]], told: str
) -> None:
    assert overall(sections) == told
