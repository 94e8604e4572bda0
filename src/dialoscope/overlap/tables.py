"""A column of texts of Parquet, JSONL or CSV files: each text as a dialogue of one turn, with its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from dialoscope.corpus import Corpus
from dialoscope.corpus.columns import batch_of
from dialoscope.corpus.dialogue import SCHEMA
from dialoscope.corpus.load import name_of
from dialoscope.corpus.streams import BadRecord, Source, plain_name
from dialoscope.errors import CorpusError, UsageError

BLOCK_BYTES = 64 << 20  # a longer record is refused


@dataclass(frozen=True, eq=False)
class TextTable:
    """Texts as dialogues of one turn, named FILE#ROW, and by split the rows that they were read from."""

    corpus: Corpus
    rows: Mapping[str, pa.Table]


def read_texts(
    paths: Sequence[str | Path] = (),
    *,
    column: str,
    train: Sequence[str | Path] = (),
    test: Sequence[str | Path] = (),
) -> TextTable:
    """Read the texts of one column of files, or of folders of such files.

    `paths` are read as one split, `all`; `train` and `test` as the splits of these names.
    """
    if bool(paths) == bool(train or test) or bool(train) != bool(test):
        raise UsageError("Give one table, or both --train and --test.")
    given = {"all": paths} if paths else {"train": train, "test": test}
    rows, batches = {}, []
    for split, sources in given.items():
        files = [file for path in sources for file in table_files(Path(path).expanduser())]
        tables = [_read_table(file, column) for file in files]
        for file, table in zip(files, tables, strict=True):
            batches += _dialogues(file, table[column], split)
        rows[split] = pa.concat_tables(tables, promote_options="permissive")
    names = [name_of(sources) for sources in given.values()]
    return TextTable(Corpus(pa.Table.from_batches(batches, SCHEMA), name=" and ".join(names), format="column"), rows)


def _dialogues(file: Path, texts: pa.ChunkedArray, split: str) -> list[pa.RecordBatch]:
    """Each text as a dialogue of one turn, named by its file and its row, from 1."""
    batches, before = [], 0
    for chunk in texts.chunks:
        count = len(chunk)
        numbers = pa.array(np.arange(before + 1, before + count + 1)).cast(pa.string())
        ids = pc.binary_join_element_wise(str(file), numbers, "#")
        splits, speakers = (pa.array(np.full(count, word), pa.string()) for word in (split, ""))
        batches.append(
            batch_of(ids, splits, pa.array(np.arange(count + 1), pa.int32()), speakers, chunk.cast(pa.string()))
        )
        before += count
    return batches


def table_files(path: Path) -> list[Path]:
    """The tables at a path: itself, or those in a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _kind(file) in READERS and file.is_file())
        if not files:
            raise CorpusError(f"{path}: expected {ENDINGS} files in this folder, found none.")
        return files
    if not path.is_file():
        raise CorpusError(f"{path}: there is no such file.")
    if _kind(path) not in READERS:
        raise CorpusError(f"{path}: a column is read from {ENDINGS} files, found '{path.suffix}'. Leave --column out.")
    return [path]


def _kind(path: Path) -> str:
    return Path(plain_name(path)).suffix.lower()


def _read_table(path: Path, column: str) -> pa.Table:
    """The rows of one file; its column holds a text in each."""
    try:
        table = READERS[_kind(path)](path, column)
    except (pa.ArrowException, OSError, BadRecord) as error:
        found = " ".join(str(error).split())
        raise CorpusError(f"{path}: expected a {_kind(path)} table, found something else: {found}") from error
    if column not in table.column_names:
        raise UsageError(f"{path}: no column '{column}'. Columns: {', '.join(table.column_names) or 'none'}.")
    where, texts = f"{path}: column '{column}'", table[column]
    check_is_text(texts.type, where)
    for is_wrong, problem in ((pc.is_null(texts), "none"), (pc.match_substring(texts, "\0"), "a NUL character")):
        wrong = np.flatnonzero(pc.fill_null(is_wrong, False).to_numpy())
        if len(wrong):
            raise CorpusError(f"{where}, row {wrong[0] + 1}: expected a text, found {problem}.")
    return table


def check_is_text(kind: pa.DataType, where: str) -> None:
    """A column of texts, or one line about what it holds."""
    if not is_text(kind):
        raise CorpusError(f"{where}: expected texts, found {kind}. Name another column.")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parquet(path: Path, column: str) -> pa.Table:
    return pq.read_table(path)


def _json(path: Path, column: str) -> pa.Table:
    with Source(path).opened() as (stream, _):
        return pa.json.read_json(stream, read_options=pa.json.ReadOptions(block_size=BLOCK_BYTES))


def _csv(path: Path, column: str) -> pa.Table:
    delimiter = "," if _kind(path) == ".csv" else "\t"
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    # "1" in a column of texts is a text, and so is "NA".
    convert = pa.csv.ConvertOptions(column_types={column: pa.string()}, strings_can_be_null=False)
    with Source(path).opened() as (stream, _):
        return pa.csv.read_csv(stream, parse_options=parse, convert_options=convert)


READERS: dict[str, Callable[[Path, str], pa.Table]] = {
    ".parquet": _parquet,
    ".jsonl": _json,
    ".ndjson": _json,
    ".csv": _csv,
    ".tsv": _csv,
}
ENDINGS = ", ".join(READERS)
