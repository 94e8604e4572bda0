"""Task-oriented data sets: MultiWOZ 2.0, 2.1 and 2.2, and Schema-Guided Dialogue.

All of them end in the same labels: `state` (what the user has asked for so far), `acts`, and the dialogue's `goal`.
The state stays on the turn where its publisher put it: MultiWOZ 2.0/2.1 on the system's turn that answers, 2.2 and SGD
on the user's turn that asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item, parsed
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
    without,
)

Act = dict[str, Any]
State = dict[str, dict[str, list[str]]]  # domain -> slot -> values
NOT_GIVEN = ("", "not mentioned", "none", None)


# --- MultiWOZ 2.0 and 2.1 --------------------------------------------------------------------------------------------


def read_multiwoz(source: Source) -> Iterator[Item]:
    """`{id: {"goal": …, "log": […]}}`, with the list files of splits and the acts of 2.0 where they stand beside it."""
    splits = _split_lists(source.path)
    acts = _acts_beside(source.path, "dialogue_acts.json", "system_acts.json")

    def parse(record: Record) -> list[Dialogue]:
        split = splits.get(record.key, "train" if splits else "")
        return [_multiwoz(record, acts.get(record.key.removesuffix(".json"), {}))._replace(split=split)]

    yield from parsed(json_records(source), parse)


def parse_multiwoz(record: Record) -> list[Dialogue]:
    """One MultiWOZ 2.0 or 2.1 dialogue."""
    return [_multiwoz(record, {})]


def _multiwoz(record: Record, acts: dict[str, Any]) -> Dialogue:
    log = member(record.value, "log", list)
    # In 2.0 acts are numbered by the system's turns, from 1: the first one is turn 1 of the log.
    turns = tuple(_multiwoz_turn(turn, i, acts.get(str((i + 1) // 2)) if i % 2 else None) for i, turn in enumerate(log))
    goal = need(record.value.get("goal", {}), dict, "'goal'")
    wanted = {domain: want for domain, want in goal.items() if isinstance(want, dict) and want and domain != "topic"}
    return Dialogue(turns, record.key, labels={"goal": wanted} if wanted else {})


def _multiwoz_turn(turn: Any, place: int, acts: Any) -> Turn:
    metadata = need(turn.get("metadata") or {}, dict, "'metadata'") if isinstance(turn, dict) else {}
    text = member(turn, "text", str)
    labels = without(turn, "text", "metadata", "dialog_act")
    if metadata:
        labels["state"] = _multiwoz_state(metadata)
        booked = {domain: booking for domain in metadata if (booking := _booked(metadata[domain]))}
        labels |= {"booked": booked} if booked else {}
    named = turn.get("dialog_act", acts)
    labels |= {"acts": acts_of(named)} if isinstance(named, dict) else {}
    return Turn("system" if place % 2 else "user", text, {key: value for key, value in labels.items() if value != []})


def _multiwoz_state(metadata: dict[str, Any]) -> State:
    """Slots that were given, by domain; those of a booking are written `book SLOT`, as is usual for this data."""
    state: State = {}
    for domain, parts in metadata.items():
        parts = need(parts, dict, f"the state of '{domain}'")
        given = {**_given(parts.get("semi"), ""), **_given(parts.get("book"), "book ")}
        if given:
            state[domain] = given
    return state


def _given(slots: Any, prefix: str) -> dict[str, list[str]]:
    slots = need(slots or {}, dict, "slots")
    values = {slot: [value] if isinstance(value, str) else value for slot, value in slots.items() if slot != "booked"}
    return {
        prefix + slot: kept
        for slot, value in values.items()
        if isinstance(value, list) and (kept := [str(one) for one in value if one not in NOT_GIVEN])
    }


def _booked(parts: Any) -> Any:
    book = parts.get("book") if isinstance(parts, dict) else None
    return book.get("booked") if isinstance(book, dict) else None


def acts_of(named: dict[str, Any]) -> list[Act]:
    """`{"Hotel-Inform": [["Area", "east"]]}` as acts with a domain, a slot and values."""
    return [
        _act(name, *need(pair, list, "an act's slot and value"))
        for name, pairs in named.items()
        for pair in need(pairs, list, "an act's slots")
    ]


def _act(name: str, *pair: Any) -> Act:
    if len(pair) != 2:
        raise BadRecord("a slot and a value", f"{len(pair)} entries")
    domain, _, act = name.lower().partition("-")
    slot, value = (str(part) for part in pair)
    values = [] if value in ("?", "none", "") else [value]
    return {"domain": domain, "act": act, "slot": "" if slot == "none" else slot.lower(), "values": values}


def _split_lists(path: Path) -> dict[str, str]:
    """Dialogue id -> split, from `valListFile` and `testListFile` beside the data; whatever is in neither is train."""
    splits: dict[str, str] = {}
    for name, split in (("valListFile", "validation"), ("testListFile", "test")):
        for file in _beside(path, f"{name}.txt", f"{name}.json"):
            splits |= {line.strip(): split for _, line in lines(Source(file)) if line.strip()}
    return splits


def _acts_beside(path: Path, *names: str) -> dict[str, Any]:
    return next((_acts(file, file.stat().st_mtime_ns) for file in _beside(path, *names)), {})


@lru_cache(maxsize=1)  # MultiWOZ 2.2 has one file of acts for all its files of dialogues
def _acts(file: Path, changed: int) -> dict[str, Any]:
    try:
        return need(orjson.loads(b"".join(Source(file).blocks())), dict, "acts")
    except orjson.JSONDecodeError as error:
        raise BadRecord("JSON in the file of acts", f"{error} in {file.name}") from error


def _beside(path: Path, *names: str) -> list[Path]:
    """Files of these names in the same folder or the one above."""
    places = [
        folder / (name + ending)
        for folder in (path.parent, path.parent.parent)
        for name in names
        for ending in ("", *COMPRESSED)
    ]
    return [place for place in places if place.is_file()][:1]


# --- MultiWOZ 2.2 and SGD --------------------------------------------------------------------------------------------


def read_multiwoz22(source: Source) -> Iterator[Item]:
    """MultiWOZ 2.2: frames as in SGD; acts stand apart in `dialog_acts.json` of the folder above."""
    acts = _acts_beside(source.path, "dialog_acts.json")

    def parse(record: Record) -> list[Dialogue]:
        (dialogue,) = parse_frames(record)
        return [_with_acts(dialogue, acts.get(dialogue.id, {}))]

    yield from parsed(json_records(source), parse)


def _with_acts(dialogue: Dialogue, acts: dict[str, Any]) -> Dialogue:
    turns = []
    for place, turn in enumerate(dialogue.turns):
        named = need(acts.get(str(place), {}), dict, "a turn's acts").get("dialog_act")
        turns.append(turn._replace(labels={**turn.labels, "acts": acts_of(named)}) if named else turn)
    return dialogue._replace(turns=tuple(turns))


def parse_frames(record: Record) -> list[Dialogue]:
    """`{"dialogue_id", "services", "turns": [{"speaker", "utterance", "frames": […]}]}`.

    A frame holds the state of its own service only, and only while that service is talked about, so the state of
    the whole dialogue is carried on from turn to turn.
    """
    state: State = {}
    turns = []
    for turn in member(record.value, "turns", list):
        frames = [need(frame, dict, "a frame") for frame in member(turn, "frames", list)]
        state = _updated(state, frames)
        labels = {**without(turn, "speaker", "utterance", "frames"), **_frame_labels(frames, state)}
        turns.append(Turn(member(turn, "speaker", str).lower(), member(turn, "utterance", str), labels))
    services = need(record.value.get("services", []), list, "'services'")
    goal: dict[str, Any] = {"goal": {str(service): {} for service in services}} if services else {}
    return [Dialogue(tuple(turns), member(record.value, "dialogue_id", str), labels=goal)]


def _frame_labels(frames: Sequence[dict[str, Any]], state: State) -> dict[str, Any]:
    """The state where a frame has one, and the acts of all frames."""
    acts = [_frame_act(act, frame) for frame in frames for act in need(frame.get("actions") or [], list, "'actions'")]
    has_state = any("state" in frame for frame in frames)
    return {**({"state": state} if has_state else {}), **({"acts": acts} if acts else {})}


def _updated(state: State, frames: Sequence[dict[str, Any]]) -> State:
    """The state of the dialogue once these frames are known; a service without values is none."""
    state = dict(state)
    for frame in frames:
        if "state" in frame:
            service = member(frame, "service", str)
            state[service] = _slot_values(service, member(frame, "state", dict))
    return {service: given for service, given in state.items() if given}


def _slot_values(service: str, state: dict[str, Any]) -> dict[str, list[str]]:
    """Values by slot; MultiWOZ 2.2 writes the service before each slot, SGD does not."""
    values = need(state.get("slot_values", {}), dict, "'slot_values'")
    return {
        slot.removeprefix(f"{service}-"): need(given, list, f"values of '{slot}'") for slot, given in values.items()
    }


def _frame_act(action: Any, frame: dict[str, Any]) -> Act:
    values = need(action.get("values") or [], list, "an act's values") if isinstance(action, dict) else []
    act, slot = member(action, "act", str).lower(), need(action.get("slot") or "", str, "an act's slot")
    return {"domain": member(frame, "service", str), "act": act, "slot": slot, "values": values}


def side_files(paths: Sequence[Path]) -> dict[Path, str]:
    """Schemas, ontologies, act and list files of the task-oriented sets: read with the dialogues, or not needed."""
    read = {"dialogue_acts.json", "system_acts.json", "dialog_acts.json", *_LISTS}
    unused = {"schema.json", "ontology.json", "slot_descriptions.json", "tokenization.md"}
    names = {path: plain_name(path) for path in paths}
    aside = {path: "read together with the dialogues" for path, name in names.items() if name in read}
    return aside | {path: "describes the data; holds no dialogues" for path, name in names.items() if name in unused}


_LISTS = {f"{name}.{ending}" for name in ("valListFile", "testListFile", "trainListFile") for ending in ("txt", "json")}
