from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Sample, Turn, merge_turns, samples
from dialoscope.corpus.turns import Said, conversation, merged, said_by
from dialoscope.errors import UsageError

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


def written(*turns: str) -> Dialogue:
    """Turns written as `speaker: text`."""
    pairs = (turn.partition(": ") for turn in turns)
    return Dialogue(tuple(Turn(speaker, text) for speaker, _, text in pairs))


@pytest.mark.parametrize(
    ("turns", "texts"),
    [
        (["system: Be kind.", "user: Hi.", "assistant: Hello."], ["Hi.", "Hello."]),
        (["System: Be kind.", "User: Hi.", "Assistant: Hello."], ["Hi.", "Hello."]),
        (["user: Hi.", "system: Be brief.", "user: So?", "assistant: Yes."], ["Hi. So?", "Yes."]),
        (["user: Hi.", "assistant: Wait.", "tool: 3", "function: 4", "assistant: Three."], ["Hi.", "Wait. Three."]),
        (["developer: Be kind.", "user: Hi.", "assistant: Hello."], ["Hi.", "Hello."]),
        (["system: Be kind.", "developer: Be brief.", "user: Hi."], ["Hi."]),  # nobody has answered yet
        (["system: Be kind.", "system: Be brief.", "A: Hi.", "B: Hello."], ["Hi.", "Hello."]),
        (["user: A taxi.", "system: Where to?", "user: Home."], ["A taxi.", "Where to?", "Home."]),  # task-oriented
        (["system: Welcome.", "user: A taxi.", "system: Where to?"], ["Welcome.", "A taxi.", "Where to?"]),
        (["user: A taxi.", "system: Done."], ["A taxi.", "Done."]),
        (["A: Hi.", "tool: ping", "B: Hello."], ["Hi.", "ping", "Hello."]),
        (["system: Be kind."], ["Be kind."]),
        (["system: Be kind.", "tool: 3"], ["3"]),
    ],
)
def test_a_conversation_is_without_instructions(turns: list[str], texts: list[str]) -> None:
    assert conversation(written(*turns)).texts == texts


@given(st.lists(st.sampled_from(["user: a", "system: b", "assistant: c", "tool: d", "developer: e"]), min_size=1))
def test_no_conversation_is_empty_and_no_two_neighbours_share_a_speaker(turns: list[str]) -> None:
    found = conversation(written(*turns))
    assert found.turns
    assert all(one.speaker != other.speaker for one, other in pairwise(found.turns))


@given(st.lists(st.sampled_from(["A: a", "user: b", "B: c"]), min_size=1))
def test_a_conversation_without_such_roles_is_merged_alone(turns: list[str]) -> None:
    assert conversation(written(*turns)) == merged(written(*turns))


def test_the_last_of_some_messages_stays_whoever_sent_it() -> None:
    chat = written("system: Be kind.", "user: Hi.", "assistant: Hello.", "system: Be brief.", "user: So?")
    assert [conversation(chat, until=number).texts for number in (1, 2, 4)] == [
        ["Be kind."], ["Hi."], ["Hi.", "Hello.", "Be brief."],
    ]  # fmt: skip


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
