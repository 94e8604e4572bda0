"""The one page of a study: every step's section in order, failures where they belong, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from turnwise.instruments import INSTRUMENTS
from turnwise.report import Column, Prose, Section, Table, Verdict, read_run
from turnwise.study.book import Step
from turnwise.study.plan import Plan

SAID = {"done": "done", "failed": "failed", "skipped": "left out"}
TITLES = {
    "corpus": "Corpus",
    "overlap": "Overlap",
    "distract": "Distraction",
    "probe": "Probes",
    "engage": "Engagement",
}


def sections_of(folder: Path, steps: Sequence[Step], plan: Plan) -> list[Section]:
    """A section for each step, then the comparison with an earlier study where there is one, then the steps."""
    found = [_section(folder, step, is_named=len(plan.corpora) > 1) for step in steps]
    if plan.against is not None:
        found.append(_compared(folder, Path(plan.against)))
    return [*found, _made(steps)]


def _section(folder: Path, step: Step, *, is_named: bool) -> Section:
    if step.state != "done":
        return _missing(step)
    section = read_run(folder / step.run).section
    if step.instrument == "corpus":
        return replace(section, verdict=None)  # the summary is for what the instruments found
    return replace(section, title=f"{section.title}: {step.corpus}", anchor=step.name) if is_named else section


def _missing(step: Step) -> Section:
    """A step that broke, or that something is not installed for."""
    is_broken = step.state == "failed"
    about = f"{TITLES.get(step.instrument, step.name)}{f': {step.corpus}' if step.corpus else ''}"
    title = step.name.capitalize() if step.instrument == "model" else about
    question = INSTRUMENTS[step.instrument].question if step.instrument in INSTRUMENTS else "Can it be loaded?"
    then = "The whole trace is in the study's folder under failures/. Run the study again when it is mended: "
    text = f"{step.reason}\n\n{then}what is done is kept." if is_broken else step.reason
    return Section(
        title,
        step.name,
        question,
        [Prose(text)],
        lead="This step failed; the others went on." if is_broken else "Not measured.",
        verdict=Verdict(f"{step.name}: failed", "–", "bad") if is_broken else None,
    )


def _compared(folder: Path, earlier: Path) -> Section:
    from turnwise.errors import TurnwiseError
    from turnwise.study.compare import compare, section_of

    try:
        return section_of(compare(earlier, folder))
    except TurnwiseError as error:
        lead = "The earlier study could not be compared with."
        return Section("Compared", "compared", "What has changed?", [Prose(str(error))], lead=lead)


def _made(steps: Sequence[Step]) -> Section:
    columns = [Column("step"), Column("instrument"), Column("corpus"), Column("state"), Column("seconds", ".1f"),
               Column("run")]  # fmt: skip
    rows: list[list[str | float]] = [
        [one.name, one.instrument, one.corpus, SAID[one.state], one.seconds, one.run] for one in steps
    ]
    table = Table(columns, rows, "Steps of the study", name="steps")
    return Section("How it was made", "steps", "What was run, and how did it end?", [table])
