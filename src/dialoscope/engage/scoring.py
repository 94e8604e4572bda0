"""A score for every turn of a corpus, in portions that an interrupted run does not lose, written as Parquet."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import named_splits
from dialoscope.corpus.turns import conversation
from dialoscope.engage.examples import runs
from dialoscope.engage.predictors import open_predictor
from dialoscope.engage.settings import ScoreSettings
from dialoscope.errors import UsageError
from dialoscope.files import whole_file
from dialoscope.progress import Progress
from dialoscope.settings import with_options

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor

AT_ONCE = 1024  # dialogues scored and kept together, at most,
TURNS_AT_ONCE = 16_384  # and messages, unless one dialogue alone has more
SCHEMA = pa.schema(
    [("dialogue", pa.string()), ("split", pa.string()), ("turn", pa.int32()), ("speaker", pa.string()),
     ("text", pa.string()), ("score", pa.float32())]
)  # fmt: skip


def score(
    corpus: Corpus,
    *,
    model: Any,
    settings: ScoreSettings | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> pa.Table:
    """Score every turn of a corpus by a predictor: how much of the conversation is expected to remain after it.

    `model` is a path or a loaded predictor. `write_scores` writes a corpus that is too large for memory to a file.

    >>> score(load("chats.jsonl"), model="engaged")["score"]                               # doctest: +SKIP
    """
    settings = with_options(settings, ScoreSettings, options)
    if not isinstance(corpus, Corpus):
        raise UsageError(f"score takes a Corpus, found {type(corpus).__name__}. Load it with dialoscope.load.")
    predictor, chosen = open_predictor(model, settings), chosen_dialogues(corpus, settings)
    tables = score_corpus(predictor, chosen, work=work, progress=progress)
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def chosen_dialogues(corpus: Corpus, settings: ScoreSettings) -> Corpus:
    """The dialogues that get scores."""
    corpus = named_splits(corpus, settings.split) if settings.split else corpus
    return corpus if settings.limit is None else corpus[: settings.limit]


def portions(corpus: Corpus) -> Iterator[Corpus]:
    """Dialogues in order, some at a time; they are views of the corpus's own columns, and nothing is copied."""
    starts = np.concatenate([[0], np.cumsum(corpus.turns_per_dialogue)])
    for first, stop in runs(starts, turns=TURNS_AT_ONCE, dialogues=AT_ONCE):
        yield replace(corpus, table=corpus.table.slice(first, stop - first))


def score_corpus(
    predictor: Predictor, corpus: Corpus, *, work: Path | None = None, progress: Progress | None = None
) -> Iterator[pa.Table]:
    """Tables of scores, a portion of dialogues each; what counts as a turn, `conversation` says.

    Memory is that of a portion, however large the corpus is. Where there is a folder for `work`, portions are kept in
    it, and those that an earlier run kept are read from there.
    """
    done = 0
    for part in portions(corpus):
        yield scored(predictor, part) if work is None else _kept(predictor, part, work)
        done += len(part)
        if progress is not None:
            progress(done, len(corpus))


def scored(predictor: Predictor, corpus: Corpus) -> pa.Table:
    """The scores of all turns at once; equal texts are encoded once."""
    dialogues = list(map(conversation, corpus))
    scores = predictor.predict([dialogue.texts for dialogue in dialogues])
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    lengths = [len(dialogue.turns) for dialogue in dialogues]
    columns = [
        np.repeat([dialogue.id for dialogue in dialogues], lengths).tolist(),
        np.repeat([dialogue.split for dialogue in dialogues], lengths).tolist(),
        [place for length in lengths for place in range(1, length + 1)],
        [turn.speaker for turn in turns],
        [turn.text for turn in turns],
        np.concatenate([np.zeros(0, np.float32), *scores]),
    ]
    return pa.table(columns, schema=SCHEMA)


def write_scores(
    predictor: Predictor,
    corpus: Corpus,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Score a corpus into a Parquet file; portions wait beside it, and a later run uses them."""
    work = work_beside(out)
    work.mkdir(parents=True, exist_ok=True)
    with whole_file(out, overwrite=overwrite) as unfinished, pq.ParquetWriter(unfinished, SCHEMA) as writer:
        for table in score_corpus(predictor, corpus, work=work, progress=progress):
            writer.write_table(table)  # a row group each
    shutil.rmtree(work)


def work_beside(out: Path) -> Path:
    """Where portions wait while a file of scores is made."""
    return out.with_name(f".{out.name}.work")


def portion_path(predictor: Predictor, corpus: Corpus, work: Path) -> Path:
    """Where the scores of a portion wait: by weights, settings and precision, and by every word."""
    key = hashlib.blake2b(f"{predictor.name}{corpus.fingerprint}".encode(), digest_size=12).hexdigest()
    return work / f"{key}.parquet"


def _kept(predictor: Predictor, corpus: Corpus, work: Path) -> pa.Table:
    path = portion_path(predictor, corpus, work)
    if not path.is_file():
        with whole_file(path) as unfinished:
            pq.write_table(scored(predictor, corpus), unfinished)
    return pq.read_table(path)
