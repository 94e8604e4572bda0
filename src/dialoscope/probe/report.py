"""The probe section of the report: what each model's encodings know, beside what it takes to be impressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from dialoscope.metrics import Comparison
from dialoscope.probe.groups import GROUPS
from dialoscope.probe.labels import Floats, Labels
from dialoscope.probe.measure import OWN
from dialoscope.probe.pictures import Picture
from dialoscope.probe.result import CONTROLS, ProbeResult, TaskResult
from dialoscope.probe.seeds import Spread
from dialoscope.probe.tasks import TASKS
from dialoscope.record import Score
from dialoscope.report import Block, Column, Prose, Section, Table, Verdict
from dialoscope.report.cell import Cell, p_cell, write_number
from dialoscope.report.charts import Axis, grouped_bars, heatmap, lines, scatter
from dialoscope.report.section import Level

SHARE = Axis("micro-F1", ".0%", (0.0, 1.0))
SHOWN = {
    "majority": "majority",
    "constant": "constant",
    "bag_of_words": "bag of words",
    "untrained": "untrained",
    "shuffled": "shuffled",
}
WORDS = SHOWN["bag_of_words"]
ALPHA = 0.05
SIDE_BY_SIDE = 4  # models whose scores with intervals fit into one table beside each other
RANKS = 10  # labels of a task that the picture of frequencies shows
MANY = 3  # checkpoints of a run that make a curve


def section_of(
    result: ProbeResult, *, labels: Mapping[str, Labels] | None = None, pictures: Sequence[Picture] = ()
) -> Section:
    """All models and tasks, as a section."""
    counts = {name: beats_both(result.models[name].tasks.values()) for name in _shown_apart(result)}
    return Section(
        title="Probes",
        anchor="probe",
        question="What does the encoding of a context know?",
        blocks=list(_blocks(result, labels or {}, pictures)),
        lead=_lead(counts),
        verdict=Verdict.of(
            {name: _verdict(*count, is_small=result.models[name].is_too_small) for name, count in counts.items()}
        ),
        origin=result.origin,
    )


def beats_both(tasks: Iterable[TaskResult]) -> tuple[int, int]:
    """On how many tasks a model is above its bag of words and the best constant answer for sure, and of how many.

    Its tasks are corrected by Holm.
    """
    tested = [one.above_both for one in tasks if one.above_both is not None]
    return sum(_is_above(one) for one in tested), len(tested)


def _is_above(one: Comparison) -> bool:
    return (one.difference.value or 0) > 0 and one.p_holm is not None and one.p_holm < ALPHA


def _lead(counts: Mapping[str, tuple[int, int]]) -> str:
    if not any(of for _, of in counts.values()):
        return f"{', '.join(counts)}: probed without the controls that say what scores are worth."
    each = ", ".join(f"{known} of {of} tasks for {name}" for name, (known, of) in counts.items())
    return (
        "A classifier reads significantly more from encodings than from the words of the same contexts, and more than "
        f"the best constant answer gives, on {each}."
    )


def _verdict(known: int, of: int, *, is_small: bool) -> Verdict:
    said = f"of {of} tasks are known better than by a bag of words and by the best constant answer"
    level = _level(known, of)
    if level == "bad" and is_small:  # blame the classifier before the model
        return Verdict(f"{said}, but encodings are too small numbers to be read: scale them", known, "warn", "d")
    return Verdict(said, known, level, "d")


def _level(known: int, of: int) -> Level:
    return "info" if not of else "good" if known > of / 2 else "warn" if known else "bad"


def _blocks(result: ProbeResult, labels: Mapping[str, Labels], pictures: Sequence[Picture]) -> Iterator[Block]:
    if result.advice:
        yield Prose(" ".join(result.advice), heading="Before a number is read")
    yield score_table(result)
    yield _bars(result)
    yield group_table(result)
    if result.pooled:
        yield pooled_table(result)
    yield from (control_table(result, name) for name in _shown_apart(result))
    if result.comparisons:
        yield _comparisons(result)
    yield from (selection_table(result, run) for run in result.selection)
    yield from _curves(result)
    yield from (_scatter(one) for one in pictures)
    if labels:
        yield label_picture(labels)
        yield label_table(labels)
    if result.skipped:
        missing = "; ".join(f"{name} {reason}" for name, reason in result.skipped.items())
        yield Prose(f"Not probed: {missing}.", heading="Tasks that this corpus cannot carry")


def _shown_apart(result: ProbeResult) -> list[str]:
    """Models that get a table of their own: all of few, the first and the last of many."""
    names = list(result.models)
    return names if len(names) <= SIDE_BY_SIDE else [names[0], names[-1]]


def score_table(result: ProbeResult) -> Table:
    """Tasks by models; with more models than fit side by side models by tasks, as the paper's Tables 5 to 7 are."""
    is_narrow = len(result.models) <= SIDE_BY_SIDE
    columns, rows = _by_task(result) if is_narrow else _by_model(result)
    notes = ["Micro-F1 from 0 to 1, 95 % intervals over dialogues; single-label tasks: the share of right answers."]
    notes += [f"{name} is {checkpoint}." for name, checkpoint in result.about.get("chosen", {}).items()]
    if result.dialogues.shared:
        notes.append(result.dialogues.told)
    return Table(columns, rows, "Micro-F1 by model and task", notes=notes, name="probe-f1")


