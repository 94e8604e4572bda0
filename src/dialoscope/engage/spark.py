"""Scoring on Spark: dialogues of a table go to the workers as Arrow batches, each of which loads the predictor once."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import dataset

from dialoscope.errors import CorpusError, OutputError, UsageError
from dialoscope.files import contents, whole_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dialoscope.engage.predictor import Predictor

SCHEMA = "dialogue string, split string, turn int, speaker string, text string, score float"
NO_DIALOGUE = (
    "id IS NULL OR coalesce(size(turns), 0) < 1 OR exists(turns, turn -> turn.speaker IS NULL OR turn.text IS NULL)"
)


def score_frame(dialogues: DataFrame, model: str | Path, **options: Any) -> DataFrame:
    """A row for every turn, as `score_corpus` has them, from dialogues in the columns of a Dialoscope Parquet corpus.

    The folder of the model must be where every worker can read it. The options are `device`, and those of
    `Predictor.using`: `dtype` and `batch_size`.
    """
    work = partial(_score, str(Path(model).resolve()), tuple(options.items()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # it has no part here
        return dialogues.mapInArrow(work, SCHEMA)


def _score(
    model: str, options: tuple[tuple[str, Any], ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    from dialoscope.corpus import Corpus
    from dialoscope.engage.scoring import score_corpus

    for batch in batches:
        corpus = Corpus(pa.Table.from_batches([batch]), "spark")
        for table in score_corpus(_loaded(model, options), corpus):  # Spark's batches are larger than ours
            yield from table.to_batches()


@cache  # a worker serves many partitions
def _loaded(model: str, options: tuple[tuple[str, Any], ...]) -> Predictor:
    from dialoscope.engage.storage import load

    given = dict(options)
    return load(model, device=given.pop("device", "cpu")).using(**given)


# --- Files ------------------------------------------------------------------------------------------------------------


def score_files(
    session: SparkSession,
    files: Mapping[Path, str],
    model: str | Path,
    out: Path,
    *,
    only: Sequence[str] = (),
    overwrite: bool = False,
    **options: Any,
) -> dict[str, int]:
    """Score Parquet files of dialogues into a folder of Parquet files, whole or not at all; what was counted.

    files: each with the split of dialogues that name none. Rows come in no order: `dialogue` and `turn` tell it.
    """
    dialogues = _dialogues(session, files, only)
    with whole_folder(out, overwrite=overwrite, check=_check_scores) as unfinished:
        counts = _written(score_frame(dialogues, model, **options), unfinished, out)
    return {"dialogues": dialogues.count(), **counts}


def _dialogues(session: SparkSession, files: Mapping[Path, str], only: Sequence[str]) -> DataFrame:
    by_split: dict[str, list[str]] = {}
    for file, split in files.items():
        # Spark takes [ and * in a name for a pattern.
        by_split.setdefault(split, []).append(re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{file.absolute()}"))
    frames = [
        session.read.parquet(*some).selectExpr(
            "id", f"coalesce(nullif(split, ''), '{split}') AS split", "CAST(NULL AS string) AS labels", "turns"
        )
        for split, some in by_split.items()
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    if whole.where(NO_DIALOGUE).head(1):
        raise CorpusError(f"{next(iter(files))}: expected an id, turns, speakers and texts in every row, found null.")
    if not only:
        return whole
    present = sorted(row["split"] for row in whole.select("split").distinct().collect())
    for name in only:
        if name not in present:
            raise UsageError(
                f"There is no {name} split. Found: {', '.join(present)}. Name another with split (--split)."
            )
    return whole.where(whole["split"].isin(list(only)))


def _written(scores: DataFrame, unfinished: Path, out: Path) -> dict[str, int]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counted = scores.observe(seen, F.count(F.lit(1)).alias("turns"))
    counted.write.mode("append").parquet(f"file://{unfinished.absolute()}")
    for extra in [*unfinished.glob(".*.crc"), *unfinished.glob("_SUCCESS")]:
        extra.unlink()
    found = dataset.dataset(unfinished, format="parquet").count_rows()
    if found != seen.get["turns"]:
        raise OutputError(
            f"{out}: Spark wrote {seen.get['turns']:,} scores, and {found:,} are found here. Give a folder on a disk "
            "that all its machines share."
        )
    return {"turns": found}


def _check_scores(folder: Path) -> None:
    """Only a folder of scores is replaced."""
    others = sorted(name for name in contents(folder) if not name.endswith(".parquet"))
    if others:
        raise OutputError(f"{folder}: expected a folder of scores to replace, found {others[0]} in it. Give a new one.")
