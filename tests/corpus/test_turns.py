from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.corpus import Corpus, Dialogue, Sample, Turn, merge_turns, samples
from turnwise.corpus.turns import Said, said_by
from turnwise.errors import UsageError

BURSTS = Dialogue(
    (
        Turn("A", "Hi."),
        Turn("A", "You there?", {"time": 1}),
        Turn("B", "Yes.", {"time": 2}),
        Turn("B", "Go on.", {"time": 3}),
    ),
    "d",
    "all",
)


def test_consecutive_messages_of_one_speaker_become_one_turn() -> None:
    (merged,) = merge_turns(Corpus.of([BURSTS]))
    assert [(turn.speaker, turn.text) for turn in merged.turns] == [("A", "Hi. You there?"), ("B", "Yes. Go on.")]


def test_merging_keeps_every_label() -> None:
    (merged,) = merge_turns(Corpus.of([BURSTS]))
    assert [turn.labels for turn in merged.turns] == [{"time": 1}, {"merged": [{"time": 2}, {"time": 3}]}]


@given(
    st.lists(
        st.tuples(st.sampled_from("AB"), st.text(st.characters(codec="utf-8", exclude_characters="\0"))), min_size=1
    )
)
def test_after_merging_no_two_neighbours_share_a_speaker_and_no_text_is_lost(turns: list[tuple[str, str]]) -> None:
    corpus = Corpus.of([Dialogue(tuple(Turn(*turn) for turn in turns))])
    (merged,) = merge_turns(corpus, separator="|")
    speakers = [turn.speaker for turn in merged.turns]
    assert all(one != other for one, other in pairwise(speakers))
    assert "|".join(merged.texts) == "|".join(text for _, text in turns)


@pytest.fixture
def corpus() -> Corpus:
    texts = [["a", "b", "c", "d"], ["alone"], ["x", "y"]]
    return Corpus.of([Dialogue(tuple(Turn("A", t) for t in ts), f"d{i}", "all") for i, ts in enumerate(texts)])


def test_every_turn_from_the_second_on_is_a_response(corpus: Corpus) -> None:
    assert list(samples(corpus)) == [
        Sample("d0", ("a",), "b"),
        Sample("d0", ("a", "b"), "c"),
        Sample("d0", ("a", "b", "c"), "d"),
        Sample("d2", ("x",), "y"),
    ]


def test_context_turns_limit_how_far_back_a_context_reaches(corpus: Corpus) -> None:
    assert [sample.context for sample in samples(corpus, context_turns=2)] == [("a",), ("a", "b"), ("b", "c"), ("x",)]


def test_samples_become_a_table_of_pairs(corpus: Corpus) -> None:
    row = samples(corpus, context_turns=2).to_table().to_pylist()[2]
    assert row == {"dialogue": "d0", "split": "all", "context": "b __eou__ c", "response": "d"}


def test_a_context_without_turns_is_refused(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        samples(corpus, context_turns=0)


def spoken(*speakers: str) -> Corpus:
    """One dialogue; each turn's text is its place."""
    return Corpus.of([Dialogue(tuple(Turn(speaker, str(place)) for place, speaker in enumerate(speakers)))])


def test_samples_know_who_said_each_turn() -> None:
    (_, last) = samples(spoken("System", "USER", "ann"))
    assert all(isinstance(turn, Said) for turn in (*last.context, last.response))
    said = [turn for turn in (*last.context, last.response) if isinstance(turn, Said)]
    assert [(turn.speaker, turn.role) for turn in said] == [("System", "system"), ("USER", "user"), ("ann", "")]


@pytest.mark.parametrize(
    ("speakers", "roles"),
    [
        (("user", "system", "user", "system"), ["user", "assistant", "user", "assistant"]),  # MultiWOZ, concierge
        (("USER", "SYSTEM"), ["user", "assistant"]),  # SGD
        (("system", "user", "assistant"), ["system", "user", "assistant"]),
        (("user", "assistant", "system", "user"), ["user", "assistant", "system", "user"]),  # told on the way
        (("system", "user", "user"), ["system", "user", "user"]),  # a prompt that nobody has answered yet
    ],
)
def test_a_system_that_answers_where_there_is_no_assistant_is_one(speakers: tuple[str, ...], roles: list[str]) -> None:
    *_, last = samples(spoken(*speakers))
    assert [turn.role for turn in (*last.context, last.response) if isinstance(turn, Said)] == roles


def test_a_turn_that_was_said_is_a_string_like_any_other() -> None:
    turn = Said("hi", "user")
    again = pickle.loads(pickle.dumps(turn))
    assert (turn, hash(turn), repr(turn), turn + "!") == ("hi", hash("hi"), "'hi'", "hi!")
    assert (again, again.speaker, again.role) == ("hi", "user", "user")


@pytest.mark.parametrize(("speaker", "expected"), [("assistant", ["2", "4"]), ("User", ["1", "3"])])
def test_responses_of_one_speaker_are_taken_and_contexts_stay(speaker: str, expected: list[str]) -> None:
    found = samples(spoken("system", "user", "assistant", "user", "assistant"), responses=speaker)
    assert [sample.response for sample in found] == expected
    assert [len(sample.context) for sample in found] == [int(each) for each in expected]


def test_a_speaker_of_another_dialogue_is_not_taken_for_this_one() -> None:
    two = Corpus.of([*spoken("user", "system"), *spoken("system", "user", "assistant")])
    assert said_by(two, "assistant").tolist() == [False, True, False, False, True]


def test_a_speaker_that_does_not_exist_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"Unknown speaker 'assitant'. Did you mean 'assistant'\?"):
        samples(spoken("user", "assistant"), responses="assitant")
