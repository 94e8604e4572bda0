"""The probe section of the report: what each model's encodings know, beside their controls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dialoscope.probe.groups import ALL, GROUPS
from dialoscope.probe.pictures import Picture
from dialoscope.probe.result import CONTROLS, RANKS, ModelScores, ProbeResult
from dialoscope.probe.seeds import Spread
from dialoscope.record import Score
from dialoscope.report import Block, Column, Prose, Section, Table
from dialoscope.report.cell import Cell, in_one_line, p_cell, write_number
from dialoscope.report.charts import Axis, grouped_bars, heatmap, lines, scatter
from dialoscope.report.verdict import Verdict

SHARE = Axis("micro-F1", ".0%", (0.0, 1.0))
SHOWN = {
    "majority": "majority",
    "constant": "constant",
    "bag_of_words": "bag of words",
    "untrained": "untrained",
    "shuffled": "shuffled",
}
WORDS = SHOWN["bag_of_words"]
# Controls by short names, so that a model with all of them is one table in a terminal of 80 columns.
SHORT = {"majority": "major", "constant": "const", "bag_of_words": "words", "untrained": "untr.", "shuffled": "shuf."}
SIDE_BY_SIDE = 4  # models whose scores with intervals fit into one table beside each other
BARS = 6  # models in a chart of bars
MANY = 3  # checkpoints of a run that make a curve


def section_of(result: ProbeResult) -> Section:
    """A result as a section of a page."""
    return Section(
        title="Probes",
        anchor="probe",
        question="What does the encoding of a context know?",
        blocks=list(_blocks(result)),
        lead=f"{' '.join(verdict.text for verdict in _verdicts_shown(result))} {result.used}",
        verdict=result.card,
        origin=result.origin,
    )


def _verdicts_shown(result: ProbeResult) -> list[Verdict]:
    by_model = dict(zip(result.models, result.verdicts(), strict=True))
    return [by_model[name] for name in _shown_apart(result)]


def _blocks(result: ProbeResult) -> Iterator[Block]:
    if result.advice:
        yield Prose(" ".join(result.advice), heading="Before a number is read")
    if result.evidence is not None:
        yield Prose(result.evidence.text.replace("\n", "\n\n"), heading="One position")
    yield score_table(result)
    yield _bars(result)
    yield group_table(result)
    if result.pooled:
        yield pooled_table(result)
    yield from (control_table(result, name) for name in _shown_apart(result))
    if len(result.models) > 1:
        yield comparison_table(result)
    yield from (selection_table(result, run) for run in result.selection)
    yield from _curves(result)
    yield from (_scatter(each) for each in result.pictures)
    yield label_picture(result)
    yield label_table(result)
    if result.not_probed:
        missing = "; ".join(f"{name} {reason}" for name, reason in result.not_probed.items())
        yield Prose(f"Not probed: {missing}.", heading="Tasks that this corpus cannot carry")


def _shown_apart(result: ProbeResult) -> list[str]:
    """Models that get a table of their own: all of few, the first and the last of many."""
    names = list(result.models)
    return names if len(names) <= SIDE_BY_SIDE else [names[0], names[-1]]


# --- The terminal -----------------------------------------------------------------------------------------------------


def summary_of(result: ProbeResult) -> Table:
    """One model beside its controls; several side by side, runs of one model as their mean; many by their means."""
    notes = [*_notes(result), *result.advice, *_selection_notes(result)]
    if len(result.models) == 1:
        return _one_summary(result, notes)
    runs = {run for pooled in result.pooled.values() for run in pooled.runs}
    single = [name for name in result.models if name not in runs]
    if len(single) + len(result.pooled) > SIDE_BY_SIDE:
        return _many_summary(result, single, notes)
    rows: list[list[Cell]] = [
        [
            task,
            *(_value(result.models[name].f1[task]) for name in single),
            *(_plus_minus(pooled.tasks.get(task)) for pooled in result.pooled.values()),
            *(_value(scored.f1[task]) for scored in result.controls.values()),
        ]
        for task in result.tasks
    ]
    columns: list[Column | str] = ["task", *(Column(name, ".3f") for name in single), *result.pooled]
    columns += [Column(SHORT[control], ".3f") for control in result.controls]
    return Table(columns, rows, "Micro-F1 beside the controls", notes=notes)


def _one_summary(result: ProbeResult, notes: list[str]) -> Table:
    controls = [name for name in CONTROLS if result.control(result.first, name, next(iter(result.tasks))) is not None]
    rows: list[list[Cell]] = [
        [
            task,
            _value(score),
            "{:.2f}–{:.2f}".format(*score.interval) if score.interval else "–",
            *(_value(result.control(result.first, name, task)) for name in controls),
        ]
        for task, score in result.models[result.first].f1.items()
    ]
    columns: list[Column | str] = ["task", Column("F1", ".3f"), "95 %"]
    columns += [Column(SHORT[name], ".3f") for name in controls]
    return Table(columns, rows, f"Micro-F1 of {result.first} beside its controls", notes=notes)


def _many_summary(result: ProbeResult, single: list[str], notes: list[str]) -> Table:
    rows: list[list[Cell]] = []
    for name in single:
        model = result.models[name]
        beaten = model.count_above
        above = "–" if beaten.value is None else f"{beaten.value} of {beaten.n}"
        rows.append([name, *(_value(model.groups[group]) for group in (*GROUPS, ALL)), above])
    for name, pooled in result.pooled.items():
        rows.append([name, *(_plus_minus(pooled.groups.get(group)) for group in (*GROUPS, ALL)), "–"])
    for control, scored in result.controls.items():
        rows.append([SHOWN[control], *(_value(scored.groups[group]) for group in (*GROUPS, ALL)), "–"])
    columns: list[Column | str] = ["model", *(Column(group, ".3f") for group in (*GROUPS, ALL)), "above baselines"]
    return Table(columns, rows, "Mean micro-F1 by difficulty, beside the controls", notes=notes)


def _plus_minus(spread: Spread | None) -> str:
    return "–" if spread is None else f"{spread.mean:.3f} ± {spread.deviation:.3f}"


def _notes(result: ProbeResult) -> list[str]:
    notes = [f"{name} is {checkpoint}." for name, checkpoint in result.chosen.items()]
    return [*notes, result.dialogues.warning] if result.dialogues.shared else notes


def _selection_notes(result: ProbeResult) -> Iterator[str]:
    for run, by in result.selection.items():
        scores = {metric: result.models[each.model].groups[ALL] for metric, each in by.items()}
        shown = (f"{each.choice.checkpoint} by {metric} ({_in_words(scores[metric])})" for metric, each in by.items())
        yield f"{run}, mean micro-F1 where each metric of its log would stop: {', '.join(shown)}."


def _in_words(score: Score) -> str:
    return in_one_line(score.value, ".3f")


# --- The page ---------------------------------------------------------------------------------------------------------


def score_table(result: ProbeResult) -> Table:
    """Tasks by models; with more models than fit side by side models by tasks, as the paper's Tables 5 to 7 are."""
    is_narrow = len(result.models) <= SIDE_BY_SIDE
    columns, rows = _by_task(result) if is_narrow else _by_model(result)
    notes = ["Micro-F1 from 0 to 1, 95 % intervals over dialogues; single-label tasks: the share of right answers."]
    return Table(columns, rows, "Micro-F1 by model and task", notes=[*notes, *_notes(result)], name="probe-f1")


