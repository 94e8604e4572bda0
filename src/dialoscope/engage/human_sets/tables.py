"""Tables of contexts, responses and a column for each annotator: CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dialoscope.corpus.formats import detect
from dialoscope.corpus.readers.tables import CONTEXT, RESPONSE, column_of, is_native, parquet_batches
from dialoscope.corpus.readers.text import END, split_marked
from dialoscope.corpus.streams import (
    BadRecord,
    Record,
    Source,
    csv_records,
    json_records,
    plain_name,
    shown,
    why_not_text,
)
from dialoscope.engage.human_sets.items import Rated, as_float, dialogues_of, is_gap, present, set_of
from dialoscope.engage.human_sets.rated import HumanSet, Turns
from dialoscope.errors import CorpusError, UsageError, unknown_name
from dialoscope.metrics.pairs import DIALOGUE_COLUMNS

Some = TypeVar("Some")

CSV, JSON, PARQUET = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson", ".json"), (".parquet", ".pq")
NO_RATINGS = ("", "id", "split", "index", "unnamed: 0", *DIALOGUE_COLUMNS)  # columns that number or name the rows
MOST_NAMED = 10  # annotators that are listed by name


def is_table(path: Path) -> bool:
    """Whether a file is a table of contexts, responses and annotators, and no format of its own."""
    kind = Path(plain_name(path)).suffix.lower()
    if path.is_dir() or kind not in (*CSV, *JSON, *PARQUET):
        return False
    if kind in PARQUET:
        first = next(_checked(path, parquet_batches(Source(path))), None)
        return first is None or not is_native(first.schema)
    try:
        found = detect(Source(path))
    except BadRecord:  # a list of turns as the context is nothing that the corpus readers know
        return True
    return found in ("pairs", "json-pairs", "ubuntu", "text") or (kind in CSV and found != "dailydialog-human")


def from_table(path: Path, metrics: Sequence[str], annotators: Sequence[str], name: str) -> HumanSet:
    """The rated turns of a table, and a note of who was read as an annotator."""
    rows = list(_checked(path, _rows(path)))
    if not rows:
        raise UsageError(f"{path}: expected rows with a context, a response and ratings, found none.")
    columns = list(dict.fromkeys(name for row in rows for name in row.value))
    texts = _needed(columns, CONTEXT, path), _needed(columns, RESPONSE, path)
    for metric in metrics:
        if metric not in columns:
            raise unknown_name("column", metric, columns)
    free = [one for one in columns if one not in (*texts, *metrics)]
    people = _named(rows, free, annotators, metrics, path) or _with_numbers(rows, free, path)
    items = list(_table_items(rows, columns, texts, people, metrics, path))
    kept = [one for one in items if one.ratings]
    left_out = {"no rating": len(items) - len(kept)} if len(kept) < len(items) else {}
    built = set_of(name, kept, metrics)
    unread = [one for one in free if one not in people and one.lower() not in NO_RATINGS]
    return replace(built, note=" ".join(_table_notes(built, unread, bool(annotators))), left_out=left_out)


def _named(
    rows: Sequence[Record], free: Sequence[str], annotators: Sequence[str], metrics: Sequence[str], path: Path
) -> list[str]:
    """The annotators that were asked for, each of whom rated something."""
    for one in annotators:
        if one in metrics:
            raise UsageError(f"{path}: column '{one}' was given as an annotator and as a metric. Expected one of them.")
        if one not in free:
            raise unknown_name("annotator", one, free)
        if not _has_numbers(rows, one):
            raise UsageError(f"{path}: expected ratings by annotator '{one}', found no numbers in that column.")
    return list(dict.fromkeys(annotators))


def _with_numbers(rows: Sequence[Record], free: Sequence[str], path: Path) -> list[str]:
    """Columns of numbers that may be annotators, where none were named."""
    people = [one for one in free if one.lower() not in NO_RATINGS and _has_numbers(rows, one)]
    if not people:
        found = ", ".join(dict.fromkeys(name for row in rows for name in row.value))
        raise UsageError(f"{path}: expected a column of numbers for each annotator. Columns: {found}.")
    return people


def _table_notes(rated: HumanSet, unread: Sequence[str], is_named: bool) -> Iterator[str]:
    """Who was read as an annotator, whether they use one scale, and what was not read."""
    people = rated.annotators
    more = f" and {len(people) - MOST_NAMED} more" if len(people) > MOST_NAMED else ""
    yield f"Annotators read: {', '.join(people[:MOST_NAMED])}{more}."
    largest = np.nanmax(np.abs(rated.ratings), axis=0)  # (annotators,)
    least, most = int(largest.argmin()), int(largest.argmax())
    if largest[most] > 2 * largest[least]:
        low, high = np.nanmin(rated.ratings, axis=0), np.nanmax(rated.ratings, axis=0)
        shown = ", ".join(f"{people[one]} {low[one]:g} to {high[one]:g}" for one in (least, most))
        yield f"Their ranges differ ({shown}): where a column is no annotator, name the annotators or the metrics."
    if unread:
        yield f"Columns {'' if is_named else 'without numbers '}that were not read: {', '.join(unread)}."


def _needed(columns: Sequence[str], wanted: tuple[str, ...], path: Path) -> str:
    found = column_of(columns, wanted)
    if found is None:
        raise UsageError(f"{path}: no column '{wanted[0]}'. Columns: {', '.join(columns) or 'none'}.")
    return found


def _table_items(
    rows: Sequence[Record],
    columns: Sequence[str],
    texts: tuple[str, str],
    people: Sequence[str],
    metrics: Sequence[str],
    path: Path,
) -> Iterator[Rated]:
    turns = [_turns(row, *texts, f"{path}:{row.line}") for row in rows]
    names = _table_dialogues(rows, turns, column_of(columns, DIALOGUE_COLUMNS))
    for said, name, row in zip(turns, names, rows, strict=True):
        ratings, scores = (
            present({one: row.value.get(one) for one in some}, f"{path}:{row.line}: column")
            for some in (people, metrics)
        )
        yield Rated(said, name, ratings, scores)


def _table_dialogues(rows: Sequence[Record], turns: Sequence[Turns], column: str | None) -> list[str]:
    """The dialogue of each row by its id; one without an id goes with rows of the same turns, or is by itself."""
    found = dialogues_of(turns)
    if column is None:
        return found
    given = [None if is_gap(row.value.get(column)) else str(row.value[column]) for row in rows]
    ids: dict[str, str] = {}
    for text, name in zip(found, given, strict=True):
        if name is not None:
            ids.setdefault(text, name)
    return [ids.get(text, text) if name is None else name for text, name in zip(found, given, strict=True)]


def _turns(row: Record, context: str, response: str, where: str) -> Turns:
    before = row.value.get(context)
    if not isinstance(before, list):
        before = _split(_text(before, context, where, "text or a list of turns"))
    said = [_text(turn, context, where) for turn in before]
    return (*said, _text(row.value.get(response), response, where))


def _split(text: str) -> list[str]:
    """Turns of a context in one text: between `__eou__` marks, or line by line."""
    pieces = split_marked(text) if END in text else text.split("\n")
    return [piece.strip() for piece in pieces if piece.strip()]


def _text(value: Any, column: str, where: str, expected: str = "text") -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected {expected} in '{column}', found {shown(str(value))}.")
    if problem := why_not_text(value):
        raise UsageError(f"{where}: expected UTF-8 text in '{column}', found {problem}.")
    return value


def _has_numbers(rows: Sequence[Record], column: str) -> bool:
    """Whether any value is a number: a column of nothing but words names something, and rates nothing."""
    values = [row.value.get(column) for row in rows]
    return any(as_float(value) is not None for value in values if not is_gap(value))


def _rows(path: Path) -> Iterator[Record | BadRecord]:
    source, kind = Source(path), Path(plain_name(path)).suffix.lower()
    if kind in CSV:
        yield from csv_records(source, delimiter="," if kind == ".csv" else "\t")
    elif kind in JSON:
        yield from json_records(source)
    else:
        rows = (row for batch in parquet_batches(source) for row in batch.to_pylist())
        yield from (Record(row, number) for number, row in enumerate(rows, 1))


def _checked(path: Path, items: Iterable[Some | BadRecord]) -> Iterator[Some]:
    """Sound records; the first bad one ends the reading, with its line."""
    try:
        for item in items:
            if isinstance(item, BadRecord):
                raise item
            if isinstance(item, Record) and not isinstance(item.value, dict):
                raise BadRecord("a row as a JSON object", shown(str(item.value)), item.line)
            yield item
    except BadRecord as bad:
        raise CorpusError(f"{path}:{bad.line}: {bad}." if bad.line else f"{path}: {bad}.") from bad
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}.") from error
