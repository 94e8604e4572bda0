from __future__ import annotations

from dialoscope.corpus import Corpus, Dialogue, Turn, summarise
from dialoscope.corpus.summary import SplitSummary

CORPUS = Corpus.of(
    [
        Dialogue((Turn("A", "one two"), Turn("B", "three")), "1", "train", {"topic": "x"}),
        Dialogue((Turn("A", "a b c"), Turn("B", "d", {"act": 1}), Turn("C", "e"), Turn("A", "f")), "2", "train"),
        Dialogue((Turn("A", ""),), "3", "test"),
    ],
    name="tiny",
)


def test_sizes_and_lengths_are_those_counted_by_hand() -> None:
    train = SplitSummary(dialogues=2, turns=6, turns_mean=3.0, turns_std=1.0, turns_max=4, words=9, words_mean=1.5)
    summary = summarise(CORPUS)
    assert summary.splits["train"] == train
    assert (summary.dialogues, summary.turns, summary.speakers) == (3, 7, 3)


def test_lengths_are_counted_as_histograms() -> None:
    summary = summarise(CORPUS)
    assert summary.turn_lengths == {1: 1, 2: 1, 4: 1}
    assert summary.word_lengths == {0: 1, 1: 4, 2: 1, 3: 1}


def test_labels_are_counted_by_key() -> None:
    assert summarise(CORPUS).labels == {"topic": 1, "act": 1}


def test_json_has_the_number_of_dialogues_by_split() -> None:
    assert summarise(CORPUS).to_dict()["splits"] == {"train": 2, "test": 1}
