from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.engage.samples import of

from dialoscope.engage.baselines import (
    BASELINES,
    DEPTH_BASELINES,
    average_depth,
    average_depth_literal,
    lookup_depth,
    mean_length,
    random_depth,
)
from dialoscope.engage.protocol import Rater
from dialoscope.errors import UsageError

DIALOGUE = ["How are you today ?", "Fine .", "Did you sleep\twell ?"]
TURNS = st.lists(st.text(max_size=8), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("word_count", 5), ("question_mark", 1), ("position", 3), ("average_length", (5 + 2 + 5) / 3)],
)
def test_a_baseline_rates_the_last_turn(name: str, expected: float) -> None:
    assert BASELINES[name].rate([DIALOGUE]).tolist() == pytest.approx([expected])


@pytest.mark.parametrize(
    ("turn", "asks"),
    [("Why?", 1), ("Because; really.", 0), ("? ", 1), ("", 0), ("为什么？", 1), ("لماذا؟", 1), ("γιατί\u037e", 1)],
)
def test_a_question_mark_of_any_script_asks(turn: str, asks: float) -> None:
    assert BASELINES["question_mark"].rate([[turn]]).tolist() == [asks]


def test_every_baseline_rates_an_empty_turn_and_no_dialogues() -> None:
    for rater in BASELINES.values():
        assert np.isfinite(rater.rate([[""]])).all()
        assert rater.rate([]).shape == (0,)


def test_baselines_are_called_by_their_names() -> None:
    raters: dict[str, Rater] = dict(BASELINES)
    assert {name: one.name for name, one in raters.items()} == {name: name for name in raters}
    assert list(raters) == ["word_count", "question_mark", "position", "average_length", "random"]


@given(st.lists(TURNS, min_size=1, max_size=6))
def test_a_score_does_not_depend_on_the_batch(dialogues: list[list[str]]) -> None:
    for rater in BASELINES.values():
        together = rater.rate(dialogues).tolist()
        assert together == [rater.rate([one]).tolist()[0] for one in dialogues]
        assert together[::-1] == rater.rate(dialogues[::-1]).tolist()


def test_random_scores_are_spread_evenly_and_differ_with_the_context() -> None:
    found = BASELINES["random"].rate([["Hi.", str(number)] for number in range(2000)])
    assert stats.kstest(found, "uniform").pvalue > 0.01
    one, other = BASELINES["random"].rate([["Hi.", "Yes."], ["Hello.", "Yes."]])
    assert one != other


@pytest.mark.parametrize(
    ("j", "tables", "literal"),
    [(1, 1.0, 1.0), (2, 0.75, 2 / 3), (4, 0.25, 0.0), (5, 0.0, 0.0), (6, 0.0, 0.0)],
)
def test_average_depth_falls_by_one_turn_of_the_mean_length(j: int, tables: float, literal: float) -> None:
    assert average_depth(4.0, j).tolist() == pytest.approx(tables)
    assert average_depth_literal(4.0, j).tolist() == pytest.approx(literal)


def test_the_table_of_depths_guesses_every_turn() -> None:
    training = of([["hello", "fine."], ["good", "Fine"]])
    found = {name: fitted(training)(DIALOGUE).tolist() for name, fitted in DEPTH_BASELINES.items()}
    assert list(found) == ["random", "average", "average_literal", "lookup"]
    assert found["average"] == [1.0, 0.5, 0.0]
    assert found["average_literal"] == [1.0, 0.0, 0.0]
    assert found["random"] == random_depth(DIALOGUE).tolist()
    assert found["lookup"] == [0.5, 0.0, 0.5]  # "Fine ." ended both dialogues, the other two turns are new


def test_a_text_that_was_met_has_its_mean_depth() -> None:
    """Depths of "yes": 1 and 1/2 and 0 in dialogues of two, three and three turns; of all eight turns, 1/2."""
    guess = lookup_depth(of([["yes", "no"], ["a", "Yes !", "b"], ["c", "d", "yes"]]))
    assert guess(["YES", "a", "b", "e"]).tolist() == [0.5, 1.0, 0.0, 0.5]


def test_random_depth_is_none_the_wiser_for_equal_openings() -> None:
    """Every dialogue opens alike, and opens at depth 1: numbers drawn from the opening's words would know that."""
    dialogues = [["Hello !", "Hi .", *(f"turn {number} {k}" for k in range(number % 3 + 1))] for number in range(1000)]
    drawn = np.concatenate([random_depth(one) for one in dialogues])
    depth = np.concatenate([np.linspace(1, 0, len(one)) for one in dialogues])
    assert abs(stats.pearsonr(drawn, depth)[0]) < 3 / np.sqrt(len(drawn))
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert random_depth(dialogues[0]).tolist() == random_depth(dialogues[0]).tolist()


def test_dialogues_of_one_turn_do_not_count_to_the_mean_length() -> None:
    assert mean_length([1, 2, 5, 1]) == 3.5
    with pytest.raises(UsageError, match="at least 2 turns, found none"):
        mean_length([1, 1])


@pytest.mark.parametrize("guess", [average_depth, average_depth_literal])
def test_a_mean_length_below_two_turns_is_refused(guess: Callable[[float, list[int]], object]) -> None:
    for length in (1.0, float("nan")):
        with pytest.raises(UsageError, match="expected at least 2"):
            guess(length, [1, 2])