def _by_task(result: ProbeResult) -> tuple[list[Column], list[list[Cell]]]:
    """A row for each task; which of several models is highest stands at its end."""
    models = list(result.models.values())
    columns = [Column("task"), *(Column(name, ".3f") for name in result.models)]
    rows: list[list[Cell]] = [[task, *(model.f1[task] for model in models)] for task in result.tasks]
    if len(models) == 1:
        return columns, rows
    return [*columns, Column("highest")], [[*row, _highest(result, str(row[0]))] for row in rows]


def _highest(result: ProbeResult, task: str) -> str:
    """The model that scores highest; all of them where several do, none where all know nothing."""
    values = {name: model.f1[task].value for name, model in result.models.items()}
    best = max((value for value in values.values() if value is not None), default=None)
    return ", ".join(name for name, value in values.items() if best and value == best) or "–"


def _by_model(result: ProbeResult) -> tuple[list[Column], list[list[Cell]]]:
    """A row for each model, the highest of each task marked."""
    columns = [Column("model"), *(Column(task, ".3f", "high") for task in result.tasks)]
    return columns, [[name, *model.f1.values()] for name, model in result.models.items()]


def pooled_table(result: ProbeResult) -> Table:
    """Means and standard deviations over runs of one model."""
    columns = [Column("task")]
    columns += [column for name in result.pooled for column in (Column(name, ".3f"), Column(f"± {name}", ".3f"))]
    rows = [[task, *_spreads(pooled.tasks.get(task) for pooled in result.pooled.values())] for task in result.tasks]
    for group in _groups(result):
        rows.append([f"mean, {group}", *_spreads(pooled.groups.get(group) for pooled in result.pooled.values())])
    notes = [f"{name}: {', '.join(pooled.runs)}." for name, pooled in result.pooled.items()]
    notes.insert(0, "±: the standard deviation between runs (n − 1), which is what another seed would change.")
    return Table(columns, rows, "Mean micro-F1 over runs", notes=notes, name="probe-runs")


