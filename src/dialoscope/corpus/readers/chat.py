"""Today's chat formats: `messages`, ShareGPT, OpenAssistant trees, instruction triples, and the chitchat data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dialoscope.corpus.columns import batch_of, encode_labels, settled
from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item, parsed
from dialoscope.corpus.streams import (
    BadRecord,
    Record,
    Source,
    describe,
    is_json_lines,
    json_line,
    json_records,
    line_blocks,
    map_ahead,
    member,
    need,
    without,
)

# --- messages --------------------------------------------------------------------------------------------------------


def parse_messages(record: Record) -> list[Dialogue]:
    """`{"messages": [{"role": …, "content": …}, …]}`; every other key is kept as a label."""
    messages = member(record.value, "messages", list)
    labels = without(record.value, "messages", "id", "split")
    turns = tuple(map(_message, messages))
    split = record.value.get("split")
    if split is not None and not isinstance(split, str):
        labels["split"] = split
    return [
        Dialogue(
            turns,
            _id(record.value.get("id"), record.key),
            split if isinstance(split, str) else "",
            _lifted(labels),
        )
    ]


WITHOUT_CONTENT = {"tool_calls", "function_call", "refusal", "audio"}  # what may stand in the place of a content
TEXT_PARTS = ("text", "input_text", "output_text")


def _message(message: Any) -> Turn:
    if type(message) is dict and len(message) == 2:  # by far the most common shape, so it goes first
        role, content = message.get("role"), message.get("content")
        if type(role) is str and type(content) is str:
            return Turn(role, content)
    role = member(message, "role", str)
    content = message.get("content")
    text, parts = ("", []) if content is None and WITHOUT_CONTENT & message.keys() else _content(content)
    labels = without(message, "role", "content")
    return Turn(role, text, _lifted({**labels, "parts": parts} if parts else labels))


def _content(content: Any) -> tuple[str, list[Any]]:
    """Text of a message, and the parts of it that are no text (images, say)."""
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        raise BadRecord("'content' to be a string or a list of parts", "none" if content is None else describe(content))
    texts, others = [], []
    for part in content:
        text = part if isinstance(part, str) else _part_text(part)
        texts.append(text) if text is not None else others.append(part)
    return "\n".join(texts), others


def _part_text(part: Any) -> str | None:
    part = need(part, dict, "a content part")
    if part.get("type", "text") not in TEXT_PARTS:
        return None
    text = part.get("text", part.get("value"))
    return need(text, str, "the text of a content part")


def _lifted(labels: dict[str, Any]) -> dict[str, Any]:
    """Labels we wrote ourselves stand under `labels`; on reading they move up beside foreign keys."""
    own = labels.get("labels")
    if isinstance(own, dict) and not own.keys() & (labels.keys() - {"labels"}):
        return {**without(labels, "labels"), **own}
    return labels


def _id(value: Any, key: str) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else key


def read_messages(source: Source) -> Iterator[Item]:
    """Read `messages` JSONL by columns where that is possible, and record by record where not.

    A block of plain records (`role` and `content` strings, perhaps an `id` and a `split`) goes through Arrow's own
    JSON parser, in threads. A block whose records have other keys too, but plain messages, is collected into columns.
    Anything else in a block, be it a label of a message, a content part or a mistake, sends that block through the
    careful path, which keeps everything and knows line numbers.
    """
    if not is_json_lines(source.head()):
        yield from parsed(json_records(source), parse_messages)
        return
    number = 1
    for block, columns in map_ahead(_columns, line_blocks(source)):
        whole = columns if columns is None or columns.is_whole else _labelled(columns, bytes(block))
        if whole is not None:
            yield from whole.batches
            number += whole.lines
        else:
            found = bytes(block).splitlines()
            records = (json_line(line, n) for n, line in enumerate(found, number) if line.strip())
            yield from parsed(records, parse_messages)
            number += len(found)


class _Columns(NamedTuple):
    """A block as columns, one record a line, and whether they hold all that its records say."""

    batches: list[pa.RecordBatch]
    lines: int
    is_whole: bool


_MESSAGES = ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))
_PLAIN = pa.schema([("id", pa.string()), ("split", pa.string()), _MESSAGES])
_LINE_END = ord("\n")


def _columns(block: memoryview) -> _Columns | None:
    """The block through Arrow's parser: all of it, or the messages alone where records have other keys as well."""
    data = np.frombuffer(block, dtype=np.uint8)
    lines = int(np.count_nonzero(data == _LINE_END)) + int(data[-1] != _LINE_END)
    is_ascii = not (data > 127).any()
    whole = _arrow_batches(block, _PLAIN, "error", lines, is_ascii=is_ascii)
    if whole is not None:
        return _Columns(whole, lines, is_whole=True)
    messages = _arrow_batches(block, pa.schema([_MESSAGES]), "ignore", lines, is_ascii=is_ascii)
    return None if messages is None else _Columns(messages, lines, is_whole=False)


def _arrow_batches(
    block: memoryview, schema: pa.Schema, unexpected: str, lines: int, *, is_ascii: bool
) -> list[pa.RecordBatch] | None:
    """Records of just this schema; None where Arrow refuses them, or where it would take what we do not."""
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    # One thread a block, for blocks run side by side already; a record must fit into Arrow's own block.
    reading = pj.ReadOptions(use_threads=False, block_size=len(block))
    try:
        table = pj.read_json(pa.BufferReader(pa.py_buffer(block)), read_options=reading, parse_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if not is_ascii and not _is_utf8(table):
        return None  # Arrow takes bytes on trust
    if table.num_rows != lines:
        return None  # blank lines, or records that do not keep to their lines
    batches = [_plain_turns(batch) for batch in table.to_batches()]
    return None if None in batches else batches


def _has_nul_byte(column: pa.StringArray) -> bool:
    """Whether a NUL is in the column, or in bytes before it: the careful path refuses it, with its line."""
    data = column.buffers()[2]
    return data is not None and bool((np.frombuffer(data, dtype=np.uint8)[: _end(column)] == 0).any())


def _end(column: pa.StringArray) -> int:
    return int(np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset + len(column)])


