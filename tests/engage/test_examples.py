from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.engage.examples import dialogue_scores, examples, joined, remaining_depth, shuffled
from dialoscope.errors import UsageError


def spoken(turns: Sequence[tuple[str, str]], **options: Any) -> Dialogue:
    return Dialogue(tuple(Turn(*one) for one in turns), **options)


SHOP = spoken([("A", "Hi."), ("B", "Hello."), ("B", "What can I do?"), ("A", "A map."), ("B", "Here."), ("A", "Bye.")])
ALONE = spoken([("A", "Is anybody"), ("A", "there?")])
SHORT = spoken([("A", "Hey!"), ("B", "Hey.")])


# --- Remaining depth --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "depths"), [(2, [1, 0]), (3, [1, 0.5, 0]), (5, [1, 0.75, 0.5, 0.25, 0]), (4, [1, 2 / 3, 1 / 3, 0])]
)
def test_remaining_depth_by_hand(turns: int, depths: list[float]) -> None:
    assert remaining_depth(turns).tolist() == pytest.approx(depths, abs=1e-7)


@given(st.integers(2, 400))
def test_remaining_depth_is_equation_1(n: int) -> None:
    assert remaining_depth(n).tolist() == pytest.approx([(n - j) / (n - 1) for j in range(1, n + 1)], abs=1e-6)


def test_messages_of_one_speaker_are_one_turn_and_dialogues_of_one_turn_are_left_out_and_counted() -> None:
    found = examples(Corpus.of([SHOP, ALONE, SHORT], name="mine"))
    assert found.texts == ["Hi.", "Hello. What can I do?", "A map.", "Here.", "Bye.", "Hey!", "Hey."]
    assert found.targets.tolist() == [1, 0.75, 0.5, 0.25, 0, 1, 0]
    assert found.starts.tolist() == [0, 5, 7]
    assert found.lengths.tolist() == [5, 2]
    assert found.positions.tolist() == [1, 2, 3, 4, 5, 1, 2]
    assert (len(found), found.left_out, found.name, found.ids) == (2, 1, "mine", ["mine-1", "mine-3"])
    assert [list(one) for one in found.dialogues][1] == ["Hey!", "Hey."]


def test_a_corpus_without_two_turns_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"^Corpus 'mine': none of its 1 dialogues \(all\) has two turns[^\n]*$"):
        examples(Corpus.of([ALONE], name="mine"))


def test_a_prompt_is_no_turn_and_the_user_opens_the_chat() -> None:
    chat = [("system", "Be kind."), ("user", "Hi."), ("assistant", "Hello."), ("user", "Bye.")]
    found = examples(Corpus.of([spoken(chat)]))
    assert list(zip(found.texts, found.targets.tolist(), strict=True)) == [("Hi.", 1), ("Hello.", 0.5), ("Bye.", 0)]


def test_the_answering_side_of_task_oriented_dialogues_stays() -> None:
    said = [("user", "A taxi."), ("system", "Where to?"), ("user", "Home."), ("system", "Done.")]
    found = examples(Corpus.of([spoken(said)]))
    assert (found.texts, found.lengths.tolist()) == ([text for _, text in said], [4])


# --- Scores of whole dialogues ----------------------------------------------------------------------------------------


def scored(value: Any) -> Corpus:
    return Corpus.of([SHOP._replace(id="d1", labels={"quality": value}), SHORT])


def test_a_score_of_the_dialogue_is_scaled_and_goes_to_all_its_turns_and_dialogues_without_one_are_left_out() -> None:
    found = examples(scored(4), target=dialogue_scores("quality", lowest=1, highest=5))
    assert (found.targets.tolist(), found.left_out) == ([0.75] * 5, 1)


def test_scores_by_speaker_go_to_their_own_turns() -> None:
    found = examples(scored({"A": 1, "B": 2.5}), target=dialogue_scores("quality", lowest=0, highest=5))
    assert found.targets.tolist() == pytest.approx([0.2, 0.5, 0.2, 0.5, 0.2])


def test_turns_of_a_speaker_without_a_score_have_no_target() -> None:
    found = examples(scored({"A": 1}), target=dialogue_scores("quality", lowest=0, highest=5))
    assert found.targets.tolist() == pytest.approx([0.2, math.nan, 0.2, math.nan, 0.2], nan_ok=True)
    assert found.left_out == 1  # the one that has no score at all


