"""What a leak does to a score: a model's responses scored on the full test set, its clean part and its leaked part.

A model that only remembers its training set scores high on the leaked part and low on the clean one; the score on the
full set lies between them and says little.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import METRICS, Pairs, Resampling
from dialoscope.metrics.pairs import REFERENCE_COLUMNS, read_column
from dialoscope.metrics.score import Scored, score_pairs
from dialoscope.metrics.settings import DEFAULT_METRICS
from dialoscope.overlap.settings import OverlapSettings
from dialoscope.overlap.sides import Side
from dialoscope.record import Score

if TYPE_CHECKING:
    from dialoscope.overlap.result import OverlapResult

SIZED = tuple(name for name in METRICS if name.startswith("distinct"))  # fall as responses are added
PART_METRICS = tuple(name for name in DEFAULT_METRICS if name not in SIZED)


def read_answers(side: Side, settings: OverlapSettings) -> Pairs:
    """A model's responses beside the responses of the test samples, or other references; wrong files are told early."""
    for name in settings.metrics:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    assert settings.hypotheses is not None
    hypotheses = read_column(Path(settings.hypotheses)).texts
    if settings.references is not None:
        references = read_column(Path(settings.references), names=REFERENCE_COLUMNS).texts
    elif len(side.texts) < 2:
        raise UsageError(f"A {side.unit} has no response to score against: give references.")
    else:
        references = side.texts[-1].to_pylist()
    for what, texts in (("hypotheses", hypotheses), ("references", references)):
        if len(texts) != len(side):
            counts = f"{len(side):,} test {side.unit}s and {len(texts):,} {what}"
            raise UsageError(f"{counts}: expected one for each, in order.")
    dialogues: list[Hashable] = side.dialogues.tolist()
    name = f"{Path(settings.hypotheses).name}/{side.name.partition('@')[0]}"
    return Pairs(hypotheses, references, dialogues, name=name)


def score_responses(result: OverlapResult, pairs: Pairs) -> tuple[dict[str, dict[str, Score]], tuple[str, ...]]:
    """Scores by part and metric, and notes. Parts: the measured one, its clean units and its leaked units.

    Shares of distinct words fall with the number of responses, so parts of different size do not compare: they are
    computed only where the settings name them, and with a note.
    """
    settings, part = result.settings, result.measured[0]
    names = settings.metrics or PART_METRICS
    if len(pairs) != len(result.ratio):
        counts = f"{len(result.ratio):,} test {result.unit}s and {len(pairs):,} hypotheses"
        raise UsageError(f"{counts}: expected one for each, in order.")
    is_leaked = result.is_over(settings.leak)
    masks = {part: np.ones(len(pairs), dtype=bool), "clean": ~is_leaked, "leaked": is_leaked}
    how, scores, results = Resampling(seed=settings.seed), dict[str, dict[str, Score]](), list[Scored]()
    for name, mask in masks.items():
        if mask.any():
            chosen = pairs.select(np.flatnonzero(mask).tolist())
            results.append(score_pairs(replace(chosen, name=f"{pairs.name}[{name}]"), metrics=names, resampling=how))
            scores[name] = dict(results[-1].scores)
    side = {"clean": "at or under", "leaked": "over", part: "in the part; threshold"}
    for name in masks.keys() - scores.keys():
        reason = f"no {result.unit} is {side[name]} {settings.leak:g}"
        scores[name] = {metric: Score.missing(reason) for metric in names}
    return {name: scores[name] for name in masks}, (*_notes(results), *_sized(names))


def _notes(results: Iterable[Scored]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for result in results for note in result.notes))


def _sized(names: Iterable[str]) -> tuple[str, ...]:
    """A word of warning beside metrics that depend on how many responses there are."""
    listed = ", ".join(name for name in names if name in SIZED)
    return (f"{listed}: falls as responses are added, so parts of different size do not compare.",) if listed else ()


def units_of_metrics(names: Iterable[str]) -> Mapping[str, str]:
    """The unit of each metric: share, percent, words."""
    return {name: METRICS[name].unit for name in names}
