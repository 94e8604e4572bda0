"""What a leak does to a score: a model's responses scored on the full test set, its clean part and its leaked part.

A model that only remembers its training set scores high on the leaked part and low on the clean one; the score on the
full set lies between them and says little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import METRICS, Pairs, Resampling
from dialoscope.metrics.pairs import REFERENCE_COLUMNS, read_column
from dialoscope.metrics.score import Scored, score_pairs
from dialoscope.metrics.settings import DEFAULT_METRICS
from dialoscope.overlap.settings import OverlapSettings, threshold_text
from dialoscope.overlap.sides import side_of
from dialoscope.record import Score

if TYPE_CHECKING:
    from dialoscope.overlap.result import OverlapResult

SIZED = tuple(name for name in METRICS if name.startswith("distinct"))  # fall as responses are added
PART_METRICS = tuple(name for name in DEFAULT_METRICS if name not in SIZED)


def read_answers(corpus: Any, unit: str, settings: OverlapSettings) -> pa.Table:
    """A model's responses beside the responses of the test samples, or other references, with their dialogues.

    The table has the columns `hypothesis`, `reference` and `dialogue` (its number).
    """
    for name in settings.metrics:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    assert settings.hypotheses is not None
    if not isinstance(corpus, Corpus):
        raise UsageError("Responses are scored in this process: read the corpus with dialoscope.load.")
    side = side_of(corpus, unit=unit, context_turns=settings.context_turns)
    hypotheses = read_column(Path(settings.hypotheses)).texts
    if settings.references is not None:
        references = read_column(Path(settings.references), names=REFERENCE_COLUMNS).texts
    elif len(side.texts) < 2:
        raise UsageError(f"A {unit} has no response to score against: give references.")
    else:
        references = side.texts[-1].to_pylist()
    for kind, texts in (("hypotheses", hypotheses), ("references", references)):
        if len(texts) != len(side):
            counts = f"{len(side):,} test {unit}s and {len(texts):,} {kind}"
            raise UsageError(f"{counts}: expected one for each, in order.")
    return pa.table({"hypothesis": list(hypotheses), "reference": list(references), "dialogue": side.dialogues})


def score_answers(result: OverlapResult, answers: pa.Table) -> tuple[dict[str, dict[str, Score]], tuple[str, ...]]:
    """Scores by part and metric, and notes. Parts: the measured one, its clean units and its leaked units.

    Shares of distinct words fall with the number of responses, so parts of different size do not compare: they are
    computed only where the settings name them, and with a note.
    """
    settings, part = result.settings, result.measured[0]
    metrics = settings.metrics or PART_METRICS
    name = f"{Path(settings.hypotheses or '').name}/{result.origin.corpus.partition('@')[0]}"
    hypotheses, references, dialogues = (answers[column].to_pylist() for column in answers.column_names)
    pairs = Pairs(hypotheses, references, dialogues, name=name)
    is_leaked = result.is_over(settings.leak)
    resampling, scores, results = Resampling(seed=settings.seed), dict[str, dict[str, Score]](), list[Scored]()
    masks = {part: np.ones(len(pairs), dtype=bool), "clean": ~is_leaked, "leaked": is_leaked}
    where = {part: "measured; threshold", "clean": "at or under", "leaked": "over"}
    for each, mask in masks.items():
        if not mask.any():
            reason = f"no {result.unit} is {where[each]} {threshold_text(settings.leak)}"
            scores[each] = {metric: Score.missing(reason) for metric in metrics}
            continue
        chosen = replace(pairs.select(np.flatnonzero(mask).tolist()), name=f"{name}[{each}]")
        results.append(score_pairs(chosen, metrics=metrics, resampling=resampling))
        scores[each] = dict(results[-1].scores)
    notes = [note for each in results for note in each.notes]
    for each, by_metric in scores.items():
        for metric, score in by_metric.items():
            if score.interval_reason is not None:
                notes.append(f"{metric}, {each}: no interval, for {score.interval_reason}.")
    if sized := ", ".join(metric for metric in metrics if metric in SIZED):
        notes.append(f"{sized}: falls as responses are added, so parts of different size do not compare.")
    return scores, tuple(dict.fromkeys(notes))


def units_of_metrics(names: Iterable[str]) -> Mapping[str, str]:
    """The unit of each metric: share, percent, words."""
    return {name: METRICS[name].unit for name in names}
