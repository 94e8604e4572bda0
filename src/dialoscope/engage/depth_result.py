"""Every turn's remaining depth and its predictions, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dialoscope.engage.examples import Examples
from dialoscope.engage.protocol import Floats
from dialoscope.engage.settings import DepthSettings
from dialoscope.metrics import Resampling, correlate, mean_score
from dialoscope.metrics.bootstrap import MANY_DIALOGUES
from dialoscope.record import Score, Scores, by_path, path
from dialoscope.report import Section, Table
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.verdict import Verdict, judge_difference

ENDS = (1, 2, 3)  # first and last turns that Figure 3 looks at
KINDS = ("pearson", "spearman")
SHOWN = 5  # turns of a kind
FEWER = 1_000  # resamples
AVERAGE = "average"  # the baseline that only counts turns
COLUMNS = {
    "dialogue": "id of the turn's dialogue",
    "turn": "number of the turn in its dialogue, from 1; consecutive messages of one speaker are one turn",
    "remaining_depth": "share of the dialogue that remains after the turn, (n - turn) / (n - 1), from 1 to 0",
}
SCORE_MEANING = "remaining depth that {} predicts, from 0 to 1"
BASELINE_MEANING = "remaining depth that the baseline {} guesses, from 0 to 1"
Wide = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Case:
    """A turn worth looking at, as Figures 4 to 7 have them."""

    text: str
    before: str  # the turn before it
    score: float
    target: float


@dataclass(frozen=True)
class Conversation:
    """One conversation with the first predictor's scores."""

    name: str
    turns: tuple[str, ...]
    scores: tuple[float, ...]
    targets: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DepthResult(Result):
    """How well predictors, controls and baselines tell how much of each conversation remains."""

    instrument: ClassVar[str] = "depth"
    settings_class: ClassVar[type[DepthSettings]] = DepthSettings

    settings: DepthSettings
    turns: pa.Table  # COLUMNS, and a column for each predictor and baseline
    part: str
    models: tuple[str, ...]
    controls: tuple[str, ...]
    baselines: tuple[str, ...]
    judged: tuple[str, ...]  # models that have a verdict
    n_shared: int  # measured dialogues that stand in the training split as well
    cases: Mapping[str, Mapping[str, tuple[Case, ...]]]  # predictor -> kind -> turns
    conversation: Conversation | None
    reason: str | None = None  # why nothing was measured

    @property
    def table(self) -> pa.Table:
        """One row for each turn."""
        return self.turns

    @cached_property
    def targets(self) -> Floats:
        """The remaining depth of each turn."""
        return np.asarray(self.turns["remaining_depth"].to_numpy())

    @cached_property
    def clusters(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The row of each turn's dialogue, from 0; ids may be used twice."""
        return np.cumsum(self.turns["turn"].to_numpy() == 1) - 1

    @property
    def subjects(self) -> dict[str, str]:
        """What path names each predictor and baseline, and its column. A baseline gives way to a model of its name."""
        predictors = {name: f"score {name}" for name in (*self.models, *self.controls)}
        taken = {path(name, "", "") for name in predictors}
        named = {
            f"baseline {name}" if path(name, "", "") in taken else name: f"baseline {name}" for name in self.baselines
        }
        return {**predictors, **named}

    def predicted(self, subject: str) -> Floats:
        """The prediction of every turn by a model, a control or a baseline, as the paths call it."""
        return np.asarray(self.turns[self.subjects[subject]].to_numpy())

    def errors(self, subject: str) -> Wide:
        """The squared error of every turn, times 100."""
        return np.asarray(100 * np.square(self.predicted(subject).astype(np.float64) - self.targets))

    @cached_property
    def resampling(self) -> Resampling:
        """The usual intervals; of very many dialogues, correlations are drawn less often.

        With 10,000 draws a million turns would take hours, for every predictor has eight correlations.
        """
        is_many = len(self.turns) > 0 and int(self.clusters[-1]) + 1 > MANY_DIALOGUES
        return Resampling(FEWER, seed=self.settings.seed) if is_many else Resampling(seed=self.settings.seed)

    @kept
    def scores(self) -> Scores:
        """Squared errors times 100 and correlations, on all turns and on the first and last ones alone."""
        return by_path(self._named_scores())

    def _named_scores(self) -> Iterator[tuple[tuple[str, str, str], Score]]:
        everywhere = np.ones(len(self.turns), dtype=bool)
        for subject in self.subjects:
            yield (subject, self.part, "mse"), self._mean(self.errors(subject)).within(0)
            for kind in KINDS:
                yield (subject, self.part, kind), self._correlation(subject, kind, everywhere)
            for k, is_end in self._ends().items():
                for kind in KINDS:
                    yield (subject, f"first and last {k}", kind), self._correlation(subject, kind, is_end)
        if not self.subjects:
            yield (AVERAGE, self.part, "mse"), Score.missing(self.reason or "there is nothing to measure")

    def score(self, subject: str, number: str, part: str | None = None) -> Score:
        """One number of a subject."""
        return self.scores()[path(subject, part or self.part, number)]

    def _ends(self) -> dict[int, np.ndarray[Any, np.dtype[np.bool_]]]:
        positions = self.turns["turn"].to_numpy()
        lengths = np.bincount(self.clusters)[self.clusters] if len(positions) else positions
        return {k: (positions <= k) | (positions > lengths - k) for k in ENDS}

    def _mean(self, values: Wide) -> Score:
        return mean_score(values, clusters=self.clusters, resampling=self.resampling, origin=self.origin)

    def _correlation(self, subject: str, kind: str, at: np.ndarray[Any, np.dtype[np.bool_]]) -> Score:
        return correlate(
            self.predicted(subject)[at],
            self.targets[at],
            kind=kind,
            clusters=self.clusters[at],
            resampling=self.resampling,
            origin=self.origin,
        )

    def items(self) -> dict[str, Items]:
        """The squared error of every turn, times 100, by model."""
        dialogues = [str(each) for each in self.turns["dialogue"].to_pylist()]
        keys = list(zip(dialogues, map(str, self.turns["turn"].to_pylist()), strict=True))
        return {path(name, self.part, "mse"): Items.mean_of(keys, dialogues, self.errors(name)) for name in self.models}

    @kept
    def verdicts(self) -> list[Verdict]:
        """Whether each model predicts better than counting turns."""
        if self.reason is not None or not self.judged:
            reason = self.reason or "no predictor was given"
            return [Verdict("not_measurable", f"Not measurable: {reason}.", [path(AVERAGE, self.part, "mse")])]
        return [self._judged(name) for name in self.judged]

    def _judged(self, model: str) -> Verdict:
        counting = next(name for name, column in self.subjects.items() if column == f"baseline {AVERAGE}")
        own, baseline = self.score(model, "mse"), self.score(counting, "mse")
        difference = self._mean(self.errors(model) - self.errors(counting))
        text = (
            f"{model} predicts remaining depth with a squared error (× 100) of {own.value or 0:.2f}; "
            f"counting turns, without reading a word, reaches {baseline.value or 0:.2f}."
        )
        name, against = path(model, self.part, "mse"), path(counting, self.part, "mse")
        return judge_difference(difference, name, better="low", text=text, against=against)

    @property
    def shared_note(self) -> str:
        """What to know about dialogues that stand in both splits; empty where there are none."""
        if not self.n_shared:
            return ""
        total = int(self.clusters[-1]) + 1
        count = f"{self.n_shared:,} of {total:,} measured dialogues {'is' if self.n_shared == 1 else 'are'}"
        return f"{count} in the training split as well, word for word: predictors that learnt it may score too high."

    def section(self) -> Section:
        """The numbers, one conversation, and turns to look at."""
        from dialoscope.engage.depth_section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """Error and correlations of every predictor and baseline."""
        from dialoscope.engage.depth_section import depth_table

        return depth_table(self)

    def example(self) -> str:
        """The turn that the first model is most mistaken about."""
        for kinds in self.cases.values():
            for case in kinds.get("most mistaken", ()):
                return f'"{case.text}": predicted {case.score:.2f}, remained {case.target:.2f}.'
        return ""


def turns_table(held_out: Examples, predicted: Mapping[str, Floats], guessed: Mapping[str, Floats]) -> pa.Table:
    """A row for each turn; models and baselines have columns of their own, for a model may be called `random`."""
    lengths = held_out.lengths
    ids = held_out.ids or [str(place) for place in range(len(held_out))]
    columns: dict[str, Any] = {
        "dialogue": pa.array(
            [name for name, count in zip(ids, lengths, strict=True) for _ in range(count)], pa.string()
        ),
        "turn": pa.array(held_out.positions, pa.int64()),
        "remaining_depth": pa.array(held_out.targets, pa.float32()),
    }
    meanings = dict(COLUMNS)
    for kind, meaning, scores in (("score", SCORE_MEANING, predicted), ("baseline", BASELINE_MEANING, guessed)):
        for name, values in scores.items():
            columns[f"{kind} {name}"] = pa.array(np.asarray(values, dtype=np.float32))
            meanings[f"{kind} {name}"] = meaning.format(name)
    return documented(pa.table(columns), meanings)


def cases_of(scores: Floats, held_out: Examples, *, most: int = SHOWN) -> dict[str, tuple[Case, ...]]:
    """The highest, the lowest and the most mistaken turns, each text once."""
    targets = held_out.targets
    orders = {"highest": -scores, "lowest": scores, "most mistaken": -np.abs(scores - targets)}
    return {
        kind: _first_texts(np.argsort(key, kind="stable").tolist(), scores, held_out, most)
        for kind, key in orders.items()
    }


def _first_texts(order: Sequence[int], scores: Floats, held_out: Examples, most: int) -> tuple[Case, ...]:
    chosen: dict[str, Case] = {}
    positions = held_out.positions
    for place in order:
        text = held_out.texts[place]
        before = held_out.texts[place - 1] if positions[place] > 1 else ""
        case = Case(text, before, float(scores[place]), float(held_out.targets[place]))
        chosen.setdefault(text.lower(), case)
        if len(chosen) == most:
            break
    return tuple(chosen.values())


def chosen_conversation(held_out: Examples, predicted: Mapping[str, Floats]) -> Conversation | None:
    """The first conversation of usual length, with the first predictor's scores."""
    scores = next(iter(predicted.values()), None)
    if scores is None:
        return None
    usual = float(held_out.lengths.mean())
    place = min(range(len(held_out)), key=lambda row: (abs(held_out.lengths[row] - usual), row))
    first, stop = held_out.starts[place], held_out.starts[place + 1]
    name = held_out.ids[place] if held_out.ids else str(place)
    turns = tuple(held_out.texts[first:stop])
    return Conversation(name, turns, tuple(scores[first:stop].tolist()), tuple(held_out.targets[first:stop].tolist()))
