"""Every format Dialoscope reads, in one table, and how a file is recognised.

A format is recognised by its file name, by the keys of its first JSON record, by its CSV columns, or by a pattern in
its first lines; the first row of the table that fits wins, so the special stand before the general. Adding a format is
a parser in `readers/` and a row here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dialoscope.corpus.readers import Item, Parser, Reader, chat, human, open_domain, parsed, tables, task, text, ubuntu
from dialoscope.corpus.streams import BadRecord, Record, Source, json_records, shown
from dialoscope.errors import unknown_name

ZIP_MARK = b"PK\x03\x04"
SetAside = Callable[[Sequence[Path]], dict[Path, str]]


@dataclass(frozen=True)
class Format:
    """How a format looks and how it is read: a `parse` for one record, or a `read` for a whole file."""

    title: str
    example: str
    parse: Parser | None = None
    read: Reader | None = None
    keys: tuple[str, ...] = ()  # paths into the first JSON record that must all exist
    columns: tuple[str, ...] = ()  # CSV columns that must all exist
    name: str = ""  # pattern of the file name
    pattern: str = ""  # pattern in the first lines
    set_aside: SetAside | None = None  # files of a folder that are not dialogues of their own, and why

    def items(self, source: Source) -> Iterator[Item]:
        """Read one file."""
        if self.read is not None:
            return self.read(source)
        if self.parse is None:
            raise TypeError(f"{self.title} has neither a reader nor a parser")
        return parsed(json_records(source), self.parse)


def read_parquet(source: Source) -> Iterator[Item]:
    """Parquet in our own form, or with columns of any format that has records."""
    batches = tables.parquet_batches(source)
    first = next(batches, None)
    if first is None:
        return
    parse = None if tables.is_native(first.schema) else parser_of_rows(first.slice(0, 1).to_pylist())
    yield from tables.table_items(_chain(first, batches), parse)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def parser_of_rows(rows: list[dict[str, Any]]) -> Parser:
    """The parser for rows of a table, recognised by their columns as JSON records are by their keys."""
    row = rows[0] if rows else {}
    found = next((form for form in FORMATS.values() if form.parse and form.keys and _has_all(row, form.keys)), None)
    if found is not None and found.parse is not None:
        return found.parse
    if tables.column_of(row, tables.CONTEXT) and tables.column_of(row, tables.RESPONSE):
        return tables.parse_pair
    if tables.column_of(row, tables.UTTERANCES):
        return tables.parse_utterances
    raise BadRecord("columns of a known format (see: dialoscope corpus formats)", f"the columns {', '.join(row)}")


FORMATS: dict[str, Format] = {
    "parquet": Format(
        "Parquet: our own form, or messages, pairs, utterances in columns",
        "id, split, labels, turns: list<struct<speaker, text, labels>>",
        read=read_parquet,
        name=r".*\.parquet",
    ),
    "chitchat": Format(
        "chitchat-dataset, bursts of messages per sender",
        '{"ID": {"messages": [[{"text": "Hello", "sender": "S1", "timestamp": "…"}]], "ratings": {}}}',
        parse=chat.parse_chitchat,
        keys=("messages.0.0.sender",),
    ),
    "messages": Format(
        "chat messages, content as a string or as parts",
        '{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}',
        parse=chat.parse_messages,
        read=chat.read_messages,
        keys=("messages",),
    ),
    "sharegpt": Format(
        "ShareGPT",
        '{"conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Hello."}]}',
        parse=chat.parse_sharegpt,
        keys=("conversations",),
    ),
    "openassistant": Format(
        "OpenAssistant message trees; every path is a dialogue",
        '{"message_tree_id": "…", "prompt": {"text": "Hi.", "role": "prompter", "replies": […]}}',
        parse=chat.parse_openassistant,
        keys=("message_tree_id", "prompt"),
    ),
    "instruction": Format(
        "instruction triples, with optional history",
        '{"instruction": "Translate.", "input": "Hallo", "output": "Hello"}',
        parse=chat.parse_instruction,
        keys=("instruction", "output"),
    ),
    "multiwoz": Format(
        "MultiWOZ 2.0 and 2.1 json",
        '{"PMUL0001.json": {"goal": {…}, "log": [{"text": "…", "metadata": {…}, "dialog_act": {…}}]}}',
        parse=task.parse_multiwoz,
        read=task.read_multiwoz,
        keys=("goal", "log"),
        set_aside=task.side_files,
    ),
    "multiwoz22": Format(
        "MultiWOZ 2.2 folders",
        '{"dialogue_id": "PMUL0001.json", "services": […], "turns": [{"turn_id": "0", "frames": […], …}]}',
        parse=task.parse_frames,
        read=task.read_multiwoz22,
        keys=("dialogue_id", "turns.0.turn_id", "turns.0.utterance"),
    ),
    "sgd": Format(
        "Schema-Guided Dialogue",
        '{"dialogue_id": "1_00000", "services": […], "turns": [{"frames": […], "speaker": "USER", "utterance": "…"}]}',
        parse=task.parse_frames,
        keys=("dialogue_id", "turns.0.utterance"),
    ),
    "wizard": Format(
        "Wizard of Wikipedia",
        '{"chosen_topic": "Gardening", "dialog": [{"speaker": "0_Wizard", "text": "…", "checked_sentence": {…}}]}',
        parse=open_domain.parse_wizard,
        keys=("chosen_topic", "dialog"),
    ),
    "meta-dialogue": Format(
        "query-reply pairs with knowledge or a persona (Wizard of Wikipedia, PersonaChat as json)",
        '{"meta": ["i am a nurse."], "dialogue": [["hi", "hey there !"]]}',
        parse=open_domain.parse_meta_dialogue,
        keys=("meta", "dialogue"),
    ),
    "blended-skill-talk": Format(
        "BlendedSkillTalk",
        '{"personas": [["…"], ["…"]], "dialog": [[0, "Hi."], [1, "Hello."]], "context_dataset": "…"}',
        parse=open_domain.parse_blended,
        keys=("personas", "dialog"),
    ),
    "convai": Format(
        "ConvAI, with each participant's evaluation",
        '{"dialogId": 1, "thread": [{"userId": "Alice", "text": "Hi."}], "evaluation": [{"quality": 4, …}]}',
        parse=open_domain.parse_convai,
        keys=("dialogId", "thread"),
    ),
    "fed": Format(
        "FED: turns and dialogues with five annotators' scores",
        '{"context": "User: Hi!\\nSystem: Hello.", "response": "System: …", "annotations": {"Engaging": [2, 1, …]}}',
        parse=human.parse_fed,
        keys=("context", "annotations"),
    ),
    "empathetic-dialogues": Format(
        "EmpatheticDialogues",
        "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags",
        read=open_domain.read_empathetic,
        columns=("conv_id", "utterance_idx", "utterance"),
    ),
    "ubuntu": Format(
        "Ubuntu Dialogue Corpus CSV",
        "Context,Utterance,Label",
        read=ubuntu.read_ubuntu_csv,
        columns=("Context",),
        pattern=r"\A\W*Context\W+(Utterance|Ground Truth Utterance)\b",
    ),
    "dailydialog-human": Format(
        "DailyDialog-Human: engagement scores of query-reply pairs",
        "WorkerId,Input.query1,Input.response1,…,Answer.pair10",
        read=human.read_dailydialog_human,
        pattern=r"\A(WorkerId,Input\.query1|query,response,human_score)",
        set_aside=human.scored_pairs,
    ),
    "pairs": Format(
        "context-response pairs as CSV or TSV",
        "context,response",
        read=tables.read_pairs,
        name=r".*\.(csv|tsv|tab)",
    ),
    "ubuntu-irc": Format(
        "Ubuntu IRC logs with reply links beside them",
        "[03:10] <yohannes> can anyone recommend any app?",
        read=ubuntu.read_irc,
        name=r".*\.ascii\.txt",
        set_aside=ubuntu.annotation_files,
    ),
    "opensubtitles": Format(
        "OpenSubtitles, OPUS XML, a movie per file",
        '<s id="1"><w id="1.1">Hello</w><w id="1.2">.</w></s>',
        read=ubuntu.read_opensubtitles,
        name=r".*\.xml",
    ),
    "personachat": Format(
        "PersonaChat, ParlAI text",
        "1 your persona: i read twenty books a year.",
        read=open_domain.read_personachat,
        pattern=r"\A1 (your persona:|partner's persona:|[^\t\n]*\t)",
        set_aside=open_domain.other_views,
    ),
    "dailydialog": Format(
        "DailyDialog with act and emotion files beside it",
        "Are you all right ? __eou__ I will be soon . __eou__",
        read=text.read_dailydialog,
        name=r"dialogues_(train|validation|test|text)\.txt",
        set_aside=text.label_files,
    ),
    "utterances": Format(
        "lists of utterances",
        '{"dialog": ["Hi.", "Hello."]}',
        parse=tables.parse_utterances,
        pattern=r'\A[\s\[]*\{[^{]*?"(dialog|dialogue|utterances|turns)"\s*:\s*\[\s*"',
    ),
    "json-pairs": Format(
        "context-response pairs as JSON",
        '{"context": "Hi.", "response": "Hello."}',
        parse=tables.parse_pair,
        pattern=r'\A[\s\[]*\{[^{]*?"(context|query|question|prompt|source)"\s*:\s*"',
    ),
    "text": Format(
        "plain text: `__eou__` between turns, or a turn a line and blank lines between dialogues",
        "Hi. __eou__ Hello. __eou__",
        read=text.read_text,
        name=r".*\.txt",
        set_aside=text.companion_files,
    ),
}


def format_named(name: str) -> Format:
    """The format of this name; an unknown one gets a suggestion."""
    if name not in FORMATS:
        raise unknown_name("format", name, [*FORMATS, "hf"])
    return FORMATS[name]


def detect(source: Source) -> str:
    """The name of the format a file is in; a file of none is a `BadRecord` that says how to name it by hand."""
    head = source.head()
    if not head.strip():
        raise BadRecord("dialogues", "an empty file")
    if head.startswith(ZIP_MARK):
        raise BadRecord("dialogues", "a zip archive (unpack it first)")
    if text.companion_of(source.path) is not None:
        return "text"  # we wrote it ourselves
    opening = head[:65536].decode("utf-8", "replace")
    is_named = source.name.endswith((".json", ".jsonl", ".ndjson"))
    record = _first_record(source, must_be=is_named) if is_named or opening.lstrip().startswith(("{", "[")) else None
    is_json = record is not None
    columns = _columns(opening) if source.name.endswith((".csv", ".tsv", ".tab")) else ()
    for name, form in FORMATS.items():
        if _fits(form, source.name, opening, record, columns, is_json=is_json):
            return name
    raise BadRecord("a known format (name it with --format; see: dialoscope corpus formats)", _glimpse(opening))


def _fits(form: Format, name: str, opening: str, record: Any, columns: Sequence[str], *, is_json: bool) -> bool:
    if form.keys:
        return is_json and _has_all(record, form.keys)
    if is_json and form.parse is None and form.read is not read_parquet:
        return False
    if form.columns and not set(form.columns) <= set(columns):
        return False
    if form.pattern:
        return re.search(form.pattern, opening) is not None
    return bool(form.columns) or bool(form.name and re.fullmatch(form.name, name))


def _first_record(source: Source, *, must_be: bool) -> Any:
    """The first sound record among the first few; if none is and it must be JSON, what is wrong with the first."""
    first = list(islice(json_records(source), 100))
    for record in first:
        if isinstance(record, Record) and isinstance(record.value, dict):
            return record.value
    if not must_be:
        return None
    raise next(
        (bad for bad in first if isinstance(bad, BadRecord)), BadRecord("records that are JSON objects", "none", 1)
    )


def _glimpse(opening: str) -> str:
    line = next((line for line in opening.splitlines() if line.strip()), "")
    return f"a file that starts with {shown(line)}"


def _columns(opening: str) -> tuple[str, ...]:
    line = opening.splitlines()[0] if opening else ""
    return tuple(column.strip() for column in next(csv.reader([line], delimiter="\t" if "\t" in line else ","), []))


def _has_all(record: Any, paths: Sequence[str]) -> bool:
    return all(_has(record, path.split(".")) for path in paths)


def _has(value: Any, path: Sequence[str]) -> bool:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False
    return value is not None
