"""Plain text: one dialogue a line with `__eou__` between turns, or one turn a line with blank lines between dialogues.

DailyDialog is the first kind with label files beside it. Text that Dialoscope wrote itself has a companion
``NAME.dialoscope.jsonl`` with what a line of text cannot hold: ids, speakers, labels, turns that contain line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item, alternate
from dialoscope.corpus.streams import (
    COMPRESSED,
    BadRecord,
    Record,
    Source,
    json_records,
    lines,
    member,
    need,
    plain_name,
    shown,
)

END = "__eou__"
COMPANION = ".dialoscope.jsonl"


def read_text(source: Source) -> Iterator[Item]:
    """Turns between `__eou__` marks, or lines between blank lines; speakers A and B take turns."""
    companion = companion_of(source.path)
    is_marked = END.encode() in source.head() or companion is not None
    dialogues = _marked(source) if is_marked else _blocks(source)
    yield from dialogues if companion is None else _completed(dialogues, Source(companion))


def _marked(source: Source) -> Iterator[tuple[int, Dialogue]]:
    for number, line in lines(source):
        if line.strip():
            yield number, Dialogue(alternate(split_marked(line)))


def split_marked(line: str) -> list[str]:
    """Texts between `__eou__` marks; the mark ends a turn, so nothing follows the last one."""
    texts = [text.strip() for text in line.split(END)]
    return texts[:-1] if not texts[-1] else texts


def _blocks(source: Source) -> Iterator[tuple[int, Dialogue]]:
    start = 0
    texts: list[str] = []
    for number, line in chain(lines(source), [(0, "")]):
        if line.strip():
            start = start if texts else number
            texts.append(line.strip())
        elif texts:
            yield start, Dialogue(alternate(texts))
            texts = []


# --- The companion file of text that Dialoscope wrote -----------------------------------------------------------------


def companion_of(path: Path) -> Path | None:
    """The file with ids, speakers and labels beside a text file, where there is one."""
    name = plain_name(path)
    companion = path.with_name(name.removesuffix(".txt") + COMPANION)
    return companion if name.endswith(".txt") and companion.is_file() else None


def _completed(dialogues: Iterator[tuple[int, Dialogue]], companion: Source) -> Iterator[Item]:
    for (number, dialogue), record in _zipped(dialogues, json_records(companion)):
        try:
            yield number, _complete(dialogue, record)
        except BadRecord as bad:
            yield BadRecord(f"{bad.expected} in {companion.name}", bad.found, number)


def _zipped(dialogues: Iterator[tuple[int, Dialogue]], records: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    last = 0
    for number, dialogue in dialogues:
        last = number
        yield (number, dialogue), next(records, BadRecord("as many records as lines of text", "fewer"))
    if next(records, None) is not None:
        raise BadRecord("as many lines of text as records in its companion", "fewer", last)


def _complete(dialogue: Dialogue, record: Record | BadRecord) -> Dialogue:
    if isinstance(record, BadRecord):
        raise record
    speakers = member(record.value, "speakers", list)
    if len(speakers) != len(dialogue.turns):
        raise BadRecord(f"{len(dialogue.turns)} speakers", f"{len(speakers)}")
    exact = need(record.value.get("texts", {}), dict, "'texts'")
    labels = need(record.value.get("turn_labels", {}), dict, "'turn_labels'")
    turns = tuple(
        Turn(
            str(speaker),
            need(exact.get(str(i), turn.text), str, "a text"),
            need(labels.get(str(i), {}), dict, "labels"),
        )
        for i, (turn, speaker) in enumerate(zip(dialogue.turns, speakers, strict=True))
    )
    split = need(record.value.get("split", ""), str, "'split'")
    return Dialogue(
        turns, member(record.value, "id", str), split, need(record.value.get("labels", {}), dict, "'labels'")
    )


# --- DailyDialog ------------------------------------------------------------------------------------------------------

ACTS = {"1": "inform", "2": "question", "3": "directive", "4": "commissive"}
EMOTIONS = {
    "0": "no emotion",
    "1": "anger",
    "2": "disgust",
    "3": "fear",
    "4": "happiness",
    "5": "sadness",
    "6": "surprise",
}
TOPICS = {
    "1": "ordinary life",
    "2": "school life",
    "3": "culture & education",
    "4": "attitude & emotion",
    "5": "relationship",
    "6": "tourism",
    "7": "health",
    "8": "work",
    "9": "politics",
    "10": "finance",
}
NAMES = {"act": ACTS, "emotion": EMOTIONS}
_LABEL_FILE = re.compile(r"dialogues_(act|emotion|topic)(_\w+)?\.txt")


def read_dailydialog(source: Source) -> Iterator[Item]:
    """`dialogues_SPLIT.txt` with `dialogues_act_SPLIT.txt` and `dialogues_emotion_SPLIT.txt` beside it, line by line.

    Topics are numbered along `dialogues_text.txt`, the file of all dialogues, so they go with that file only.
    """
    name = source.name.removeprefix("dialogues").removesuffix(".txt")
    kinds = [("act", name), ("emotion", name), *([("topic", "_text")] if name == "_text" else [])]
    labels = [(kind, found) for kind, split in kinds if (found := _label_lines(source.path, kind, split)) is not None]
    number = 0
    for number, line in lines(source):
        beside = {kind: next(found, "").split() for kind, found in labels}
        if line.strip():
            try:
                yield number, _labelled(Dialogue(alternate(split_marked(line))), beside)
            except BadRecord as bad:
                yield bad.at(number)
    for kind, found in labels:
        if any(line.strip() for line in found):
            yield BadRecord(f"a line of text for every line of {kind}s", f"only {number} lines of text", number)


def _label_lines(path: Path, kind: str, name: str) -> Iterator[str] | None:
    """Lines of the label file beside `path`, where there is one."""
    name = "" if name == "_text" else name
    for ending in ("", *COMPRESSED):
        file = path.with_name(f"dialogues_{kind}{name}.txt{ending}")
        if file.is_file():
            return (line for _, line in lines(Source(file)))
    return None


def _labelled(dialogue: Dialogue, beside: dict[str, list[str]]) -> Dialogue:
    """The dialogue with the names that its labels' numbers stand for."""
    topic = _named(beside.pop("topic"), TOPICS, 1, "topic") if "topic" in beside else None
    count = len(dialogue.turns)
    by_kind = {kind: _named(numbers, NAMES[kind], count, kind) for kind, numbers in beside.items()}
    turns = tuple(
        turn._replace(labels={kind: names[place] for kind, names in by_kind.items()})
        for place, turn in enumerate(dialogue.turns)
    )
    return dialogue._replace(turns=turns, labels={"topic": topic[0]} if topic else {})


def _named(numbers: Sequence[str], names: dict[str, str], count: int, what: str) -> list[str]:
    if len(numbers) != count or not all(number in names for number in numbers):
        expected = "a known topic" if what == "topic" else f"a known {what} for every turn"
        raise BadRecord(expected, f"{shown(' '.join(numbers))} for {count} turns")
    return [names[number] for number in numbers]


def label_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Label files are read with the text they label; the file of all dialogues holds those of the splits again."""
    names = {path: plain_name(path) for path in paths}
    has_splits = any(re.fullmatch(r"dialogues_(train|validation|test)\.txt", name) for name in names.values())
    aside = {
        path: "read as labels of the text beside it" for path, name in names.items() if _LABEL_FILE.fullmatch(name)
    }
    if has_splits:
        everything = {
            path: name for path, name in names.items() if name in ("dialogues_text.txt", "dialogues_topic.txt")
        }
        aside |= {path: "all dialogues again, in another order than the splits" for path in everything}
    return aside


def companion_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Companions of text that Dialoscope wrote."""
    return {path: "read together with its text" for path in paths if path.name.endswith(COMPANION)}