def _by_task(result: ProbeResult) -> tuple[list[Column], list[list[Cell]]]:
    """A row for each task; which of several models is highest stands at its end."""
    models = list(result.models.values())
    columns = [Column("task"), *(Column(name, ".3f") for name in result.models)]
    rows: list[list[Cell]] = [[task, *(one.tasks[task].f1 for one in models)] for task in _tasks(result)]
    if len(models) == 1:
        return columns, rows
    return [*columns, Column("highest")], [[*row, _highest(result, str(row[0]))] for row in rows]


def _highest(result: ProbeResult, task: str) -> str:
    """The model that scores highest; all of them where several do, none where all know nothing."""
    values = {name: one.tasks[task].f1.value for name, one in result.models.items()}
    best = max((value for value in values.values() if value is not None), default=None)
    return ", ".join(name for name, value in values.items() if best and value == best) or "–"


def _by_model(result: ProbeResult) -> tuple[list[Column], list[list[Cell]]]:
    """A row for each model, the highest of each task marked."""
    columns = [Column("model"), *(Column(task, ".3f", "high") for task in _tasks(result))]
    return columns, [[name, *(task.f1 for task in one.tasks.values())] for name, one in result.models.items()]


def pooled_table(result: ProbeResult) -> Table:
    """Means and standard deviations over runs of one model."""
    columns = [Column("task")]
    columns += [column for name in result.pooled for column in (Column(name, ".3f"), Column(f"± {name}", ".3f"))]
    rows = [[task, *_spreads(one.tasks.get(task) for one in result.pooled.values())] for task in _tasks(result)]
    for group in _groups(result):
        rows.append([f"mean, {group}", *_spreads(one.groups.get(group) for one in result.pooled.values())])
    notes = [f"{name}: {', '.join(one.runs)}." for name, one in result.pooled.items()]
    notes.insert(0, "±: the standard deviation between runs (n − 1), which is what another seed would change.")
    return Table(columns, rows, "Mean micro-F1 over runs", notes=notes, name="probe-runs")


def _spreads(found: Iterable[Spread | None]) -> list[Cell]:
    return [cell for one in found for cell in ((None, None) if one is None else (one.mean, one.deviation))]


def selection_table(result: ProbeResult, run: str) -> Table:
    """What the probes find where each metric of a run's log would have stopped (the paper's Tables 9 to 11)."""
    by = result.selection[run]
    columns = [Column("task"), *(Column(f"by {metric}: {one.choice.checkpoint}", ".3f") for metric, one in by.items())]
    rows: list[list[Cell]] = [[task, *(one.tasks[task] for one in by.values())] for task in _tasks(result)]
    rows += [[f"mean, {group}", *(one.groups[group] for one in by.values())] for group in _groups(result)]
    best = [f"{metric} {write_number(one.choice.value, '.4g')}" for metric, one in by.items()]
    note = f"Micro-F1 at the epoch that is best by each metric of the training log: {', '.join(best)}."
    return Table(columns, rows, f"{run} as metrics choose it", notes=[note], name="probe-selection")