def _spreads(spreads: Iterable[Spread | None]) -> list[Cell]:
    return [
        cell for spread in spreads for cell in ((None, None) if spread is None else (spread.mean, spread.deviation))
    ]


def selection_table(result: ProbeResult, run: str) -> Table:
    """What the probes find where each metric of a run's log would have stopped (the paper's Tables 9 to 11)."""
    by = result.selection[run]
    models = [result.models[each.model] for each in by.values()]
    columns = [
        Column("task"),
        *(Column(f"by {metric}: {each.choice.checkpoint}", ".3f") for metric, each in by.items()),
    ]
    rows: list[list[Cell]] = [[task, *(model.f1[task] for model in models)] for task in result.tasks]
    rows += [[f"mean, {group}", *(model.groups[group] for model in models)] for group in _groups(result)]
    best = [f"{metric} {write_number(each.choice.value, '.4g')}" for metric, each in by.items()]
    note = f"Micro-F1 at the epoch that is best by each metric of the training log: {', '.join(best)}."
    return Table(columns, rows, f"{run} as metrics choose it", notes=[note], name="probe-selection")


def group_table(result: ProbeResult) -> Table:
    """The mean of easy, medium, hard and all tasks, as in the paper's Table 8, with intervals over dialogues."""
    columns = [Column("model"), *(Column(group, ".3f", "high") for group in (*GROUPS, ALL))]
    rows: list[list[Cell]] = [
        [name, *(scored.groups.get(group) for group in (*GROUPS, ALL))]
        for name, scored in [*result.models.items(), *((SHOWN[name], each) for name, each in result.controls.items())]
    ]
    members = {group: [name for name, task in result.tasks.items() if task.difficulty == group] for group in GROUPS}
    notes = [f"{group}: {', '.join(names) or 'none here'}." for group, names in members.items()]
    return Table(columns, rows, "Mean micro-F1 by difficulty", notes=notes, name="probe-groups")


def control_table(result: ProbeResult, name: str) -> Table:
    """One model beside its controls, task by task."""
    model = result.models[name]
    columns = [Column("task"), Column("family"), Column("F1", ".3f")]
    columns += [Column(SHOWN[control], ".3f") for control in CONTROLS]
    columns += [Column("above both", ".3f"), Column("p", ".2g"), Column("selectivity", ".3f")]
    columns += [Column("without none", ".3f"), Column("labels", ",d"), Column("unseen", ",d")]
    rows: list[list[Cell]] = []
    for task, facts in result.tasks.items():
        test = model.above_both.get(task)
        rows.append(
            [
                task,
                facts.family,
                model.f1[task],
                *(_value(result.control(name, control, task)) for control in CONTROLS),
                None if test is None else test.difference,
                None if test is None else p_cell(test.p_holm, n=test.difference.n, reason=test.reason),
                model.selectivity(task),
                _value(model.without_none.get(task)),
                facts.counts.labels,
                facts.counts.unseen,
            ]
        )
    notes = [
        "Majority: the answer that training gives most often. Constant: of sets, the most frequent labels, as many as "
        "score best in training. Above both: F1 minus the better of bag of words and constant, with the larger p-value "
        "of the two paired tests, Holm over tasks. Selectivity: F1 minus what the same classifier gets from shuffled "
        "labels. Unseen: held-out labels that training never had; they count as misses."
    ]
    if len(_shown_apart(result)) < len(result.models):
        notes.append("The scores of the other models are in result.json.")
    return Table(columns, rows, f"{name} beside its controls", notes=notes, name=f"probe-controls-{name}")


