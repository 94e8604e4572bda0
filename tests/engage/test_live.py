"""Live scores are those of the whole conversation, and an interval holds what it says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engage.samples import Counting

from turnwise.engage.encoder import Encoder
from turnwise.engage.live import Calibration, Monitor, Rule, rank
from turnwise.engage.predictor import Predictor
from turnwise.engage.settings import Settings
from turnwise.errors import UsageError

TURNS = ["a b", "c d e f", "a", "b b c", "f e d", "a b c d"]


@pytest.mark.parametrize("history", [0, 1, 3])
@pytest.mark.parametrize("is_flat", [False, True])
def test_live_scores_are_those_of_the_whole_conversation(
    predictor: Callable[..., Predictor], history: int, is_flat: bool
) -> None:
    one = predictor(history=history, is_flat=is_flat)
    monitor = Monitor(one)
    live = [monitor.hear(turn).score for turn in TURNS]
    assert live == pytest.approx(one.predict([TURNS])[0].tolist(), abs=1e-5)


def test_a_speaker_who_goes_on_adds_to_the_last_turn(predictor: Callable[..., Predictor]) -> None:
    one = predictor(history=2)
    monitor = Monitor(one)
    for speaker, turn in [("A", "a b"), ("B", "c d"), ("B", "e f"), ("A", "b")]:
        reading = monitor.hear(turn, speaker=speaker)
    assert reading.turn == 3
    assert reading.score == pytest.approx(one.predict([["a b", "c d e f", "b"]])[0][-1], abs=1e-5)
    assert monitor.scores == pytest.approx(one.predict([["a b", "c d e f", "b"]])[0].tolist(), abs=1e-5)


def test_each_turn_is_encoded_once_however_long_the_conversation(counted: tuple[Encoder, Counting]) -> None:
    encoder, counting = counted
    monitor = Monitor(Predictor.untrained(encoder, Settings(history=3)))
    for turn in TURNS * 5:
        monitor.hear(turn)
    assert counting.texts == len(TURNS * 5)


@pytest.mark.parametrize(
    ("scores", "is_met"),
    [
        ([0.29, 0.2, 0.1], True),
        ([0.9, 0.29, 0.2, 0.1], True),
        ([0.31, 0.2, 0.1], False),  # one is not under the limit
        ([0.29, 0.2, 0.2], False),  # it does not fall
        ([0.2, 0.1], False),  # too few
        ([0.2, 0.0, 0.0, 0.0], True),  # 0 cannot fall any more
        ([0.29, 0.2, 0.1, 0.15], False),  # it rose again
    ],
)
def test_the_alarm_is_raised_by_falling_turns_under_a_limit(scores: list[float], is_met: bool) -> None:
    assert Rule(3, 0.3).is_met(scores) is is_met


@pytest.mark.parametrize(("turns", "below"), [(0, 0.3), (-2, 0.3), (3, float("nan")), (3, 30), (3, 0)])
def test_an_alarm_that_means_nothing_is_refused(turns: int, below: float) -> None:
    with pytest.raises(UsageError, match="An alarm takes"):
        Rule(turns, below)


def test_the_trend_is_the_slope_of_the_last_five_scores(predictor: Callable[..., Predictor]) -> None:
    monitor = Monitor(predictor())
    assert monitor.hear("a").trend is None
    for turn in TURNS:
        reading = monitor.hear(turn)
    last, place = np.array(monitor.scores[-5:]), np.arange(5) - 2
    assert reading.trend == pytest.approx(float((place * last).sum() / (place**2).sum()))


def test_intervals_hold_new_turns_in_their_share_of_cases() -> None:
    """Errors that depend on the score: 0.9 of new ones lie within, in every range of scores."""
    rng = np.random.default_rng(0)

    def drawn(count: int) -> tuple[Any, Any]:
        scores = rng.uniform(0.2, 0.8, count)
        return scores.astype(np.float32), (scores + rng.normal(0, 0.02 + 0.1 * scores)).clip(0, 1).astype(np.float32)

    calibration = Calibration.of(*drawn(20_000), share=0.9)
    scores, targets = drawn(20_000)
    ends = np.array([calibration.around(float(one)) for one in scores])
    is_inside = (ends[:, 0] <= targets) & (targets <= ends[:, 1])
    for low in (0.2, 0.5):
        part = (scores >= low) & (scores < low + 0.3)
        assert is_inside[part].mean() == pytest.approx(0.9, abs=0.015)


def test_quantiles_of_few_errors_by_hand() -> None:
    """Of 19 errors, share 0.9 leaves (19 + 1) · 0.05 = 1 rank on each side: the smallest and the largest."""
    scores, errors = np.full(19, 0.5, np.float32), np.linspace(-0.09, 0.09, 19).astype(np.float32)
    found = Calibration.of(scores, scores + errors, share=0.9)
    assert found.around(0.5) == pytest.approx((0.41, 0.59), abs=1e-6)
    assert Calibration.of(scores[:18], scores[:18] + errors[:18]).around(0.5) == (0.0, 1.0)  # too few to say


def test_a_calibration_survives_json_and_nonsense_does_not() -> None:
    one = Calibration([0.5], [-0.1, -0.2], [0.3, 0.1], 0.8)
    assert Calibration.from_dict(one.to_dict()) == one
    for bad in ({"edges": 3}, {**one.to_dict(), "low": [0.1]}, {**one.to_dict(), "high": [1.0, math.nan]}):
        with pytest.raises(UsageError, match="Expected a calibration"):
            Calibration.from_dict(bad)


@settings(max_examples=20, deadline=None)
@given(context=st.lists(st.sampled_from(TURNS), max_size=5), history=st.integers(0, 3), is_flat=st.booleans())
def test_candidates_are_ranked_by_the_score_of_each_in_its_place(
    predictor: Callable[..., Predictor], context: list[str], history: int, is_flat: bool
) -> None:
    one = predictor(history=history, is_flat=is_flat)
    candidates = ["a a a", "f", "c d b"]
    found = rank(one, context, candidates)
    expected = {text: float(one.predict([[*context, text]])[0][-1]) for text in candidates}
    assert dict((text, score) for score, text in found) == pytest.approx(expected, abs=1e-5)
    assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)


def test_nothing_to_rank_is_refused(predictor: Callable[..., Predictor]) -> None:
    with pytest.raises(UsageError, match="at least one candidate"):
        rank(predictor(), ["a"], [])