def _plain_turns(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    messages = batch["messages"]
    turns = messages.flatten()
    role, content = turns.field("role"), turns.field("content")
    has_gaps = messages.null_count or turns.null_count or role.null_count or content.null_count
    if has_gaps or not pc.all(pc.greater(pc.list_value_length(messages), 0)).as_py():
        return None
    names = batch.schema.names
    ids, splits = (batch[key] if key in names else pa.nulls(len(batch), pa.string()) for key in ("id", "split"))
    if any(_has_nul_byte(column) for column in (ids, splits, role, content)):
        return None
    return settled(batch_of(ids, splits, messages.offsets, role, content))


def _is_utf8(table: pa.Table) -> bool:
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _labelled(columns: _Columns, block: bytes) -> _Columns | None:
    """The columns completed with ids, splits and labels, or None if any message has more than role and content."""
    if b"\\u0000" in block:
        return None
    heads: list[tuple[str | None, str | None, str | None]] = []
    try:
        for line in block.splitlines():
            record = orjson.loads(line)
            messages = record.pop("messages")
            if sum(map(len, messages)) != 2 * len(messages):
                return None
            heads.append(_head(record))
        ids, splits, labels = (pa.array(column, pa.string()) for column in zip(*heads, strict=True))
    except (KeyError, TypeError, AttributeError, ValueError, BadRecord, pa.ArrowException):
        return None  # the careful path finds out what it was
    table = pa.Table.from_batches(columns.batches)
    if len(ids) != len(table):
        return None
    completed = pa.table([ids, splits, labels, table["turns"]], schema=table.schema)
    return _Columns(completed.to_batches(), columns.lines, is_whole=True)


def _head(record: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Id, split and labels of a record whose messages are taken care of."""
    split = record.pop("split", None)
    return _id(record.pop("id", None), "") or None, split, encode_labels(_lifted(record))


# --- ShareGPT, instruction triples -----------------------------------------------------------------------------------


def parse_sharegpt(record: Record) -> list[Dialogue]:
    """`{"conversations": [{"from": …, "value": …}, …]}`, with an optional `system` prompt."""
    turns = [
        Turn(member(turn, "from", str), member(turn, "value", str), without(turn, "from", "value"))
        for turn in member(record.value, "conversations", list)
    ]
    labels = without(record.value, "conversations", "id", "system", "split")
    split = need(record.value.get("split") or "", str, "'split'")
    return [Dialogue((*_system(record.value), *turns), _id(record.value.get("id"), record.key), split, labels)]


def parse_instruction(record: Record) -> list[Dialogue]:
    """`{"instruction": …, "input": …, "output": …}`, with an optional `history` of earlier pairs."""
    value = record.value
    question = member(value, "instruction", str)
    if value.get("input"):
        question += "\n" + member(value, "input", str)
    turns = [*_history(value), Turn("user", question), Turn("assistant", member(value, "output", str))]
    labels = without(value, "instruction", "input", "output", "history", "system", "id")
    return [Dialogue((*_system(value), *turns), _id(value.get("id"), record.key), labels=labels)]


def _history(value: dict[str, Any]) -> Iterator[Turn]:
    for pair in need(value.get("history") or [], list, "'history'"):
        if len(need(pair, list, "an entry of 'history'")) != 2:
            raise BadRecord("pairs in 'history'", describe(pair))
        yield Turn("user", need(pair[0], str, "a question in 'history'"))
        yield Turn("assistant", need(pair[1], str, "an answer in 'history'"))


def _system(value: dict[str, Any]) -> list[Turn]:
    return [Turn("system", member(value, "system", str))] if value.get("system") else []


# --- OpenAssistant ---------------------------------------------------------------------------------------------------


def parse_openassistant(record: Record) -> list[Dialogue]:
    """A message tree: every path from the prompt to a leaf is a dialogue, so early turns recur among them."""
    tree = member(record.value, "message_tree_id", str)
    labels = without(record.value, "prompt")
    paths: list[tuple[Turn, ...]] = []
    waiting: list[tuple[tuple[Turn, ...], Any]] = [((), member(record.value, "prompt", dict))]
    while waiting:
        before, message = waiting.pop()
        extra = without(need(message, dict, "a reply"), "text", "role", "replies")
        path = (*before, Turn(member(message, "role", str), member(message, "text", str), extra))
        replies = need(message.get("replies") or [], list, "'replies'")
        waiting.extend((path, reply) for reply in reversed(replies))
        if not replies:
            paths.append(path)
    return [Dialogue(path, f"{tree}-{number}", labels=labels) for number, path in enumerate(paths, 1)]


# --- chitchat --------------------------------------------------------------------------------------------------------


def parse_chitchat(record: Record) -> list[Dialogue]:
    """`{id: {"messages": [[{"text", "sender", "timestamp"}, …], …], …}}`: bursts of one sender are nested lists."""
    bursts = member(record.value, "messages", list)
    turns = tuple(
        Turn(member(message, "sender", str), member(message, "text", str), without(message, "sender", "text"))
        for burst in bursts
        for message in need(burst, list, "a burst of messages")
    )
    return [Dialogue(turns, record.key, labels=without(record.value, "messages"))]
