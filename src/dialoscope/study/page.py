"""The one page of a study: every step's section in order, failures where they belong, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dialoscope.instruments import INSTRUMENTS
from dialoscope.report import Column, Prose, Section, Table, Verdict, read_run
from dialoscope.study.book import Step, kept_plan
from dialoscope.study.plan import CorpusWish, Plan

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
    went_on = any(step.state == "done" for step in steps)
    plan = kept_plan(folder)
    return [
        _section(folder, step, plan, is_named=is_named) if step.state == "done" else _missing(step, went_on=went_on)
        for step in steps
    ]


def _section(folder: Path, step: Step, plan: Mapping[str, Any], *, is_named: bool) -> Section:
    section = _recorded(read_run(folder / step.run).section, step, plan)
    if step.instrument == "corpus":
        return replace(section, verdict=None, anchor=step.name)  # the summary is for what the instruments found
    own = f" ({step.asked})" if step.asked not in ("", step.instrument) else ""
    title = f"{section.title}{own}{f': {step.corpus}' if is_named else ''}"
    return replace(section, title=title, anchor=step.name)


def _recorded(section: Section, step: Step, plan: Mapping[str, Any]) -> Section:
    """A section whose record says what the plan gave: options of reading and measuring, and recipes of training."""
    if section.origin is None:
        return section
    asks: dict[str, Mapping[str, Any]] = {one["name"]: one for one in plan.get("instruments", ())}
    ask = asks.get(step.asked, {"options": {}, "models": ()})
    reading = plan.get("corpora", {}).get(step.corpus, {})
    trained = {name: one for name in ask["models"] if "preset" in (one := plan["models"][name])}
    given = {
        "reading": _options(reading, {**asdict(CorpusWish(())), "path": reading.get("path")}),
        "options": _options(ask["options"], asdict(INSTRUMENTS[ask["instrument"]].wish()) if ask["options"] else {}),
        **{f"model_{_joined(name)}": _options(_recipe(one), {}) for name, one in trained.items()},
    }
    kept = {key: value for key, value in given.items() if value}
    return replace(section, origin=section.origin.having(**kept))


def _options(options: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Those that are not as usual, in a line."""
    known = {key: json.dumps(value) for key, value in usual.items()}
    given = {key: value for key, value in options.items() if json.dumps(value) != known.get(key)}
    return ",".join(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items())


def _recipe(model: Mapping[str, Any]) -> dict[str, Any]:
    """All that tells how a model was trained; what was left open is left out."""
    has_loss = model["insert"] > 0 and model["attention_loss"]
    told = {
        **{key: model[key] for key in ("preset", "corpus", "insert")},
        "attention_loss": f"{model['attention_weight']:g}*{model['attention_reduction']}" if has_loss else "none",
        **{key: model[key] for key in ("context_turns", "train_limit", "validation_limit", "bleu_samples", "seed")},
        **model["set"],
    }
    return {key: value for key, value in told.items() if value is not None}


def _joined(name: str) -> str:
    """A name as the key of a record, whose parts are kept apart by bars and blanks."""
    return "_".join(name.replace("|", "/").split())


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


def _missing(step: Step, *, went_on: bool) -> Section:
    """A step that broke, that something is not installed for, or that the study was broken off before."""
    is_broken = step.state == "failed"
    failed = "This step failed; the others went on." if went_on else "This step failed, and no other was done."
    leads = {"failed": failed, "skipped": "Not measured.", "pending": "Not yet run."}
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
