"""What was found: micro-F1 of every model on every task, with its interval and its controls, and the groups' means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from dialoscope.errors import UsageError
from dialoscope.metrics import Comparison, Resampling, compare_ratios, correct, ratio_score
from dialoscope.probe.groups import group_scores
from dialoscope.probe.labels import Floats, Labels, f1_parts
from dialoscope.probe.measure import OWN, Answered, Dialogues, Measured, Probed, Settings
from dialoscope.probe.seeds import Pooled, runs_of, spreads
from dialoscope.probe.selection import Choices, Selected, selected
from dialoscope.record import Origin, Score

EASY_ABOVE, MEDIUM_ABOVE = 0.50, 0.25  # untrained F1, as the paper has it
SMALL = 0.3  # standard deviation of encodings below which a penalty of 1 decides what is read
CONTROLS = ("majority", "constant", "bag_of_words", "untrained", "shuffled")
TO_BEAT = ("bag_of_words", "constant")  # what an encoding must be better than before it is said to know more
Grouping = Literal["paper", "own"]


@dataclass(frozen=True, eq=False)
class TaskResult:
    """One model on one task."""

    f1: Score
    controls: Mapping[str, Score]
    without_none: Mapping[str, Score]  # of sets, the model and its controls where the empty set counts for nothing
    above_both: Comparison | None  # the model minus the better of its bag of words and the best constant answer
    labels: int  # that training has
    unseen: int  # held-out labels that it lacks; they count as misses

    @property
    def selectivity(self) -> float | None:
        """How far the model is above what the same classifier gets from shuffled labels."""
        control = self.controls.get("shuffled")
        if control is None or control.value is None or self.f1.value is None:
            return None
        return self.f1.value - control.value

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        shown: dict[str, Any] = {
            "f1": self.f1.value,
            "interval": self.f1.interval,
            "controls": {name: score.value for name, score in self.controls.items()},
            "control_intervals": {name: score.interval for name, score in self.controls.items()},
            "selectivity": self.selectivity,
            "n": self.f1.n,
            "labels": self.labels,
            "unseen": self.unseen,
            "signature": self.f1.signature,
        }
        if self.f1.interval_reason:
            shown["interval_reason"] = self.f1.interval_reason
        if self.without_none:
            shown["f1_without_none"] = self.without_none[OWN].value
            shown["without_none"] = {name: score.to_dict() for name, score in self.without_none.items()}
        if self.above_both is not None:
            shown["against_bag_and_constant"] = self.above_both.to_dict()
        return shown


@dataclass(frozen=True, eq=False)
class ModelResult:
    """One model on all tasks."""

    tasks: Mapping[str, TaskResult]
    groups: Mapping[str, Score]  # the mean F1 of their tasks
    identity: str
    width: int
    undecided: Mapping[str, int] = field(default_factory=dict)  # labels not converged: of `model` and of each control
    why_no_untrained: str | None = None
    spread: float = 1.0  # the mean standard deviation of the encodings' numbers

    @property
    def silent(self) -> list[str]:
        """Tasks on which the classifier found nothing to say."""
        return [name for name, one in self.tasks.items() if one.f1.value == 0]

    @property
    def is_too_small(self) -> bool:
        """Whether a penalty on weights may be why nothing was found."""
        return bool(self.silent) and self.spread < SMALL

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        tasks = {name: one.to_dict() for name, one in self.tasks.items()}
        shown: dict[str, Any] = {
            "tasks": tasks, "groups": {name: one.value for name, one in self.groups.items()},
            "group_intervals": {name: one.interval for name, one in self.groups.items()},
            "model": self.identity, "features": self.width, "spread": self.spread,
        }  # fmt: skip
        more = {"not_converged": dict(self.undecided)} if self.undecided else {}
        return {**shown, **more, **({"untrained": self.why_no_untrained} if self.why_no_untrained else {})}


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """All models on all tasks, and how the others differ from the first."""

    models: Mapping[str, ModelResult]
    skipped: Mapping[str, str]
    difficulty: Mapping[str, str]  # task -> group
    comparisons: Mapping[str, Mapping[str, Comparison]]  # model -> task -> first model minus this one
    origin: Origin
    dialogues: Dialogues
    about: Mapping[str, Any] = field(default_factory=dict)
    selection: Mapping[str, Mapping[str, Selected]] = field(default_factory=dict)  # run -> metric of its log

    @property
    def first(self) -> str:
        """The model that the others are compared with."""
        return next(iter(self.models))

    @cached_property
    def pooled(self) -> dict[str, Pooled]:
        """Models of which several runs were probed."""
        return {name: self._pooled(runs) for name, runs in runs_of(self.models).items()}

    def _pooled(self, runs: Sequence[str]) -> Pooled:
        found = [self.models[run] for run in runs]
        tasks = spreads([{name: task.f1.value for name, task in one.tasks.items()} for one in found])
        groups = spreads([{name: score.value for name, score in one.groups.items()} for one in found])
        return Pooled(tuple(runs), tasks, groups)

    @property
    def advice(self) -> list[str]:
        """What to know before a score of 0 is blamed on a model."""
        return [
            f"Nothing was read from {name} on {len(one.silent)} of {len(one.tasks)} tasks. Its encodings are small "
            f"numbers (standard deviation {one.spread:.2g}), of which a penalty leaves little: try --scaled "
            "(in a study: scaled = true)."
            for name, one in self.models.items()
            if one.is_too_small
        ]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = {
            "models": {name: one.to_dict() for name, one in self.models.items()},
            "skipped": dict(self.skipped),
            "difficulty": dict(self.difficulty),
            "dialogues": asdict(self.dialogues),
        }
        if self.comparisons:
            compared = {name: {one: c.to_dict() for one, c in by.items()} for name, by in self.comparisons.items()}
            shown |= {"compared_with": self.first, "comparisons": compared}
        if self.pooled:
            shown["pooled"] = {name: one.to_dict() for name, one in self.pooled.items()}
        if self.selection:
            shown["selection"] = {
                run: {metric: one.to_dict() for metric, one in by.items()} for run, by in self.selection.items()
            }
        return {**shown, **self.about}


def summarise(
    measured: Measured,
    *,
    settings: Settings | None = None,
    grouping: Grouping = "paper",
    resampling: Resampling | None = None,
    about: Mapping[str, Any] | None = None,
    choices: Choices | None = None,
) -> ProbeResult:
    """Scores, intervals over dialogues, groups, and paired tests against the first model.

    choices: of runs whose checkpoints were probed, what each metric of the log chooses.
    """
    settings, how = settings or Settings(), resampling or Resampling()
    corpus = measured.held_out.corpus
    taught = measured.training.corpus
    learnt = {"taught": f"{taught.name}@{taught.fingerprint}", "context_tokens": settings.context_tokens or "all"}
    origin = Origin(f"{corpus.name}@{corpus.fingerprint}", {**settings.to_dict(), **learnt}, settings.seed)
    found = {one.name: _tasks(one, measured, origin, how) for one in measured.models}
    difficulty = _difficulty(measured.labels, found, grouping)
    models = {
        one.name: ModelResult(
            found[one.name],
            _groups(one, difficulty, measured, origin, how),
            one.identity,
            one.width,
            one.undecided,
            one.why_no_untrained,
            one.spread,
        )
        for one in measured.models
    }
    compared = _compared(measured, origin, how)
    chosen = selected(models, choices or {})
    return ProbeResult(models, measured.skipped, difficulty, compared, origin, measured.dialogues, about or {}, chosen)


def _tasks(one: Probed, measured: Measured, origin: Origin, how: Resampling) -> dict[str, TaskResult]:
    has_bag = "bag_of_words" in one.controls
    above = correct({name: _above_both(one, name, measured, origin, how) for name in measured.labels if has_bag})
    return {
        name: _task(name, labels, one, measured, origin, how, above.get(name))
        for name, labels in measured.labels.items()
    }


def _above_both(one: Probed, name: str, measured: Measured, origin: Origin, how: Resampling) -> Comparison:
    """The model against both that it has to beat: the smaller difference, and the larger p-value.

    This is an intersection-union test (Berger 1982), which needs no correction for being two. Each alone is too easy: a
    bag that learnt noise falls below the constant answer, and so below a model that encodes every context alike.
    """
    tests = [
        _paired(one.own, one.controls[control], name, measured, origin.having(against=control), how)
        for control in TO_BEAT
    ]
    least = min(tests, key=lambda test: -math.inf if test.difference.value is None else test.difference.value)
    unsure = max(tests, key=lambda test: math.inf if test.p_value is None else test.p_value)
    return replace(unsure, difference=least.difference)


def _task(
    name: str,
    labels: Labels,
    one: Probed,
    measured: Measured,
    origin: Origin,
    how: Resampling,
    above: Comparison | None,
) -> TaskResult:
    answered = {OWN: one.own, **{control: one.controls[control] for control in CONTROLS if control in one.controls}}

    def score(counts: Floats, what: str) -> Score:
        # What the model itself reads at most is not what it was given here.
        own = {f"model_{key}" if key in origin.settings else key: value for key, value in one.settings.items()}
        said = {"task": name, "model": one.identity, **own, "features": what, "metric": "micro-f1"}
        where = origin.having(**said)
        parts = f1_parts(counts)
        return ratio_score(
            *parts, clusters=measured.held_out.dialogues, resampling=how, origin=where, bounds=(0.0, 1.0)
        )

    whole = {what: score(by[name].all, what) for what, by in answered.items()}
    bare = {
        what: score(counts, f"{what},without-none")
        for what, by in answered.items()
        if (counts := by[name].without_none) is not None
    }
    f1 = whole.pop(OWN)
    return TaskResult(f1, whole, bare, above, len(labels.classes), int(labels.unseen.sum()))


def _difficulty(
    labels: Mapping[str, Labels], found: Mapping[str, Mapping[str, TaskResult]], grouping: Grouping
) -> dict[str, str]:
    """The paper's groups, or those that this run's untrained models make."""
    if grouping == "paper":
        return {name: one.task.difficulty for name, one in labels.items()}
    means = {name: _untrained_mean(name, found) for name in labels}
    if not any(mean is not None for mean in means.values()):
        raise UsageError("Groups of one's own go by untrained scores: leave --no-controls out, or --groups own.")
    return {name: group_of(mean) for name, mean in means.items() if mean is not None}


def group_of(untrained: float) -> str:
    """How hard a task is by what untrained encoders score on it: above 0.50 easy, above 0.25 medium."""
    return "easy" if untrained > EASY_ABOVE else "medium" if untrained > MEDIUM_ABOVE else "hard"


def _untrained_mean(name: str, found: Mapping[str, Mapping[str, TaskResult]]) -> float | None:
    scores = [
        tasks[name].controls["untrained"].value for tasks in found.values() if "untrained" in tasks[name].controls
    ]
    values = [score for score in scores if score is not None]
    return statistics.mean(values) if values else None


def _groups(
    one: Probed, difficulty: Mapping[str, str], measured: Measured, origin: Origin, how: Resampling
) -> dict[str, Score]:
    where = origin.having(model=one.identity)
    dialogues = measured.held_out.dialogues
    return group_scores(one.own, difficulty, dialogues=dialogues, origin=where, resampling=how)


def _compared(measured: Measured, origin: Origin, how: Resampling) -> dict[str, dict[str, Comparison]]:
    """The first model's F1 minus each other one's on the same positions, corrected over the whole table."""
    first, *others = measured.models
    tested = {
        (other.name, name): _paired(first.own, other.own, name, measured, origin, how)
        for other in others
        for name in measured.labels
    }
    found: dict[str, dict[str, Comparison]] = {}
    for (model, name), one in correct(tested).items():
        found.setdefault(model, {})[name] = one
    return found


def _paired(
    first: Answered, second: Answered, name: str, measured: Measured, origin: Origin, how: Resampling
) -> Comparison:
    where = origin.having(task=name, metric="micro-f1")
    sides = (f1_parts(one[name].all) for one in (first, second))
    return compare_ratios(*sides, clusters=measured.held_out.dialogues, test="bootstrap", resampling=how, origin=where)
