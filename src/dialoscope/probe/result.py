"""The result of probing: micro-F1 of every model and control on every task, with intervals, and means of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from dialoscope.metrics import Comparison
from dialoscope.probe.checkpoints import Choice
from dialoscope.probe.labels import LabelCounts
from dialoscope.probe.pictures import Picture
from dialoscope.probe.seeds import Pooled, runs_of, spreads
from dialoscope.probe.selection import Selected, selected
from dialoscope.probe.settings import ProbeSettings
from dialoscope.record import Score, Scores, by_path, path
from dialoscope.report import Section, Table
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.verdict import Verdict, judge_count

RANKS = 10  # most frequent labels of a task that are kept
SMALL = 0.3  # standard deviation of encodings below which a penalty of 1 decides what is read
ALPHA = 0.05
CONTROLS = ("majority", "constant", "bag_of_words", "untrained", "shuffled")
GROUP_PART = "{} tasks"  # a part of paths that no task is called
COUNT = "tasks_above_baselines"
NO_CONTROLS = "the bag of words, which a model has to beat, was not measured (controls = false)"
COLUMNS = {
    "model": "name of the model",
    "task": "name of the probe task",
    "dialogue": "id of the position's dialogue",
    "turn": "turns of the context, before the response",
    "right": "labels that the classifier names and the annotation has",
    "too_many": "labels that the classifier names and the annotation lacks",
    "missing": "labels that the annotation has and the classifier does not name",
}


@dataclass(frozen=True)
class Dialogues:
    """How many dialogues are learnt from and scored on, and how many of the latter are learnt from as well."""

    training: int
    held_out: int
    shared: int

    @property
    def warning(self) -> str:
        """What to know of those that are shared."""
        count = f"{self.shared:,} of {self.held_out:,} held-out dialogues {'is' if self.shared == 1 else 'are'}"
        return f"{count} in the training split as well, word for word, and may make scores too high: leave them out."


@dataclass(frozen=True, eq=False)
class TaskFacts:
    """A task on this corpus: its family, its difficulty group, and how its labels are spread."""

    family: str
    difficulty: str  # empty where no model could be made untrained
    counts: LabelCounts


@dataclass(frozen=True)
class Example:
    """A held-out position that shows the finding: only one of the encodings and the words tells its labels."""

    model: str
    task: str
    dialogue: str
    turn: int  # of the Query
    query: str
    labels: tuple[str, ...]  # the annotation
    from_encodings: tuple[str, ...]
    from_words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The example as a terminal and a page show it."""
        labels, encodings, words = (
            ", ".join(names) or "nothing" for names in (self.labels, self.from_encodings, self.from_words)
        )
        return (
            f'{self.dialogue}, turn {self.turn}: "{self.query}"\n'
            f"{self.task}: {labels}. Read from the encoding of {self.model}: {encodings}. Read from the words: {words}."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """The scores of a model or a control."""

    f1: Mapping[str, Score]  # by task
    without_none: Mapping[str, Score]  # of sets: where the empty set counts for nothing
    groups: Mapping[str, Score]  # the mean F1 of easy, medium, hard and all tasks


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelScores(Scored):
    """One model: its scores, those of its own controls, and its comparisons."""

    controls: Mapping[str, Scored]  # untrained, shuffled
    above_both: Mapping[str, Comparison]  # task -> the model minus the better of bag of words and constant answer
    as_baseline: tuple[str, ...]  # tasks on which it is right and wrong exactly where one of these two is
    against_first: Mapping[str, Comparison]  # task -> the first model minus this one
    identity: str  # its own name, with a fingerprint of its weights
    width: int  # numbers in an encoding
    why_no_untrained: str | None = None
    spread: float = 1.0  # the mean standard deviation of the encodings' numbers

    @property
    def above(self) -> list[str]:
        """Tasks on which the model surely beats its bag of words and the best constant answer."""
        return [
            task
            for task, test in self.above_both.items()
            if (test.difference.value or 0) > 0 and test.p_holm is not None and test.p_holm < ALPHA
        ]

    @property
    def not_above(self) -> list[str]:
        """Tasks on which it surely does not: the difference's interval ends at 0 or below, or the answers are equal."""
        intervals = {task: test.difference.interval for task, test in self.above_both.items()}
        below = [task for task, interval in intervals.items() if interval is not None and interval[1] <= 0]
        return [task for task in intervals if task in below or task in self.as_baseline]

    @property
    def silent(self) -> list[str]:
        """Tasks on which the classifier found nothing to say."""
        return [name for name, score in self.f1.items() if score.value == 0]

    @property
    def is_too_small(self) -> bool:
        """Whether a penalty on weights may be why nothing was read; encodings that are all alike are not helped."""
        return bool(self.silent) and 0 < self.spread < SMALL

    @property
    def count_above(self) -> Score:
        """On how many tasks the model beats both baselines; the interval's end adds those that no test decides."""
        tested = len(self.above_both)
        if not tested:
            return Score.missing(NO_CONTROLS)
        surely = len(self.above)
        return Score(surely, tested, (surely, max(surely, tested - len(self.not_above))))

    def selectivity(self, task: str) -> float | None:
        """How far the model is above what the same classifier gets from shuffled labels."""
        control = self.controls["shuffled"].f1[task].value if "shuffled" in self.controls else None
        value = self.f1[task].value
        return None if control is None or value is None else value - control


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProbeResult(Result):
    """All models on all tasks, their controls, and how the others differ from the first model."""

    instrument: ClassVar[str] = "probe"
    settings_class: ClassVar[type[ProbeSettings]] = ProbeSettings

    settings: ProbeSettings
    models: Mapping[str, ModelScores]
    controls: Mapping[str, Scored]  # those that need no model: majority, constant, bag_of_words
    tasks: Mapping[str, TaskFacts]
    dialogues: Dialogues
    positions: pa.Table  # COLUMNS
    pictures: tuple[Picture, ...] = ()
    evidence: Example | None = None
    checkpoints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # run -> its checkpoints in order
    chosen: Mapping[str, str] = field(default_factory=dict)  # model -> the epoch that `best` or `by:METRIC` is
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)  # run -> metric of its log

    @property
    def table(self) -> pa.Table:
        """One row for each model, task and held-out position (COLUMNS)."""
        return documented(self.positions, COLUMNS)

    @property
    def first(self) -> str:
        """The model that the others are compared with."""
        return next(iter(self.models))

    @property
    def not_probed(self) -> Mapping[str, str]:
        """Tasks that the corpus cannot carry, and why."""
        reasons: Mapping[str, str] = self.counts["tasks_not_probed"]
        return reasons

    @cached_property
    def pooled(self) -> dict[str, Pooled]:
        """Models of which several runs were probed."""
        return {name: self._pooled(runs) for name, runs in runs_of(self.models).items()}

    def _pooled(self, runs: Sequence[str]) -> Pooled:
        scored = [self.models[run] for run in runs]
        tasks = spreads([{name: score.value for name, score in each.f1.items()} for each in scored])
        groups = spreads([{name: score.value for name, score in each.groups.items()} for each in scored])
        return Pooled(tuple(runs), tasks, groups)

    @property
    def selection(self) -> dict[str, dict[str, Selected]]:
        """Of runs whose checkpoints were probed: the one that each metric of the training log chooses."""
        return selected(list(self.models), self.choices)

    def control(self, model: str, name: str, task: str) -> Score | None:
        """A control's score on a task, beside a model; None where it was not measured."""
        scored = self.controls.get(name) or self.models[model].controls.get(name)
        return None if scored is None else scored.f1[task]

    @kept
    def scores(self) -> Scores:
        """Micro-F1 of every model and control on every task, means of groups, and how many tasks beat the baselines."""
        return by_path(self._named_scores())

    def _named_scores(self) -> Iterator[tuple[tuple[str, str, str], Score]]:
        for name, model in self.models.items():
            yield from _scored(name, model)
            for task, reason in self.not_probed.items():
                yield (name, task, "f1"), Score.missing(reason)
            yield (name, GROUP_PART.format("all"), COUNT), model.count_above
            for control, scored in model.controls.items():
                yield from _scored(f"{name} ({control})", scored)
            if model.why_no_untrained is not None:
                for task in self.tasks:
                    yield (f"{name} (untrained)", task, "f1"), Score.missing(model.why_no_untrained)
        for name, scored in self.controls.items():
            yield from _scored(name, scored)
        for name, pooled in self.pooled.items():
            subject = f"{name} (mean of {len(pooled.runs)} runs)"
            parts = {**pooled.tasks, **{GROUP_PART.format(group): spread for group, spread in pooled.groups.items()}}
            for part, spread in parts.items():
                reason = f"over runs, not dialogues; their standard deviation is {spread.deviation:.4g}"
                yield (subject, part, "f1"), Score(spread.mean, spread.n, interval_reason=reason)
                yield (subject, part, "f1_deviation"), Score(spread.deviation, spread.n, interval_reason="over runs")

    def items(self) -> dict[str, Items]:
        """What each position adds to micro-F1: 2 right over 2 right + too many + missing."""
        items, size = {}, len(self.positions) // max(1, len(self.models) * len(self.tasks))
        for block, (name, task) in enumerate((name, task) for name in self.models for task in self.tasks):
            rows = self.positions.slice(block * size, size).to_pydict()
            right, too_many, missing = (np.array(rows[key], float) for key in ("right", "too_many", "missing"))
            keys = [(dialogue, str(turn)) for dialogue, turn in zip(rows["dialogue"], rows["turn"], strict=True)]
            items[path(name, task, "f1")] = Items(keys, rows["dialogue"], 2 * right, 2 * right + too_many + missing)
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """On how many tasks each model beats the baselines."""
        return [self._judged(name, model) for name, model in self.models.items()]

    def _judged(self, name: str, model: ModelScores) -> Verdict:
        count = model.count_above
        doubt = f"its encodings are small numbers (standard deviation {model.spread:.2g}), of which the classifier's "
        return judge_count(
            count,
            path(name, GROUP_PART.format("all"), COUNT),
            text=f"{name} beats the bag-of-words and constant baselines on {count.value} of {count.n} tasks.",
            against=path("bag_of_words", GROUP_PART.format("all"), "f1"),
            doubt=f"{doubt}penalty leaves little; scale them (scaled = true)" if model.is_too_small else None,
        )

    @property
    def advice(self) -> list[str]:
        """What to know before a score of 0 is blamed on a model."""
        return [
            f"Nothing was read from {name} on {len(model.silent)} of {len(model.f1)} tasks. Its encodings are small "
            f"numbers (standard deviation {model.spread:.2g}), of which a penalty leaves little: try --scaled "
            "(in a study: scaled = true)."
            for name, model in self.models.items()
            if model.is_too_small
        ]

    def example(self) -> str:
        """A position at which only one of the encodings and the words tells the labels."""
        return "" if self.evidence is None else self.evidence.text

    def section(self) -> Section:
        """What each model's encodings know, beside its controls."""
        from dialoscope.probe.section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """Scores beside their controls: of one model, of several side by side, or of many by their means."""
        from dialoscope.probe.section import summary_of

        return summary_of(self)


def _scored(subject: str, scored: Scored) -> Iterator[tuple[tuple[str, str, str], Score]]:
    for task, score in scored.f1.items():
        yield (subject, task, "f1"), score
    for task, score in scored.without_none.items():
        yield (subject, task, "f1_without_none"), score
    for group, score in scored.groups.items():
        yield (subject, GROUP_PART.format(group), "f1"), score
