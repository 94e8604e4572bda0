"""Parquet as Spark reads it: dialogues in our own form or a column of texts, in the order that one process would see.

Spark cuts files into partitions as it likes, so order is not in the partitions: every row knows its file and its place
in it, and keys are made of these.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from turnwise.corpus.dialogue import split_rank
from turnwise.corpus.load import Account, find_parts, name_of
from turnwise.corpus.readers.tables import is_native
from turnwise.errors import CorpusError, UsageError, unknown_name
from turnwise.overlap.sides import UNITS
from turnwise.overlap.spark import shards
from turnwise.overlap.spark.session import no_word_of_pandas
from turnwise.overlap.tables import table_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_DIALOGUE = "coalesce(id, '') = '' OR coalesce(size(turns), 0) < 1 OR exists(turns, turn -> turn.text IS NULL)"


@dataclass(frozen=True)
class Parquet:
    """Files that Spark reads itself: dialogues in our own form, or tables with a column of texts."""

    files: tuple[Path, ...]
    splits: tuple[str, ...]  # of each file, for dialogues that name none
    name: str
    column: str | None = None
    only: tuple[str, ...] = ()  # splits; none stands for all of them

    def split(self, *names: str) -> Parquet:
        """Only these splits; one that is missing is an error once Spark has looked."""
        return replace(self, only=names)


@dataclass(frozen=True, eq=False)
class Units:
    """Units as Spark has them, and what they are called."""

    frame: DataFrame  # key, id, part_0 …
    name: str
    unit: str
    parts: int


def parquet_at(paths: Sequence[str], *, column: str | None = None) -> Parquet | None:
    """These paths as files that Spark can read, or None where some are something else."""
    if column is not None:
        texts = [file for path in paths for file in table_files(Path(path).expanduser())]
        is_parquet = all(file.suffix == ".parquet" for file in texts)
        return Parquet(tuple(texts), ("",) * len(texts), name_of(paths), column) if is_parquet else None
    parts, _ = find_parts(paths, None, Account("fail"))
    files = tuple(Path(part.label) for part in parts)
    if not all(part.format == "parquet" and is_native(pq.read_schema(part.label)) for part in parts):
        return None
    return Parquet(files, tuple(part.split for part in parts), name_of(paths))


def units_in(session: SparkSession, given: Parquet, *, unit: str, context_turns: int) -> Units:
    """Units with keys in the order of the corpus."""
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    if given.column is not None:
        return _texts(session, given, given.column)
    dialogues, name = _dialogues(session, given)
    parts = 2 if unit == "sample" else 1
    schema = ", ".join(["key long, id string", *(f"part_{part} string" for part in range(parts))])
    work = partial(shards.units_of, unit=unit, context_turns=context_turns)
    with no_word_of_pandas():
        frame = dialogues.mapInArrow(partial(shards.on_partition, work), schema)
    return Units(frame, name, unit, parts)


def _dialogues(session: SparkSession, given: Parquet) -> tuple[DataFrame, str]:
    """Dialogues `place, id, split, turns`: train, validation, test, then other splits as they come."""
    rows = _rows(session, given, "id", "coalesce(split, '') AS said", "turns")
    found = _counted(rows, given, NO_DIALOGUE, "an id, and turns with a text each")
    for group in found:
        group["split"] = group["said"] or given.splits[group["number"]]
    order = sorted(dict.fromkeys(group["split"] for group in found), key=split_rank)
    missing = [name for name in given.only if name not in order]
    if missing:
        raise UsageError(f"No split '{missing[0]}' in {given.name}. Splits present: {', '.join(order)}.")
    before, total = _rows_before(found)
    for group in found:
        group["base"] = order.index(group["split"]) * total + before[group["number"]]
    kept = [group for group in found if group["split"] in (given.only or order)]
    frame = _based(session, rows, kept).selectExpr("base + row AS place", "id", "split", "turns")
    return frame, _named(given, kept)


def _texts(session: SparkSession, given: Parquet, column: str) -> Units:
    """Texts, named by their file and row as in one process."""
    for file in given.files:
        names = pq.read_schema(file).names
        if column not in names:
            raise UsageError(f"{file}: no column '{column}'. Columns: {', '.join(names)}.")
    rows = _rows(session, given, f"`{column}` AS part_0", "'' AS said")
    found = _counted(rows, given, "part_0 IS NULL", "a text")
    before, _ = _rows_before(found)
    for group in found:
        group["base"], group["split"] = before[group["number"]], str(given.files[group["number"]])
    frame = _based(session, rows, found).selectExpr(
        "base + row AS key", "concat(split, '#', row + 1) AS id", "CAST(part_0 AS string) AS part_0"
    )
    return Units(frame, _named(given, found), "text", 1)


# --- Files and rows ---------------------------------------------------------------------------------------------------


def _rows(session: SparkSession, given: Parquet, *columns: str) -> DataFrame:
    """Rows with the file they are in and their place in it."""
    # Spark takes [ and * in a name for a pattern.
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{file.absolute()}") for file in given.files]
    place = ("_metadata.file_path AS file", "_metadata.row_index AS row")
    return session.read.parquet(*paths).selectExpr(*columns, *place)


def _counted(rows: DataFrame, given: Parquet, is_bad: str, wanted: str) -> list[dict[str, Any]]:
    """Files and what splits they say they hold, in order, with a hash of the content; a bad row is an error."""
    from pyspark.sql import functions as F

    content = ", ".join(name for name in rows.columns if name != "file")
    sums = {"rows": "count(*)", "first": "min(row)", "bad": f"sum(CAST({is_bad} AS int))"}
    sums["code"] = f"bit_xor(xxhash64({content}))"
    groups = rows.groupBy("file", "said").agg(*(F.expr(sum).alias(name) for name, sum in sums.items()))
    numbers = {str(file.absolute()): number for number, file in enumerate(given.files)}
    found = [{**row, "number": numbers[unquote(urlparse(row["file"]).path)]} for row in groups.toArrow().to_pylist()]
    for group in found:
        if group["bad"]:
            file = given.files[group["number"]]
            raise CorpusError(f"{file}: expected {wanted} in every row, found {group['bad']} rows without.")
    return sorted(found, key=lambda group: (group["number"], group["first"]))


def _rows_before(found: Iterable[dict[str, Any]]) -> tuple[dict[int, int], int]:
    """How many rows stand in the files before each, and in all."""
    sizes: dict[int, int] = {}
    for group in found:
        sizes[group["number"]] = sizes.get(group["number"], 0) + group["rows"]
    ends = list(accumulate(sizes.values(), initial=0))
    return dict(zip(sizes, ends, strict=False)), ends[-1]


def _based(session: SparkSession, rows: DataFrame, groups: Sequence[dict[str, Any]]) -> DataFrame:
    """Rows with the base of their key; rows of other groups are left out."""
    from pyspark.sql import functions as F

    columns = {name: [group[name] for group in groups] for name in ("file", "said", "split", "base")}
    return rows.join(F.broadcast(session.createDataFrame(pa.table(columns))), ["file", "said"])


def _named(given: Parquet, groups: Sequence[dict[str, Any]]) -> str:
    """Name and fingerprint: not the one of a corpus in memory, which is made of bytes in order."""
    content = repr([(group["split"] if given.column is None else "", group["code"]) for group in groups])
    return f"{given.name}@{hashlib.sha256(content.encode()).hexdigest()[:12]}"
