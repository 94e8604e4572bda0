"""A column of texts out of Parquet, JSONL or CSV files, with the rows it stands in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from dialoscope.corpus.streams import BadRecord, Source, plain_name
from dialoscope.errors import CorpusError, UsageError
from dialoscope.overlap.sides import Places, Side, checked_texts, text_side

BLOCK_BYTES = 64 << 20  # a longer record is refused


def read_texts(paths: Sequence[str | Path], *, column: str, limit: int | None = None, seed: int | None = None) -> Side:
    """The texts of one column of files or of folders of such files; a unit is named by its file and row."""
    files = [file for path in paths for file in table_files(Path(path).expanduser())]
    tables = [_with_texts(file, column) for file in files]
    rows = pa.concat_tables(tables, promote_options="permissive")
    names = [_names(file, len(table)) for file, table in zip(files, tables, strict=True)]
    ids = pa.chunked_array(names, pa.string())
    if limit is not None:
        places = pa.array(_drawn(len(rows), limit, seed))
        ids, rows = ids.take(places), rows.take(places)
    name = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
    return text_side(rows[column], name=name, ids=ids, rows=rows)


def _drawn(count: int, limit: int, seed: int | None) -> Places:
    """The first rows, or with a seed a random draw that keeps their order."""
    order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    return np.sort(order[:limit])


def table_files(path: Path) -> list[Path]:
    """The tables at a path: itself, or those in a folder."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if _kind(file) in READERS and file.is_file())
        if not found:
            raise CorpusError(f"{path}: expected {ENDINGS} files in this folder, found none.")
        return found
    if not path.is_file():
        raise CorpusError(f"{path}: there is no such file.")
    if _kind(path) not in READERS:
        raise CorpusError(f"{path}: a column is read from {ENDINGS} files, found '{path.suffix}'. Leave --column out.")
    return [path]


def _kind(path: Path) -> str:
    return Path(plain_name(path)).suffix.lower()


def _names(path: Path, count: int) -> pa.Array:
    return pc.binary_join_element_wise(str(path), pa.array(np.arange(1, count + 1)).cast(pa.string()), "#")


def _with_texts(path: Path, column: str) -> pa.Table:
    """The rows of one file; its column holds a text in each."""
    try:
        table = READERS[_kind(path)](path, column)
    except (pa.ArrowException, OSError, BadRecord) as error:
        found = " ".join(str(error).split())
        raise CorpusError(f"{path}: expected a {_kind(path)} table, found something else: {found}") from error
    if column not in table.column_names:
        raise UsageError(f"{path}: no column '{column}'. Columns: {', '.join(table.column_names) or 'none'}.")
    checked_texts(table[column], f"{path}: column '{column}'")
    return table


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
