"""Scoring on Spark: dialogues of a table go to the workers as Arrow batches, each of which loads the predictor once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from turnwise.engage.predictor import Predictor

SCHEMA = "dialogue string, split string, turn int, speaker string, text string, score float"


def score_frame(dialogues: DataFrame, model: str | Path) -> DataFrame:
    """A row for every turn, as `score_corpus` has them, from dialogues in the columns of a Turnwise Parquet corpus.

    The folder of the model must be where every worker can read it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # it has no part here
        return dialogues.mapInArrow(partial(_score, str(Path(model).resolve())), SCHEMA)


def _score(model: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from turnwise.corpus import Corpus
    from turnwise.engage.scoring import scored

    for batch in batches:
        corpus = Corpus(pa.Table.from_batches([batch]), "spark")
        yield from scored(_loaded(model), corpus).to_batches()


@cache  # a worker serves many partitions
def _loaded(model: str) -> Predictor:
    from turnwise.engage.storage import load

    return load(model)
