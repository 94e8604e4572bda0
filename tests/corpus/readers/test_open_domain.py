from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import Turn, load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]

# --- EmpatheticDialogues ----------------------------------------------------------------------------------------------

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"


def test_empathetic_rows_of_one_conversation_are_one_dialogue(file: File) -> None:
    rows = 'c1,1,afraid,Dark,6,I heard "a noise_comma_ then another,5|5,\nc1,2,afraid,Dark,7,Scary!,5|5,<HIT>\n'
    (dialogue,) = load(file("train.csv", HEADER + rows))
    assert dialogue.turns == (Turn("6", 'I heard "a noise, then another'), Turn("7", "Scary!", {"tags": "<HIT>"}))
    assert dialogue.labels == {"emotion": "afraid", "situation": "Dark", "selfeval": "5|5"}
    assert (dialogue.id, dialogue.split) == ("c1", "train")


def test_a_bad_row_makes_its_conversation_bad_and_no_other(file: File) -> None:
    rows = "c1,1,a,b,0,Hi.,,\nc1,2,a,b,1\nc1,3,a,b,0,Bye.,,\nc2,1,a,b,0,Yo.,,\n"
    corpus = load(file("train.csv", HEADER + rows), on_error="skip")
    assert ([dialogue.id for dialogue in corpus], corpus.skipped) == (["c2"], {"expected 8 columns": 1})


# --- PersonaChat ------------------------------------------------------------------------------------------------------

PARLAI = (
    "1 your persona: i read.\n2 partner's persona: i run.\n3 hello ?\thi , i read .\t\tcat|dog\n4 me too\tnice\n"
    "1 your persona: i cook.\n2 __SILENCE__\tshall we start ?\n"
)


def test_parlai_numbers_start_again_with_each_dialogue(file: File) -> None:
    first, second = load(file("valid_both_original.txt", PARLAI))
    assert first.texts == ["hello ?", "hi , i read .", "me too", "nice"]
    assert first.turns[1] == Turn("B", "hi , i read .", {"candidates": ["cat", "dog"]})
    assert first.labels == {"persona": {"B": ["i read."], "A": ["i run."]}}
    assert second.turns == (Turn("B", "shall we start ?"),)


def test_parlai_views_of_the_same_dialogues_are_read_once(file: File) -> None:
    for view in ("self_revised", "both_original", "both_original_no_cands", "self_original"):
        folder = file(f"valid_{view}.txt", PARLAI).parent
    corpus = load(folder)
    assert len(corpus) == 2
    others = {"valid_self_revised.txt", "valid_self_original.txt", "valid_both_original_no_cands.txt"}
    assert {Path(path).name for path in corpus.ignored} == others
    assert set(corpus.ignored.values()) == {"another view of the dialogues in valid_both_original.txt"}


def test_a_parlai_line_that_is_neither_persona_nor_pair_is_reported(file: File) -> None:
    with pytest.raises(CorpusError, match=r":2: expected a persona line, or a query and a reply"):
        load(file("valid_none_original.txt", "1 hello\thi\n2 no tab here\n"))


# --- Wizard of Wikipedia, BlendedSkillTalk, ConvAI, in the form their publishers document -----------------------------


def test_wizard_turns_keep_the_sentence_they_were_written_from(file: File) -> None:
    turn = {
        "speaker": "0_Wizard",
        "text": "Blue is a colour.",
        "checked_sentence": {"k": "Blue"},
        "retrieved_passages": [1],
    }
    record = {"chosen_topic": "Blue", "persona": "i like blue.", "wizard_eval": 5, "dialog": [turn]}
    (dialogue,) = load(file("test.json", json.dumps([record])))
    assert dialogue.turns == (Turn("0_Wizard", "Blue is a colour.", {"checked_sentence": {"k": "Blue"}}),)
    assert dialogue.labels == {"chosen_topic": "Blue", "wizard_eval": 5, "persona": {"0_Wizard": ["i like blue."]}}


def test_knowledge_belongs_to_the_reply_it_stands_for(file: File) -> None:
    record = {"meta": [["Roses grow."], []], "dialogue": [["Hi", "Roses!"], ["Oh", "Bye"]]}
    (dialogue,) = load(file("test.json", json.dumps([record])))
    assert [turn.labels for turn in dialogue.turns] == [{}, {"knowledge": ["Roses grow."]}, {}, {}]


def test_flat_meta_is_the_persona_of_who_replies(file: File) -> None:
    (dialogue,) = load(file("test.json", json.dumps([{"meta": ["i'm a nurse."], "dialogue": [["hi", "hey"]]}])))
    assert dialogue.labels == {"persona": {"B": ["i'm a nurse."]}}


def test_blended_skill_talk_seeds_stay_labels(file: File) -> None:
    record = {
        "personas": [["i cook."], ["i run."]],
        "context_dataset": "convai2",
        "free_turker_utterance": "Seed one.",
        "guided_turker_utterance": "Seed two.",
        "dialog": [[0, "Hi."], [1, "Hello."]],
        "suggestions": [{}],
    }
    (dialogue,) = load(file("train.json", json.dumps([record])))
    assert dialogue.turns == (Turn("0", "Hi."), Turn("1", "Hello."))
    assert dialogue.labels["persona"] == {"0": ["i cook."], "1": ["i run."]}
    assert dialogue.labels["free_turker_utterance"] == "Seed one."


def test_convai_judgements_stay_with_who_made_them(file: File) -> None:
    record = {
        "dialogId": 7,
        "context": "Some text.",
        "users": [{"id": "Alice", "userType": "Human"}, {"id": "Bob", "userType": "Bot"}],
        "thread": [
            {"userId": "Alice", "text": "Hi.", "evaluation": 1},
            {"userId": "Bob", "text": "Yo.", "evaluation": 0},
        ],
        "evaluation": [
            {"userId": "Alice", "quality": 2, "engagement": 3},
            {"userId": "Bob", "quality": 5, "engagement": 4},
        ],
    }
    (dialogue,) = load(file("train.json", json.dumps([record])))
    assert dialogue.labels["ratings"] == {"quality": {"Alice": 2, "Bob": 5}, "engagement": {"Alice": 3, "Bob": 4}}
    assert (dialogue.id, dialogue.turns[0]) == ("7", Turn("Alice", "Hi.", {"evaluation": 1}))
