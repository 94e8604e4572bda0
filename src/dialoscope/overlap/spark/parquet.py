"""Parquet as Spark reads it: dialogues in our own form or a column of texts, in the order that one process would see.

Spark cuts files into partitions as it likes, so order is not in the partitions: every row knows its file and its place
in it, and keys are made of these.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dialoscope.corpus.dialogue import split_rank
from dialoscope.corpus.load import Account, find_parts, name_of
from dialoscope.corpus.readers.tables import is_native
from dialoscope.corpus.shared_ids import qualified
from dialoscope.errors import CorpusError, UsageError, unknown_name
from dialoscope.overlap.sides import UNITS
from dialoscope.overlap.spark import shards
from dialoscope.overlap.spark.session import no_word_of_pandas
from dialoscope.overlap.tables import check_is_text, is_text, table_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What is wrong with a row, in the words of the readers of this process (`corpus.readers.tables`, `overlap.tables`).
WHY_NO_DIALOGUE = """CASE
    WHEN coalesce(size(turns), 0) < 1 THEN 'at least one turn, found none'
    WHEN id IS NULL OR exists(turns, turn -> turn.speaker IS NULL OR turn.text IS NULL)
    THEN 'an id, speakers and texts, found null'
    WHEN contains(id, char(0)) OR exists(turns, turn -> contains(concat(turn.speaker, turn.text), char(0)))
    THEN 'UTF-8 text, found a NUL character'
END"""
WHY_NO_TEXT = """CASE
    WHEN part_0 IS NULL THEN 'a text, found none.'
    WHEN contains(part_0, char(0)) THEN 'a text, found a NUL character.'
