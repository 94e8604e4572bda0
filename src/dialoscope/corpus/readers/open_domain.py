"""Open-domain data sets: EmpatheticDialogues, PersonaChat, Wizard of Wikipedia, BlendedSkillTalk, ConvAI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item, alternate
from dialoscope.corpus.streams import (
    BadRecord,
    Record,
    Source,
    csv_records,
    describe,
    lines,
    member,
    need,
    plain_name,
    shown,
    without,
)

# --- EmpatheticDialogues ---------------------------------------------------------------------------------------------


def read_empathetic(source: Source) -> Iterator[Item]:
    """One utterance a row; commas inside a field are written `_comma_`, so quotes mean nothing."""
    conversation: list[Record | BadRecord] = []
    for row in csv_records(source, quoted=False):
        if conversation and isinstance(row, Record) and _conversation(row) != _conversation(conversation[0]):
            yield _empathetic(conversation)
            conversation = []
        conversation.append(row)
    if conversation:
        yield _empathetic(conversation)


def _utterance_index(row: Record) -> int:
    index = str(row.value.get("utterance_idx", ""))
    return int(index) if index.isdecimal() else 0


def _conversation(row: Record | BadRecord) -> str:
    return "" if isinstance(row, BadRecord) else str(row.value.get("conv_id", ""))


def _empathetic(rows: Sequence[Record | BadRecord]) -> tuple[int, Dialogue] | BadRecord:
    """A conversation; one bad row makes the whole of it bad, for a dialogue with a gap is another dialogue."""
    good = sorted((row for row in rows if isinstance(row, Record)), key=_utterance_index)
    for row in rows:
        if isinstance(row, BadRecord):
            return row
    first = good[0]
    try:
        turns = tuple(Turn(_cell(row, "speaker_idx"), _cell(row, "utterance"), _tags(row)) for row in good)
        labels = {"emotion": _cell(first, "context"), "situation": _cell(first, "prompt")}
        selfeval = first.value.get("selfeval")
        labels |= {"selfeval": selfeval} if selfeval else {}
        return first.line, Dialogue(turns, _cell(first, "conv_id"), labels=labels)
    except BadRecord as bad:
        return bad.at(first.line)


def _cell(row: Record, column: str) -> str:
    return member(row.value, column, str).replace("_comma_", ",").strip()


def _tags(row: Record) -> dict[str, Any]:
    return {"tags": row.value["tags"]} if row.value.get("tags") else {}


# --- PersonaChat, ParlAI text ----------------------------------------------------------------------------------------

_NUMBERED = re.compile(r"(\d+) (.*)", re.DOTALL)
_VIEW = re.compile(r"(train|valid|test)_(self|other|both|none)_(original|revised)(_no_cands)?\.txt")
_VIEWS_BY_WORTH = ["both_original", "self_original", "both_revised", "self_revised", "other_original", "other_revised"]
_PERSONA = {"your persona: ": "B", "partner's persona: ": "A"}  # "you" are the one who replies


def read_personachat(source: Source) -> Iterator[Item]:
    """Numbered lines that start again at 1 with each dialogue: persona lines, then `query<TAB>reply`."""
    block: list[tuple[int, str]] = []
    for number, line in lines(source):
        if line.startswith("1 ") and block:
            yield _persona_dialogue(block)
            block = []
        if line.strip():
            block.append((number, line))
    if block:
        yield _persona_dialogue(block)


def _persona_dialogue(block: Sequence[tuple[int, str]]) -> tuple[int, Dialogue] | BadRecord:
    persona: dict[str, list[str]] = {}
    turns: list[Turn] = []
    for number, line in block:
        match = _NUMBERED.fullmatch(line)
        if match is None:
            return BadRecord("a numbered line", shown(line), number)
        rest = match.group(2)
        prefix = next((prefix for prefix in _PERSONA if rest.startswith(prefix)), None)
        if prefix:
            persona.setdefault(_PERSONA[prefix], []).append(rest.removeprefix(prefix))
        elif "\t" in rest:
            turns.extend(_persona_pair(rest.split("\t")))
        else:
            return BadRecord("a persona line, or a query and a reply with a tab between", shown(rest), number)
    return block[0][0], Dialogue(tuple(turns), labels={"persona": persona} if persona else {})


def _persona_pair(columns: list[str]) -> Iterator[Turn]:
    if columns[0] != "__SILENCE__":  # ParlAI's word for "the other side speaks first"
        yield Turn("A", columns[0])
    candidates = {"candidates": columns[3].split("|")} if len(columns) > 3 and columns[3] else {}
    yield Turn("B", columns[1], candidates)


def other_views(paths: Sequence[Path]) -> dict[Path, str]:
    """ParlAI's PersonaChat files show one set of dialogues with other personas beside it: one view a split is read."""
    views: dict[tuple[Path, str], list[tuple[int, Path]]] = {}
    for path in paths:
        if match := _VIEW.fullmatch(plain_name(path)):
            view = f"{match.group(2)}_{match.group(3)}"
            worth = _VIEWS_BY_WORTH.index(view) if view in _VIEWS_BY_WORTH else len(_VIEWS_BY_WORTH)
            views.setdefault((path.parent, match.group(1)), []).append((worth, path))
    aside: dict[Path, str] = {}
    for found in views.values():
        best = min(found)[1]
        aside |= {path: f"another view of the dialogues in {best.name}" for _, path in found if path != best}
    return aside


