"""Plain text: one dialogue a line with `__eou__` between turns, or one turn a line with blank lines between dialogues.

DailyDialog is the first kind with label files beside it. Text that Turnwise wrote itself has a companion
``NAME.turnwise.jsonl`` with what a line of text cannot hold: ids, speakers, labels, turns that contain line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from turnwise.corpus.dialogue import Dialogue, Turn
from turnwise.corpus.readers import Item, alternate
from turnwise.corpus.streams import (
    COMPRESSED,
    BadRecord,
    Record,
    Source,
    json_records,
    lines,
    member,
    need,
    plain_name,
)

END = "__eou__"
COMPANION = ".turnwise.jsonl"


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


# --- The companion file of text that Turnwise wrote -------------------------------------------------------------------


def companion_of(path: Path) -> Path | None:
    """The file with ids, speakers and labels beside a text file, where there is one."""
    companion = path.with_name(plain_name(path).removesuffix(".txt") + COMPANION)
    return companion if companion.is_file() else None


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
EMOTIONS = dict(enumerate(["no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise"]))
TOPICS = [
    "ordinary life",
    "school life",
    "culture & education",
    "attitude & emotion",
    "relationship",
    "tourism",
    "health",
    "work",
    "politics",
    "finance",
]
_LABEL_FILE = re.compile(r"dialogues_(act|emotion|topic)(_\w+)?\.txt")


def read_dailydialog(source: Source) -> Iterator[Item]:
    """`dialogues_SPLIT.txt` with `dialogues_act_SPLIT.txt` and `dialogues_emotion_SPLIT.txt` beside it.

    Topics are numbered along `dialogues_text.txt`, the file of all dialogues, so they go with that file only.
    """
    name = source.name.removeprefix("dialogues").removesuffix(".txt")
    acts = _label_lines(source.path, "act", name)
    emotions = _label_lines(source.path, "emotion", name)
    topics = _label_lines(source.path, "topic", "") if name == "_text" else repeat("")
    for (number, dialogue), act, emotion, topic in zip(_marked(source), acts, emotions, topics, strict=False):
        try:
            yield number, _labelled(dialogue, act.split(), emotion.split(), topic.strip())
        except BadRecord as bad:
            yield bad.at(number)


def _label_lines(path: Path, kind: str, name: str) -> Iterator[str]:
    """Lines of the label file beside `path`; blank for ever where there is none or when it is too short."""
    name = "" if name == "_text" else name
    for ending in ("", *COMPRESSED):
        file = path.with_name(f"dialogues_{kind}{name}.txt{ending}")
        if file.is_file():
            return chain((line for _, line in lines(Source(file))), repeat("missing"))
    return repeat("")


def _labelled(dialogue: Dialogue, acts: list[str], emotions: list[str], topic: str) -> Dialogue:
    count = len(dialogue.turns)
    act_names = _named(acts, ACTS, count, "acts")
    emotion_names = _named(emotions, {str(number): name for number, name in EMOTIONS.items()}, count, "emotions")
    turns = tuple(
        turn._replace(labels={key: value for key, value in (("act", act), ("emotion", emotion)) if value})
        for turn, act, emotion in zip(dialogue.turns, act_names, emotion_names, strict=True)
    )
    labels = (
        {"topic": _named([topic], {str(n): name for n, name in enumerate(TOPICS, 1)}, 1, "topic")[0]} if topic else {}
    )
    return dialogue._replace(turns=turns, labels=labels)


def _named(numbers: Sequence[str], names: dict[str, str], count: int, what: str) -> list[str]:
    if not numbers:
        return [""] * count
    if len(numbers) != count or not all(number in names for number in numbers):
        raise BadRecord(f"{count} {what}", f"{' '.join(numbers)!r}")
    return [names[number] for number in numbers]


def label_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Label files stand beside the text they label and are read with it."""
    return {
        path: "read as labels of the text beside it"
        if "topic" not in path.name or any(plain_name(other) == "dialogues_text.txt" for other in paths)
        else "topics are numbered along dialogues_text.txt, which is not here"
        for path in paths
        if _LABEL_FILE.fullmatch(plain_name(path))
    }


def companion_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Companions of text that Turnwise wrote."""
    return {path: "read together with its text" for path in paths if path.name.endswith(COMPANION)}
