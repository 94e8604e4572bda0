from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, resplit
from dialoscope.corpus.split import (
    Alone,
    canonical,
    sample_dialogues,
    split_evenly,
    split_for,
    split_of,
    split_to_read,
)
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


# --- Which dialogues answer a question --------------------------------------------------------------------------------


def split_into(**sizes: int) -> Corpus:
    """Dialogues in named splits; their ids count within the split."""
    made = [Dialogue((Turn("A", "hi"),), f"{split}-{n}", split) for split, size in sizes.items() for n in range(size)]
    return Corpus.of(made, name="chats")


def ids(corpus: Corpus | None) -> list[str]:
    return [] if corpus is None else [dialogue.id for dialogue in corpus]


@pytest.mark.parametrize("alone", ["itself", "whole", "split"])
def test_a_corpus_with_the_splits_of_a_question_is_used_as_it_is(alone: Alone) -> None:
    corpus = split_into(train=4, validation=3, test=2)
    parts = split_for(corpus, alone=alone)
    assert ids(parts.measured) == ["test-0", "test-1"]
    assert ids(parts.reference) == [f"train-{n}" for n in range(4)]
    assert (parts.validation, parts.is_same) == (None, False)
    assert parts.sizes == {"train": 4, "test": 2}


def test_the_result_says_which_dialogues_were_used() -> None:
    corpus = split_into(train=1200, validation=3, test=1)
    assert split_for(corpus, alone="itself").used == (
        "Measured: test, 1 dialogue. Compared with: train, 1,200 dialogues."
    )
    used = split_for(corpus, alone="split", needs_validation=True).used
    assert used == "Measured: test, 1 dialogue. Training: train, 1,200 dialogues. Validation: validation, 3 dialogues."


def test_validation_is_given_where_it_is_needed() -> None:
    parts = split_for(split_into(train=4, validation=3, test=2), alone="split", needs_validation=True)
    assert ids(parts.validation) == ["validation-0", "validation-1", "validation-2"]
    assert parts.sizes == {"train": 4, "validation": 3, "test": 2}


def test_other_splits_can_be_named_by_any_of_their_names() -> None:
    corpus = split_into(train=4, validation=3, test=2, extra=1)
    assert ids(split_for(corpus, alone="itself", split="dev").measured) == ids(corpus.split("validation"))
    assert ids(split_for(corpus, alone="itself", split="extra").measured) == ["extra-0"]
    assert ids(split_for(corpus, alone="itself", train_split="eval", split="extra").reference) == ["test-0", "test-1"]


def test_a_question_may_measure_another_split_as_usual() -> None:
    parts = split_for(split_into(train=4, validation=3, test=2), alone="split", usual="validation")
    assert ids(parts.measured) == ["validation-0", "validation-1", "validation-2"]


@pytest.mark.parametrize("limit", [1, 2, 9])
def test_a_limit_cuts_the_measured_split_only(limit: int) -> None:
    parts = split_for(split_into(train=4, validation=3, test=2), alone="split", needs_validation=True, limit=limit)
    assert len(parts.measured) == min(limit, 2)
    assert (len(parts.reference), len(parts.validation or [])) == (4, 3)


@pytest.mark.parametrize(
    ("alone", "how"),
    [("itself", "compared with itself"), ("whole", "measured; distractions come from other dialogues")],
)
@pytest.mark.parametrize("name", ["all", "train", "test"])
def test_a_corpus_of_one_split_is_measured_whole(alone: Alone, how: str, name: str) -> None:
    parts = split_for(split_into(**{name: 30}), alone=alone)
    assert len(parts.measured) == len(parts.reference) == 30
    assert parts.is_same
    assert parts.used == f"The corpus has one split ({name}, 30 dialogues) and was {how}."


def test_a_limit_of_a_corpus_of_one_split_leaves_what_it_is_compared_with() -> None:
    parts = split_for(split_into(all=30), alone="itself", limit=5)
    assert ids(parts.measured) == ids(parts.reference)[:5]
    assert len(parts.reference) == 30
    assert parts.is_same
    assert parts.used.endswith("Measured: the first 5.")


@pytest.mark.parametrize("name", ["all", "train", "test", "validation"])
@pytest.mark.parametrize("usual", ["test", "validation"])
def test_whatever_fits_something_splits_a_corpus_of_one_split_by_the_seed(name: str, usual: str) -> None:
    corpus = split_into(**{name: 30})
    parts = split_for(corpus, alone="split", usual=usual, seed=4, needs_validation=True)
    even = split_evenly(corpus, seed=4)
    assert ids(parts.measured) == ids(even.split(usual))
    assert ids(parts.reference) == ids(even.split("train"))
    assert parts.used.endswith("The corpus has one split: its dialogues were split 80/10/10 with seed 4.")


def test_a_limit_cuts_after_splitting() -> None:
    corpus = split_into(all=100)
    whole, cut = (split_for(corpus, alone="split", limit=limit) for limit in (None, 3))
    assert ids(cut.measured) == ids(whole.measured)[:3]
    assert ids(cut.reference) == ids(whole.reference)
    assert cut.sizes == {"train": 80, "test": 3}