# --- Wizard of Wikipedia ---------------------------------------------------------------------------------------------


def parse_wizard(record: Record) -> list[Dialogue]:
    """`{"chosen_topic": …, "dialog": [{"speaker": …, "text": …, "checked_sentence": …}, …]}`.

    What the retriever offered and the annotator did not use (`retrieved_passages`) is not kept.
    """
    turns = tuple(
        Turn(
            member(turn, "speaker", str),
            member(turn, "text", str),
            without(turn, "speaker", "text", "retrieved_passages", "candidate_responses"),
        )
        for turn in member(record.value, "dialog", list)
    )
    labels = without(record.value, "dialog", "chosen_topic_passage", "persona")
    persona = record.value.get("persona")
    wizard = next((turn.speaker for turn in turns if turn.speaker.endswith("Wizard")), "0_Wizard")
    labels |= {"persona": {wizard: [persona]}} if isinstance(persona, str) else {}
    return [Dialogue(turns, record.key, labels=labels)]


def parse_meta_dialogue(record: Record) -> list[Dialogue]:
    """`{"meta": …, "dialogue": [[query, reply], …]}`: knowledge for each pair, or the persona of who replies."""
    pairs = member(record.value, "dialogue", list)
    meta = need(record.value.get("meta", []), list, "'meta'")
    turns = alternate(_pair_texts(pairs))
    labels = without(record.value, "meta", "dialogue")
    if all(isinstance(entry, str) for entry in meta):
        labels |= {"persona": {"B": meta}} if meta else {}
        return [Dialogue(turns, record.key, labels=labels)]
    if len(meta) != len(pairs):
        raise BadRecord(f"knowledge for each of {len(pairs)} pairs in 'meta'", f"{len(meta)} entries")
    known = [{"knowledge": entry} if entry else {} for entry in meta]
    turns = tuple(
        turn if place % 2 == 0 else turn._replace(labels=known[place // 2]) for place, turn in enumerate(turns)
    )
    return [Dialogue(turns, record.key, labels=labels)]


def _pair_texts(pairs: list[Any]) -> Iterator[str]:
    for pair in pairs:
        if len(need(pair, list, "an entry of 'dialogue'")) != 2:
            raise BadRecord("a query and a reply", describe(pair))
        yield from (need(text, str, "an utterance") for text in pair)


# --- BlendedSkillTalk, ConvAI ----------------------------------------------------------------------------------------


def parse_blended(record: Record) -> list[Dialogue]:
    """`{"personas": [[…], […]], "dialog": [[0, text], [1, text], …]}`.

    The two utterances that workers were shown as a start (`free_turker_utterance`, `guided_turker_utterance`) were
    said by others, in another conversation: they stay labels.
    """
    turns = tuple(_blended_turn(entry) for entry in member(record.value, "dialog", list))
    personas = need(record.value.get("personas", []), list, "'personas'")
    labels = without(record.value, "dialog", "personas", "suggestions")
    labels["persona"] = {str(speaker): persona for speaker, persona in enumerate(personas)}
    return [Dialogue(turns, record.key, labels=labels)]


def _blended_turn(entry: Any) -> Turn:
    if len(need(entry, list, "an entry of 'dialog'")) != 2:
        raise BadRecord("a speaker and a text", describe(entry))
    return Turn(str(need(entry[0], int, "a speaker")), need(entry[1], str, "a text"))


def parse_convai(record: Record) -> list[Dialogue]:
    """ConvAI 2017: `{"dialogId": …, "thread": [{"userId", "text", "evaluation"}], "evaluation": [{…}], …}`.

    Each participant's judgement of the whole dialogue becomes `ratings`: aspect -> participant -> score.
    """
    turns = tuple(
        Turn(member(turn, "userId", str), member(turn, "text", str), without(turn, "userId", "text"))
        for turn in member(record.value, "thread", list)
    )
    ratings: dict[str, dict[str, Any]] = {}
    for judgement in need(record.value.get("evaluation") or [], list, "'evaluation'"):
        judge = str(member(judgement, "userId", str))
        for aspect, score in without(judgement, "userId").items():
            ratings.setdefault(aspect, {})[judge] = score
    labels = without(record.value, "thread", "evaluation", "dialogId")
    labels |= {"ratings": ratings} if ratings else {}
    return [Dialogue(turns, str(record.value.get("dialogId", record.key)), labels=labels)]
