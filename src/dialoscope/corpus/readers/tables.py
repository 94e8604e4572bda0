"""Tables: context-response pairs as CSV or TSV, Parquet of any shape we know, and lists of utterances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.corpus.dialogue import SCHEMA, TURN, Dialogue
from dialoscope.corpus.readers import Item, Parser, alternate, parsed
from dialoscope.corpus.readers.text import END, split_marked
from dialoscope.corpus.streams import (
    BadRecord,
    Record,
    Source,
    csv_records,
    describe,
    member,
    need,
    why_not_text,
    without,
)

CONTEXT = ("context", "query", "question", "prompt", "source")
RESPONSE = ("response", "reply", "answer", "completion", "target")
UTTERANCES = ("dialog", "dialogue", "utterances", "turns")


def column_of(names: Iterable[str], wanted: tuple[str, ...]) -> str | None:
    """The first wanted column that is there, whatever its case."""
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in wanted if name in by_lower), None)


def read_pairs(source: Source) -> Iterator[Item]:
    """CSV or TSV with a context and a response column; several context turns are separated by `__eou__`."""
    delimiter = "\t" if source.name.endswith((".tsv", ".tab")) else ","
    yield from parsed(csv_records(source, delimiter=delimiter), parse_pair)


def parse_pair(record: Record) -> list[Dialogue]:
    """One context-response pair; other columns become labels."""
    row = need(record.value, dict, "a row")
    context, response = column_of(row, CONTEXT), column_of(row, RESPONSE)
    if context is None or response is None:
        raise BadRecord(f"a column {' or '.join(CONTEXT)} and a column {' or '.join(RESPONSE)}", describe(row))
    said = member(row, context, str)
    texts = split_marked(said) if END in said else [said]
    labels = without(row, context, response, "id", "split")
    turns = alternate([*texts, member(row, response, str)])
    return [Dialogue(turns, str(row.get("id") or ""), str(row.get("split") or ""), labels)]


def parse_utterances(record: Record) -> list[Dialogue]:
    """`{"dialog": ["Hi.", "Hello."], …}`; a list of the same length beside it labels the turns."""
    value = need(record.value, dict, "a record")
    key = column_of(value, UTTERANCES) or UTTERANCES[0]
    texts = [need(text, str, "an utterance") for text in member(value, key, list)]
    rest = without(value, key, "id", "split")
    beside = {name: column for name, column in rest.items() if isinstance(column, list) and len(column) == len(texts)}
    turns = tuple(
        turn._replace(labels={name: column[place] for name, column in beside.items()})
        for place, turn in enumerate(alternate(texts))
    )
    labels = without(rest, *beside)
    return [Dialogue(turns, str(value.get("id") or ""), str(value.get("split") or ""), labels)]


# --- Parquet and Arrow ------------------------------------------------------------------------------------------------


def is_native(schema: pa.Schema) -> bool:
    """Whether a table is in our own form already."""
    if not set(schema.names) >= set(SCHEMA.names):
        return False
    turns = schema.field("turns").type
    is_list = pa.types.is_list(turns) or pa.types.is_large_list(turns)
    return is_list and pa.types.is_struct(turns.value_type) and _names(turns.value_type) >= _names(TURN)


def _names(struct: pa.StructType) -> set[str]:
    return {struct.field(place).name for place in range(struct.num_fields)}


def parquet_batches(source: Source) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file."""
    try:
        with pq.ParquetFile(source.path) as file:
            yield from file.iter_batches(batch_size=4096)
    except (pa.ArrowException, OSError) as error:
        raise BadRecord("a Parquet file", f"a damaged one ({str(error).splitlines()[0]})") from error


def table_items(batches: Iterable[pa.RecordBatch], parse: Parser | None) -> Iterator[Item]:
    """Dialogues of a table: as they are if in our own form, through a parser otherwise."""
    row = 1
    for batch in batches:
        if parse is None:
            yield from _native_items(batch, row)
        else:
            yield from parsed(_rows(batch, row), parse)
        row += batch.num_rows


def _rows(batch: pa.RecordBatch, first: int) -> Iterator[Record]:
    """Rows as JSON would have them: a column that is null for a row was never there."""
    for number, row in enumerate(batch.to_pylist(), first):
        yield Record(_without_nulls(row), number)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value


def _native_items(batch: pa.RecordBatch, first: int) -> Iterator[Item]:
    """A batch in our own form: bad rows by their number, then the sound ones as they are."""
    columns = [batch[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    problems = {place: problem for place, row in enumerate(batch.to_pylist()) if (problem := _why_not_row(row))}
    yield from (BadRecord(problem.expected, problem.found, first + place) for place, problem in problems.items())
    yield batch.filter(pa.array([place not in problems for place in range(batch.num_rows)]))


def _why_not_row(row: dict[str, Any]) -> BadRecord | None:
    """What keeps a row from being a dialogue: gaps, no turns, labels that are no JSON objects, text that is none."""
    turns = row["turns"]
    if not turns:
        return BadRecord("at least one turn", "none")
    texts = [row["id"], *(part for turn in turns for part in ((turn or {}).get("speaker"), (turn or {}).get("text")))]
    if any(text is None for text in texts):
        return BadRecord("an id, speakers and texts", "null")
    problem = why_not_text("\n".join(texts))
    if problem is not None:
        return BadRecord("UTF-8 text", problem)
    labels = [row["labels"], *(turn["labels"] for turn in turns)]
    return (
        None if all(map(_is_json_object, filter(None, labels))) else BadRecord("labels as JSON objects", "other text")
    )


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
