from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus.text import words_per_text


@given(st.lists(st.lists(st.text("ab é\t\n 😀")), max_size=4))
def test_words_are_counted_as_a_regular_expression_would(chunks: list[list[str]]) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    expected = [len(re.findall(r"[^ \t\n\r\v\f]+", text)) for chunk in chunks for text in chunk]
    assert words_per_text(column).tolist() == expected


def test_a_slice_of_a_column_is_counted_by_itself() -> None:
    column = pa.chunked_array([pa.array(["one", "two words", "", "three more words"]).slice(1, 3)])
    assert words_per_text(column).tolist() == [2, 0, 3]
