"""Where models look on distracting test sets: one pass over each context gives attention and perplexity.

Long work resumes: with a `work` folder, every portion of a set is kept there as it is done (`portions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from dialoscope.distract.portions import Portion, kept, portions
from dialoscope.distract.scores import Normalisation, averaged, case_scores, head_means, log_scores
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.errors import UsageError
from dialoscope.model.answers import enough_memory
from dialoscope.model.protocol import Attention, DialogueModel, Reading, TooLong, read

AT_ONCE = 512  # cases handed to a model at a time, and kept as one portion
Progress = Callable[[int, int], None]  # cases done, cases in all, over all models and sets
Floats = np.ndarray[Any, np.dtype[np.float64]]
NUMBERS = ("distraction", "history", "first", "last", "log_likelihood")
HEADS = b"heads"


@dataclass(frozen=True)
class Scoring:
    """How attention becomes scores: the factor, and of which layer and head (None: the mean over all)."""

    normalisation: Normalisation = "utterance"
    layer: int | None = None
    head: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON and signatures have it."""
        return {"normalisation": self.normalisation, "layer": self.layer, "head": self.head}


@dataclass(frozen=True, eq=False)
class Heads:
    """Sums over cases of the mean score on distractions and on History, in every layer and head."""

    distraction: Floats  # (layers, heads)
    history: Floats

    def __add__(self, other: Heads) -> Heads:
        return Heads(self.distraction + other.distraction, self.history + other.history)

    @property
    def ratio(self) -> Floats:
        """The ratio of means of each head."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.distraction / self.history)


@dataclass(frozen=True, eq=False)
class Measured:
    """One model on one set: a row for each case, and sums by head where there are several."""

    model: str  # as the caller calls it
    identity: str  # its own name, with a fingerprint of its weights
    name: str  # of the set
    table: pa.Table  # a row of names and counts; distraction, history, first, last are logs, 0 for 100 %
    heads: Heads | None

    def column(self, name: str) -> Floats:
        """A column of numbers."""
        return np.asarray(self.table[name].to_numpy(), dtype=np.float64)

    @property
    def dialogues(self) -> list[str]:
        """The dialogue of each case."""
        return list(self.table["dialogue"].to_pylist())


def measure(
    models: Mapping[str, DialogueModel],
    sets: Sequence[DistractingSet],
    *,
    scoring: Scoring | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """Every model on every set, in that order."""
    how, total = scoring or Scoring(), len(models) * sum(map(len, sets))
    done = 0
    found = []
    for label, model in models.items():
        for one in sets:
            tables = []
            for portion in attention_portions(one.cases, how):
                tables.append(kept(work, model, portion, partial(scored, scoring=how)))
                done += len(portion.cases)
                if progress is not None:
                    progress(done, total)
            found.append(_joined(label, model.name, one.name, tables))
    return found


def attention_portions(cases: Sequence[Case], scoring: Scoring) -> Iterator[Portion]:
    """The portions that a set is measured in."""
    return portions(cases, AT_ONCE, scoring.to_dict())


def scored(model: DialogueModel, cases: Sequence[Case], scoring: Scoring) -> pa.Table:
    """Scores and likelihoods of some cases; sums by head are in the table's metadata."""
    readings = _readings(model, cases)
    rows = [_row(case, reading, scoring) for case, reading in zip(cases, readings, strict=True)]
    columns = {name: [row[place] for row in rows] for place, name in enumerate((*NUMBERS, "tokens"))}
    names = {
        "dialogue": [case.dialogue for case in cases],
        "turn": [case.turn for case in cases],
        "put_in": [len(case.distractions) for case in cases],
        "turns_before": [len(case.history) for case in cases],
    }
    heads = _heads(cases, readings, scoring)
    sums = {} if heads is None else {HEADS: orjson.dumps([heads.distraction.tolist(), heads.history.tolist()])}
    return pa.table({**names, **columns}).replace_schema_metadata(sums)


def _readings(model: DialogueModel, cases: Sequence[Case]) -> list[Reading | None]:
    """What a model shows of each case; None for one that does not fit into its window."""
    places = range(len(cases))
    with enough_memory(model):
        try:
            return [*_read(model, cases)]
        except TooLong as error:
            fitting = [place for place in places if place not in error.parts]
            found = dict(zip(fitting, _read(model, [cases[place] for place in fitting]), strict=True))
    return [found.get(place) for place in places]


def _read(model: DialogueModel, cases: Sequence[Case]) -> list[Reading]:
    return read(model, [case.context for case in cases], [case.response for case in cases])


def _row(case: Case, reading: Reading | None, scoring: Scoring) -> tuple[float, ...]:
    if reading is None:
        return (*[math.nan] * 4, 0.0, 0)  # no tokens: not part of any mean or perplexity
    found = case_scores(chosen_scores(reading.attention, scoring), case)
    return (*found, reading.likelihood.total, reading.likelihood.tokens)


def chosen_scores(attention: Attention, scoring: Scoring) -> Floats:
    """Log of each utterance's score in the layers and heads that were asked for: (utterances,)."""
    return averaged(_chosen(log_scores(attention, normalisation=scoring.normalisation), scoring))


def _chosen(scores: Floats, scoring: Scoring) -> Floats:
    """The layer and head that were asked for; all where none was."""
    for axis, (what, place) in enumerate((("layer", scoring.layer), ("head", scoring.head))):
        if place is not None and not -scores.shape[axis] <= place < scores.shape[axis]:
            raise UsageError(f"The model has {scores.shape[axis]} {what}s, counted from 0: there is no {what} {place}.")
    layers = slice(None) if scoring.layer is None else [scoring.layer]
    heads = slice(None) if scoring.head is None else [scoring.head]
    return np.asarray(scores[layers][:, heads])


def _heads(cases: Sequence[Case], readings: Sequence[Reading | None], scoring: Scoring) -> Heads | None:
    shape = next((one.attention.log_share.shape[:2] for one in readings if one is not None), (1, 1))
    if math.prod(shape) == 1:
        return None
    total = Heads(np.zeros(shape), np.zeros(shape))
    for case, reading in zip(cases, readings, strict=True):
        if case.distractions and case.history and reading is not None:
            means = head_means(log_scores(reading.attention, normalisation=scoring.normalisation), case)
            if not any(np.isnan(one).any() for one in means):
                total += Heads(*means)
    return total


def _joined(model: str, identity: str, name: str, tables: Sequence[pa.Table]) -> Measured:
    sums = [orjson.loads(one.schema.metadata[HEADS]) for one in tables if HEADS in (one.schema.metadata or {})]
    heads = None
    for distraction, history in sums:
        one = Heads(np.array(distraction, dtype=np.float64), np.array(history, dtype=np.float64))
        heads = one if heads is None else heads + one
    whole = pa.concat_tables([one.replace_schema_metadata(None) for one in tables])
    return Measured(model, identity, name, whole, heads)
