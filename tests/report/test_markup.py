from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dialoscope.report.markup import markdown


@given(st.text())
def test_any_text_fits_into_one_cell_of_a_markdown_table(text: str) -> None:
    shown = markdown(text)
    assert len(shown.splitlines()) <= 1
    assert "|" not in shown.replace("\\|", "")


def test_marks_are_shown_as_they_are() -> None:
    assert markdown("[c]_1\n*b* | d") == "\\[c\\]\\_1 \\*b\\* \\| d"