def test_convai_turns_have_the_scores_that_the_other_participant_gave(tmp_path: Path) -> None:
    thread = [{"userId": who, "text": text} for who, text in (("ann", "hi"), ("bot", "hello"), ("ann", "bye"))]
    judged = [{"userId": "ann", "engagement": 4, "quality": 2}]
    record = {"dialogId": 7, "thread": thread, "users": [], "evaluation": judged, "context": "none"}
    (tmp_path / "talks.json").write_text(json.dumps([record]))
    corpus = load(tmp_path / "talks.json", format="convai")
    found = examples(corpus, target=dialogue_scores("engagement", lowest=0, highest=5))
    assert found.targets.tolist() == pytest.approx([math.nan, 0.8, math.nan], nan_ok=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("good", "must hold a number"),
        (True, "must hold a number"),
        ({"A": 3, "B": "good"}, "one for each speaker"),
        ([3], "must hold a number"),
        (6, "lies outside 1 to 5"),
        ({"A": 3, "B": 0}, "lies outside 1 to 5"),
    ],
)
def test_scores_that_are_none_are_refused_in_one_line(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^Dialogue 'd1': 'quality' [^\n]*{message}[^\n]*$"):
        examples(scored(value), target=dialogue_scores("quality", lowest=1, highest=5))


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="lies outside 1 to 5"):
        dialogue_scores("quality", lowest=1, highest=5)(SHORT._replace(labels={"quality": math.nan}))


def test_a_scale_must_rise() -> None:
    with pytest.raises(UsageError, match="from a lower to a higher number, found 5 to 1"):
        dialogue_scores("quality", lowest=5, highest=1)


def test_a_corpus_without_these_scores_is_refused_and_the_message_says_what_was_looked_for() -> None:
    with pytest.raises(UsageError, match="target"):
        examples(Corpus.of([SHORT]), target=dialogue_scores("quality", lowest=1, highest=5))


# --- Shuffled, joined, fingerprints -----------------------------------------------------------------------------------


def test_shuffled_targets_are_the_same_numbers_at_the_same_turns_in_another_order() -> None:
    plain = examples(Corpus.of([SHOP] * 20))
    found = shuffled(plain, np.random.default_rng(1))
    assert sorted(found.targets.tolist()) == sorted(plain.targets.tolist())
    assert found.targets.tolist() != plain.targets.tolist()
    assert (found.texts, found.starts.tolist()) == (plain.texts, plain.starts.tolist())
    assert abs(np.corrcoef(found.targets, plain.targets)[0, 1]) < 0.3


def test_joined_corpora_keep_their_dialogues() -> None:
    parts = [examples(Corpus.of([SHOP, ALONE], name="one")), examples(Corpus.of([SHORT, SHOP], name="two"))]
    found = joined(parts)
    assert (found.name, found.left_out, found.starts.tolist()) == ("one+two", 1, [0, 5, 7, 12])
    assert found.ids == ["one-1", "two-1", "two-2"]
    assert [list(one) for one in found.dialogues] == [list(one) for part in parts for one in part.dialogues]
    assert found.targets.tolist() == [1, 0.75, 0.5, 0.25, 0, 1, 0, 1, 0.75, 0.5, 0.25, 0]


def test_fingerprints_change_with_texts_targets_and_where_dialogues_begin() -> None:
    plain = examples(Corpus.of([SHOP, SHORT]))
    others = [
        examples(Corpus.of([SHOP, spoken([("A", "Hey!"), ("B", "Hey?")])])),
        shuffled(plain, np.random.default_rng(1)),
        examples(Corpus.of([SHORT, SHOP])),
    ]
    assert examples(Corpus.of([SHOP, SHORT], name="renamed")).fingerprint == plain.fingerprint
    assert len({plain.fingerprint, *(one.fingerprint for one in others)}) == 4


def test_what_is_predicted_does_not_change_the_fingerprint_of_dialogues() -> None:
    plain = examples(Corpus.of([SHOP, SHORT]))
    other = shuffled(plain, np.random.default_rng(1))
    assert other.fingerprint != plain.fingerprint
    assert other.dialogue_fingerprint == plain.dialogue_fingerprint
    assert examples(Corpus.of([SHORT, SHOP])).dialogue_fingerprint != plain.dialogue_fingerprint
