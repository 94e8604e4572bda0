"""What a leak does to a score: any metric on the full test set, on its clean part and on its leaked part.

A model that only remembers its training set scores high on the leaked part and low on the clean one; the score on the
full set lies between them and says little.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import METRICS, MetricsResult, Options, Pairs, Resampling, score_pairs
from dialoscope.metrics.bootstrap import DEFAULT
from dialoscope.metrics.pairs import REFERENCE_COLUMNS, read_column
from dialoscope.metrics.score import DEFAULT_METRICS
from dialoscope.overlap.measure import Measured, Settings
from dialoscope.overlap.result import LEAK, OverlapResult
from dialoscope.overlap.sides import Data, side_of
from dialoscope.record import Score
from dialoscope.report import Column, Table
from dialoscope.report.cell import Cell, in_one_line

SIZED = tuple(name for name in METRICS if name.startswith("distinct"))  # fall as responses are added
PART_METRICS = tuple(name for name in DEFAULT_METRICS if name not in SIZED)


@dataclass(frozen=True, eq=False)
class Contamination:
    """Each metric's score on the full test set, on what is at or under the threshold, and on what is over it."""

    threshold: float
    counts: Mapping[str, int]  # items by part: full, clean, leaked
    scores: Mapping[str, Mapping[str, Score]]  # metric -> part -> score
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The scores as JSON has them; notes appear only where there are any."""
        metrics = {
            name: {part: score.to_dict() for part, score in parts.items()} for name, parts in self.scores.items()
        }
        shown = {"threshold": self.threshold, "n": dict(self.counts), "metrics": metrics}
        return {**shown, "notes": list(self.notes)} if self.notes else shown

    def table(self) -> Table:
        """A row for each metric, a column for each part."""
        parts = [f"{part} (n={count:,})" for part, count in self.counts.items()]
        rows: list[list[Cell]] = [[name, METRICS[name].unit, *scores.values()] for name, scores in self.scores.items()]
        return Table(
            ["metric", "unit", *(Column(part, ".4g") for part in parts)],
            rows,
            self.caption,
            notes=self.remarks,
            name="parts",
        )

    @property
    def caption(self) -> str:
        """What the table shows."""
        return f"Scores on the test set, and on its parts at or under and over an overlap of {self.threshold:g}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes, and why some scores have no interval."""
        reasons = {
            f"{name}, {part}: no interval, for {score.interval_reason}."
            for name, scores in self.scores.items()
            for part, score in scores.items()
            if score.interval_reason
        }
        return (*self.notes, *sorted(reasons))

    def lines(self) -> list[list[str]]:
        """The table in words, for a terminal."""
        return [
            [name, METRICS[name].unit, *(in_one_line(score) for score in scores.values())]
            for name, scores in self.scores.items()
        ]


def contamination(
    result: OverlapResult,
    pairs: Pairs,
    *,
    metrics: Sequence[str] | None = None,
    threshold: float = LEAK,
    options: Options | None = None,
    resampling: Resampling = DEFAULT,
) -> Contamination:
    """Score a model's responses on the full test set and on its clean and leaked parts.

    `pairs` holds a hypothesis and a reference for each item of `result`, in order; where it names dialogues, whole
    dialogues are resampled. What cannot be computed on a part says why. Shares of distinct words fall with the number
    of responses and so tell parts of different size apart where nothing leaks: they are computed only where `metrics`
    names them, and with a note.
    """
    names = PART_METRICS if metrics is None else tuple(metrics)
    if len(pairs) != result.n_test:
        raise UsageError(
            f"{result.n_test:,} test {result.unit}s and {len(pairs):,} hypotheses: expected one for each, in order."
        )
    is_leaked = result.is_over(threshold)
    masks = {"full": np.ones(len(pairs), dtype=bool), "clean": ~is_leaked, "leaked": is_leaked}
    scored = {
        part: score_pairs(_part(pairs, part, mask, threshold), metrics=names, options=options, resampling=resampling)
        for part, mask in masks.items()
    }
    counts = {part: int(mask.sum()) for part, mask in masks.items()}
    empty = {part: _empty(part, result, threshold) for part, count in counts.items() if not count}
    scores = {
        name: {part: empty.get(part) or one.scores[name] for part, one in scored.items()}
        for name in scored["full"].scores
    }
    return Contamination(threshold, counts, scores, (*_notes(scored.values()), *_sized(names)))


