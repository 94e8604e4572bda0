from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.report.anchor import free_name, slug


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Words per turn (test)", "words-per-turn-test"), ("Größe", "groe"), ("対話", "part"), ("../..", "part")],
)
def test_a_title_becomes_a_file_name(text: str, expected: str) -> None:
    assert slug(text) == expected


@given(st.text())
def test_any_text_becomes_a_safe_name(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug(text))


def test_a_taken_name_gets_a_number() -> None:
    assert free_name("overlap", {"overlap", "overlap-2"}) == "overlap-3"


def test_the_number_of_a_long_name_is_kept_within_what_a_name_may_be() -> None:
    name = slug("word " * 20)
    free = free_name(name, {name})
    assert (len(name), free, slug(free)) == (59, f"{name[:58].rstrip('-')}-2", free)
