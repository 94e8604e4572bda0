"""The one page of a study, or of several results: every section in order, failures among them, and how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dialoscope.files import whole_file
from dialoscope.instruments import QUESTIONS
from dialoscope.report import Column, Prose, Section, Table, render
from dialoscope.report.cell import Cell
from dialoscope.report.section import Card
from dialoscope.settings import default_of
from dialoscope.study.plan import Plan
from dialoscope.study.results import folder_of, load_any, steps_in
from dialoscope.study.steps import Step

STATES = {"done": "done", "failed": "failed", "skipped": "skipped", "pending": "not yet run"}
TITLES = {"compare": "Comparison"}


def write_page(folder: Path, plan: Plan, steps: Sequence[Step], was_split: Iterable[str]) -> None:
    """The page of a study, in its folder."""
    found = list(zip(steps, sections_of(folder, steps), strict=True))
    sections = [*(section for _, section in found), how_it_was_made(plan, steps, was_split)]
    page = render(plan.title, sections, subtitle=", ".join(plan.corpora), overall=overall(found))
    with whole_file(folder / "report.html") as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")


def joined_page(folders: Sequence[Path], title: str) -> str:
    """One page of results and studies; where two folders have sections of one title, titles name the folder."""
    given = {folder.resolve(): folder for folder in map(folder_of, folders)}  # a folder that is given twice is one
    found = []
    for real, folder in given.items():
        steps = steps_in(folder)
        for step, section in zip(steps, sections_of(folder, steps), strict=True):
            found.append((short_path(real, given), step, section))
    is_told_apart = len(given) == 1 or len({section.title for _, _, section in found}) == len(found)
    if not is_told_apart:
        found = [(own, step, replace(section, title=f"{section.title} ({own})")) for own, step, section in found]
    summary = overall([(step, section) for _, step, section in found])
    return render(title, [section for _, _, section in found], subtitle=", ".join(map(str, folders)), overall=summary)


def short_path(folder: Path, all_folders: Iterable[Path]) -> str:
    """The shortest end of a path that no other one has: `a/study` beside `b/study`."""
    others = [other.parts for other in all_folders if other != folder]
    ends = (folder.parts[-count:] for count in range(1, len(folder.parts)))
    own = (end for end in ends if all(other[-len(end) :] != end for other in others))
    return str(Path(*next(own, folder.parts)))


def sections_of(folder: Path, steps: Sequence[Step]) -> list[Section]:
    """What each step found, or why it found nothing."""
    is_named = len({step.corpus for step in steps if step.corpus}) > 1
    continued = any(step.state == "done" for step in steps)
    return [
        _section(folder, step, is_named=is_named) if step.state == "done" else _missing(step, continued=continued)
        for step in steps
    ]


def _section(folder: Path, step: Step, *, is_named: bool) -> Section:
    section = load_any(folder / step.run).section()
    if step.run == "." or step.instrument == "corpus":
        return section.at(section.anchor if step.run == "." else step.name)
    own = f" ({step.asked})" if step.asked not in ("", step.instrument) else ""
    corpus = f": {step.corpus}" if is_named and step.corpus else ""
    return replace(section, title=f"{section.title}{own}{corpus}", anchor=step.name)


def _missing(step: Step, *, continued: bool) -> Section:
    """A step that failed, that something is not installed for, or that an interrupted study did not reach."""
    failed = "This step failed; the others were run." if continued else "This step failed, and no other is done."
    leads = {"failed": failed, "skipped": "Not measured.", "pending": "Not yet run."}
    texts = {
        "failed": f"{step.reason}\n\nThe whole trace is in the study's folder under failures/. Run the study again "
        "when this is repaired: what is done is kept.",
        "skipped": step.reason,
        "pending": "Run the study again: it continues where it stopped.",
    }
    questions = {"model": "Can it be loaded?", "compare": "What has changed?", "corpus": "What is in the data?"}
    question = questions.get(step.instrument) or QUESTIONS[step.instrument].ask
    title = TITLES.get(step.instrument, step.instrument.capitalize()) + (f": {step.corpus}" if step.corpus else "")
    title = step.name.capitalize() if step.instrument == "model" else title
    card = Card(f"{step.shown_name} failed.", None, "not_measurable") if step.state == "failed" else None
    return Section(title, step.name, question, [Prose(texts[step.state])], lead=leads[step.state], verdict=card)


def overall(found: Sequence[tuple[Step, Section]]) -> str:
    """What the cards come to, for those who read no further: they are counted, and nothing is judged again."""
    failed, waiting = (
        [section.title for step, section in found if step.state == state] for state in ("failed", "pending")
    )
    ended = [section for step, section in found if step.state in ("done", "skipped") and step.instrument != "corpus"]
    levels = [section.verdict.level if section.verdict else "not_measurable" for section in ended]
    judged = sum(level in ("good", "concern") for level in levels)
    concerns = [_concern(section) for section, level in zip(ended, levels, strict=True) if level == "concern"]
    others = [section.title for section, level in zip(ended, levels, strict=True) if level not in ("good", "concern")]
    lines = [_counted(concerns, judged)] if ended else []
    lines += [f"Not judged: {'; '.join(others)}."] if others and judged else []
    lines += [f"Failed: {'; '.join(failed)}."] if failed else []
    lines += [f"Not yet run: {'; '.join(waiting)}."] if waiting else []
    return " ".join(lines)


def _counted(concerns: Sequence[str], judged: int) -> str:
    if not judged:
        return "No finding could be judged good or a concern."
    if not concerns:
        return f"No concern is raised by {'the one finding' if judged == 1 else f'any of the {judged} findings'}."
    word = "finding raises" if judged == 1 else "findings raise" if len(concerns) > 1 else "findings raises"
    return f"{len(concerns)} of {judged} {word} a concern: {'; '.join(concerns)}."


def _concern(section: Section) -> str:
    """The section's title, and which of its parts the concern is about where it is not about all."""
    assert section.verdict is not None
    parts = section.verdict.parts
    about = [part.name for part in parts if part.level == "concern"]
    return f"{section.title} ({', '.join(about)})" if len(about) < len(parts) else section.title


def how_it_was_made(plan: Plan, steps: Sequence[Step], was_split: Iterable[str]) -> Section:
    """The steps of the study, and how its models were trained."""
    columns = [Column("step"), Column("question"), Column("corpus"), Column("state"), Column("seconds", ".1f"),
               Column("result")]  # fmt: skip
    rows: list[list[Cell]] = [
        [step.name, step.instrument, step.corpus, STATES[step.state], step.seconds, step.run] for step in steps
    ]
    tables = [Table(columns, rows, "Steps of the study", name="steps")]
    trained = {name: entry for name, entry in plan.models.items() if entry.training is not None}
    models: list[list[Cell]] = []
    for name, entry in trained.items():
        assert entry.training is not None
        kind, values = type(entry.training), entry.training.to_dict()
        usual = {key: default_of(kind, key) for key in values}
        changed = [f"{key}={value}" for key, value in values.items()
                   if key == "preset" or (value != usual[key] and value not in ([], None))]  # fmt: skip
        models.append([name, entry.corpus or "", ", ".join(changed)])
    if models:
        tables.append(
            Table(["model", "trained on", "settings"], models, "Models trained for this study", name="models")
        )
    rule = f"has one split: it was split 80/10/10 by dialogue with seed {plan.seed}, for the training of models and for"
    splits = [Prose(f"{name} {rule} the questions to them.") for name in sorted(was_split)]
    return Section("How it was made", "steps", "What was run, and how did it end?", [*splits, *tables])
