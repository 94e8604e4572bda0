from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoscope.corpus import load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]


def metadata(**hotel: str) -> dict[str, Any]:
    return {
        "hotel": {"semi": {"area": "", "stars": "not mentioned", **hotel}, "book": {"booked": [], "people": "3"}},
        "taxi": {"semi": {"destination": ""}, "book": {"booked": []}},
    }


DIALOGUE = {
    "goal": {"hotel": {"info": {"area": "east"}}, "taxi": {}, "topic": {"hotel": True}, "message": ["…"]},
    "log": [
        {"text": "A hotel in the east .", "metadata": {}, "dialog_act": {"Hotel-Inform": [["Area", "east"]]}},
        {"text": "What price ?", "metadata": metadata(area="east"), "dialog_act": {"Hotel-Request": [["Price", "?"]]}},
    ],
}


def test_multiwoz_states_hold_only_what_was_given(file: File) -> None:
    (dialogue,) = load(file("test.json", json.dumps({"PMUL1": DIALOGUE}, indent=1)))
    assert [turn.speaker for turn in dialogue.turns] == ["user", "system"]
    assert dialogue.turns[1].labels["state"] == {"hotel": {"area": ["east"], "book people": ["3"]}}
    assert "state" not in dialogue.turns[0].labels


def test_multiwoz_acts_have_domain_slot_and_values(file: File) -> None:
    (dialogue,) = load(file("test.json", json.dumps({"PMUL1": DIALOGUE})))
    assert dialogue.turns[0].labels["acts"] == [
        {"domain": "hotel", "act": "inform", "slot": "area", "values": ["east"]}
    ]
    assert dialogue.turns[1].labels["acts"] == [{"domain": "hotel", "act": "request", "slot": "price", "values": []}]


def test_multiwoz_goals_name_the_domains_the_user_came_for(file: File) -> None:
    (dialogue,) = load(file("test.json", json.dumps({"PMUL1": DIALOGUE})))
    assert dialogue.labels == {"goal": {"hotel": {"info": {"area": "east"}}}}


def test_multiwoz_splits_come_from_the_list_files(file: File) -> None:
    file("valListFile.json", "B.json\n")
    file("testListFile.json", "C.json\n")
    folder = file("data.json", json.dumps({f"{name}.json": DIALOGUE for name in "ABC"}, indent=1)).parent
    corpus = load(folder)
    assert {dialogue.id: dialogue.split for dialogue in corpus} == {
        "A.json": "train",
        "B.json": "validation",
        "C.json": "test",
    }


def test_multiwoz_2_0_acts_stand_in_a_file_of_their_own(file: File) -> None:
    old = {"goal": {}, "log": [{"text": turn["text"], "metadata": turn["metadata"]} for turn in DIALOGUE["log"]]}  # type: ignore[index]
    file("dialogue_acts.json", json.dumps({"SNG1": {"1": {"Hotel-Request": [["Price", "?"]]}}}))
    folder = file("data.json", json.dumps({"SNG1.json": old}, indent=1)).parent
    (dialogue,) = load(folder)
    assert dialogue.turns[1].labels["acts"] == [{"domain": "hotel", "act": "request", "slot": "price", "values": []}]


def frame(service: str, **slots: list[str]) -> dict[str, Any]:
    return {"service": service, "slots": [], "state": {"active_intent": "x", "slot_values": slots}}


SGD = {
    "dialogue_id": "1_00000",
    "services": ["Restaurants_1", "Taxi_1"],
    "turns": [
        {
            "speaker": "USER",
            "utterance": "Sushi for 2.",
            "frames": [frame("Restaurants_1", food=["sushi"], seats=["2"])],
        },
        {
            "speaker": "SYSTEM",
            "utterance": "Where?",
            "frames": [{"service": "Restaurants_1", "actions": [{"act": "REQUEST", "slot": "city", "values": []}]}],
        },
        {"speaker": "USER", "utterance": "A taxi too.", "frames": [frame("Taxi_1", to=["Sino"])]},
    ],
}


def test_the_state_of_a_service_is_carried_on_while_another_is_talked_about(file: File) -> None:
    (dialogue,) = load(file("train/dialogues_001.json", json.dumps([SGD])))
    assert dialogue.turns[2].labels["state"] == {
        "Restaurants_1": {"food": ["sushi"], "seats": ["2"]},
        "Taxi_1": {"to": ["Sino"]},
    }


def test_frame_actions_become_acts(file: File) -> None:
    (dialogue,) = load(file("dialogues_001.json", json.dumps([SGD])))
    act = {"domain": "Restaurants_1", "act": "request", "slot": "city", "values": []}
    assert (dialogue.turns[1].speaker, dialogue.turns[1].labels) == ("system", {"acts": [act]})


def test_multiwoz_2_2_folders_are_read_with_their_acts(file: File) -> None:
    turn = {
        "turn_id": "0",
        "speaker": "USER",
        "utterance": "East.",
        "frames": [frame("hotel", **{"hotel-area": ["east"]})],
    }
    record = {"dialogue_id": "PMUL1.json", "services": ["hotel"], "turns": [turn]}
    folder = file("dev/dialogues_001.json", json.dumps([record])).parents[1]
    file("dialog_acts.json", json.dumps({"PMUL1.json": {"0": {"dialog_act": {"Hotel-Inform": [["area", "east"]]}}}}))
    file("schema.json", "[]")
    corpus = load(folder)
    (dialogue,) = corpus
    assert (corpus.format, dialogue.split) == ("multiwoz22", "validation")
    assert dialogue.turns[0].labels["state"] == {"hotel": {"area": ["east"]}}
    assert dialogue.turns[0].labels["acts"] == [
        {"domain": "hotel", "act": "inform", "slot": "area", "values": ["east"]}
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log": [{"text": 5}]}, "expected 'text' to be a string, found the number 5"),
        ({"log": [{"text": "a", "metadata": []}]}, None),
        ({"log": [{"text": "a", "metadata": {"hotel": 5}}]}, "expected the state of 'hotel' to be an object"),
        ({"log": [{"text": "a", "dialog_act": {"Hotel-Inform": [["Area"]]}}]}, "expected a slot and a value"),
        ({"log": []}, "expected at least one turn, found none"),
    ],
)
def test_malformed_multiwoz_is_reported_at_the_dialogue(
    file: File, change: dict[str, Any], message: str | None
) -> None:
    path = file(
        "data.json", json.dumps({"A": DIALOGUE, "B": {**DIALOGUE, **change}}, indent=None).replace('"B"', '\n"B"')
    )
    if message is None:
        assert len(load(path)) == 2
    else:
        with pytest.raises(CorpusError, match=rf"data\.json:2: {message}"):
            load(path)
