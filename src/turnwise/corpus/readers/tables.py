"""Tables: context-response pairs as CSV or TSV, Parquet of any shape we know, and lists of utterances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnwise.corpus.dialogue import SCHEMA, Dialogue
from turnwise.corpus.readers import Item, Parser, alternate, parsed
from turnwise.corpus.readers.text import END, split_marked
from turnwise.corpus.streams import BadRecord, Record, Source, csv_records, describe, member, need, without

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
    return set(schema.names) >= set(SCHEMA.names) and schema.field("turns").type == SCHEMA.field("turns").type


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
            yield native_batch(batch)
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


def native_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in our own schema, checked: no null turns, at least one turn each."""
    batch = pa.RecordBatch.from_arrays(
        [batch[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA
    )
    turns = batch["turns"]
    flat = turns.flatten()
    speakers, texts = flat.field("speaker"), flat.field("text")
    if turns.null_count or flat.null_count or speakers.null_count or texts.null_count or batch["id"].null_count:
        raise BadRecord("ids, speakers and texts in every row", "null")
    if len(turns) and int(turns.value_lengths().to_numpy(zero_copy_only=False).min()) == 0:
        raise BadRecord("at least one turn in every dialogue", "none")
    return batch
