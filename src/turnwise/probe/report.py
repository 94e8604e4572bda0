"""The probe section of the report: what each model's encodings know, beside what it takes to be impressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from turnwise.probe.labels import Floats, Labels
from turnwise.probe.pictures import Picture
from turnwise.probe.result import CONTROLS, GROUPS, OWN, ProbeResult, TaskResult
from turnwise.probe.tasks import TASKS
from turnwise.record import Score
from turnwise.report import Block, Column, Prose, Section, Table, Verdict
from turnwise.report.cell import Cell
from turnwise.report.charts import Axis, grouped_bars, heatmap, lines, scatter
from turnwise.report.section import Level

SHARE = Axis("micro-F1", ".0%", (0.0, 1.0))
SHOWN = {"majority": "majority", "bag_of_words": "bag of words", "untrained": "untrained", "shuffled": "shuffled"}
ALPHA = 0.05
MANY = 3  # checkpoints of a run that make a curve


def section_of(
    result: ProbeResult, *, labels: Mapping[str, Labels] | None = None, pictures: Sequence[Picture] = ()
) -> Section:
    """All models and tasks, as a section."""
    name = list(result.models)[-1]
    known, of = beats_words(result.models[name].tasks.values())
    return Section(
        title="Probes",
        anchor="probe",
        question="What does the encoding of a context know?",
        blocks=list(_blocks(result, labels or {}, pictures)),
        lead=_lead(name, known, of),
        verdict=Verdict(f"of {of} tasks that {name} knows more of than a bag of words", known, _level(known, of), "d"),
        origin=result.origin,
    )


def beats_words(tasks: Iterable[TaskResult]) -> tuple[int, int]:
    """On how many tasks a model is above its bag of words for sure (Holm over its tasks), and of how many."""
    tested = [one.above_words for one in tasks if one.above_words is not None]
    return sum((one.difference.value or 0) > 0 and (one.p_holm or 1) < ALPHA for one in tested), len(tested)


def _lead(name: str, known: int, of: int) -> str:
    if not of:
        return f"{name} was probed without the controls that say what its scores are worth."
    return (
        f"On {known} of {of} tasks a classifier reads significantly more from the encodings of {name} than from the "
        "words of the same contexts."
    )


def _level(known: int, of: int) -> Level:
    return "info" if not of else "good" if known > of / 2 else "warn" if known else "bad"


def _blocks(result: ProbeResult, labels: Mapping[str, Labels], pictures: Sequence[Picture]) -> Iterator[Block]:
    yield score_table(result)
    yield _bars(result)
    yield group_table(result)
    yield from (control_table(result, name) for name in result.models)
    if result.comparisons:
        yield _comparisons(result)
    yield from _curves(result)
    yield from (_scatter(one) for one in pictures)
    if labels:
        yield label_table(labels)
    if result.advice:
        yield Prose(" ".join(result.advice), heading="Before a number is read")
    if result.skipped:
        missing = "; ".join(f"{name} {reason}" for name, reason in result.skipped.items())
        yield Prose(f"Not probed: {missing}.", heading="Tasks that this corpus cannot carry")


def score_table(result: ProbeResult) -> Table:
    """Tasks by models in the form of the paper's Tables 5 to 7, the highest of each row's models marked."""
    names = list(result.models)
    columns = [Column("model"), *(Column(task, ".3f", "high") for task in _tasks(result))]
    rows: list[list[Cell]] = [
        [name, *(result.models[name].tasks[task].f1 for task in _tasks(result))] for name in names
    ]
    note = "Micro-F1 from 0 to 1, 95 % intervals over dialogues; single-label tasks: the share of right answers."
    return Table(columns, rows, "Micro-F1 by model and task", notes=[note], name="probe-f1")


def group_table(result: ProbeResult) -> Table:
    """The mean of easy, medium and hard tasks, as in the paper's Table 8."""
    columns = [Column("model"), *(Column(group, ".3f", "high") for group in GROUPS)]
    rows: list[list[Cell]] = [
        [name, *(one.groups.get(group) for group in GROUPS)] for name, one in result.models.items()
    ]
    members = {group: [name for name, own in result.difficulty.items() if own == group] for group in GROUPS}
    notes = [f"{group}: {', '.join(names) or 'none here'}." for group, names in members.items()]
    return Table(columns, rows, "Mean micro-F1 by difficulty", notes=notes, name="probe-groups")


