from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, resplit
from dialoscope.corpus.split import sample_dialogues, split_for, split_of
from dialoscope.errors import UsageError


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("data/dialogues_train.txt", "train"),
        ("data/valid.json.gz", "validation"),
        ("data/val.json", "validation"),
        ("data/dev_dialogues_001.txt.gz", "validation"),
        ("data/validation/dialogues.txt", "validation"),
        ("data/test/part-0.jsonl.zst", "test"),
        ("data/test/train.jsonl", "train"),  # the file's own name speaks first
        ("data/latest.jsonl", "all"),  # "test" as part of another word says nothing
        ("data/contest/chats.jsonl", "all"),
        ("test/data/chats.jsonl", "all"),  # above the folder that was given nothing counts
    ],
)
def test_the_split_comes_from_the_names_of_file_and_folders(path: str, split: str) -> None:
    root = next(folder for folder in Path(path).parents if folder.name == "data")
    assert split_of(Path(path), root) == split


def of_size(count: int) -> Corpus:
    return Corpus.of([Dialogue((Turn("A", f"text {n}"),), f"d{n}", "all") for n in range(count)])


@given(st.integers(0, 30), st.integers(0, 10), st.integers(0, 10), st.integers(0, 2**32))
def test_new_splits_have_the_sizes_asked_for_and_lose_nothing(rest: int, validation: int, test: int, seed: int) -> None:
    corpus = of_size(rest + validation + test + 1)
    new = resplit(corpus, validation=validation, test=test, seed=seed)
    assert new.splits.get("test", 0) == test
    assert new.splits.get("validation", 0) == validation
    assert sorted(dialogue.id for dialogue in new) == sorted(dialogue.id for dialogue in corpus)


def test_the_same_seed_gives_the_same_splits_and_another_gives_others() -> None:
    corpus = of_size(50)
    one, same, other = (resplit(corpus, validation=10, test=10, seed=seed) for seed in (1, 1, 2))
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_more_dialogues_than_there_are_cannot_be_held_out() -> None:
    with pytest.raises(UsageError, match="Cannot take 3 test and 3 validation dialogues from 5"):
        resplit(of_size(5), validation=3, test=3)


def test_a_draw_takes_at_most_so_many_of_each_split() -> None:
    corpus = resplit(of_size(30), validation=10, test=2, seed=0)
    assert sample_dialogues(corpus, 5, seed=0).splits == {"train": 5, "validation": 5, "test": 2}


def test_a_split_that_an_unsplit_corpus_lacks_is_an_error_where_nothing_is_fitted() -> None:
    for alone in ("itself", "whole"):
        with pytest.raises(UsageError, match=r"has no validation split\. Found: .*\. Name another with --split"):
            split_for(of_size(50), alone=alone, split="validation")
