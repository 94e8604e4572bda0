from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.report import Mark, ShownTurn


def test_marks_cut_the_text_into_pieces() -> None:
    turn = ShownTurn("A", "how are you", marks=[Mark(8, 11), Mark(0, 3)])
    assert turn.pieces == (("how", True), (" are ", False), ("you", True))


def test_overlapping_marks_are_all_marked() -> None:
    turn = ShownTurn("A", "abcdef", marks=[Mark(0, 3), Mark(2, 5)])
    assert "".join(piece for piece, is_marked in turn.pieces if is_marked) == "abcde"


@given(st.text(min_size=1, max_size=30), st.data())
def test_pieces_joined_are_the_text(text: str, data: st.DataObject) -> None:
    edges = st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text))).filter(lambda pair: pair[0] < pair[1])
    marks = [Mark(*pair) for pair in data.draw(st.lists(edges, max_size=4))]
    assert "".join(piece for piece, _ in ShownTurn("A", text, marks=marks).pieces) == text


def test_an_empty_turn_has_no_pieces() -> None:
    assert ShownTurn("A", "").pieces == ()


def test_a_shaded_turn_without_a_tag_shows_its_value() -> None:
    assert ShownTurn("A", "x", 0.425).label == "0.42"


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_0_to_1_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        ShownTurn("A", "x", value)


@pytest.mark.parametrize("mark", [Mark(2, 2), Mark(-1, 1), Mark(0, 4)])
def test_a_mark_outside_the_text_is_refused(mark: Mark) -> None:
    with pytest.raises(ValueError, match="within 3 characters"):
        ShownTurn("A", "abc", marks=[mark])
