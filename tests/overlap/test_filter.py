from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.overlap import filter, measure


def corpus_of(*dialogues: tuple[str, ...], name: str) -> Corpus:
    made = [
        Dialogue(tuple(Turn("A", text) for text in texts), f"{name}{place}", name)
        for place, texts in enumerate(dialogues)
    ]
    return Corpus.of(made, name=name)


TRAIN = corpus_of(("a b", "c d", "e"), ("thank you", "welcome", "bye"), name="train")


def test_whole_dialogues_go_by_default() -> None:
    # {a b c d e} with {a b c d f}: 8/10, which is not over 0.8. The second is a copy with its turns exchanged.
    test = corpus_of(("a b", "c d", "f"), ("e d", "c", "b a"), ("thank you", "welcome", "x y z w"), name="test")
    filtered = filter(TRAIN, test, threshold=0.8)
    assert isinstance(filtered.kept, Corpus)
    assert [dialogue.id for dialogue in filtered.kept] == ["test0", "test2"]
    assert list(filtered.ledger()) == [
        {"unit": "dialogue", "id": "test1", "reason": "over the threshold", "partner": "train0", "ratio": 1.0}
    ]


def test_samples_go_where_asked_and_leave_a_table_that_readers_take() -> None:
    test = corpus_of(("a b", "c d", "f"), ("thank you", "welcome", "x"), name="test")
    filtered = filter(TRAIN, test, unit="sample")
    assert not isinstance(filtered.kept, Corpus)
    kept = [(row["dialogue"], row["context"], row["response"]) for row in filtered.kept.to_pylist()]
    assert kept == [("test0", "c d", "f"), ("test1", "welcome", "x")]
    assert [row["id"] for row in filtered.ledger()] == ["test0#2", "test1#2"]


def test_pairs_are_samples_by_themselves_and_stay_dialogues() -> None:
    test = corpus_of(("thank you", "welcome"), ("thank you", "no"), name="test")
    filtered = filter(TRAIN, test)
    assert filtered.result.unit == "sample"
    assert isinstance(filtered.kept, Corpus)
    assert isinstance(filtered.dropped, Corpus)
    assert [dialogue.id for dialogue in filtered.kept] == ["test1"]
    assert [dialogue.id for dialogue in filtered.dropped] == ["test0"]


TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=4).map(" ".join), min_size=1, max_size=10)


@given(TEXTS, TEXTS, st.sampled_from([0.5, 0.75, 0.8]))
def test_nothing_is_lost_and_nothing_kept_is_over_the_threshold(
    train: list[str], test: list[str], threshold: float
) -> None:
    filtered = filter(train, test, threshold=threshold)
    assert not isinstance(filtered.kept, Corpus)
    assert not isinstance(filtered.dropped, Corpus)
    kept, dropped = (rows["text"].to_pylist() for rows in (filtered.kept, filtered.dropped))
    assert sorted([*kept, *dropped]) == sorted(test)
    if kept:
        assert measure(train, kept).count_over(threshold) == 0
    assert len(list(filtered.ledger())) == len(dropped) == filtered.to_dict()["dropped"]
