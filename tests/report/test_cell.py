from __future__ import annotations

import math

import numpy as np
import pytest

from dialoscope.record import Score
from dialoscope.report.cell import Cell, Written, checked, checked_format, common_format, in_one_line, write


@pytest.mark.parametrize(
    ("cell", "number_format", "expected"),
    [
        ("text", "", "text"),
        (None, "", ""),
        (1234567, "", "1,234,567"),
        (0.5, "", "0.500"),
        (38.214, "", "38.21"),
        (123.456, "", "123.5"),
        (0.00012345, "", "0.000123"),
        (0.2312, ".1%", "23.1%"),
        (12.6, ",d", "13"),
        (-3, "", "-3"),
        (0.0, "", "0"),
    ],
)
def test_a_number_is_written_in_its_format_or_by_its_size(cell: Cell, number_format: str, expected: str) -> None:
    assert write(cell, number_format).text == expected


def test_a_score_is_written_with_interval_and_n() -> None:
    score = Score(0.41273, 1000, (0.40511, 0.42034))
    assert write(score, ".3f") == Written("0.413", "[0.405, 0.420]", "1,000")


def test_a_score_in_percent_has_its_interval_in_percent() -> None:
    assert write(Score(0.2315, 6740, (0.2214, 0.2417)), ".1%").interval == "[22.1%, 24.2%]"


def test_a_missing_score_says_why() -> None:
    assert write(Score.missing("no references", n=3)) == Written("—", "", "3", "no references")


def test_a_score_in_one_line_has_everything() -> None:
    assert in_one_line(Score(0.5, 12, (0.25, 0.75)), ".2f") == "0.50 [0.25, 0.75] (n=12)"


def test_a_missing_score_in_one_line_has_its_reason() -> None:
    assert in_one_line(Score.missing("empty")) == "not computed: empty"


def test_the_largest_number_decides_the_decimals_of_all() -> None:
    assert common_format([0.1234, 12.3456, None, "text"]) == ",.2f"


def test_whole_numbers_have_no_decimals() -> None:
    assert common_format([1, 2, None]) == ",d"


def test_numpy_numbers_become_python_numbers() -> None:
    assert [type(checked(value)) for value in (np.int64(3), np.float32(0.5))] == [int, float]


def test_facts_become_words() -> None:
    assert [checked(True), checked(np.bool_(False))] == ["yes", "no"]


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float64("nan")])
def test_a_cell_is_never_nan(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        checked(value)


def test_what_is_no_cell_is_refused() -> None:
    with pytest.raises(TypeError, match="found list"):
        checked([1])


@pytest.mark.parametrize("number_format", ["", ",d", ".3f", ".1%", "+,.2f", ".3g"])
def test_formats_that_python_and_plotly_share_are_known(number_format: str) -> None:
    assert checked_format(number_format) == number_format


@pytest.mark.parametrize("number_format", ["99999999d", "percent", ".3", "s", "{}"])
def test_an_unknown_format_is_refused_with_examples(number_format: str) -> None:
    with pytest.raises(ValueError, match=r"such as ',d', '\.3f' or '\.1%'"):
        checked_format(number_format)
