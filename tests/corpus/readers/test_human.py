from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import Turn, load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]
CONTEXT = "User: Hi!\nSystem: Hello.\nHow are you?\nUser: Fine."
ENGAGING = {"Engaging": [2, 1, 0, 2, 1]}
BY_ANNOTATOR = {"Engaging": {"1": 2, "2": 1, "3": 0, "4": 2, "5": 1}}


def test_fed_ratings_of_a_response_stay_on_that_turn(file: File) -> None:
    record = {"context": CONTEXT, "response": "System: Good!", "system": "Meena", "annotations": ENGAGING}
    (dialogue,) = load(file("fed.json", json.dumps([record])))
    assert dialogue.turns == (
        Turn("User", "Hi!"),
        Turn("System", "Hello.\nHow are you?"),
        Turn("User", "Fine."),
        Turn("System", "Good!", {"ratings": BY_ANNOTATOR}),
    )
    assert dialogue.labels == {"system": "Meena"}


def test_fed_ratings_without_a_response_are_of_the_dialogue(file: File) -> None:
    record = {"context": CONTEXT, "system": "Human", "annotations": ENGAGING}
    (dialogue,) = load(file("fed.json", json.dumps([record])))
    assert dialogue.labels == {"system": "Human", "ratings": BY_ANNOTATOR}


def test_a_fed_line_without_a_speaker_is_reported(file: File) -> None:
    record = {"context": "Hello?\nUser: Hi!", "system": "x", "annotations": ENGAGING}
    with pytest.raises(CorpusError, match=r"expected a line that starts with 'User: ' or 'System: ', found 'Hello\?'"):
        load(file("fed.json", json.dumps([record])))


FORM = ["WorkerId", *(f"Input.{part}{n}" for n in range(1, 11) for part in ("query", "response"))]
FORM += [f"Answer.pair{n}" for n in range(1, 11)]


def worker(name: str, score: int) -> str:
    pairs = [text for n in range(1, 11) for text in (f"q{n}", f"r{n}")]
    return ",".join([name, *pairs, *([str(score)] * 10)])


def test_scores_of_several_workers_meet_on_one_pair(file: File) -> None:
    rows = [",".join(FORM), worker("W1", 5), worker("W2", 3)]
    corpus = load(file("annotated.csv", "\r\n".join(rows)))
    assert len(corpus) == 10
    assert corpus[0].turns == (Turn("A", "q1"), Turn("B", "r1", {"ratings": {"engagement": {"W1": 5, "W2": 3}}}))


def test_a_score_that_is_no_number_is_reported(file: File) -> None:
    rows = [",".join(FORM), worker("W1", 5).replace("r10,5", "r10,good")]
    with pytest.raises(CorpusError, match=r"annotated\.csv:2: expected 'Answer.pair1' to be a number, found 'good'"):
        load(file("annotated.csv", "\n".join(rows)))


def test_the_real_form_has_300_pairs_with_three_annotators_each(data: Path) -> None:
    corpus = load(data / "dailydialog_human")
    ratings = [dialogue.turns[1].labels["ratings"]["engagement"] for dialogue in corpus]
    assert (len(ratings), {len(scores) for scores in ratings}) == (300, {3})
    assert {score for scores in ratings for score in scores.values()} == {1, 2, 3, 4, 5}


def test_the_real_scores_file_has_600_pairs_with_other_metrics_beside(data: Path) -> None:
    corpus = load(data / "dailydialog_human" / "Eng_Scores_queries_gen_gtruth_replies.csv")
    labels = [dialogue.turns[1].labels for dialogue in corpus]
    assert len(corpus) == 600
    assert sum(len(label["ratings"]["engagement"]) for label in labels) == 1800
    assert labels[0]["scores"]["Ruber_Unref_Score"] == 7.995745e-06
