from __future__ import annotations

import pytest

from dialoscope.report import Card, Chart, Part, Prose, Section


def test_an_anchor_is_made_safe() -> None:
    assert Section("T", 'x" onclick="y', "", []).anchor == "x-onclick-y"


def test_prose_is_cut_at_blank_lines() -> None:
    assert Prose("One\nline.\n\n\n\nTwo.").paragraphs == ["One\nline.", "Two."]


def test_a_chart_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match="description"):
        Chart({"data": [], "layout": {}}, "Title", "")


@pytest.mark.parametrize("figure", [{}, {"data": []}, {"data": {}, "layout": {}}, {"data": [], "layout": 3}])
def test_what_is_no_figure_is_refused(figure: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected a Plotly figure"):
        Chart(figure, "Title", "Words")


def test_a_chart_with_nan_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"data\[0\].y\[1\]: expected a finite number"):
        Chart({"data": [{"y": [1, float("nan")]}], "layout": {}}, "Title", "Words")


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="found 'great'"):
        Card("x", 1, "great")  # type: ignore[arg-type]


def test_a_part_of_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="found 'info'"):
        Part("one", 1, "info")  # type: ignore[arg-type]
