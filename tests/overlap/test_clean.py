from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.corpus import Corpus, Dialogue, Turn
from turnwise.overlap import clean, pairs
from turnwise.overlap.clean import drop_copies, unit_bags, without_duplicates

WORDS = "abcdefghij"


def corpus_of(*texts: str, split: str = "all") -> Corpus:
    return Corpus.of([Dialogue((Turn("A", text),), f"d{place}", split) for place, text in enumerate(texts)])


def dropped(corpus: Corpus, threshold: str) -> list[tuple[str, str, int]]:
    ledger, _, _ = drop_copies(corpus, unit_bags(corpus), threshold)
    return [(drop.id, drop.partner, drop.turn) for drop in ledger]


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
    ledger, kept, _ = drop_copies(corpus, unit_bags(corpus), "0.6")
    left = [bag(corpus[place]) for place in kept.tolist()]
    ratios = [
        Fraction(2 * len(one & other), len(one) + len(other))
        for i, one in enumerate(left)
        for other in left[i + 1 :]
        if one | other
    ]
    assert all(ratio <= Fraction(3, 5) for ratio in ratios)
    assert len(ledger) + len(kept) == len(corpus)


def test_exact_duplicates_of_samples_go_within_a_split_and_from_later_splits() -> None:
    turns = (Turn("A", "Thank  you."), Turn("B", "You are welcome."))
    spelt = (Turn("A", "thank you."), Turn("B", "You are WELCOME."))
    corpus = Corpus.of(
        [
            Dialogue(turns, "a", "train"),
            Dialogue(spelt, "b", "train"),
            Dialogue(turns, "c", "validation"),
            Dialogue((Turn("A", "Hi."), Turn("B", "Hello.")), "d", "validation"),
            Dialogue((Turn("A", "Hi."), Turn("B", "Hello.")), "e", "test"),
        ]
    )
    tables, removed = without_duplicates(corpus, context_turns=1)
    assert {split: table["dialogue"].to_pylist() for split, table in tables.items()} == {
        "train": ["a"],
        "validation": ["d"],
        "test": [],
    }
    assert removed == {"train": 1, "validation": 1, "test": 1}


def test_cleaning_keeps_an_account_of_every_unit() -> None:
    cleaned = clean(corpus_of("a b c d", "a b c d", "e f", "g h"), threshold="0.75", validation=1, test=1)
    assert cleaned.dropped is not None
    assert [dialogue.id for dialogue in cleaned.dropped] == ["d0"]
    assert cleaned.corpus.splits == {"train": 1, "validation": 1, "test": 1}
    assert cleaned.to_dict()["units"] == 4


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        ("dialogue", [("p", "q", 0.8)]),  # {hi, you, there} and {hi, you}: 2·2 / 5
        ("turn", [("p#1", "q#1", 1.0), ("p#2", "q#2", 2 / 3)]),  # {you, there} and {you}: 2·1 / 3
        ("sample", [("p#2", "q#2", 2 / 3)]),
    ],
)
def test_pairs_of_any_unit_are_those_worked_by_hand(unit: str, found: list[tuple[str, str, float]]) -> None:
    one = Dialogue((Turn("A", "Hi !"), Turn("B", "you there")), "p", "all")
    other = Dialogue((Turn("A", "hi ,"), Turn("B", "You")), "q", "all")
    table = pairs(Corpus.of([one]), Corpus.of([other]), unit=unit, threshold="0.6").table
    assert [(row["first"], row["second"], row["ratio"]) for row in table.to_pylist()] == found
