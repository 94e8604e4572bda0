from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.errors import UsageError
from dialoscope.overlap import clean
from dialoscope.overlap.passes import drop_copies, unit_bags

WORDS = "abcdefghij"


def corpus_of(*texts: str, split: str = "all") -> Corpus:
    return Corpus.of([Dialogue((Turn("A", text),), f"d{place}", split) for place, text in enumerate(texts)])


def dropped(corpus: Corpus, threshold: str) -> list[tuple[str, str, int]]:
    drops, _, _ = drop_copies(corpus, unit_bags(corpus), threshold)
    return [(drop.id, drop.partner, drop.pass_number) for drop in drops]


def test_of_two_copies_the_first_goes_and_its_partner_stays() -> None:
    assert dropped(corpus_of("a b c d", "x y z", "a b c d"), "0.75") == [("d0", "d2", 1)]


def test_of_three_copies_two_go_in_one_pass() -> None:
    # d0 goes and keeps d1, the first of its equals; d1 stays as its partner; d2's partner is d0, and d2 goes as well.
    assert dropped(corpus_of("a b c", "a b c", "a b c"), "0.75") == [("d0", "d1", 1), ("d2", "d0", 1)]


def test_one_pass_is_not_enough_where_two_kept_partners_overlap() -> None:
    # d0 and d1 are copies, so are d2 and d3; d1 and d3 are kept, and overlap by 6/8 over 0.7 in the second pass.
    corpus = corpus_of("a b c d", "a b c d", "a b c e", "a b c e")
    assert dropped(corpus, "0.7") == [("d0", "d1", 1), ("d2", "d3", 1), ("d1", "d3", 2)]


def test_a_ratio_at_exactly_the_threshold_stays() -> None:
    assert dropped(corpus_of("a b c d", "a b c e"), "0.75") == []


def bag(dialogue: Dialogue) -> set[str]:
    return {word for text in dialogue.texts for word in text.split()}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sets(st.sampled_from(WORDS), max_size=6), min_size=2, max_size=14))
def test_after_cleaning_no_two_units_overlap_over_the_threshold(units: list[set[str]]) -> None:
    corpus = corpus_of(*(" ".join(sorted(unit)) for unit in units))
    drops, kept, _ = drop_copies(corpus, unit_bags(corpus), "0.6")
    left = [bag(corpus[place]) for place in kept.tolist()]
    ratios = [
        Fraction(2 * len(one & other), len(one) + len(other))
        for i, one in enumerate(left)
        for other in left[i + 1 :]
        if one | other
    ]
    assert all(ratio <= Fraction(3, 5) for ratio in ratios)
    assert len(drops) + len(kept) == len(corpus)


def by_all_pairs(units: list[set[str]], limit: Fraction) -> list[tuple[int, int, float, int]]:
    """The rule of the paper, pair by pair: unit, partner, ratio and pass of each drop."""
    left, number = set(range(len(units))), 0
    drops: list[tuple[int, int, float, int]] = []
    while True:
        number += 1
        best: dict[int, tuple[Fraction, int]] = {}
        for one in sorted(left):
            for other in sorted(left - {one}):
                size = len(units[one]) + len(units[other])
                ratio = Fraction(2 * len(units[one] & units[other]), size) if size else Fraction(0)
                if ratio > limit and ratio > best.get(one, (Fraction(0), 0))[0]:
                    best[one] = ratio, other
        kept: set[int] = set()
        going: list[int] = []
        for one in sorted(best):
            if one not in kept:
                going.append(one)
                kept.add(best[one][1])
        if not going:
            return drops
        drops += [(one, best[one][1], float(best[one][0]), number) for one in going]
        left -= set(going)


@settings(max_examples=150)
@given(
    st.lists(st.sets(st.sampled_from(WORDS[:5]), max_size=4), min_size=1, max_size=16),
    st.sampled_from(["0.3", "0.5", "2/3", "0.75", "1"]),
)
def test_copies_are_dropped_as_if_all_pairs_were_looked_at(units: list[set[str]], threshold: str) -> None:
    corpus = corpus_of(*(" ".join(sorted(unit)) for unit in units))
    drops, _, _ = drop_copies(corpus, unit_bags(corpus), threshold)
    found = [(drop.place, drop.partner_place, drop.ratio, drop.pass_number) for drop in drops]
    assert found == by_all_pairs(units, Fraction(threshold))


def test_thirty_thousand_copies_are_no_burden() -> None:
    # 450 million pairs of copies; the first goes, the second stays as its partner, and so all others go.
    texts = Corpus.of_texts(["a b c"] * 30_000 + ["x y z"])
    cleaned = clean(texts, threshold=0.75, validation_size=0, test_size=0)
    assert (len(cleaned.corpus), len(cleaned.drops), cleaned.counts["passes"]) == (2, 29_999, 1)


def test_dialogues_that_share_an_id_are_told_apart_by_their_split() -> None:
    texts = {"train": ["a b c d", "p q"], "test": ["a b c e", "a b c d e", "r s"]}
    dialogues = [Dialogue((Turn("A", text),), "d1", split) for split, several in texts.items() for text in several]
    cleaned = clean(Corpus.of(dialogues), threshold=0.8, validation_size=0, test_size=0)
    rows = [(row["id"], row["partner"], row["split"]) for row in cleaned.ledger()]
    assert rows == [("train/d1", "test/d1~2", "train"), ("test/d1", "test/d1~2", "test")]
    # 2·4 / (4 + 5) for both; each example shows two texts.
    assert [(one.texts, one.partner_texts) for one in cleaned.examples] == [
        (("a b c d",), ("a b c d e",)),
        (("a b c e",), ("a b c d e",)),
    ]
    assert {dialogue.id for dialogue in cleaned.dropped} == {"train/d1", "test/d1"}


