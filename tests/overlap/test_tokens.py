from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.overlap.tokens import TOKENISERS, bags_of, reference_tokens


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


ODD = "\0ΣσςİıKȺ😀𠀀ßẞ\u2028\u00a0"  # lower case that depends on its place, grows, or lies beyond the tables
TEXTS = st.lists(st.text("aAbB_1é’ \t\n\x1c\x85!()<=>.,…" + ODD) | st.text(), max_size=12)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(sorted(TOKENISERS)))
def test_bags_hold_the_distinct_tokens_of_each_text(one: list[str], other: list[str], tokeniser: str) -> None:
    (left, right), vocabulary = bags_of(one, pa.chunked_array([pa.array(other, pa.string())]), tokeniser=tokeniser)
    spelt = vocabulary.words.to_pylist()
    found = [{spelt[token] for token in bags.bag(place)} for bags in (left, right) for place in range(len(bags))]
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


def test_every_character_is_read_as_python_reads_it() -> None:
    texts = [f"a{chr(code)}B {chr(code)}" for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    (bags,), vocabulary = bags_of(texts)
    spelt = vocabulary.words.to_pylist()
    for place, text in enumerate(texts):
        assert {spelt[token] for token in bags.bag(place)} == set(reference_tokens(text)), repr(text)


def test_texts_shared_among_cores_are_numbered_as_one() -> None:
    texts = [f"word{number % 977} of {number}" for number in range(20_000)]
    (bags,), vocabulary = bags_of(texts)
    spelt = vocabulary.words.to_pylist()
    for place in (0, 1, 9_999, 10_000, 19_999):
        assert {spelt[token] for token in bags.bag(place)} == set(reference_tokens(texts[place]))


def test_an_unknown_tokeniser_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'words'"):
        bags_of(["a"], tokeniser="word")