def group_table(result: ProbeResult) -> Table:
    """The mean of easy, medium and hard tasks, as in the paper's Table 8, with intervals over dialogues."""
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
        "Majority: the answer that training gives most often. Constant: of sets, the most frequent labels, as many as "
        "score best in training. Selectivity: F1 minus what the same classifier gets from shuffled labels. Unseen: "
        "held-out labels that training never had; they count as misses."
    ]
    if len(_shown_apart(result)) < len(result.models):
        notes.append("The same of the other models is in result.json.")
    return Table(columns, rows, f"{name} beside its controls", notes=notes, name=f"probe-controls-{name}")


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


def label_picture(labels: Mapping[str, Labels]) -> Block:
    """How labels are spread, as a picture (Figure 3 of the paper): the share of positions that the first ones have."""
    leading = {
        name: [count / len(one.training) for _, count in label_counts(one).most_common(RANKS)]
        for name, one in labels.items()
    }
    values = [[*shares, *[None] * (RANKS - len(shares))] for shares in leading.values()]
    return heatmap(
        list(leading),
        [str(rank) for rank in range(1, RANKS + 1)],
        values,
        title="Labels by how frequent they are",
        description=f"Share of training positions that have the most frequent label of {len(labels)} tasks, the second "
        "most frequent, and so on.",
        x=Axis("rank of the label"),
        value=Axis("of positions", ".0%"),
    )


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
        series[WORDS] = list(words)
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
        column for name in result.comparisons for column in (Column(f"− {name}", ".3f"), Column(f"p, {name}", ".2g"))
    ]
    rows: list[list[Cell]] = []
    for task in _tasks(result):
        found = [by[task] for by in result.comparisons.values()]
        rows.append([task, *(cell for one in found for cell in (one.difference, _p(one)))])
    note = (
        "The first model's F1 minus the other's on the same positions; p-values of paired tests over dialogues, Holm."
    )
    return Table(columns, rows, f"{result.first} compared", notes=[note], name="probe-compared")


def _p(one: Comparison) -> Cell:
    return p_cell(one.p_holm, n=one.difference.n, reason=one.reason)


def _curves(result: ProbeResult) -> Iterator[Block]:
    """F1 over checkpoints, a small chart for each task (Figures 5 to 7 of the paper)."""
    runs = {run: names for run, names in result.about.get("checkpoints", {}).items() if len(names) >= MANY}
    if not runs:
        return
    places = list(dict.fromkeys(name for names in runs.values() for name in names))
    for task in _tasks(result):
        series: dict[str, list[Score | float | None]] = {
            run: [result.models[f"{run}@{place}"].tasks[task].f1 if place in names else None for place in places]
            for run, names in runs.items()
        }
        words = _value(next(iter(result.models.values())).tasks[task].controls.get("bag_of_words"))
        if words is not None:
            series[WORDS] = [words] * len(places)
        yield lines(
            places,
            series,
            title=task,
            description=f"Micro-F1 of {', '.join(series)} on {task} at {len(places)} checkpoints.",
            y=Axis("micro-F1", ".2f"),
            controls=[WORDS],
            is_half=True,
        )


def _scatter(one: Picture) -> Block:
    return scatter(
        one.points,
        title=f"Encodings of {one.model} by {one.task}",
        description=f"Two main directions of held-out encodings, {one.share:.0%} of their variance, by {one.task}.",
        is_half=True,
    )


def _tasks(result: ProbeResult) -> list[str]:
    return list(next(iter(result.models.values())).tasks)


def _groups(result: ProbeResult) -> list[str]:
    """Groups that have a task here."""
    return [group for group in GROUPS if group in result.difficulty.values()]


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