def control_table(result: ProbeResult, name: str) -> Table:
    """One model beside its controls, task by task."""
    columns = [Column("task"), Column("family"), Column("F1", ".3f")]
    columns += [Column(SHOWN[control], ".3f") for control in CONTROLS]
    columns += [
        Column("selectivity", ".3f"),
        Column("without none", ".3f"),
        Column("labels", ",d"),
        Column("unseen", ",d"),
    ]
    rows: list[list[Cell]] = [
        [
            task,
            TASKS[task].family if task in TASKS else "",
            one.f1,
            *(_value(one.controls.get(control)) for control in CONTROLS),
            one.selectivity,
            _value(one.without_none.get(OWN)),
            one.labels,
            one.unseen,
        ]
        for task, one in result.models[name].tasks.items()
    ]
    notes = [
        "Selectivity: F1 minus what the same classifier gets from shuffled labels. Unseen: held-out labels that "
        "training never had; they count as misses."
    ]
    return Table(columns, rows, f"{name} beside its controls", notes=notes, name="probe-controls")


def label_table(labels: Mapping[str, Labels]) -> Table:
    """How labels are spread (Figure 3 of the paper): how many there are, and which lead."""
    columns = [Column("task"), Column("labels", ",d"), Column("entropy, bits", ".2f"), Column("most frequent")]
    rows: list[list[Cell]] = []
    for name, one in labels.items():
        counts = label_counts(one)
        total = sum(counts.values())
        leading = ", ".join(f"{label} {count / len(one.training):.0%}" for label, count in counts.most_common(4))
        rows.append([name, len(one.classes), _entropy(np.array(list(counts.values())) / total), leading])
    note = "Of the training split; percent of its positions. Sets can hold several labels."
    return Table(columns, rows, "Labels", notes=[note], name="probe-labels")


def label_counts(labels: Labels) -> Counter[str]:
    """How often each label is in the training split."""
    codes = labels.training.codes
    flat = codes if isinstance(codes, np.ndarray) else codes.indices
    numbers = np.bincount(flat, minlength=len(labels.classes)).tolist()
    return Counter(dict(zip(labels.classes, numbers, strict=True)))


def _entropy(shares: Floats) -> float:
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())


def _bars(result: ProbeResult) -> Block:
    tasks = _tasks(result)
    last = result.models[list(result.models)[-1]]
    series: dict[str, list[Score | float | None]] = {
        name: [one.tasks[task].f1 for task in tasks] for name, one in list(result.models.items())[:6]
    }
    words = [_value(last.tasks[task].controls.get("bag_of_words")) for task in tasks]
    if any(value is not None for value in words):
        series["bag of words"] = list(words)
    if len(result.models) > 6:
        values = [[one.tasks[task].f1.value for task in tasks] for one in result.models.values()]
        return heatmap(
            list(result.models),
            tasks,
            values,
            title="Micro-F1",
            description=f"Micro-F1 of {len(values)} models on {len(tasks)} tasks.",
            value=Axis("micro-F1", ".2f"),
        )
    return grouped_bars(
        tasks,
        series,
        title="What encodings know",
        description=f"Micro-F1 of {', '.join(series)} on {len(tasks)} probe tasks.",
        y=SHARE,
    )


def _comparisons(result: ProbeResult) -> Table:
    """Differences from the first model, task by task."""
    columns = [Column("task")]
    columns += [
        column for name in result.comparisons for column in (Column(f"− {name}", ".3f"), Column(f"p, {name}", ".3f"))
    ]
    rows: list[list[Cell]] = []
    for task in _tasks(result):
        found = [by[task] for by in result.comparisons.values()]
        rows.append([task, *(cell for one in found for cell in (one.difference, one.p_holm))])
    note = (
        "The first model's F1 minus the other's on the same positions; p-values of paired tests over dialogues, Holm."
    )
    return Table(columns, rows, f"{result.first} compared", notes=[note], name="probe-compared")


def _curves(result: ProbeResult) -> Iterator[Block]:
    """F1 over checkpoints, a small chart for each task (Figures 5 to 7 of the paper)."""
    runs = {run: names for run, names in result.about.get("checkpoints", {}).items() if len(names) >= MANY}
    if not runs:
        return
    places = list(dict.fromkeys(name for names in runs.values() for name in names))
    for task in _tasks(result):
        series = {
            run: [result.models[f"{run}@{place}"].tasks[task].f1 if place in names else None for place in places]
            for run, names in runs.items()
        }
        description = f"Micro-F1 of {', '.join(runs)} on {task} at {len(places)} checkpoints."
        yield lines(places, series, title=task, description=description, y=Axis("micro-F1", ".2f"), is_half=True)


def _scatter(one: Picture) -> Block:
    return scatter(
        one.points,
        title=f"Encodings of {one.model} by {one.task}",
        description=f"Two main directions of held-out encodings, {one.share:.0%} of their variance, by {one.task}.",
        is_half=True,
    )


def _tasks(result: ProbeResult) -> list[str]:
    return list(next(iter(result.models.values())).tasks)


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
