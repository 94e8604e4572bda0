from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.overlap import pairs
from dialoscope.overlap.sample_join import rarest_part, shared_tokens
from dialoscope.overlap.tokens import bags_of

Pair = tuple[str, str]
WORDS = st.lists(st.sampled_from("abcde"), max_size=4).map(" ".join)
SAMPLES = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12)


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
    table = pairs(Corpus.of([one]), against=Corpus.of([other]), unit=unit, threshold=0.6).table
    assert [(row["first"], row["second"], row["ratio"]) for row in table.to_pylist()] == found


def ratio(one: str, other: str) -> Fraction:
    mine, theirs = set(one.split()), set(other.split())
    return Fraction(2 * len(mine & theirs), len(mine) + len(theirs)) if mine | theirs else Fraction(0)


def expected(left: list[Pair], right: list[Pair], limit: Fraction, *, is_self: bool) -> list[tuple[str, str, float]]:
    return [
        (f"all-{i + 1}#2", f"all-{j + 1}#2", float(found))
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if (not is_self or i < j) and (found := min(map(ratio, one, other))) >= limit
    ]


@given(SAMPLES, st.sampled_from(["0.5", "0.6", "0.8", "1"]))
def test_samples_within_a_list_pair_by_the_least_of_their_parts(samples: list[Pair], threshold: str) -> None:
    table = pairs(Corpus.of_pairs(samples), unit="sample", threshold=float(threshold)).table
    found = [(row["first"], row["second"], row["ratio"]) for row in table.to_pylist()]
    assert found == expected(samples, samples, Fraction(threshold), is_self=True)


@given(SAMPLES, SAMPLES, st.sampled_from(["0.5", "0.6", "0.8", "1"]))
def test_samples_of_two_lists_pair_by_the_least_of_their_parts(
    left: list[Pair], right: list[Pair], threshold: str
) -> None:
    corpora = Corpus.of_pairs(left), Corpus.of_pairs(right)
    table = pairs(corpora[0], against=corpora[1], unit="sample", threshold=float(threshold)).table
    found = [(row["first"], row["second"], row["ratio"]) for row in table.to_pylist()]
    assert found == expected(left, right, Fraction(threshold), is_self=False)


@pytest.mark.parametrize(
    ("contexts", "responses", "part"),
    [(["a", "b", "c"], ["yes", "yes", "yes"], 0), (["hi", "hi", "you"], ["a", "b", "c"], 1), (["", ""], ["a", "a"], 0)],
)
def test_samples_are_joined_by_the_part_that_repeats_less(contexts: list[str], responses: list[str], part: int) -> None:
    bags, _ = bags_of(contexts, responses)
    assert rarest_part(bags, None) == part
    assert rarest_part(bags, bags) == part


@given(SAMPLES)
def test_shared_tokens_are_the_intersection(samples: list[Pair]) -> None:
    (one, other), _ = bags_of([left for left, _ in samples], [right for _, right in samples])
    places = np.arange(len(samples))
    found = shared_tokens(one.offsets, one.tokens, other.offsets, other.tokens, places, places)
    assert found.tolist() == [len(set(left.split()) & set(right.split())) for left, right in samples]


def test_units_with_the_same_words_are_given_once_with_their_number() -> None:
    texts = ["a b c", "x y", "c b a", "a b d", "", "a b c", ""]
    found = pairs(Corpus.of_texts(texts), threshold=0.6, distinct=True)
    assert found.table.to_pylist() == [
        {"first": "all-1", "second": "all-4", "ratio": 2 / 3, "first_copies": 3, "second_copies": 1}
    ]
    assert found.counts == {"skipped": {}, "pairs": 1, "units": 7, "distinct": 4}


