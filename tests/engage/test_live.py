"""Live scores are those of the whole conversation, and an interval holds what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engage.samples import Counting

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.engage import storage
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.live import Calibration, Monitor, Ranges, Rule, rank
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.scoring import scored
from dialoscope.engage.shape import Shape
from dialoscope.errors import DialoscopeError, UsageError

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
    assert reading is not None
    assert reading.turn == 3
    assert reading.score == pytest.approx(one.predict([["a b", "c d e f", "b"]])[0][-1], abs=1e-5)
    assert monitor.scores == pytest.approx(one.predict([["a b", "c d e f", "b"]])[0].tolist(), abs=1e-5)


ROLES = ("user", "assistant", "system", "developer", "Tool", "function", "A", "B")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ROLES), min_size=1, max_size=7), st.integers(0, 2))
@example(["system", "user", "Tool", "assistant", "user"], 2)
@example(["user", "system", "user", "assistant", "user"], 1)  # what it said was an instruction, as shows later
@example(["system", "user", "system"], 1)  # and this was none: it answers
@example(["user", "assistant", "function", "assistant", "developer", "user"], 1)
def test_live_scores_are_those_of_batch_scoring_whoever_speaks(
    predictor: Callable[..., Predictor], speakers: list[str], history: int
) -> None:
    if {"tool", "function"} & {one.lower() for one in speakers}:
        speakers = [*speakers, "assistant"]
    if {one.lower() for one in speakers} <= {"system", "developer"}:
        speakers = [*speakers, "user"]
    one = predictor(history=history)
    turns = tuple(Turn(speaker, f"{'abcdef'[place % 6]} b") for place, speaker in enumerate(speakers))
    monitor = Monitor(one)
    for turn in turns:
        found = monitor.hear(turn.text, speaker=turn.speaker)
    batch = scored(one, Corpus.of([Dialogue(turns, "d")])).to_pydict()
    assert monitor.scores == pytest.approx(batch["score"], abs=1e-5)
    if found is not None:
        assert (found.turn, turns[-1].speaker) == (batch["turn"][-1], batch["speaker"][-1])
        assert found.score == monitor.scores[-1]


def test_instructions_have_no_reading_and_no_part_in_what_an_alarm_sees(predictor: Callable[..., Predictor]) -> None:
    monitor = Monitor(predictor())
    said = [("system", "a"), ("user", "b"), ("tool", "c d"), ("assistant", "e"), ("function", "f"), ("user", "a b")]
    found = [monitor.hear(text, speaker=speaker) for speaker, text in said]
    assert [one if one is None else one.turn for one in found] == [None, 1, None, 2, None, 3]
    assert monitor.scores == [one.score for one in found if one is not None]


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_turn_that_cannot_be_read_changes_nothing(predictor: Callable[..., Predictor], is_flat: bool) -> None:
    monitor, undisturbed = (Monitor(predictor(history=1, is_flat=is_flat)) for _ in range(2))
    for one in (monitor, undisturbed):
        one.hear("i see", speaker="u")
        one.hear("tell me more", speaker="a")
    for bad in (None, 5):
        with pytest.raises(UsageError, match="A turn is a text, found"):
            monitor.hear(bad, speaker="a")  # type: ignore[call-overload]
    assert monitor.hear("bye", speaker="u") == undisturbed.hear("bye", speaker="u")
    monitor.hear("half a \ud83d", speaker="a")  # where a stream was cut
    assert len(monitor.scores) == 4


def test_each_turn_is_encoded_once_however_long_the_conversation(counted: tuple[Encoder, Counting]) -> None:
    encoder, counting = counted
    monitor = Monitor(Predictor.untrained(encoder, Shape(history=3)))
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

    calibration = Calibration.of(*drawn(20_000), np.full(20_000, 4), share=0.9)
    scores, targets = drawn(20_000)
    is_inside = inside(calibration, scores, targets, np.full(20_000, 4))
    for low in (0.2, 0.5):
        part = (scores >= low) & (scores < low + 0.3)
        assert is_inside[part].mean() == pytest.approx(0.9, abs=0.015)


def inside(calibration: Calibration, scores: Any, targets: Any, positions: Any) -> Any:
    both = zip(scores.tolist(), positions.tolist(), strict=True)
    low, high = np.array([calibration.around(*one) for one in both]).T
    return (low <= targets) & (targets <= high)


def test_intervals_hold_the_first_turns_of_every_group() -> None:
    """Errors whose middle and width depend on the turn's number: 0.9 of new ones lie within, at every number."""
    rng = np.random.default_rng(0)

    def drawn(dialogues: int) -> tuple[Any, Any, Any]:
        positions = np.tile(np.arange(1, 13), dialogues)
        scores = rng.uniform(0.4, 0.6, len(positions))
        group = np.searchsorted([1, 2, 3, 4, 6, 9], positions, side="right")
        errors = rng.normal(0.25 - 0.08 * group, 0.01 * group)
        return scores.astype(np.float32), (scores + errors).astype(np.float32), positions

    calibration = Calibration.of(*drawn(2_000))
    assert [one.turn for one in calibration.groups] == [1, 2, 3, 4, 6, 9]
    scores, targets, positions = drawn(2_000)
    is_inside = inside(calibration, scores, targets, positions)
    for turn in range(1, 13):
        assert is_inside[positions == turn].mean() == pytest.approx(0.9, abs=0.03)
    blind = Calibration.of(*drawn(2_000)[:2], np.ones(24_000, np.int64))  # as if all were first turns
    assert inside(blind, scores, targets, np.ones_like(positions))[positions == 1].mean() < 0.7


