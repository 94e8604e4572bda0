from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.distract import InsertDistractions
from dialoscope.distract.distractions import draw_from_others, insert
from dialoscope.errors import UsageError
from dialoscope.model.examples import Examples, Turns, ends_of


def examples(*lengths: int) -> Examples:
    """All samples of dialogues with these numbers of turns; every turn is one token and its end mark."""
    first = ends_of(np.array(lengths))
    turns = Turns(np.full(2 * first[-1], 5, dtype=np.int32), np.arange(first[-1] + 1) * 2, first)
    spans = [(low, at, one) for one, low in enumerate(first[:-1]) for at in range(low + 1, first[one + 1])]
    context = np.concatenate([np.arange(low, at) for low, at, _ in spans])
    offsets = ends_of(np.array([at - low for low, at, _ in spans]))
    dialogue, response = np.array([one for *_, one in spans]), np.array([at for _, at, _ in spans])
    return Examples(turns, context, np.zeros(len(context), dtype=bool), offsets, response, dialogue)


def contexts(found: Examples) -> list[list[int]]:
    return [found.context[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:], strict=False)]


@pytest.mark.parametrize(
    ("slots", "is_inserted", "expected", "mask"),
    [
        ([0, 2], [True, True], [90, 0, 1, 91, 2], [1, 0, 0, 1, 0]),  # the last slot is just before the Query
        ([2, 0], [True, True], [91, 0, 1, 90, 2], [1, 0, 0, 1, 0]),
        ([1, 1], [True, True], [0, 90, 91, 1, 2], [0, 1, 1, 0, 0]),  # two at one slot keep their order
        ([1, 1], [False, True], [0, 91, 1, 2], [0, 1, 0, 0]),
        ([0, 0], [False, False], [0, 1, 2], [0, 0, 0]),
    ],
)
def test_distractions_stand_at_their_slots(
    slots: list[int], is_inserted: list[bool], expected: list[int], mask: list[int]
) -> None:
    whole = examples(4).take(np.array([2]))  # context 0 1 2, response 3
    found = insert(whole, np.array([[90, 91]]), np.array([slots]), np.array([is_inserted]))
    assert contexts(found) == [expected]
    assert found.is_distraction.astype(int).tolist() == mask


@given(st.lists(st.integers(2, 6), min_size=2, max_size=5), st.integers(0, 99), st.sampled_from([0.5, 0.7, 1.0]))
def test_what_was_there_stays_in_order_and_the_query_stays_last(lengths: list[int], seed: int, share: float) -> None:
    before = examples(*lengths)
    after = InsertDistractions(share)(before, np.random.default_rng(seed))
    dialogue = np.repeat(np.arange(len(lengths)), lengths)
    for row, (old, new) in enumerate(zip(contexts(before), contexts(after), strict=True)):
        flags = after.is_distraction[after.offsets[row] : after.offsets[row + 1]]
        assert [turn for turn, flag in zip(new, flags, strict=True) if not flag] == old
        assert not flags[-1]
        assert flags.sum() <= 2
        assert all(dialogue[turn] != before.dialogue[row] for turn, flag in zip(new, flags, strict=True) if flag)


def test_every_turn_of_another_dialogue_is_equally_likely() -> None:
    two = examples(2, 3).take(np.array([0]))  # its own dialogue is turns 0 and 1, the other one turns 2, 3, 4
    drawn = draw_from_others(two, np.random.default_rng(0), 30_000)
    turns, counts = np.unique(drawn, return_counts=True)
    assert turns.tolist() == [2, 3, 4]
    assert np.abs(counts / 30_000 - 1 / 3).max() < 0.01


def test_a_blank_turn_is_never_drawn() -> None:
    two = examples(2, 3).take(np.array([0]))
    blank = Turns(np.full(9, 5, dtype=np.int32), np.array([0, 2, 4, 6, 7, 9]), two.turns.first)  # turn 3: its end mark
    drawn = draw_from_others(replace(two, turns=blank), np.random.default_rng(0), 1_000)
    assert np.unique(drawn).tolist() == [2, 4]


def test_the_share_inserted_and_the_slots_follow_their_probabilities() -> None:
    many = examples(*[3] * 4000)
    long = many.take(np.nonzero(many.utterances == 2)[0])  # a History of one turn: slots 0 and 1
    after = InsertDistractions(0.7)(long, np.random.default_rng(1))
    added = after.utterances - 2
    assert [round(float((added == n).mean()), 2) for n in range(3)] == pytest.approx([0.09, 0.42, 0.49], abs=0.03)
    is_first = after.is_distraction[after.offsets[:-1]][added == 1]
    assert is_first.mean() == pytest.approx(0.5, abs=0.04)


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    transform, given_ = InsertDistractions(0.7), examples(5, 5, 5)
    one, same, other = (contexts(transform(given_, np.random.default_rng(seed))) for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_probability_0_changes_nothing() -> None:
    given_ = examples(3, 3)
    assert InsertDistractions(0.0)(given_, np.random.default_rng(0)) is given_


@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_no_probability_is_refused(probability: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        InsertDistractions(probability)
    with pytest.raises(UsageError, match="at least 1, found most=0"):
        InsertDistractions(0.7, most=0)


def test_one_dialogue_alone_has_no_others_to_draw_from() -> None:
    with pytest.raises(UsageError, match="no other says anything"):
        InsertDistractions(1.0)(examples(3), np.random.default_rng(0))
