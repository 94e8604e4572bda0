"""From answers to scores: micro-F1 with intervals over dialogues, means of groups, and paired tests."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.metrics import Comparison, Resampling, compare_ratios, correct, ratio_score
from dialoscope.probe.groups import group_scores
from dialoscope.probe.labels import Answered, Floats, Labels, count_labels, f1_parts
from dialoscope.probe.result import RANKS, ModelScores, Scored, TaskFacts
from dialoscope.probe.settings import ProbeSettings
from dialoscope.probe.tasks import TASKS
from dialoscope.record import Origin, Score

EASY_ABOVE, MEDIUM_ABOVE = 0.50, 0.25  # untrained F1, as the paper has it
TO_BEAT = ("bag_of_words", "constant")  # what an encoding must be better than before it is said to know more


@dataclass(frozen=True, eq=False)
class Tested:
    """How a model and its own controls answered, and what there is to know of its encodings."""

    own: Answered
    controls: Mapping[str, Answered]  # untrained, shuffled
    identity: str
    width: int
    reading: Mapping[str, Any] = field(default_factory=dict)
    why_no_untrained: str | None = None
    spread: float = 1.0


@dataclass(frozen=True, eq=False)
class AllScores:
    """The scores of a run."""

    models: dict[str, ModelScores]
    controls: dict[str, Scored]
    tasks: dict[str, TaskFacts]


def score_all(
    models: Mapping[str, Tested],
    controls: Mapping[str, Answered],
    labels: Mapping[str, Labels],
    *,
    dialogues: Sequence[str],
    origin: Origin,
    settings: ProbeSettings,
) -> AllScores:
    """Score all models and controls, and compare every model with what it has to beat and with the first model."""
    scorer = Scorer(dialogues, origin, Resampling(seed=settings.seed))
    untrained = [scorer.f1(each.controls["untrained"]) for each in models.values() if "untrained" in each.controls]
    difficulty = difficulties(labels, untrained, by_own=settings.groups == "own")
    against_first = scorer.compared_with_first({name: each.own for name, each in models.items()})
    return AllScores(
        {
            name: ModelScores(
                **vars(scorer.scored(each.own, difficulty, of_model(each, origin, "model"))),
                controls={
                    control: scorer.scored(answered, difficulty, of_model(each, origin, control))
                    for control, answered in each.controls.items()
                },
                above_both=scorer.above_both(each.own, controls),
                as_baseline=as_baseline(each.own, controls),
                against_first=against_first.get(name, {}),
                identity=each.identity,
                width=each.width,
                why_no_untrained=each.why_no_untrained,
                spread=each.spread,
            )
            for name, each in models.items()
        },
        {
            name: scorer.scored(answered, difficulty, origin.having(features=name))
            for name, answered in controls.items()
        },
        {
            name: TaskFacts(
                family=TASKS[name].family if name in TASKS else "",
                difficulty=difficulty.get(name, ""),
                counts=count_labels(each, most=RANKS),
            )
            for name, each in labels.items()
        },
    )


def as_baseline(own: Answered, controls: Mapping[str, Answered]) -> tuple[str, ...]:
    """Tasks on which a model is right and wrong exactly where one of those is that it has to beat."""
    baselines = [controls[name] for name in TO_BEAT if name in controls]
    return tuple(
        task
        for task, each in own.items()
        if any(np.array_equal(each.all, answered[task].all) for answered in baselines)
    )


def of_model(model: Tested, origin: Origin, features: str) -> Origin:
    """The origin of a model's scores: its weights, and how it reads."""
    # What the model itself reads at most is not what it was given here.
    reading = {f"model_{key}" if key in origin.settings else key: value for key, value in model.reading.items()}
    return origin.having(model=model.identity, **reading, features=features)


def difficulties(
    labels: Mapping[str, Labels], untrained: Sequence[Mapping[str, Score]], *, by_own: bool
) -> dict[str, str]:
    """Tasks by difficulty: the paper's groups, or those that this run's untrained models make."""
    if not by_own:
        return {name: each.task.difficulty for name, each in labels.items()}
    values = {name: [score for by in untrained if (score := by[name].value) is not None] for name in labels}
    if not any(values.values()):
        raise UsageError("groups = own needs untrained scores, and no model could be made untrained: leave it out.")
    return {name: group_of(statistics.mean(scores)) for name, scores in values.items() if scores}


def group_of(untrained: float) -> str:
    """How hard a task is by what untrained encoders score on it: above 0.50 easy, above 0.25 medium."""
    return "easy" if untrained > EASY_ABOVE else "medium" if untrained > MEDIUM_ABOVE else "hard"


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores answers to the same held-out positions."""

    dialogues: Sequence[str]  # of each position
    origin: Origin
    resampling: Resampling

    def scored(self, answered: Answered, difficulty: Mapping[str, str], origin: Origin) -> Scored:
        """Micro-F1 of every task, with and without the empty set, and the means of groups."""
        return Scored(
            f1=self.f1(answered, origin),
            without_none={
                name: self._f1(each.without_none, origin.having(task=name, metric="micro-f1-without-none"))
                for name, each in answered.items()
                if each.without_none is not None
            },
            groups=group_scores(
                answered, difficulty, dialogues=self.dialogues, origin=origin, resampling=self.resampling
            ),
        )

    def f1(self, answered: Answered, origin: Origin | None = None) -> dict[str, Score]:
        """Micro-F1 of every task."""
        of = origin or self.origin
        return {name: self._f1(each.all, of.having(task=name, metric="micro-f1")) for name, each in answered.items()}

    def _f1(self, counts: Floats, origin: Origin) -> Score:
        return ratio_score(
            *f1_parts(counts),
            clusters=self.dialogues,
            resampling=self.resampling,
            origin=origin,
            bounds=(0.0, 1.0),
            undefined="no position has a label",
        )

    def above_both(self, own: Answered, controls: Mapping[str, Answered]) -> dict[str, Comparison]:
        """The model against both that it has to beat: the smaller difference, and the larger p-value.

        This is an intersection-union test (Berger 1982), which needs no correction for being two. Each alone is too
        easy: a bag that learnt noise falls below the constant answer, and so below a model that encodes every context
        alike. Tasks are corrected by Holm.
        """
        if any(name not in controls for name in TO_BEAT):
            return {}
        return correct({task: self._above_both(task, own, controls) for task in own})

    def _above_both(self, task: str, own: Answered, controls: Mapping[str, Answered]) -> Comparison:
        tests = [self._paired(task, own, controls[name], self.origin.having(against=name)) for name in TO_BEAT]
        least = min(tests, key=lambda test: -math.inf if test.difference.value is None else test.difference.value)
        unsure = max(tests, key=lambda test: math.inf if test.p_value is None else test.p_value)
        return replace(unsure, difference=least.difference)

    def compared_with_first(self, models: Mapping[str, Answered]) -> dict[str, dict[str, Comparison]]:
        """The first model's F1 minus each other one's on the same positions, corrected over the whole table."""
        (_, first), *others = models.items()
        tested = {
            (name, task): self._paired(task, first, other, self.origin) for name, other in others for task in first
        }
        compared: dict[str, dict[str, Comparison]] = {}
        for (name, task), comparison in correct(tested).items():
            compared.setdefault(name, {})[task] = comparison
        return compared

    def _paired(self, task: str, first: Answered, second: Answered, origin: Origin) -> Comparison:
        sides = (f1_parts(each[task].all) for each in (first, second))
        return compare_ratios(
            *sides,
            clusters=self.dialogues,
            test="bootstrap",
            resampling=self.resampling,
            origin=origin.having(task=task, metric="micro-f1"),
        )
