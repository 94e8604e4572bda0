"""Ubuntu chat in its two published forms (Dialogue Corpus CSV, IRC logs with reply links), and OpenSubtitles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item, alternate, parsed
from dialoscope.corpus.streams import (
    COMPRESSED,
    BadRecord,
    LeftOut,
    Record,
    Source,
    csv_records,
    lines,
    member,
    plain_name,
    shown,
)

# --- Ubuntu Dialogue Corpus ------------------------------------------------------------------------------------------


def read_ubuntu_csv(source: Source) -> Iterator[Item]:
    """`Context,Utterance,Label` (training) or `Context,Ground Truth Utterance,Distractor_0,…` (validation and test)."""
    yield from parsed(csv_records(source), _ubuntu_row)


def _ubuntu_row(record: Record) -> list[Dialogue | LeftOut]:
    """`__eou__` ends a message and `__eot__` a speaker's turn; a wrong response (Label 0) was never said."""
    row = record.value
    label = row.get("Label", "1").strip()
    if label in ("0", "0.0"):
        return [LeftOut("negative sample (Label 0): its response belongs to another dialogue")]
    if label not in ("1", "1.0"):
        raise BadRecord("a Label of 0 or 1", shown(label))
    response = row["Ground Truth Utterance"] if "Ground Truth Utterance" in row else member(row, "Utterance", str)
    said = [*member(row, "Context", str).split("__eot__")]
    bursts = [burst for burst in said if burst.strip()] + [response]
    turns = tuple(
        Turn("AB"[place % 2], message.strip())
        for place, burst in enumerate(bursts)
        for message in burst.split("__eou__")
        if message.strip()
    )
    distractors = [text for column, text in row.items() if column.startswith("Distractor")]
    return [Dialogue(turns, labels={"distractors": distractors} if distractors else {})]


# --- Ubuntu IRC ------------------------------------------------------------------------------------------------------

_SAID = re.compile(r"\[\d\d:\d\d\] <([^>]+)> ?(.*)")
_DID = re.compile(r"\[\d\d:\d\d\]\s+\* (\S+) ?(.*)")


def read_irc(source: Source) -> Iterator[Item]:
    """`DAY.ascii.txt` with `DAY.annotation.txt`: messages joined by reply links are one conversation.

    Messages before the annotated part belong to a conversation where a link reaches back to them; server notices
    (`=== … has joined`) are no turns.
    """
    annotation = _annotation(source.path)
    if annotation is None:
        raise BadRecord(f"reply links in {source.name.removesuffix('.ascii.txt')}.annotation.txt", "no such file")
    said = [_irc_turn(line) for _, line in lines(source)]
    for members in _conversations(annotation, len(said)):
        turns = tuple(turn for place in members if (turn := said[place]) is not None)
        if len(turns) > 1:
            name = source.name.removesuffix(".ascii.txt")
            yield members[0] + 1, Dialogue(turns, f"{name}-{members[0]}")
        else:
            yield LeftOut("a message that nobody answered" if turns else "server notices only")


def _irc_turn(line: str) -> Turn | None:
    if match := _SAID.match(line):
        return Turn(match.group(1), match.group(2).strip())
    if match := _DID.match(line):
        return Turn(match.group(1), f"* {match.group(2).strip()}")
    return None


def _conversations(annotation: Source, count: int) -> list[list[int]]:
    """Connected components of the reply links, each in the order of the log."""
    parent = list(range(count))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    linked: set[int] = set()
    for number, line in lines(annotation):
        one, other = _link(line, number, count, annotation.name)
        linked |= {one, other}
        first, second = sorted((root(one), root(other)))
        parent[second] = first
    groups: dict[int, list[int]] = {}
    for place in sorted(linked):
        groups.setdefault(root(place), []).append(place)
    return list(groups.values())


def _link(line: str, number: int, count: int, name: str) -> tuple[int, int]:
    parts = line.split()
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        raise BadRecord("two message numbers in a reply link", f"{shown(line)} on line {number} of {name}")
    one, other = int(parts[0]), int(parts[1])
    if max(one, other) >= count:
        raise BadRecord("reply links between messages of the log", f"{shown(line)} on line {number} of {name}")
    return one, other


def _annotation(path: Path) -> Source | None:
    stem = plain_name(path).removesuffix(".ascii.txt")
    files = [path.with_name(f"{stem}.annotation.txt{ending}") for ending in ("", *COMPRESSED)]
    return next((Source(file) for file in files if file.is_file()), None)


def annotation_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Reply links are read with their log; raw and tokenised logs are the same messages again."""
    names = {path: plain_name(path) for path in paths}
    logs = {name.removesuffix(".ascii.txt") for name in names.values() if name.endswith(".ascii.txt")}
    aside = {}
    for path, name in names.items():
        stem, _, kind = name.removesuffix(".txt").rpartition(".")
        if stem in logs and kind in ("annotation", "raw", "tok"):
            aside[path] = "read as reply links" if kind == "annotation" else "the same messages as the .ascii.txt file"
    return aside


# --- OpenSubtitles ---------------------------------------------------------------------------------------------------


def read_opensubtitles(source: Source) -> Iterator[Item]:
    """OPUS XML, a movie per file and so a dialogue per file: every `<s>` is a turn, in `<w>` words or running text."""
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(["end"])
    texts: list[str] = []
    try:
        for block in source.blocks(1 << 20):
            parser.feed(block)
            texts.extend(_sentences(parser))
        parser.close()
        texts.extend(_sentences(parser))
    except ElementTree.ParseError as error:
        yield BadRecord("well-formed XML", error.msg, error.position[0])
        return
    yield 1, Dialogue(alternate(texts))


def _sentences(parser: ElementTree.XMLPullParser[Any]) -> Iterator[str]:
    event: Any
    for event in parser.read_events():
        element = event[1]
        if element.tag == "s":
            words = [word.text or "" for word in element.iter("w")]
            text = " ".join(words) if words else " ".join("".join(element.itertext()).split())
            element.clear()
            if text:
                yield text
