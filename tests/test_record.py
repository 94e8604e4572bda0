from __future__ import annotations

import math

import pytest

from dialoscope.record import Origin, Score


def test_a_signature_names_corpus_seed_settings_and_version() -> None:
    origin = Origin(corpus="dailydialog@3f2a", settings={"threshold": 0.75}, seed=7, version="0.1.0")
    assert origin.signature == "corpus:dailydialog@3f2a|seed:7|threshold:0.75|v:0.1.0"


def test_a_signature_leaves_out_what_was_not_used() -> None:
    assert Origin(version="0.1.0").signature == "v:0.1.0"


def test_a_setting_cannot_break_the_line() -> None:
    assert Origin(settings={"a": "x|y z"}, version="1").signature == "a:x/y_z|v:1"


def test_a_score_shows_its_interval_its_n_and_its_origin() -> None:
    assert str(Score(0.4127, 1000, (0.4051, 0.4203), "v:0.1.0")) == "0.4127 [0.4051, 0.4203] n=1000 |v:0.1.0"


def test_a_score_that_could_not_be_computed_says_why() -> None:
    score = Score.missing("all values are equal", n=3)
    assert str(score) == "not computed: all values are equal"
    assert score.to_dict() == {
        "value": None,
        "n": 3,
        "interval": None,
        "reason": "all values are equal",
    }


def test_json_has_four_keys_and_a_reason_only_where_something_is_missing() -> None:
    score = Score(0.5, 2, (0.0, 1.0), "s")
    assert score.to_dict() == {"value": 0.5, "n": 2, "interval": [0.0, 1.0], "reason": None}
    assert Score.from_dict(score.to_dict()) == score


def test_json_says_why_there_is_no_interval() -> None:
    shown = Score(0.5, 2, interval_reason="only 2 dialogues").to_dict()
    assert shown == {
        "value": 0.5,
        "n": 2,
        "interval": None,
        "reason": "only 2 dialogues",
    }
    assert Score.from_dict(shown).interval_reason == "only 2 dialogues"


@pytest.mark.parametrize("interval", [(0.0, math.nan), (-math.inf, 1.0), (1.0, 0.0)])
def test_an_interval_has_two_finite_ends_in_order(interval: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="two finite ends in order"):
        Score(0.5, 2, interval)


def test_an_interval_and_a_reason_why_there_is_none_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="leaves no reason"):
        Score(0.5, 2, (0.0, 1.0), interval_reason="too few")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_is_a_finite_number(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Score(value, 1)


def test_a_score_without_a_value_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="either a value or a reason"):
        Score(None, 1)


def test_scores_cannot_be_added_for_their_origin_would_be_lost() -> None:
    with pytest.raises(TypeError):
        Score(0.5, 2) + Score(0.25, 2)  # type: ignore[operator]


def test_an_interval_is_held_within_what_is_possible() -> None:
    score = Score(0.9, 5, (0.4, 1.2))
    assert score.within(0, 1).interval == (0.4, 1)
    assert score.within(0.5).interval == (0.5, 1.2)
    assert Score(0.9, 5).within(0, 1) == Score(0.9, 5)