def test_the_seed_decides_how_a_corpus_is_split_and_nothing_else_does() -> None:
    corpus = split_into(all=100)
    first = ids(split_for(corpus, alone="split", seed=1).measured)
    assert first == ids(split_for(corpus, alone="split", seed=1, needs_validation=True, limit=50).measured)
    assert first != ids(split_for(corpus, alone="split", seed=2).measured)


def test_one_split_that_is_named_on_both_sides_is_not_split() -> None:
    parts = split_for(split_into(train=30), alone="split", split="train", train_split="train")
    assert len(parts.measured) == len(parts.reference) == 30
    assert parts.is_same


def test_a_split_that_is_compared_with_itself_is_known() -> None:
    parts = split_for(split_into(train=4, test=2), alone="itself", split="train", limit=2)
    assert (ids(parts.measured), parts.is_same) == (["train-0", "train-1"], True)
    assert len(parts.reference) == 4


NO_SPLIT = [
    ({"train": 4, "validation": 3}, {"alone": "itself"},
     "chats has no test split. Found: train, validation. Name another with split (--split), or give --test FILE."),
    ({"train": 4, "test": 3}, {"alone": "itself", "split": "dev"},
     "chats has no validation split. Found: train, test. Name another with split (--split)."),
    ({"validation": 4, "test": 3}, {"alone": "whole"},
     "chats has no train split. Found: validation, test. "
     "Name another with train_split (--train-split), or give --train FILE."),
    ({"train": 4, "test": 3}, {"alone": "split", "needs_validation": True},
     "chats has no validation split. Found: train, test. Name another with validation_split (--validation-split)."),
    ({"train": 4, "test": 3}, {"alone": "split", "usual": "validation", "option": "validation_split"},
     "chats has no validation split. Found: train, test. Name another with validation_split (--validation-split)."),
    ({"train": 4, "test": 3}, {"alone": "split", "usual": "validation"},
     "chats has no validation split. Found: train, test. Name another with split (--split)."),
    ({"all": 4}, {"alone": "itself", "split": "test"},
     "chats has no test split. Found: all. Name another with split (--split), or give --test FILE."),
    ({"all": 40}, {"alone": "whole", "split": "dev"},
     "chats has no validation split. Found: all. Name another with split (--split)."),
    ({"all": 40}, {"alone": "split", "split": "all"},
     "chats has no all split. Found: train, validation, test. Name another with split (--split)."),
    ({"test": 40}, {"alone": "itself", "train_split": "train"},
     "chats has no train split. Found: test. Name another with train_split (--train-split), or give --train FILE."),
    ({}, {"alone": "itself"},
     "chats has no test split. Found: none, for the corpus is empty. "
     "Name another with split (--split), or give --test FILE."),
    ({"all": 9}, {"alone": "split"},
     "chats has one split of 9 dialogues. Splitting it 80/10/10 takes at least 10. "
     "Give more dialogues, or --train and --test."),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "options", "message"), NO_SPLIT)
def test_a_split_that_is_missing_is_an_error_that_names_the_option_that_helps(
    sizes: dict[str, int], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        split_for(split_into(**sizes), **options)
    assert str(caught.value) == message


def test_validation_may_be_another_split() -> None:
    corpus = split_into(train=4, test=2)
    parts = split_for(corpus, alone="split", validation_split="test", needs_validation=True, limit=1)
    assert parts.validation is not None
    assert ids(parts.validation) == ["test-0", "test-1"]
    assert (ids(parts.measured), ids(parts.uncut)) == (["test-0"], ["test-0", "test-1"])


@given(st.integers(10, 300), st.integers(0, 2**32))
def test_an_even_split_holds_out_a_tenth_twice_and_loses_nothing(count: int, seed: int) -> None:
    corpus = split_into(all=count)
    even = split_evenly(corpus, seed=seed)
    assert even.splits["validation"] == even.splits["test"] == round(count / 10) >= 1
    assert sorted(ids(even)) == sorted(ids(corpus))


def test_a_corpus_of_several_splits_is_not_split_again() -> None:
    corpus = split_into(train=4, test=2)
    assert split_evenly(corpus, seed=0) is corpus


@pytest.mark.parametrize(
    ("sizes", "split", "name", "count"),
    [
        ({"train": 4, "test": 2}, None, "test", 2),
        ({"train": 4, "test": 2}, "train", "train", 4),
        ({"train": 4}, None, "train", 4),
        ({"validation": 3, "test": 2}, "dev", "validation", 3),
    ],
)
def test_one_split_is_read_where_nothing_is_compared(
    sizes: dict[str, int], split: str | None, name: str, count: int
) -> None:
    read, found, used = split_to_read(split_into(**sizes), split=split)
    assert (found, len(read)) == (name, count)
    assert used == f"Read: {name}, {count} dialogues."


def test_a_split_that_is_read_may_be_cut_and_may_be_missing() -> None:
    assert ids(split_to_read(split_into(train=4, test=2), limit=1)[0]) == ["test-0"]
    with pytest.raises(UsageError, match=r"^chats has no test split\. Found: all\. Name another with split"):
        split_to_read(split_into(all=4), split="test")


@pytest.mark.parametrize(
    ("name", "expected"), [("dev", "validation"), ("EVAL", "test"), ("heldout", "test"), ("mine", "mine")]
)
def test_splits_have_usual_names(name: str, expected: str) -> None:
    assert canonical(name) == expected
