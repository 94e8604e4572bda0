"""The one page of a study: every step's section in order, failures where they belong, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from turnwise.instruments import INSTRUMENTS
from turnwise.report import Column, Prose, Section, Table, Verdict, read_run
from turnwise.study.book import Step
from turnwise.study.plan import Plan

SAID = {"done": "done", "failed": "failed", "skipped": "left out", "pending": "not yet run"}
CONCERNS = ("warn", "bad")
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
        return replace(section, verdict=None, anchor=step.name)  # the summary is for what the instruments found
    own = f" ({step.asked})" if step.asked not in ("", step.instrument) else ""
    title = f"{section.title}{own}{f': {step.corpus}' if is_named else ''}"
    return replace(section, title=title, anchor=step.name)


def overall(found: Sequence[tuple[Step, Section]]) -> str:
    """What the verdicts come to, for those who read no further: they are counted, and nothing is judged anew."""
    failed, waiting = (
        [section.title for step, section in found if step.state == state] for state in ("failed", "pending")
    )
    ended = [section for step, section in found if step.state in ("done", "skipped") and step.instrument != "corpus"]
    levels = ["info" if one.verdict is None else one.verdict.level for one in ended]
    judged = len(levels) - levels.count("info")
    concerns = [_concern(one) for one, level in zip(ended, levels, strict=True) if level in CONCERNS]
    others = [one.title for one, level in zip(ended, levels, strict=True) if level == "info"]
    lines = [_counted(concerns, judged)] if ended else []
    lines += [f"Not judged: {'; '.join(others)}."] if others and judged else []
    lines += [f"Failed: {'; '.join(failed)}."] if failed else []
    lines += [f"Not yet run: {'; '.join(waiting)}."] if waiting else []
    return " ".join(lines)


def _counted(concerns: Sequence[str], judged: int) -> str:
    if not judged:
        return "Nothing can be said: none of the findings is good or bad in itself."
    if not concerns:
        return f"No concern is raised by {'the one finding' if judged == 1 else f'any of the {judged} findings'}."
    word = "finding raises" if judged == 1 else "findings raise" if len(concerns) > 1 else "findings raises"
    return f"{len(concerns)} of {judged} {word} a concern: {'; '.join(concerns)}."


def _concern(section: Section) -> str:
    """The section's title, and whom its concern is about where it is not about all."""
    assert section.verdict is not None
    parts = section.verdict.parts
    about = [one.name for one in parts if one.level in CONCERNS]
    return f"{section.title} ({', '.join(about)})" if len(about) < len(parts) else section.title


def _missing(step: Step) -> Section:
    """A step that broke, that something is not installed for, or that the study was broken off before."""
    is_broken = step.state == "failed"
    leads = {"failed": "This step failed; the others went on.", "skipped": "Not measured.", "pending": "Not yet run."}
    about = f"{TITLES.get(step.instrument, step.name)}{f': {step.corpus}' if step.corpus else ''}"
    title = step.name.capitalize() if step.instrument == "model" else about
    others = {"model": "Can it be loaded?", "compare": "What has changed?"}
    question = others.get(step.instrument) or INSTRUMENTS[step.instrument].question
    then = "The whole trace is in the study's folder under failures/. Run the study again when it is mended: "
    text = f"{step.reason}\n\n{then}what is done is kept." if is_broken else step.reason
    text = "Run the study again: it goes on where it was." if step.state == "pending" else text
    return Section(
        title,
        step.name,
        question,
        [Prose(text)],
        lead=leads[step.state],
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