END"""


@dataclass(frozen=True)
class Parquet:
    """Files that Spark reads itself: dialogues in our own form, or tables with a column of texts.

    It has the name, the splits and the size of a corpus, so that splits are chosen by the same rule.
    """

    files: tuple[Path, ...]
    file_splits: tuple[str, ...]  # of each file, for dialogues that name none
    name: str
    column: str | None = None
    only: tuple[str, ...] = ()  # splits; none stands for all of them
    called: str = ""  # the split that all of it stands for, in place of its own
    beside: Parquet | None = None  # the other side; where they share an id, ids begin with the name of the split
    skipped: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)  # file -> why it is not read

    @cached_property
    def _counts(self) -> dict[str, int]:
        """Dialogues by split: only the column `split` is read here, or the number of rows."""
        counts: Counter[str] = Counter()
        for file, own in zip(self.files, self.file_splits, strict=True):
            if self.column is not None:
                counts[own] += pq.read_metadata(file).num_rows
                continue
            for batch in pq.ParquetFile(file).iter_batches(columns=["split"]):
                for row in pc.value_counts(batch.column(0)).to_pylist():
                    counts[row["values"] or own] += row["counts"]
        return {name: counts[name] for name in sorted(counts, key=split_rank)}

    @property
    def splits(self) -> dict[str, int]:
        """Number of dialogues by split, in corpus order."""
        return {name: count for name, count in self._counts.items() if name in (self.only or self._counts)}

    def __len__(self) -> int:
        return sum(self.splits.values())

    def split(self, *names: str) -> Parquet:
        """Only these splits; one that is missing is an error that names those present."""
        for name in names:
            if name not in self.splits:
                raise UsageError(f"No split '{name}' in {self.name}. Splits present: {', '.join(self.splits)}.")
        return replace(self, only=names)

    def __getitem__(self, index: slice) -> Parquet:
        raise UsageError("Spark reads these files whole: leave limit out, or read them with dialoscope.load.")


@dataclass(frozen=True)
class ParquetSides:
    """Training and test data of their own, as one corpus that Spark reads."""

    by_split: Mapping[str, Parquet]

    @property
    def name(self) -> str:
        """The names of both."""
        return " and ".join(data.name for data in self.by_split.values())

    @property
    def splits(self) -> dict[str, int]:
        """Number of dialogues by split."""
        return {split: len(data) for split, data in self.by_split.items()}

    @property
    def skipped(self) -> Mapping[str, int]:
        """Records that were not read, by reason."""
        return sum((Counter(data.skipped) for data in self.by_split.values()), Counter[str]())

    @property
    def ignored(self) -> Mapping[str, str]:
        """Files that were not read, and why."""
        return {file: why for data in self.by_split.values() for file, why in data.ignored.items()}

    def __len__(self) -> int:
        return sum(self.splits.values())

    def split(self, *names: str) -> Parquet:
        """One side; one that is missing is an error that names those present."""
        if len(names) != 1 or names[0] not in self.by_split:
            raise UsageError(f"No split '{','.join(names)}' in {self.name}. Splits present: train, test.")
        return self.by_split[names[0]]


@dataclass(frozen=True, eq=False)
class Units:
    """Units as Spark has them, and what they are called."""

    frame: DataFrame  # key, id, part_0 …
    name: str
    unit: str
    parts: int
    count: int | None = None  # units, where this process knows how many


def parquet_at(paths: Sequence[str], *, column: str | None = None) -> Parquet | None:
    """These paths as files that Spark can read, or None where some are something else, or given twice."""
    if column is not None:
        texts = [file for path in paths for file in table_files(Path(path).expanduser())]
        is_parquet = all(file.suffix == ".parquet" for file in texts) and not _has_twice(texts)
        return Parquet(tuple(texts), ("all",) * len(texts), name_of(paths), column) if is_parquet else None
    parts, ignored = find_parts(paths, None, Account("fail"))
    files = tuple(Path(part.label) for part in parts)
    if not all(part.format == "parquet" and _is_ours(pq.read_schema(part.label)) for part in parts):
        return None
    if _has_twice(files):
        return None
    return Parquet(files, tuple(part.split for part in parts), name_of(paths), ignored=ignored)


def _has_twice(files: Sequence[Path]) -> bool:
    """Rows are known by their file, so two of one file would be taken for each other."""
    return len(set(map(_at, files))) < len(files)


def _is_ours(schema: pa.Schema) -> bool:
    """Dialogues in our own form with texts as texts; ids that are numbers, say, are left to this process."""
    if not is_native(schema):
        return False
    turn = schema.field("turns").type.value_type
    kinds = [schema.field("id").type, schema.field("split").type, turn.field("speaker").type, turn.field("text").type]
    return all(map(is_text, kinds))


def sides_at(train: Sequence[str], test: Sequence[str], *, column: str | None = None) -> ParquetSides | None:
    """Training and test data of their own, or None where Spark cannot read both.

    As in `dialoscope.load`, several files are read whole, and of a folder with several splits the one of that name.
    """
    sides: dict[str, Parquet] = {}
    for split, paths in (("train", train), ("test", test)):
        data = parquet_at(paths, column=column)
        if data is None:
            return None
        are_files = len(paths) > 1 and all(Path(path).expanduser().is_file() for path in paths)
        chosen = data if are_files or len(data.splits) == 1 else data.split(split)
        sides[split] = replace(chosen, called=split)
    first, second = sides.values()
    return ParquetSides({"train": replace(first, beside=second), "test": replace(second, beside=first)})


def has_single_turns(session: SparkSession, source: Parquet) -> bool:
    """Whether every dialogue has one turn."""
    if source.column is not None:
        return True
    from pyspark.sql import functions as F

    rows = _rows(session, source, "coalesce(split, '') AS named_split", "turns")
    longest = rows.groupBy("file", "named_split").agg(F.max(F.size("turns")).alias("longest")).toArrow().to_pylist()
    own = {_at(file): split for file, split in zip(source.files, source.file_splits, strict=True)}
    splits = [group["named_split"] or own[unquote(urlparse(group["file"]).path)] for group in longest]
    kept = [group for group, split in zip(longest, splits, strict=True) if split in (source.only or splits)]
    return all(group["longest"] == 1 for group in kept)


def units_in(session: SparkSession, source: Parquet, *, unit: str, context_turns: int) -> Units:
    """Units with keys in the order of the corpus."""
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    if source.column is not None:
        return _texts(session, source, source.column, unit)
    dialogues, name = _dialogues(session, source)
    parts = 2 if unit == "sample" else 1
    schema = ", ".join(["key long, id string", *(f"part_{part} string" for part in range(parts))])
    work = partial(shards.units_of, unit=unit, context_turns=context_turns)
    with no_word_of_pandas():
        frame = dialogues.mapInArrow(partial(shards.on_partition, work), schema)
    return Units(frame, name, unit, parts)


def _dialogues(session: SparkSession, source: Parquet) -> tuple[DataFrame, str]:
    """Dialogues `place, id, split, turns` with an id of their own, as one process names them."""
    frame, kept = _selected(session, source)
    if source.beside is not None:
        others, _ = _selected(session, source.beside)
        if frame.join(others.select("id"), "id", "left_semi").limit(1).count():
            frame = frame.selectExpr("place", "concat(split, '/', id) AS id", "split", "turns")
    return _apart(session, frame), _named(source, kept)


def _selected(session: SparkSession, source: Parquet) -> tuple[DataFrame, list[dict[str, Any]]]:
    """Dialogues `place, id, split, turns`: train, validation, test, then other splits as they come."""
    rows = _rows(session, source, "id", "coalesce(split, '') AS named_split", "turns")
    groups = _counted(rows, source, WHY_NO_DIALOGUE, ":", longest="max(size(turns))")
    _check_lengths(source, groups)
    for group in groups:
        group["split"] = group["named_split"] or source.file_splits[group["number"]]
    order = sorted(dict.fromkeys(group["split"] for group in groups), key=split_rank)
    before, total = _rows_before(groups)
    for group in groups:
        group["base"] = order.index(group["split"]) * total + before[group["number"]]
    kept = [group for group in groups if group["split"] in (source.only or order)]
    kept = [{**group, "split": source.called or group["split"]} for group in kept]
    return _based(session, rows, kept).selectExpr("base + row AS place", "id", "split", "turns"), kept


def _check_lengths(source: Parquet, groups: Iterable[dict[str, Any]]) -> None:
    for group in groups:
        if group["longest"] > 1 << shards.TURN_BITS:
            raise UsageError(
                f"{source.files[group['number']]}: Spark takes dialogues of at most {1 << shards.TURN_BITS:,} turns, "
                f"found one of {group['longest']:,}. Cut it, or leave --engine spark out."
            )


def _apart(session: SparkSession, dialogues: DataFrame) -> DataFrame:
    """Dialogues with an id of their own, as `named_apart` gives it: the few that share one are named here."""
    from pyspark.sql import functions as F

    shared = dialogues.groupBy("id").count().where("count > 1").select("id")
    rows = dialogues.join(F.broadcast(shared), "id").select("place", "id", "split").orderBy("place").toArrow()
    if not len(rows):
        return dialogues
    names = qualified(rows["split"].to_pylist(), rows["id"].to_pylist())
    named = F.broadcast(session.createDataFrame(pa.table({"place": rows["place"], "name": names})))
    whole = dialogues.join(named, "place", "left")
    return whole.selectExpr("place", "coalesce(name, id) AS id", "split", "turns")


def _texts(session: SparkSession, source: Parquet, column: str, unit: str) -> Units:
    """Texts, named by their file and row as in one process."""
    for file in source.files:
        schema = pq.read_schema(file)
        if column not in schema.names:
            raise UsageError(f"{file}: no column '{column}'. Columns: {', '.join(schema.names) or 'none'}.")
        check_is_text(schema.field(column).type, f"{file}: column '{column}'")
    rows = _rows(session, source, f"`{column}` AS part_0", "'' AS named_split")
    groups = _counted(rows, source, WHY_NO_TEXT, f": column '{column}', row ")
    before, _ = _rows_before(groups)
    for group in groups:
        group["base"], group["split"] = before[group["number"]], str(source.files[group["number"]])
    name = {"turn": "concat(split, '#', row + 1, '#1') AS id"}.get(unit, "concat(split, '#', row + 1) AS id")
    frame = _based(session, rows, groups).selectExpr("base + row AS key", name, "part_0")
    if unit == "sample":  # a text has no response
        return Units(frame.selectExpr("*", "part_0 AS part_1").where("false"), _named(source, groups), unit, 2)
    return Units(frame, _named(source, groups), unit, 1)


# --- Files and rows ---------------------------------------------------------------------------------------------------


def _rows(session: SparkSession, source: Parquet, *columns: str) -> DataFrame:
    """Rows with the file they are in and their place in it."""
    # Spark takes [ and * in a name for a pattern.
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{_at(file)}") for file in source.files]
    place = ("_metadata.file_path AS file", "_metadata.row_index AS row")
    return session.read.parquet(*paths).selectExpr(*columns, *place)


def _at(file: Path) -> str:
    """Where a file is, as Hadoop writes it: without `..`, which leads out of where a link leads to."""
    return str(file.parent.resolve() / file.name if ".." in file.parts else file.absolute())


def _counted(rows: DataFrame, source: Parquet, why_not: str, between: str, **more: str) -> list[dict[str, Any]]:
    """Files and what splits they say they hold, in order, with a hash of the content; the first bad row is an error.

    `between` stands between a file and a row in its message.
    """
    from pyspark.sql import functions as F

    content = ", ".join(name for name in rows.columns if name != "file")
    sums = {"rows": "count(*)", "first": "min(row)", "code": f"bit_xor(xxhash64({content}))", **more}
    bad = f"FILTER (WHERE ({why_not}) IS NOT NULL)"
    sums |= {"bad": f"min(row) {bad}", "problem": f"min_by({why_not}, row) {bad}"}
    counted = rows.groupBy("file", "named_split").agg(*(F.expr(sum).alias(name) for name, sum in sums.items()))
    numbers = {_at(file): number for number, file in enumerate(source.files)}
    groups = [{**row, "number": numbers[unquote(urlparse(row["file"]).path)]} for row in counted.toArrow().to_pylist()]
    wrong = [(group["number"], group["bad"], group["problem"]) for group in groups if group["problem"]]
    for number, row, problem in sorted(wrong)[:1]:
        raise CorpusError(f"{source.files[number]}{between}{row + 1}: expected {problem}")
    return sorted(groups, key=lambda group: (group["number"], group["first"]))


def _rows_before(groups: Iterable[dict[str, Any]]) -> tuple[dict[int, int], int]:
    """How many rows stand in the files before each, and in all."""
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[group["number"]] = sizes.get(group["number"], 0) + group["rows"]
    ends = list(accumulate(sizes.values(), initial=0))
    return dict(zip(sizes, ends, strict=False)), ends[-1]


def _based(session: SparkSession, rows: DataFrame, groups: Sequence[dict[str, Any]]) -> DataFrame:
    """Rows with the base of their key; rows of other groups are left out."""
    from pyspark.sql import functions as F

    columns = {name: [group[name] for group in groups] for name in ("file", "named_split", "split", "base")}
    return rows.join(F.broadcast(session.createDataFrame(pa.table(columns))), ["file", "named_split"])


def _named(source: Parquet, groups: Sequence[dict[str, Any]]) -> str:
    """Name and fingerprint: not the one of a corpus in memory, which is made of bytes in order."""
    content = repr([(group["split"] if source.column is None else "", group["code"]) for group in groups])
    return f"{source.name}@{hashlib.sha256(content.encode()).hexdigest()[:12]}"
