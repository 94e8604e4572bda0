from __future__ import annotations

import json

import pytest

from dialoscope.record import Origin, Score
from dialoscope.report import Chart, Part, Prose, Section, Verdict
from dialoscope.report.section import Level


def _through_json(section: Section) -> Section:
    return Section.from_dict(json.loads(json.dumps(section.to_dict(), allow_nan=False)))


def test_blocks_of_every_kind_survive_the_round_trip(section: Section) -> None:
    assert _through_json(section).blocks == section.blocks


def test_words_and_verdict_survive_the_round_trip(hostile_section: Section) -> None:
    back = _through_json(hostile_section)
    assert (back.title, back.lead, back.verdict) == (
        hostile_section.title,
        hostile_section.lead,
        hostile_section.verdict,
    )


def test_the_signature_survives_even_where_json_has_no_such_type() -> None:
    origin = Origin("demo@00", {"folds": (1, 2), "names": {"a"}, "share": 0.5, "on": True, "none": None}, 7, "0.1.0")
    back = _through_json(Section("T", "t", "", [], origin=origin))
    assert back.origin is not None
    assert back.origin.signature == origin.signature


def test_a_section_without_verdict_and_origin_survives_too() -> None:
    section = Section("T", "t", "Why?", [Prose("x")])
    assert _through_json(section) == section


def test_an_unknown_block_is_refused_by_name() -> None:
    stored = {**Section("T", "t", "", []).to_dict(), "blocks": [{"kind": "video"}]}
    with pytest.raises(ValueError, match="found 'video'"):
        Section.from_dict(stored)


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
        Verdict("x", 1, "great")  # type: ignore[arg-type]


def test_the_parts_of_a_verdict_survive_the_round_trip() -> None:
    parts = [Part("one", Score(0.5, 9, (0.4, 0.6)), "good"), Part("two", Score.missing("no contexts"))]
    section = Section("T", "t", "", [], verdict=Verdict("times", None, "info", ".2f", parts))
    assert _through_json(section).verdict == section.verdict


@pytest.mark.parametrize(
    ("levels", "worst"),
    [(["good", "bad", "warn"], "bad"), (["good", "info"], "info"), (["info", "warn"], "warn"), (["good"] * 2, "good")],
)
def test_a_verdict_of_several_is_as_bad_as_the_worst_and_good_only_where_all_are(
    levels: list[Level], worst: str
) -> None:
    verdict = Verdict.of({f"m{place}": Verdict("tasks known", place, one) for place, one in enumerate(levels)})
    assert verdict.level == worst
    assert [(one.name, one.level) for one in verdict.parts] == [(f"m{place}", one) for place, one in enumerate(levels)]


def test_a_verdict_of_one_is_that_one() -> None:
    assert Verdict.of({"one": (alone := Verdict("tasks known", 3))}) is alone


def test_a_verdict_in_one_line_has_every_number() -> None:
    assert Verdict("of the test set", 0.1, number_format=".0%").line == "10% of the test set"
    of = {"one": Verdict("of 9 tasks", 3), "a b": Verdict("of 9 tasks", 5)}
    assert Verdict.of(of).line == "one: 3, a b: 5 of 9 tasks"