def test_distinct_pairs_spelt_out_are_all_pairs() -> None:
    texts = Corpus.of_texts(["a b c", "a b d", "c b a", "a c", "d a b", "q", "a b c"])
    spelt = pairs(texts, threshold=0.6)
    given = pairs(texts, threshold=0.6, distinct=True)
    between = sum(row["first_copies"] * row["second_copies"] for row in given.table.to_pylist())
    assert len(spelt) == between + 3 + 1  # three pairs of copies of "a b c", one of "a b d"


def test_too_many_samples_are_not_told_to_be_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoscope.overlap.join.MOST_PAIRS", 2)
    with pytest.raises(
        UsageError, match=r"^There are 3 pairs of samples to look at: too many\. Raise the threshold, or"
    ):
        pairs(Corpus.of_pairs([("a", "b")] * 3), unit="sample")
    with pytest.raises(UsageError, match="--distinct"):
        pairs(Corpus.of_texts(["a"] * 3))


def test_samples_are_not_given_once() -> None:
    with pytest.raises(UsageError, match="leave distinct out"):
        pairs(Corpus.of_pairs([("a", "b"), ("a", "b")]), unit="sample", distinct=True)


def test_the_closest_pairs_come_first_and_equals_in_order() -> None:
    # 1-2: 2·2/4; 1-3 and 2-3: 2·2/5; 1-4 and 2-4: 2·1/4; 3-4: 2·1/5.
    found = pairs(Corpus.of_texts(["a b", "b a", "a b c", "a d"]), threshold=0.3)
    closest = [(row["first"], row["second"], row["ratio"]) for row in found.closest(4)]
    assert closest == [
        ("all-1", "all-2", 1.0),
        ("all-1", "all-3", 0.8),
        ("all-2", "all-3", 0.8),
        ("all-1", "all-4", 0.5),
    ]
    assert (len(found.closest(20)), pairs(Corpus.of_texts(["a", "b"])).closest(20)) == (6, [])


def test_units_of_both_sides_are_counted() -> None:
    one, other = Corpus.of_texts(["a b"]), Corpus.of_texts(["a b", "c"])
    assert pairs(one, against=other).counts["other_units"] == 2
    assert pairs(one, against=other, distinct=True).counts["other_units"] == 2
    assert "other_units" not in pairs(other).counts


def test_a_split_and_a_limit_choose_what_is_compared() -> None:
    corpus = Corpus.of_texts(["a b", "a b", "a b"], ["a b"])
    assert [len(pairs(corpus, **options)) for options in ({}, {"split": "train"}, {"limit": 2})] == [6, 3, 1]


def test_the_json_of_pairs_has_the_head_of_every_result() -> None:
    shown = pairs(Corpus.of_texts(["a b", "a b"]), threshold=1).to_dict()
    assert (shown["schema_version"], shown["instrument"], shown["counts"]["pairs"]) == (2, "overlap-pairs", 1)
    assert shown["settings"]["threshold"] == 1


def test_pairs_are_saved_as_parquet_or_csv(tmp_path: Path) -> None:
    found = pairs(Corpus.of_texts(["a b", "a b"]))
    assert found.save(tmp_path / "a.csv").read_text() == '"first","second","ratio"\n"all-1","all-2",1\n'
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        found.save(tmp_path / "a.xlsx")


def test_only_an_engine_writes_to_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Only Spark writes pairs to a folder"):
        pairs(Corpus.of_texts(["a b", "a b"]), folder=tmp_path / "pairs")


def test_a_limit_cuts_the_first_side_only() -> None:
    found = pairs(Corpus.of_texts(["b", "a"]), against=Corpus.of_texts(["a", "b"], name="other"), limit=1)
    assert found.parts == {"texts": 1, "other": 2}
    assert len(found) == 1


def test_a_split_that_is_missing_names_the_option_that_helps() -> None:
    with pytest.raises(UsageError, match=r"has no validation split\. Found: train, test\. .* split \(--split\)\.$"):
        pairs(Corpus.of_texts(["a"], ["b"]), split="valid")
