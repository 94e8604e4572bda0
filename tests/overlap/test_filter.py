from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.errors import UsageError
from dialoscope.overlap import FilterSettings, filter, measure

TRAIN: list[tuple[str, ...]] = [("a b", "c d", "e"), ("thank you", "welcome", "bye")]


def corpus_of(*test: tuple[str, ...], train: list[tuple[str, ...]] = TRAIN) -> Corpus:
    return Corpus.of(
        Dialogue(tuple(Turn("A", text) for text in texts), f"{split}{place}", split)
        for split, dialogues in (("train", train), ("test", test))
        for place, texts in enumerate(dialogues)
    )


def test_whole_dialogues_are_dropped_by_default() -> None:
    # {a b c d e} with {a b c d f}: 8/10, which is not over 0.8. The second is a copy with its turns exchanged.
    corpus = corpus_of(("a b", "c d", "f"), ("e d", "c", "b a"), ("thank you", "welcome", "x y z w"))
    filtered = filter(corpus, threshold=0.8)
    assert isinstance(filtered.kept, Corpus)
    assert [dialogue.id for dialogue in filtered.kept] == ["test0", "test2"]
    assert list(filtered.ledger()) == [
        {"unit": "dialogue", "id": "test1", "reason": "over the threshold", "partner": "train0", "ratio": 1.0}
    ]


def test_samples_are_dropped_where_asked_and_leave_a_table_that_readers_take() -> None:
    filtered = filter(corpus_of(("a b", "c d", "f"), ("thank you", "welcome", "x")), unit="sample")
    assert isinstance(filtered.kept, pa.Table)
    kept = [(row["dialogue"], row["context"], row["response"]) for row in filtered.kept.to_pylist()]
    assert kept == [("test0", "c d", "f"), ("test1", "welcome", "x")]
    assert [row["id"] for row in filtered.ledger()] == ["test0#2", "test1#2"]


def test_pairs_are_samples_by_themselves_and_stay_dialogues() -> None:
    filtered = filter(corpus_of(("thank you", "welcome"), ("thank you", "no")))
    assert filtered.result.unit == "sample"
    assert isinstance(filtered.kept, Corpus)
    assert isinstance(filtered.dropped, Corpus)
    assert [dialogue.id for dialogue in filtered.kept] == ["test1"]
    assert [dialogue.id for dialogue in filtered.dropped] == ["test0"]


def test_the_limit_cuts_the_split_that_is_read() -> None:
    filtered = filter(corpus_of(("a",), ("b",), ("c",)), settings=FilterSettings(limit=2))
    assert isinstance(filtered.kept, Corpus)
    assert ([dialogue.id for dialogue in filtered.kept], filtered.parts) == (
        ["test0", "test1"],
        {"train": 2, "test": 2},
    )


def test_the_json_counts_what_was_kept_and_dropped() -> None:
    shown = filter(Corpus.of_texts(["a b"], ["b a", "c"])).to_dict()
    assert (shown["schema_version"], shown["instrument"]) == (2, "overlap-filter")
    assert (shown["counts"]["measured"], shown["counts"]["kept"], shown["counts"]["dropped"]) == (2, 1, 1)
    assert shown["scores"]["ratio/test/share_over_0.8"]["value"] == 0.5
    assert shown["settings"]["threshold"] == 0.8


def test_a_filtered_test_set_is_written_with_what_was_dropped(tmp_path: Path) -> None:
    train, test = ["a b c d", "x y"], ["a b c e", "x", "z", "a b c d"]
    out = filter(Corpus.of_texts(train, test)).save(tmp_path / "out")
    assert [dialogue.texts for dialogue in load(out / "kept.jsonl")] == [["a b c e"], ["x"], ["z"]]
    assert [dialogue.texts for dialogue in load(out / "dropped.jsonl")] == [["a b c d"]]
    ledger = json.loads((out / "ledger.jsonl").read_text())
    drop = {"unit": "dialogue", "id": "test-4", "reason": "over the threshold", "partner": "train-1", "ratio": 1.0}
    assert ledger == drop
    assert json.loads((out / "result.json").read_text())["counts"]["kept"] == 3
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_rows_of_a_table_are_written_back(tmp_path: Path) -> None:
    filtered = filter(Corpus.of_texts(["a b"], ["b a", "c"])).with_rows(pa.table({"n": [1, 2], "text": ["b a", "c"]}))
    out = filtered.save(tmp_path / "out")
    assert pq.read_table(out / "kept.parquet").to_pylist() == [{"n": 2, "text": "c"}]
    assert pq.read_table(out / "dropped.parquet").to_pylist() == [{"n": 1, "text": "b a"}]


def test_one_split_is_cleaned_and_not_filtered() -> None:
    with pytest.raises(UsageError, match=r"filter compares two splits, found one in texts\. Give --train and --test;"):
        filter(Corpus.of_texts(["a", "a"]))


def test_a_test_set_that_cannot_be_compared_is_not_emptied() -> None:
    with pytest.raises(UsageError, match="There is nothing to filter: no measured dialogue has a response"):
        filter(corpus_of(("a b",)), unit="sample")


TEXTS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=10)


@given(TEXTS, TEXTS, st.sampled_from([0.5, 0.75, 0.8]))
def test_nothing_is_lost_and_nothing_kept_is_over_the_threshold(
    train: list[str], test: list[str], threshold: float
) -> None:
    filtered = filter(Corpus.of_texts(train, test), threshold=threshold)
    assert isinstance(filtered.kept, Corpus)
    assert isinstance(filtered.dropped, Corpus)
    kept, dropped = ([dialogue.texts[0] for dialogue in rows] for rows in (filtered.kept, filtered.dropped))
    assert sorted([*kept, *dropped]) == sorted(test)
    if kept:
        assert measure(Corpus.of_texts(train, kept)).count_over(threshold) == 0
    assert len(list(filtered.ledger())) == len(dropped) == filtered.to_dict()["counts"]["dropped"]


def test_a_limit_does_not_change_the_unit() -> None:
    rows = [("train", "a b"), ("test", "a b"), ("test", "a b c")]
    corpus = Corpus.of([Dialogue(tuple(Turn("", word) for word in words.split()), split=name) for name, words in rows])
    assert [filter(corpus, limit=limit).result.unit for limit in (None, 1)] == ["dialogue", "dialogue"]
