from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]


def test_a_line_with_marks_is_a_dialogue_of_two_speakers(file: File) -> None:
    (dialogue,) = load(file("a.txt", "Hi . __eou__ Hello . __eou__ Bye . __eou__\n"))
    assert [(turn.speaker, turn.text) for turn in dialogue.turns] == [("A", "Hi ."), ("B", "Hello ."), ("A", "Bye .")]


def test_the_last_mark_may_be_missing(file: File) -> None:
    assert load(file("a.txt", "Hi . __eou__ Hello .\n"))[0].texts == ["Hi .", "Hello ."]


def test_blank_lines_separate_dialogues_without_marks(file: File) -> None:
    corpus = load(file("a.txt", "\nHi.\nHello.\n\n\nWhy?\r\nBecause.\r\n  \nAlone."))
    assert [dialogue.texts for dialogue in corpus] == [["Hi.", "Hello."], ["Why?", "Because."], ["Alone."]]


def test_dailydialog_labels_stand_beside_the_text(file: File) -> None:
    file("train/dialogues_act_train.txt", "2 1 \n3\n")
    file("train/dialogues_emotion_train.txt", "0 4 \n6\n")
    path = file("train/dialogues_train.txt", "Well ? __eou__ Fine ! __eou__\nGo . __eou__\n")
    first, second = load(path.parent)
    assert [turn.labels for turn in first.turns] == [
        {"act": "question", "emotion": "no emotion"},
        {"act": "inform", "emotion": "happiness"},
    ]
    assert second.turns[0].labels == {"act": "directive", "emotion": "surprise"}


def test_dailydialog_labels_keep_to_their_lines(file: File) -> None:
    file("dialogues_act_test.txt", "1\n\n2\n")
    path = file("dialogues_test.txt", "One . __eou__\n\nThree ? __eou__\n")
    assert [dialogue.turns[0].labels for dialogue in load(path)] == [{"act": "inform"}, {"act": "question"}]


def test_labels_without_a_text_are_reported(file: File) -> None:
    file("dialogues_act_test.txt", "1\n2\n")
    with pytest.raises(CorpusError, match="expected a line of text for every line of acts, found only 1 lines of text"):
        load(file("dialogues_test.txt", "One . __eou__\n"))


def test_the_file_of_all_dialogues_is_not_read_beside_its_splits(file: File) -> None:
    folder = file("dialogues_text.txt", "Hi . __eou__\n").parent
    file("train/dialogues_train.txt", "Hi . __eou__\n")
    assert load(folder).splits == {"train": 1}


def test_dailydialog_topics_go_with_the_file_of_all_dialogues(file: File) -> None:
    file("dialogues_topic.txt", "6\n")
    path = file("dialogues_text.txt", "Where is the station ? __eou__ There . __eou__\n")
    assert load(path)[0].labels == {"topic": "tourism"}


@pytest.mark.parametrize("acts", ["2\n", "2 9\n", "2 1 1\n"])
def test_labels_that_do_not_fit_the_turns_are_reported(file: File, acts: str) -> None:
    file("dialogues_act_test.txt", acts)
    path = file("dialogues_test.txt", "Well ? __eou__ Fine ! __eou__\n")
    with pytest.raises(CorpusError, match=r"dialogues_test\.txt:1: expected a known act for every turn, found"):
        load(path)
