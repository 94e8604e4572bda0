"""Verdicts: good or a concern only where the whole interval decides; everything else says why it cannot be told."""

from __future__ import annotations

import pytest

from dialoscope.record import Score
from dialoscope.report.verdict import Verdict, judge, judge_difference

SHARE = "ratio/test/share_over_0.8"


@pytest.mark.parametrize(
    ("interval", "level"),
    [
        ((0.15, 0.25), "concern"),  # all of it over 0.01
        ((0.0, 0.01), "good"),  # none of it over 0.01
        ((0.005, 0.03), "cannot_tell"),  # on both sides
    ],
)
def test_the_whole_interval_decides_over_a_limit(interval: tuple[float, float], level: str) -> None:
    score = Score(sum(interval) / 2, 100, interval)
    assert judge(score, SHARE, text="Some leak.", concern_over=0.01).level == level


@pytest.mark.parametrize(
    ("interval", "level"), [((0.2, 0.4), "concern"), ((0.5, 0.9), "good"), ((0.4, 0.6), "cannot_tell")]
)
def test_the_whole_interval_decides_under_a_limit(interval: tuple[float, float], level: str) -> None:
    score = Score(sum(interval) / 2, 100, interval)
    assert judge(score, "words/all/spearman", text="Agrees.", concern_under=0.5).level == level


def test_a_score_over_nothing_is_not_measurable_and_says_why() -> None:
    verdict = judge(Score.missing("no dialogue has a response"), SHARE, text="", concern_over=0.01)
    assert (verdict.level, verdict.text) == ("not_measurable", "No dialogue has a response.")


def test_a_number_without_an_interval_cannot_be_judged() -> None:
    score = Score(0.9, 2, interval_reason="an interval needs at least 3 dialogues, found 2")
    verdict = judge(score, SHARE, text="90 % leak.", concern_over=0.01)
    assert verdict.level == "cannot_tell"
    assert "an interval needs at least 3 dialogues" in verdict.text


@pytest.mark.parametrize(
    ("better", "interval", "level"),
    [
        ("high", (0.02, 0.1), "good"),
        ("high", (-0.1, -0.02), "concern"),
        ("high", (-0.1, 0.0), "concern"),  # not above its baseline anywhere
        ("high", (-0.02, 0.1), "cannot_tell"),
        ("low", (-0.1, -0.02), "good"),
        ("low", (0.02, 0.1), "concern"),
        ("low", (-0.02, 0.1), "cannot_tell"),
    ],
)
def test_a_difference_from_the_baseline_is_judged_by_its_better_side(
    better: str, interval: tuple[float, float], level: str
) -> None:
    difference = Score(sum(interval) / 2, 50, interval)
    verdict = judge_difference(
        difference, "a/t/f1", better=better, text="Better.", against="bag_of_words/t/f1"  # type: ignore[arg-type]
    )  # fmt: skip
    assert (verdict.level, verdict.against) == (level, "bag_of_words/t/f1")


def test_a_difference_within_the_margin_is_no_gain() -> None:
    difference = Score(0.03, 50, (0.01, 0.05))
    verdict = judge_difference(difference, "a/t/f1", better="high", text="Better.", against="b/t/f1", margin=0.05)
    assert verdict.level == "concern"


def test_a_verdict_has_one_of_four_levels() -> None:
    with pytest.raises(ValueError, match="one of good, concern, cannot_tell, not_measurable; found 'bad'"):
        Verdict("bad", "Bad.")  # type: ignore[arg-type]
