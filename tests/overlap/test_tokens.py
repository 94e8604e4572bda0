from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.errors import UsageError
from turnwise.overlap.tokens import TOKENISERS, bags_of, reference_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello , WORLD !", ["hello", "world"]),
        ("It's 5 o'clock ...", ["it", "s", "5", "o", "clock", "..."]),  # "..." is no piece of the punctuation
        ("a <=> b () _", ["a", "b"]),  # "<=>" and "()" are pieces of it, and so is "_"
        ("snake_case", ["snake_case"]),
        ("Schön’s", ["schön", "’", "s"]),
        ("", []),
    ],
)
def test_reference_tokens_are_those_worked_by_hand(text: str, tokens: list[str]) -> None:
    assert reference_tokens(text) == tokens


TEXTS = st.lists(st.text("aAbB_1é’ \t\n\x1c\x85!()<=>.,…"), max_size=12)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(sorted(TOKENISERS)))
def test_bags_hold_the_distinct_tokens_of_each_text(one: list[str], other: list[str], tokeniser: str) -> None:
    (left, right), vocabulary = bags_of(one, pa.chunked_array([pa.array(other, pa.string())]), tokeniser=tokeniser)
    found = [set(vocabulary.spell(bags.bag(place))) for bags in (left, right) for place in range(len(bags))]
    assert found == [set(TOKENISERS[tokeniser](text)) for text in [*one, *other]]


@settings(deadline=None)
@given(TEXTS)
def test_tokens_are_ascending_and_the_rarest_come_first(texts: list[str]) -> None:
    (bags,), vocabulary = bags_of(texts)
    holders = [0] * len(vocabulary)
    for place in range(len(bags)):
        bag = bags.bag(place).tolist()
        assert bag == sorted(set(bag))
        for token in bag:
            holders[token] += 1
    assert holders == sorted(holders)


def test_very_long_texts_and_many_words_are_counted_whole() -> None:
    text = " ".join(f"w{number}" for number in range(5000)) + " " + "x" * 5000
    (bags,), vocabulary = bags_of([text, text])
    assert bags.sizes.tolist() == [5001, 5001]
    assert len(vocabulary) == 5001


def test_an_unknown_tokeniser_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'words'"):
        bags_of(["a"], tokeniser="word")
