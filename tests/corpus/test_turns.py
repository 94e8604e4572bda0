from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.corpus import Corpus, Dialogue, Sample, Turn, merge_turns, samples
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