@pytest.mark.parametrize(
    ("counts", "firsts"),
    [
        ([100] * 10, [1, 2, 3, 4, 6, 9]),
        ([100, 100, 100, 100, 50, 20, 20, 10, 0, 0], [1, 2, 3, 4]),  # 50 later turns go with 4 and 5
        ([100, 100, 30, 10, 10, 10, 10, 10, 5, 5], [1, 2, 3]),  # 3 and all after it have 90
        ([100, 60, 5, 5, 0, 0, 0, 0, 0, 0], [1]),  # 70 from 2 on
        ([10, 90, 90, 0, 0, 0, 0, 0, 0, 0], [1, 3]),  # first ones go with the next
        ([5, 5, 0, 0, 0, 0, 0, 0, 0, 0], [1]),
    ],
)
def test_groups_with_fewer_than_80_turns_join_a_neighbour(counts: list[int], firsts: list[int]) -> None:
    positions = np.repeat(np.arange(1, 11), counts)
    scores = np.linspace(0, 1, len(positions), dtype=np.float32)
    assert [one.turn for one in Calibration.of(scores, scores, positions).groups] == firsts


def test_a_first_turn_whose_score_was_seen_before_is_covered_to_the_bit() -> None:
    """What remains after a first turn is 1, and intervals end there."""
    scores = np.random.default_rng(0).uniform(0, 1, 1000).astype(np.float32)
    positions = np.ones(1000, np.int64)
    found = Calibration.of(scores, np.ones(1000, np.float32), positions)
    assert inside(found, scores, np.ones(1000), positions).mean() >= 0.9
    assert all(0 <= low <= high <= 1 for low, high in (found.around(float(one), 1) for one in scores))


def test_quantiles_of_few_errors_by_hand() -> None:
    """Of 19 errors, share 0.9 leaves (19 + 1) · 0.05 = 1 rank on each side: the smallest and the largest."""
    scores, errors = np.full(19, 0.5, np.float32), np.linspace(-0.09, 0.09, 19).astype(np.float32)
    turns = np.arange(1, 20)
    found = Calibration.of(scores, scores + errors, turns, share=0.9)
    assert found.around(0.5, 7) == pytest.approx((0.41, 0.59), abs=1e-6)
    few = Calibration.of(scores[:18], scores[:18] + errors[:18], turns[:18])
    assert few.around(0.5, 7) == (0.0, 1.0)  # too few to say


def test_the_monitor_knows_the_number_of_the_turn(predictor: Callable[..., Predictor]) -> None:
    groups = [Ranges(1, [], [-0.1], [0.1]), Ranges(3, [], [-0.2], [0.0])]
    monitor = Monitor(replace(predictor(), calibration=Calibration(groups)))
    for turn, (low, high) in zip(TURNS, [(-0.1, 0.1)] * 2 + [(-0.2, 0.0)] * 4, strict=True):
        found = monitor.hear(turn)
        expected = (max(0.0, found.score + low), min(1.0, found.score + high))
        assert found.interval == pytest.approx(expected, abs=1e-6)


def test_a_calibration_survives_json_and_nonsense_does_not() -> None:
    one = Calibration([Ranges(1, [0.5], [-0.1, -0.2], [0.3, 0.1]), Ranges(4, [], [-0.2], [0.2])], 0.8)
    assert Calibration.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    first, second = one.to_dict()["groups"]
    for groups in (3, [], [second], [second, first], [first, first], [{**first, "low": [0.1]}],
                   [{**first, "high": [1.0, math.nan]}], [{**first, "turn": "1"}]):  # fmt: skip
        with pytest.raises(UsageError, match="Expected a calibration"):
            Calibration.from_dict({"groups": groups, "share": 0.9})


def test_a_calibration_without_turns_is_of_an_older_predictor() -> None:
    with pytest.raises(UsageError, match="fit the predictor anew"):
        Calibration.from_dict({"edges": [0.5], "low": [-0.1, -0.2], "high": [0.3, 0.1], "share": 0.9})


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


def test_a_monitor_and_a_ranking_take_a_path_or_a_predictor(model: Path) -> None:
    monitor, loaded = Monitor(str(model)), Monitor(storage.load(model))
    assert monitor.hear("hello there").score == loaded.hear("hello there").score
    assert rank(model, ["hello there"], ["good night"]) == rank(storage.load(model), ["hello there"], ["good night"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "A predictor is a folder of 'dialoscope engage train' or loaded, found int."),
        ("nowhere", "nowhere: expected"),
    ],
)
def test_what_is_no_predictor_is_one_line(given: Any, message: str) -> None:
    with pytest.raises(DialoscopeError) as caught:
        Monitor(given)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)
