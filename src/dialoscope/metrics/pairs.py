"""Hypotheses beside their references, read from text files, JSONL or Parquet columns.

A text file holds one response a line; JSONL and Parquet hold them in a column that is named or found, and may
hold the dialogue each belongs to, and a model's log-likelihoods, as well. Compressed files (`.gz`, `.zst`)
work as they are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from dialoscope.corpus import streams
from dialoscope.errors import CorpusError, UsageError

# Where text is looked for when no column is named: the first of these that holds text.
HYPOTHESIS_COLUMNS = ("hypothesis", "prediction", "generated", "output", "response", "reply", "text")
REFERENCE_ONLY = ("reference", "target", "gold")
REFERENCE_COLUMNS = (*REFERENCE_ONLY, "response", "reply", "text")
DIALOGUE_COLUMNS = ("dialogue_id", "dialogue", "dialog_id", "conversation_id")
ID_COLUMNS = ("id", "split")  # texts that are no responses
CONVERSATION_COLUMNS = ("messages", "conversations", "conversation", "turns")
LIKELIHOOD_COLUMN, TOKENS_COLUMN = "log_likelihood", "tokens"  # sums over a response, natural logarithm

JSON = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")

Table = Mapping[str, Sequence[Any]]  # column -> one value for each record
Read = TypeVar("Read")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Responses of a system and what should have been said, one of each, with the dialogues they come from."""

    hypotheses: Sequence[str]
    references: Sequence[str]
    dialogues: Sequence[Hashable] | None = None
    log_likelihoods: Sequence[float] | None = None
    token_counts: Sequence[float] | None = None
    name: str = "pairs"
    columns: str | None = None  # those that were read, such as "prediction/reference/dialogue_id"

    def __post_init__(self) -> None:
        counts = len(self.hypotheses), len(self.references)
        if counts[0] != counts[1]:
            raise UsageError(f"{counts[0]} hypotheses and {counts[1]} references: expected one reference for each.")
        beside = {
            "dialogues": self.dialogues,
            "log_likelihoods": self.log_likelihoods,
            "token_counts": self.token_counts,
        }
        for name, values in beside.items():
            if values is not None and len(values) != counts[0]:
                raise UsageError(f"{len(values)} {name} for {counts[0]} pairs: expected one for each, or None.")

    def __len__(self) -> int:
        return len(self.hypotheses)

    def select(self, places: Iterable[int]) -> Pairs:
        """The pairs at these places, such as the clean or the leaked part of a test set."""
        kept = list(places)
        return replace(
            self,
            hypotheses=_at(self.hypotheses, kept),
            references=_at(self.references, kept),
            dialogues=None if self.dialogues is None else _at(self.dialogues, kept),
            log_likelihoods=None if self.log_likelihoods is None else _at(self.log_likelihoods, kept),
            token_counts=None if self.token_counts is None else _at(self.token_counts, kept),
        )

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all that a number may depend on: texts, dialogues, likelihoods and token counts."""
        digest = hashlib.sha256()
        for values in (self.hypotheses, self.references, self.dialogues, self.log_likelihoods, self.token_counts):
            digest.update(b"none;" if values is None else b"%d;" % len(values))
            for value in () if values is None else values:
                data = _written(value).encode("utf-8", "surrogatepass")
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class Column:
    """The texts of one file, and what else stands beside them there."""

    path: Path
    texts: Sequence[str]
    name: str | None = None  # of the column; text files have none
    dialogues: Sequence[Hashable] | None = None
    log_likelihoods: Sequence[float] | None = None
    token_counts: Sequence[float] | None = None
    dialogue_name: str | None = None  # of the column that holds the dialogues


def read_pairs(
    hypotheses: Path,
    references: Path,
    *,
    column: str | None = None,
    reference_column: str | None = None,
    dialogue_column: str | None = None,
) -> Pairs:
    """Read both sides; unequal counts are an error that names both, and so are dialogue ids that disagree.

    Where only `column` is named, it is looked for among the references too, unless both sides are one file; a
    column that says it holds references ("reference", "target", "gold") comes before it.
    """
    is_one_file = Path(hypotheses) == Path(references)
    ours = read_column(hypotheses, column=column, dialogue_column=dialogue_column)
    names = REFERENCE_COLUMNS if column is None or is_one_file else (*REFERENCE_ONLY, column, *REFERENCE_COLUMNS)
    theirs = read_column(references, column=reference_column, names=names, dialogue_column=dialogue_column)
    if is_one_file and ours.name == theirs.name and ours.name is not None:
        raise UsageError(f"{ours.path}: both sides are column '{ours.name}'. Name one with --reference-column.")
    if len(ours.texts) != len(theirs.texts):
        raise UsageError(
            f"{ours.path} holds {len(ours.texts)} responses and {theirs.path} holds {len(theirs.texts)}: "
            "expected one reference for each hypothesis."
        )
    check_same_dialogues(ours.dialogues, theirs.dialogues, names=(str(ours.path), str(theirs.path)))
    bearer = ours if ours.dialogues is not None else theirs
    if dialogue_column and bearer.dialogues is None:
        raise UsageError(f"No column '{dialogue_column}' in {ours.path} or {theirs.path}.")
    name = f"{ours.path.name}/{theirs.path.name}"
    columns = columns_of(ours, theirs, bearer)
    return Pairs(ours.texts, theirs.texts, bearer.dialogues, ours.log_likelihoods, ours.token_counts, name, columns)


def columns_of(ours: Column, theirs: Column, bearer: Column) -> str | None:
    """The columns that were read, for signatures; text files have none."""
    read = [ours.name, theirs.name, *([bearer.dialogue_name] if bearer.dialogue_name else [])]
    return "/".join(name or "-" for name in read) if any(read) else None


def check_same_dialogues(
    first: Sequence[Hashable] | None, second: Sequence[Hashable] | None, *, names: tuple[str, str]
) -> None:
    """Where both sides say which dialogue a line belongs to, they must say the same."""
    if first is None or second is None:
        return
    for place, (one, other) in enumerate(zip(first, second, strict=True), 1):
        if str(one) != str(other):
            where = f"line {place} is dialogue '{one}' in {names[0]} and '{other}' in {names[1]}"
            raise UsageError(f"{where}: expected the same order in both. Sort them alike, or remove the ids.")


def read_column(
    path: Path,
    *,
    column: str | None = None,
    names: Sequence[str] = HYPOTHESIS_COLUMNS,
    dialogue_column: str | None = None,
) -> Column:
    """Read one text from each line or record of a file."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file.")
    kind = Path(streams.plain_name(path)).suffix.lower()
    if kind in PARQUET:
        table = _parquet(path)
    elif kind in JSON:
        table = _json_records(path)
    elif column:
        raise UsageError(f"{path} is read as text, one response a line, and has no column '{column}'.")
    else:
        return Column(path, tuple(_lines(path)))
    return _chosen(path, table, column or _text_column(path, table, names), dialogue_column)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file; an empty line is an empty response."""
    for number, line in _read(path, streams.lines):
        if problem := streams.why_not_text(line):
            raise CorpusError(f"{path}:{number}: expected UTF-8 text, found {problem}.")
        yield line


def _json_records(path: Path) -> Table:
    records = [_fields(path, record) for record in _read(path, streams.json_records)]
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _fields(path: Path, record: streams.Record | streams.BadRecord) -> Mapping[str, Any]:
    """A record's columns; a bare string is a text."""
    if isinstance(record, streams.BadRecord):
        raise CorpusError(f"{path}:{record.line}: {record}.")
    if isinstance(record.value, str):
        return {"text": record.value}
    if not isinstance(record.value, dict):
        found = streams.describe(record.value)
        raise CorpusError(f"{path}:{record.line}: expected a JSON object or a string, found {found}.")
    return record.value


