from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.overlap.duplicates import first_alike, in_one_spelling, without_duplicates

# Greek sigma and dotted capital I are lower-cased differently by Python and Arrow; neither is wrong.
TEXTS = st.lists(st.text("aAbBéÉ \t\n\v\x1c\x85\u00a0\u1680\u2003\u2028\u3000.", max_size=6), max_size=12)


def column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.string())])


@given(TEXTS)
def test_one_spelling_is_lower_case_with_single_blanks(texts: list[str]) -> None:
    assert in_one_spelling(column(texts)).to_pylist() == [" ".join(text.lower().split()) for text in texts]


@given(st.lists(st.tuples(st.sampled_from(["a", "A ", "b", ""]), st.sampled_from(["x", " X", "y"])), max_size=15))
def test_the_first_of_equals_is_the_one_a_loop_would_find(samples: list[tuple[str, str]]) -> None:
    seen: dict[tuple[str, str], int] = {}
    firsts = [
        seen.setdefault((one.lower().strip(), other.lower().strip()), place)
        for place, (one, other) in enumerate(samples)
    ]
    contexts, responses = ([sample[part] for sample in samples] for part in (0, 1))
    assert first_alike(column(contexts), column(responses)).tolist() == firsts


def test_words_do_not_move_between_context_and_response() -> None:
    assert first_alike(column(["a b", "a"]), column(["c", "b c"])).tolist() == [0, 1]


def test_duplicates_go_within_a_split_and_from_later_splits_and_name_their_partner() -> None:
    turns = (Turn("A", "Thank  you."), Turn("B", "You are welcome."))
    spelt = (Turn("A", "thank you."), Turn("B", "You are WELCOME."))
    greeting = (Turn("A", "Hi."), Turn("B", "Hello."))
    corpus = Corpus.of(
        [
            Dialogue(turns, "a", "train"),
            Dialogue(spelt, "b", "train"),
            Dialogue(turns, "c", "validation"),
            Dialogue(greeting, "d", "validation"),
            Dialogue(greeting, "e", "test"),
        ]
    )
    tables, repeats = without_duplicates(corpus, context_turns=1)
    assert {split: table["dialogue"].to_pylist() for split, table in tables.items()} == {
        "train": ["a"],
        "validation": ["d"],
        "test": [],
    }
    assert repeats.to_pylist() == [
        {"id": "b#2", "split": "train", "partner": "a#2"},
        {"id": "c#2", "split": "validation", "partner": "a#2"},
        {"id": "e#2", "split": "test", "partner": "d#2"},
    ]
