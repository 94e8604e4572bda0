"""A score for every turn of a corpus, in portions that a killed run does not lose, written as Parquet."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from turnwise.atomic import whole_file
from turnwise.corpus import Corpus
from turnwise.corpus.turns import merged
from turnwise.engage.predictor import Predictor

AT_ONCE = 1024  # dialogues scored and kept together
SCHEMA = pa.schema(
    [("dialogue", pa.string()), ("split", pa.string()), ("turn", pa.int32()), ("speaker", pa.string()),
     ("text", pa.string()), ("score", pa.float32())]
)  # fmt: skip
Progress = Callable[[int, int], None]  # dialogues done, dialogues in all


def score_corpus(predictor: Predictor, corpus: Corpus, *, progress: Progress | None = None) -> Iterator[pa.Table]:
    """Tables of scores, a portion of dialogues each; consecutive messages of one speaker are one turn."""
    for first in range(0, len(corpus), AT_ONCE):
        part = corpus[first : first + AT_ONCE]
        yield scored(predictor, part)
        if progress is not None:
            progress(min(first + AT_ONCE, len(corpus)), len(corpus))


def scored(predictor: Predictor, corpus: Corpus) -> pa.Table:
    """The scores of all turns at once."""
    dialogues = [merged(one) for one in corpus]
    scores = predictor.predict([one.texts for one in dialogues])
    turns = [turn for one in dialogues for turn in one.turns]
    lengths = [len(one.turns) for one in dialogues]
    columns = [
        np.repeat([one.id for one in dialogues], lengths).tolist(),
        np.repeat([one.split for one in dialogues], lengths).tolist(),
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
    """Score a corpus into a Parquet file; portions wait beside it, and a later run takes them up."""
    work = out.with_name(f".{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    with whole_file(out, overwrite=overwrite) as unfinished, pq.ParquetWriter(unfinished, SCHEMA) as writer:
        for first in range(0, len(corpus), AT_ONCE):
            writer.write_table(_portion(predictor, corpus[first : first + AT_ONCE], work))
            if progress is not None:
                progress(min(first + AT_ONCE, len(corpus)), len(corpus))
    shutil.rmtree(work)


def _portion(predictor: Predictor, corpus: Corpus, work: Path) -> pa.Table:
    key = hashlib.blake2b(f"{predictor.name}{corpus.fingerprint}".encode(), digest_size=12).hexdigest()
    path = work / f"{key}.parquet"
    if not path.is_file():
        with whole_file(path) as unfinished:
            pq.write_table(scored(predictor, corpus), unfinished)
    return pq.read_table(path)
