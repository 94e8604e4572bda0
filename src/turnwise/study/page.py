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
    "compare": "Compared",
}


def sections_of(folder: Path, steps: Sequence[Step], plan: Plan, *, dealt: Sequence[str] = ()) -> list[Section]:
    """A section for each step, then the steps themselves."""
    told = [
        f"{name} has one split: one in ten of its dialogues was held out for validation and one for testing "
        f"(seed {plan.seed}), for models and instruments alike; overlap was measured within the whole."
        for name in dealt
    ]
    return [*step_sections(folder, steps), _made(steps, told)]


def step_sections(folder: Path, steps: Sequence[Step]) -> list[Section]:
    """What each step found, or why it did not."""
    is_named = len({step.corpus for step in steps if step.corpus}) > 1
    return [_section(folder, step, is_named=is_named) for step in steps]


def _section(folder: Path, step: Step, *, is_named: bool) -> Section:
    if step.state != "done":
        return _missing(step)
    section = read_run(folder / step.run).section
    if step.instrument == "corpus":
        return replace(section, verdict=None)  # the summary is for what the instruments found
    own = f" ({step.asked})" if step.asked not in ("", step.instrument) else ""
    title = f"{section.title}{own}{f': {step.corpus}' if is_named else ''}"
    return replace(section, title=title, anchor=step.name)


def _missing(step: Step) -> Section:
    """A step that broke, or that something is not installed for."""
    is_broken = step.state == "failed"
    about = f"{TITLES.get(step.instrument, step.name)}{f': {step.corpus}' if step.corpus else ''}"
    title = step.name.capitalize() if step.instrument == "model" else about
    others = {"model": "Can it be loaded?", "compare": "What has changed?"}
    question = others.get(step.instrument) or INSTRUMENTS[step.instrument].question
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


def _made(steps: Sequence[Step], told: Sequence[str]) -> Section:
    columns = [Column("step"), Column("instrument"), Column("corpus"), Column("state"), Column("seconds", ".1f"),
               Column("run")]  # fmt: skip
    rows: list[list[str | float]] = [
        [one.name, one.instrument, one.corpus, SAID[one.state], one.seconds, one.run] for one in steps
    ]
    table = Table(columns, rows, "Steps of the study", name="steps")
    return Section("How it was made", "steps", "What was run, and how did it end?", [*map(Prose, told), table])