def test_cleaning_keeps_an_account_of_every_unit() -> None:
    cleaned = clean(corpus_of("a b c d", "a b c d", "e f", "g h"), validation_size=1, test_size=1)
    assert [dialogue.id for dialogue in cleaned.dropped] == ["d0"]
    assert cleaned.corpus.splits == {"train": 1, "validation": 1, "test": 1}
    assert cleaned.to_dict()["counts"]["dialogues"] == 4


def test_the_ledger_gives_each_unit_its_reason_its_partner_its_ratio_and_its_pass() -> None:
    hello = (Turn("A", "Hi."), Turn("B", "Hello you."))
    dialogues = [
        Dialogue((*hello, Turn("A", "one two three four")), "a", "train"),
        Dialogue((*hello, Turn("A", "one two three four five")), "b", "test"),
        Dialogue((*hello, Turn("A", "six seven eight nine ten eleven twelve")), "c", "test"),
        Dialogue((Turn("A", "x"),), "d", "test"),
    ]
    cleaned = clean(Corpus.of(dialogues), validation_size=0, test_size=0, context_turns=[1])
    # a and b: seven shared words, 2·7 / (7 + 8). Then b and c both begin with the same sample.
    over = {"unit": "dialogue", "id": "a", "split": "train", "reason": "over the threshold"}
    assert next(cleaned.ledger()) == {**over, "partner": "b", "ratio": 14 / 15, "pass": 1}
    same = {row["reason"]: row for row in cleaned.ledger()}["the same text"]
    assert {same["id"], same["partner"]} == {"b#2", "c#2"}
    assert (same["unit"], same["context_turns"], same["split"]) == ("sample", 1, "train")
    assert (same["ratio"], same["pass"]) == (1.0, None)


PAIRS = [(f"question {n} is w{n} v{n}", f"answer {n} is x{n} y{n}") for n in range(10)]


def test_the_json_of_a_cleaning_has_its_counts() -> None:
    shown = clean(Corpus.of_pairs([*PAIRS, PAIRS[0]]), validation_size=2, test_size=3).to_dict()
    sizes = {"train": 5, "validation": 2, "test": 3}
    none = {"train": 0, "validation": 0, "test": 0}
    assert (shown["schema_version"], shown["instrument"], shown["parts"]) == (2, "overlap-clean", sizes)
    assert shown["counts"] == {
        "skipped": {},
        "dialogues": 11,
        "kept": 10,
        "dropped": 1,
        "passes": 1,
        "samples": {"1": sizes, "3": sizes},
        "duplicates": {"1": none, "3": none},
    }
    assert shown["settings"]["threshold"] == 0.75


def test_a_cleaned_corpus_is_written_whole_and_reads_again(tmp_path: Path) -> None:
    cleaned = clean(Corpus.of_pairs([*PAIRS[:8], PAIRS[0]]), validation_size=2, test_size=2)
    out = cleaned.save(tmp_path / "clean")
    assert load(out / "corpus").splits == {"train": 4, "validation": 2, "test": 2}
    assert [dialogue.texts for dialogue in load(out / "dropped.jsonl")] == [list(PAIRS[0])]
    assert {path.name for path in (out / "pairs-3").iterdir()} == {
        "train.parquet",
        "validation.parquet",
        "test.parquet",
    }
    assert json.loads((out / "ledger.jsonl").read_text())["reason"] == "over the threshold"
    kept = json.loads((out / "result.json").read_text())
    assert {name: kept[name] for name in cleaned.to_dict()} == cleaned.to_dict()
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_texts_are_cleaned_as_dialogues_of_one_turn() -> None:
    cleaned = clean(Corpus.of_texts(["a b c", "a b c", "x y"]), validation_size=0, test_size=1)
    assert sorted(dialogue.texts[0] for dialogue in cleaned.corpus) == ["a b c", "x y"]
    assert [dialogue.id for dialogue in cleaned.dropped] == ["all-1"]


def test_a_limit_cuts_the_corpus_and_a_split_chooses_from_it() -> None:
    corpus = Corpus.of_texts(["a b", "c d", "e f"], ["g h"])
    sizes: dict[str, Any] = {"validation_size": 0, "test_size": 0}
    assert len(clean(corpus, limit=2, **sizes).corpus) == 2
    assert [dialogue.texts for dialogue in clean(corpus, split="test", **sizes).corpus] == [["g h"]]


def test_a_test_set_larger_than_what_is_kept_is_refused_with_both_counts() -> None:
    with pytest.raises(
        UsageError, match="Cannot take 2 test and 0 validation dialogues from the 1 of 2 that were kept"
    ):
        clean(Corpus.of_texts(["a b c", "a b c"]), validation_size=0, test_size=2)


def test_a_threshold_of_too_many_digits_is_refused() -> None:
    with pytest.raises(UsageError, match="A threshold has nine decimals at most"):
        clean(Corpus.of_texts(["a b c"]), threshold=2 / 3, validation_size=0, test_size=0)


def test_the_same_seed_gives_the_same_split() -> None:
    texts = Corpus.of_texts([f"w{n} v{n}" for n in range(20)])
    one, same, other = (
        [dialogue.id for dialogue in clean(texts, validation_size=5, test_size=5, seed=seed).corpus]
        for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_split_that_is_missing_names_the_option_that_helps() -> None:
    with pytest.raises(UsageError, match=r"has no validation split\. Found: train, test\. .* split \(--split\)\.$"):
        clean(Corpus.of_texts(["a"], ["b"]), split="valid")
