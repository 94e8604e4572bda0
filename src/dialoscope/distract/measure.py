"""How much attention models give to distractions: one pass over each context gives attention and perplexity.

Long work resumes: with a `work` folder, every portion of a set is kept there as it is done (`portions`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.distract.pictures import pictures_of
from dialoscope.distract.portions import Portion, portions, resumable
from dialoscope.distract.prepare import Sets, prepare
from dialoscope.distract.result import AttentionResult, CaseRows, Heads, attention_table, compared, left_out
from dialoscope.distract.scores import case_scores, chosen_scores, head_means, log_scores
from dialoscope.distract.sets import Case
from dialoscope.distract.settings import AttentionSettings
from dialoscope.model.answers import enough_memory
from dialoscope.model.protocol import DialogueModel, Reading, TooLong, read
from dialoscope.progress import Progress, Stages
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

AT_ONCE = 512  # cases that a model is asked about at a time, and that are kept as one portion
NUMBERS = ("log_distraction", "log_history", "log_first", "log_last", "log_likelihood")
HEADS = b"heads"
EMPTY = pa.schema([
    ("dialogue", pa.string()),
    *((name, pa.int64()) for name in ("turn", "distractions", "history_turns")),
    *((name, pa.float64()) for name in NUMBERS),
    ("tokens", pa.int64()),
]).empty_table()  # fmt: skip


def measure(
    corpus: Corpus | Sets | None = None,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: AttentionSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> AttentionResult:
    """Measure how much attention models give to distractions, relative to the real turns before the Query.

    The DAS ratio is the mean attention score of the distractions of a context over that of its History; 1 means that
    the model cannot tell them apart (Xing and Gulla, equations 7 and 8). Every model reads the same contexts, and the
    first one is compared with each other one. In position of a corpus, the sets of `make_sets` can be given.

    >>> result = measure(load("concierge"), models={"mine": "runs/mine"}, sets=["random-0.7"])      # doctest: +SKIP
    >>> result.scores()["mine/random-0.7/das_ratio_of_means"].value                                 # doctest: +SKIP
    0.81...
    """
    settings = with_options(settings, AttentionSettings, options)
    prepared = prepare(corpus, against, settings, models)
    stages = Stages(progress, len(prepared.models) * sum(map(len, prepared.sets)))
    rows, heads = [], list[Heads]()
    for name, model in prepared.models.items():
        for each in prepared.sets:
            table, sums = read_attention(model, each.cases, settings, work=work, progress=stages.next())
            rows.append(CaseRows(name, each.name, table))
            heads += [] if sums is None else [Heads(name, each.name, *sums)]
    return AttentionResult(
        settings=prepared.settings,
        parts=prepared.parts,
        used=prepared.used,
        counts={**skipped(prepared.skipped, left_out(rows)), "contexts": prepared.contexts},
        origin=prepared.origin,
        models=tuple((name, model.name) for name, model in prepared.models.items()),
        sets=prepared.about,
        cases=attention_table(rows),
        heads=tuple(heads),
        comparisons=tuple(compared(rows, prepared.origin)),
        pictures=tuple(pictures_of(prepared.models, prepared.distracting, settings, work=work)),
    )


def read_attention(
    model: DialogueModel,
    cases: Sequence[Case],
    settings: AttentionSettings,
    *,
    work: Path | None = None,
    progress: Progress | None = None,
) -> tuple[pa.Table, tuple[Any, Any] | None]:
    """A row for each case, and sums of scores by layer and head where there are several (see `Heads`)."""
    tables, done = [], 0
    for portion in attention_portions(cases, settings):
        tables.append(resumable(work, model, portion, partial(_scored, settings=settings)))
        done += len(portion.cases)
        if progress is not None:
            progress(done, len(cases))
    sums = [orjson.loads(each.schema.metadata[HEADS]) for each in tables if HEADS in (each.schema.metadata or {})]
    whole = pa.concat_tables([EMPTY, *(each.replace_schema_metadata(None) for each in tables)])
    if not sums:
        return whole, None
    distraction, history = np.sum([np.array(each, dtype=np.float64) for each in sums], axis=0)
    return whole, (distraction, history)


def attention_portions(cases: Sequence[Case], settings: AttentionSettings) -> Iterator[Portion]:
    """The portions that a set is measured in."""
    how = {"normalisation": settings.normalisation, "layer": settings.layer, "head": settings.head}
    return portions(cases, AT_ONCE, how)


def _scored(model: DialogueModel, cases: Sequence[Case], settings: AttentionSettings) -> pa.Table:
    """Scores and likelihoods of some cases; sums by head are in the table's metadata."""
    readings = _readings(model, cases)
    rows = [_row(case, reading, settings) for case, reading in zip(cases, readings, strict=True)]
    columns = {name: [row[position] for row in rows] for position, name in enumerate((*NUMBERS, "tokens"))}
    names = {
        "dialogue": [case.dialogue for case in cases],
        "turn": [case.turn for case in cases],
        "distractions": [len(case.distractions) for case in cases],
        "history_turns": [len(case.history) for case in cases],
    }
    sums = _head_sums(cases, readings, settings)
    metadata = {} if sums is None else {HEADS: orjson.dumps([each.tolist() for each in sums])}
    return pa.table({**names, **columns}).replace_schema_metadata(metadata)


def _readings(model: DialogueModel, cases: Sequence[Case]) -> list[Reading | None]:
    """What a model shows of each case; None for one that does not fit into its window."""
    positions = range(len(cases))
    with enough_memory(model):
        try:
            return [*_read(model, cases)]
        except TooLong as error:
            fitting = [position for position in positions if position not in error.parts]
            readings = dict(zip(fitting, _read(model, [cases[position] for position in fitting]), strict=True))
    return [readings.get(position) for position in positions]


def _read(model: DialogueModel, cases: Sequence[Case]) -> list[Reading]:
    return read(model, [case.context for case in cases], [case.response for case in cases])


def _row(case: Case, reading: Reading | None, settings: AttentionSettings) -> tuple[float, ...]:
    if reading is None:
        return (*[math.nan] * 4, 0.0, 0)  # no tokens: not part of any mean or perplexity
    scores = chosen_scores(reading.attention, settings.normalisation, settings.layer, settings.head)
    return (*case_scores(scores, case), reading.likelihood.total, reading.likelihood.tokens)


def _head_sums(
    cases: Sequence[Case], readings: Sequence[Reading | None], settings: AttentionSettings
) -> tuple[Any, Any] | None:
    """Sums over cases of the mean score on distractions and on History, in every layer and head."""
    shape = next((each.attention.log_share.shape[:2] for each in readings if each is not None), (1, 1))
    if math.prod(shape) == 1:
        return None
    distraction, history = np.zeros(shape), np.zeros(shape)
    for case, reading in zip(cases, readings, strict=True):
        if case.distractions and case.history and reading is not None:
            means = head_means(log_scores(reading.attention, normalisation=settings.normalisation), case)
            if not any(np.isnan(each).any() for each in means):
                distraction, history = distraction + means[0], history + means[1]
    return distraction, history
