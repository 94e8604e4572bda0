from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.corpus import dialogue as dialogue_module
from dialoscope.corpus.dialogue import in_corpus_order
from dialoscope.errors import CorpusError, UsageError

GREETING = Dialogue((Turn("A", "Hi."), Turn("B", "Hello.", {"act": "greet"})), "d1", "train", {"topic": "none"})
QUESTION = Dialogue((Turn("A", "Why?"), Turn("B", "Because."), Turn("A", "Ah.")), "d2", "test")


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.of([GREETING, QUESTION], name="two")


def test_a_dialogue_comes_back_as_it_went_in(corpus: Corpus) -> None:
    assert list(corpus) == [GREETING, QUESTION]


@pytest.mark.parametrize("turns", [(), (Turn("A", "a\0b"),), (Turn("A", "\ud800"),)])
def test_what_cannot_be_stored_is_refused(turns: tuple[Turn, ...]) -> None:
    with pytest.raises(CorpusError, match=r"dialogue 1 \(x\): expected"):
        Corpus.of([Dialogue(turns, "x")])


def test_a_dialogue_is_found_by_its_place(corpus: Corpus) -> None:
    assert corpus[1] == QUESTION
    assert corpus[-2] == GREETING


def test_a_slice_is_a_corpus(corpus: Corpus) -> None:
    assert list(corpus[1:]) == [QUESTION]


@pytest.mark.parametrize("change", ["labels['x'] = 1", "labels.update(x=1)", "labels.setdefault('x', 1)"])
def test_labels_of_unlabelled_turns_cannot_be_written_to(corpus: Corpus, change: str) -> None:
    with pytest.raises(TypeError, match="labels are frozen"):
        exec(change, {"labels": corpus[0].turns[0].labels})


def test_a_turn_can_be_pickled(corpus: Corpus) -> None:
    assert pickle.loads(pickle.dumps(corpus[0])) == GREETING


def test_a_place_beyond_the_end_is_an_index_error(corpus: Corpus) -> None:
    with pytest.raises(IndexError):
        corpus[2]


def test_splits_are_counted_in_corpus_order() -> None:
    splits = ["test", "extra", "validation", "train", "test"]
    corpus = Corpus.of([GREETING._replace(split=split) for split in splits])
    assert list(corpus.splits.items()) == [("train", 1), ("validation", 1), ("test", 2), ("extra", 1)]


def test_a_split_holds_only_its_dialogues(corpus: Corpus) -> None:
    assert list(corpus.split("test")) == [QUESTION]


def test_a_missing_split_is_an_error_that_names_those_present(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match=r"No split 'dev' in two\. Splits present: train, test."):
        corpus.split("dev")


def test_dialogues_without_a_split_belong_to_all() -> None:
    assert Corpus.of([Dialogue((Turn("A", "Hi."),))]).splits == {"all": 1}


def test_selection_keeps_the_order_it_is_given(corpus: Corpus) -> None:
    assert [dialogue.id for dialogue in corpus.select([1, 0])] == ["d2", "d1"]


@given(st.lists(st.integers(0, 29), max_size=40))
def test_selection_from_a_large_corpus_is_the_same_batch_by_batch(places: list[int]) -> None:
    texts = [Dialogue((Turn("A", f"text {n}"),), f"d{n}", "all") for n in range(30)]
    whole = Corpus.of(texts).table
    corpus = Corpus(pa.concat_tables([whole.slice(0, 7), whole.slice(7, 1), whole.slice(8)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialogue_module, "ONE_ARRAY_BYTES", 100)
        assert [dialogue.id for dialogue in corpus.select(places)] == [f"d{place}" for place in places]


def test_turn_columns_run_through_all_dialogues(corpus: Corpus) -> None:
    assert corpus.turn_column("text").to_pylist() == ["Hi.", "Hello.", "Why?", "Because.", "Ah."]


def test_turn_columns_of_a_part_hold_only_that_part(corpus: Corpus) -> None:
    assert corpus.split("test").turn_column("speaker").to_pylist() == ["A", "B", "A"]


def test_the_fingerprint_does_not_depend_on_chunks(corpus: Corpus) -> None:
    in_pieces = pa.concat_tables([corpus.table.slice(0, 1), corpus.table.slice(1)])
    assert Corpus(in_pieces).fingerprint == corpus.fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        GREETING._replace(id="other"),
        GREETING._replace(split="test"),
        GREETING._replace(labels={}),
        GREETING._replace(turns=(Turn("A", "Hi"), GREETING.turns[1])),
        GREETING._replace(turns=(Turn("C", "Hi."), GREETING.turns[1])),
        GREETING._replace(turns=(GREETING.turns[0], Turn("B", "Hello."))),
        GREETING._replace(turns=(Turn("A", "Hi.H"), Turn("B", "ello.", {"act": "greet"}))),
    ],
)
def test_the_fingerprint_sees_every_change(corpus: Corpus, changed: Dialogue) -> None:
    assert Corpus.of([changed, QUESTION]).fingerprint != corpus.fingerprint


def test_the_fingerprint_sees_where_one_dialogue_ends_and_the_next_begins() -> None:
    a, b, c = Turn("A", "1"), Turn("A", "2"), Turn("A", "3")
    one = Corpus.of([Dialogue((a, b), "x", "all"), Dialogue((c,), "y", "all")])
    other = Corpus.of([Dialogue((a,), "x", "all"), Dialogue((b, c), "y", "all")])
    assert one.fingerprint != other.fingerprint


def test_corpus_order_groups_splits_and_keeps_the_order_within() -> None:
    names = [("a", "test"), ("b", "train"), ("c", "other"), ("d", "train"), ("e", "validation")]
    corpus = Corpus.of([GREETING._replace(id=name, split=split) for name, split in names])
    assert in_corpus_order(corpus.table)["id"].to_pylist() == ["b", "d", "e", "a", "c"]


def test_texts_and_pairs_become_dialogues_of_one_turn_and_two() -> None:
    texts = Corpus.of_texts(["a", "b"], ["c"])
    assert [(one.id, one.split, one.texts) for one in texts] == [
        ("train-1", "train", ["a"]),
        ("train-2", "train", ["b"]),
        ("test-1", "test", ["c"]),
    ]
    assert [one.texts for one in Corpus.of_pairs([("a", "b"), ("c", "d")])] == [["a", "b"], ["c", "d"]]
    assert Corpus.of_pairs([("a", "b")], [("c", "d")]).splits == {"train": 1, "test": 1}


@pytest.mark.parametrize("texts", ["a text", [], [1, 2], ["a", 1], ["a", None], [("a",)], ["\0"]])
def test_what_is_no_list_of_texts_is_refused_in_one_line(texts: Any) -> None:
    for train, test in ((texts, None), (["a"], texts)):
        with pytest.raises((CorpusError, UsageError), match=r"lists of texts|expected UTF-8 text"):
            Corpus.of_texts(train, test)


@pytest.mark.parametrize("pairs", ["ab", [], [1], [("a",)], [("a", "b"), "c"], [("a", None)], [("a", "\0")]])
def test_what_is_no_list_of_pairs_is_refused_in_one_line(pairs: Any) -> None:
    for train, test in ((pairs, None), ([("a", "b")], pairs)):
        with pytest.raises((CorpusError, UsageError), match=r"lists of \(context, response\)|expected UTF-8 text"):
            Corpus.of_pairs(train, test)