def _read(path: Path, reader: Callable[[streams.Source], Iterator[Read]]) -> Iterator[Read]:
    try:
        yield from reader(streams.Source(path))
    except streams.BadRecord as bad:
        raise CorpusError(f"{path}:{bad.line}: {bad}." if bad.line else f"{path}: {bad}.") from bad


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(f"{path}: expected a Parquet file, found something else: {error}.") from error
    flat = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_floating)
    kept = [field.name for field in table.schema if any(is_kind(field.type) for is_kind in flat)]
    return {name: table[name].to_pylist() for name in kept}


def _text_column(path: Path, table: Table, names: Sequence[str]) -> str:
    """The column that holds the text: a known name, or the only column of texts."""
    texts = [name for name, values in table.items() if any(isinstance(value, str) for value in values)]
    texts = [name for name in texts if name not in (*DIALOGUE_COLUMNS, *ID_COLUMNS)]
    if not texts and any(name in table for name in CONVERSATION_COLUMNS):
        wanted = "a file of responses, which 'dialoscope generate' writes"
        raise UsageError(f"{path}: expected {wanted}, found conversations. Or name a column of texts with --column.")
    for name in names:
        if name in texts:
            return name
    if len(texts) == 1:
        return texts[0]
    found = ", ".join(texts) or "none"
    raise UsageError(f"{path}: which column holds the text? Columns of text: {found}. Name one with --column.")


def _chosen(path: Path, table: Table, column: str, dialogue_column: str | None) -> Column:
    if column not in table:
        raise UsageError(f"{path}: no column '{column}'. Columns: {', '.join(table) or 'none'}.")
    for number, text in enumerate(table[column], 1):
        if not isinstance(text, str):
            raise CorpusError(f"{path}: record {number}: expected text in '{column}', found {text!r:.40}.")
    others = {name: values for name, values in table.items() if name != column}
    named = _dialogues(path, others, dialogue_column)
    likelihoods, counts = _numbers(table.get(LIKELIHOOD_COLUMN)), _numbers(table.get(TOKENS_COLUMN))
    return Column(path, table[column], column, others.get(named or ""), likelihoods, counts, named)


def _at(values: Sequence[Read], places: Sequence[int]) -> list[Read]:
    return [values[place] for place in places]


def _numbers(values: Iterable[Any] | None) -> list[float] | None:
    """Numbers, NaN where one is missing, or None where the column is missing or holds something else."""
    listed = [math.nan if value is None else value for value in values or ()]
    return listed if listed and all(_is_number(value) for value in listed) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dialogues(path: Path, table: Table, named: str | None) -> str | None:
    """The column of dialogue ids: the one that is named, or the first of the known names that holds ids."""
    wanted = (named,) if named else DIALOGUE_COLUMNS
    for name in (name for name in wanted if name in table):
        bad = [number for number, value in enumerate(table[name], 1) if not isinstance(value, str | int)]
        if bad and (named or len(bad) < len(table[name])):
            found = table[name][bad[0] - 1]
            raise CorpusError(f"{path}: record {bad[0]}: expected a dialogue id in '{name}', found {found!r:.40}.")
        if not bad:
            return name
    return None


def _written(value: Any) -> str:
    """A value as the fingerprint takes it: 2 and 2.0 alike, and the text "2" unlike them."""
    if isinstance(value, str):
        return f"text:{value}"
    return f"other:{value:.17g}" if isinstance(value, float) else f"other:{value}"