def label_table(result: ProbeResult) -> Table:
    """How labels are spread (Figure 3 of the paper): how many there are, and which lead."""
    columns = [Column("task"), Column("labels", ",d"), Column("entropy, bits", ".2f"), Column("most frequent")]
    rows: list[list[Cell]] = []
    for name, task in result.tasks.items():
        counts = task.counts
        leading = ", ".join(f"{label} {count / counts.positions:.0%}" for label, count in counts.leading[:4])
        rows.append([name, counts.labels, counts.entropy, leading])
    note = "Of the training split; percent of its positions. Sets can hold several labels."
    return Table(columns, rows, "Labels", notes=[note], name="probe-labels")


def label_picture(result: ProbeResult) -> Block:
    """How labels are spread, as a picture (Figure 3 of the paper): the share of positions that the first ones have."""
    leading = {
        name: [count / task.counts.positions for _, count in task.counts.leading] for name, task in result.tasks.items()
    }
    values = [[*shares, *[None] * (RANKS - len(shares))] for shares in leading.values()]
    return heatmap(
        list(leading),
        [str(rank) for rank in range(1, RANKS + 1)],
        values,
        title="Labels by how frequent they are",
        description=f"Share of training positions that have the most frequent label of {len(leading)} tasks, the "
        "second most frequent, and so on.",
        x=Axis("rank of the label"),
        value=Axis("of positions", ".0%"),
    )


def _bars(result: ProbeResult) -> Block:
    tasks = list(result.tasks)
    if len(result.models) > BARS:
        values = [[model.f1[task].value for task in tasks] for model in result.models.values()]
        return heatmap(
            list(result.models),
            tasks,
            values,
            title="Micro-F1",
            description=f"Micro-F1 of {len(values)} models on {len(tasks)} tasks.",
            value=Axis("micro-F1", ".2f"),
        )
    series: dict[str, list[Score | float | None]] = {
        name: [model.f1[task] for task in tasks] for name, model in result.models.items()
    }
    if "bag_of_words" in result.controls:
        series[WORDS] = [_value(result.controls["bag_of_words"].f1[task]) for task in tasks]
    return grouped_bars(
        tasks,
        series,
        title="What encodings know",
        description=f"Micro-F1 of {', '.join(series)} on {len(tasks)} probe tasks.",
        y=SHARE,
    )


def comparison_table(result: ProbeResult) -> Table:
    """Differences from the first model, task by task."""
    others: Mapping[str, ModelScores] = {name: each for name, each in result.models.items() if name != result.first}
    columns = [Column("task")]
    columns += [column for name in others for column in (Column(f"− {name}", ".3f"), Column(f"p, {name}", ".2g"))]
    rows: list[list[Cell]] = []
    for task in result.tasks:
        tests = [model.against_first[task] for model in others.values()]
        cells = [
            cell
            for test in tests
            for cell in (test.difference, p_cell(test.p_holm, n=test.difference.n, reason=test.reason))
        ]
        rows.append([task, *cells])
    note = (
        "The first model's F1 minus the other's on the same positions; p-values of paired tests over dialogues, Holm."
    )
    return Table(columns, rows, f"{result.first} compared", notes=[note], name="probe-compared")


def _curves(result: ProbeResult) -> Iterator[Block]:
    """F1 over checkpoints, a small chart for each task (Figures 5 to 7 of the paper)."""
    runs = {run: names for run, names in result.checkpoints.items() if len(names) >= MANY}
    if not runs:
        return
    shown = list(dict.fromkeys(name for names in runs.values() for name in names))
    for task in result.tasks:
        series: dict[str, list[Score | float | None]] = {
            run: [result.models[f"{run}@{name}"].f1[task] if name in names else None for name in shown]
            for run, names in runs.items()
        }
        if "bag_of_words" in result.controls:
            series[WORDS] = [_value(result.controls["bag_of_words"].f1[task])] * len(shown)
        yield lines(
            shown,
            series,
            title=task,
            description=f"Micro-F1 of {', '.join(series)} on {task} at {len(shown)} checkpoints.",
            y=Axis("micro-F1", ".2f"),
            controls=[WORDS],
            is_half=True,
        )


def _scatter(picture: Picture) -> Block:
    return scatter(
        picture.points,
        title=f"Encodings of {picture.model} by {picture.task}",
        description=f"Two main directions of held-out encodings, {picture.share:.0%} of their variance, by "
        f"{picture.task}.",
        is_half=True,
    )


def _groups(result: ProbeResult) -> list[str]:
    """Groups that have a task here."""
    difficulties = {task.difficulty for task in result.tasks.values()}
    return [group for group in GROUPS if group in difficulties]


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