def _part(pairs: Pairs, part: str, mask: np.ndarray[Any, Any], threshold: float) -> Pairs:
    if part == "full":
        return pairs
    sign = ">" if part == "leaked" else "<="
    return replace(pairs.select(np.flatnonzero(mask).tolist()), name=f"{pairs.name}[overlap{sign}{threshold:g}]")


def _empty(part: str, result: OverlapResult, threshold: float) -> Score:
    """An empty part says so, rather than what a metric makes of nothing."""
    where = f"over {threshold:g}" if part == "leaked" else f"at or under {threshold:g}"
    reason = f"no {result.unit} is {where}" if result.n_test else "the test set is empty"
    return Score.missing(reason, signature=result.origin.signature)


def _notes(results: Iterable[MetricsResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for result in results for note in result.notes))


def _sized(names: Iterable[str]) -> tuple[str, ...]:
    """A word of warning beside metrics that depend on how many responses there are."""
    found = ", ".join(name for name in names if name in SIZED)
    return (f"{found}: falls as responses are added, so parts of different size do not compare.",) if found else ()


def hypothesis_pairs(
    test: Data,
    hypotheses: Sequence[str],
    *,
    references: Sequence[str] | None = None,
    unit: str | None = None,
    column: str | None = None,
    context_turns: int = 1,
    name: str = "hypotheses",
) -> Pairs:
    """A model's responses beside the responses of the test samples (or other references), with their dialogues."""
    side = side_of(test, unit=unit or "sample", column=column, context_turns=context_turns)
    if references is None and len(side.texts) < 2:
        raise UsageError(f"A {side.unit} has no response to score against: give references.")
    given = side.texts[-1].to_pylist() if references is None else references
    for what, texts in (("hypotheses", hypotheses), ("references", given)):
        if len(texts) != len(side):
            counts = f"{len(side):,} test {side.unit}s and {len(texts):,} {what}"
            raise UsageError(f"{counts}: expected one for each, in order.")
    dialogues: list[Hashable] = side.dialogues.tolist()
    return Pairs(hypotheses, given, dialogues, name=f"{name}/{side.name.partition('@')[0]}")


def read_hypotheses(
    test: Data, hypotheses: Path, *, references: Path | None = None, unit: str | None = None, context_turns: int = 1
) -> Pairs:
    """The same from files: text with one response a line, JSONL or Parquet (see `dialoscope.metrics.pairs`)."""
    texts = read_column(hypotheses).texts
    targets = None if references is None else read_column(references, names=REFERENCE_COLUMNS).texts
    name = Path(hypotheses).name
    return hypothesis_pairs(test, texts, references=targets, unit=unit, context_turns=context_turns, name=name)


@dataclass(frozen=True)
class Scoring:
    """What is to be scored on the parts of a test set, and how: files as `read_hypotheses` takes them."""

    hypotheses: Path | None = None  # nothing is scored without
    references: Path | None = None
    metrics: Sequence[str] = PART_METRICS
    resampling: Resampling = DEFAULT


def measure_and_score(
    measure: Callable[..., Measured],
    train: Any,
    test: Any = None,
    *,
    scoring: Scoring,
    threshold: float = LEAK,
    unit: str | None = None,
    settings: Settings,
    choose: Callable[[OverlapResult], list[int]] = lambda result: [],
) -> tuple[Measured, Contamination | None]:
    """Measure an overlap, wherever that runs, and score a model on the parts; bad answers are told before long work."""
    for name in scoring.metrics:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    answers = None
    if scoring.hypotheses is not None:
        options: dict[str, Any] = {"unit": unit, "context_turns": settings.context_turns}
        answers = read_hypotheses(test, scoring.hypotheses, references=scoring.references, **options)
    measured = measure(train, test, choose=choose, unit=unit, settings=settings)
    if answers is None:
        return measured, None
    how: dict[str, Any] = {"metrics": scoring.metrics, "threshold": threshold, "resampling": scoring.resampling}
    return measured, contamination(measured.result, answers, **how)
