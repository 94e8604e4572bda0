from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.distract.scores import averaged, case_scores, head_means, log_scores
from dialoscope.distract.sets import Case
from dialoscope.model.protocol import Attention, Kind

# History "a", distraction "b", History "c", Query "d".
CASE = Case("d1", 4, ("a", "b", "c", "d"), "e", (1,))


def attention(*shares: float, tokens: tuple[int, ...] = (2, 2, 2, 2), kind: Kind = "static") -> Attention:
    with np.errstate(divide="ignore"):
        log = np.log(np.array(shares, dtype=np.float64)).astype(np.float32)
    return Attention(log.reshape(1, 1, -1), np.array(tokens), kind)


def percent(seen: Attention, normalisation: str = "utterance") -> list[float]:
    return [round(100 * float(one), 4) for one in np.exp(log_scores(seen, normalisation=normalisation))[0, 0]]


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_hierarchical_scores_are_shares_times_utterances(kind: Kind) -> None:
    seen = attention(0.4, 0.1, 0.2, 0.3, kind=kind)
    assert percent(seen) == [160.0, 40.0, 80.0, 120.0]  # 4 · share
    assert percent(seen, "as_printed") == [160.0, 40.0, 80.0, 120.0]  # equation 7 prints q for these


def test_token_scores_by_their_three_ways() -> None:
    seen = attention(0.4, 0.1, 0.2, 0.3, tokens=(5, 1, 2, 2), kind="token")
    assert percent(seen) == [160.0, 40.0, 80.0, 120.0]
    assert percent(seen, "as_printed") == [100.0, 25.0, 50.0, 75.0]  # 10/4 · share
    assert percent(seen, "per_token") == [80.0, 100.0, 100.0, 150.0]  # 10 · share / tokens


def test_the_ratio_of_a_context_by_hand() -> None:
    scores = case_scores(averaged(log_scores(attention(0.4, 0.1, 0.2, 0.3))), CASE)
    assert math.exp(scores.distraction) == pytest.approx(0.4)
    assert math.exp(scores.history) == pytest.approx((1.6 + 0.8) / 2)
    assert [math.exp(scores.first), math.exp(scores.last)] == pytest.approx([1.6, 0.8])
    assert math.exp(scores.distraction - scores.history) == pytest.approx(0.4 / 1.2)


def test_the_factor_of_the_printed_equation_leaves_the_ratio_as_it_is() -> None:
    seen = attention(0.4, 0.1, 0.2, 0.3, tokens=(5, 1, 2, 2), kind="token")
    one, other = (
        case_scores(averaged(log_scores(seen, normalisation=how)), CASE) for how in ("utterance", "as_printed")
    )
    assert one.distraction - one.history == pytest.approx(other.distraction - other.history)


def test_uniform_attention_has_a_ratio_of_exactly_one() -> None:
    scores = case_scores(averaged(log_scores(attention(0.25, 0.25, 0.25, 0.25))), CASE)
    assert math.exp(scores.distraction - scores.history) == 1.0
    assert percent(attention(0.25, 0.25, 0.25, 0.25)) == [100.0] * 4


def test_shares_too_small_for_a_floating_point_number_have_a_ratio() -> None:
    tiny = Attention(np.array([[[-800.0, -802.0, -800.0, 0.0]]], dtype=np.float32), np.array([1, 1, 1, 1]), "static")
    scores = case_scores(averaged(log_scores(tiny)), CASE)
    assert scores.distraction - scores.history == pytest.approx(-2)


def test_what_was_not_read_counts_nowhere() -> None:
    seen = attention(0.0, 0.2, 0.3, 0.5, tokens=(0, 2, 2, 2))
    scores = averaged(log_scores(seen))
    assert math.isnan(scores[0])
    assert [round(100 * math.exp(one), 3) for one in scores[1:]] == [60.0, 90.0, 150.0]  # three were read
    found = case_scores(scores, CASE)
    assert math.exp(found.first) == math.exp(found.last) == pytest.approx(0.9)
    cut = case_scores(averaged(log_scores(attention(0.0, 0.0, 0.4, 0.6, tokens=(0, 0, 2, 2)))), CASE)
    assert math.isnan(cut.distraction)


def test_heads_are_averaged_as_shares_and_blind_ones_left_out() -> None:
    log = np.log(np.array([[[0.4, 0.1, 0.2, 0.3], [0.2, 0.3, 0.2, 0.3]], [[0.1, 0.2, 0.3, 0.4], [np.nan] * 4]]))
    seen = Attention(log.astype(np.float32), np.array([2, 2, 2, 2]), "transformer")
    mean = np.exp(averaged(log_scores(seen))) / 4
    assert mean.tolist() == pytest.approx([0.7 / 3, 0.2, 0.7 / 3, 1.0 / 3])
    distraction, history = head_means(log_scores(seen), CASE)
    assert distraction[0].tolist() == pytest.approx([0.4, 1.2])
    assert history[0].tolist() == pytest.approx([1.2, 0.8])


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(1, 9)), min_size=1, max_size=8), st.integers(0, 3))
def test_scores_average_to_a_hundred_percent_over_what_was_read(read: list[tuple[float, int]], unread: int) -> None:
    """Over utterances; scores by token over tokens, for there a long utterance counts as often as it has tokens."""
    total = sum(weight for weight, _ in read)
    shares, tokens = [weight / total for weight, _ in read], [count for _, count in read]
    seen = attention(*[0.0] * unread, *shares, tokens=(*[0] * unread, *tokens), kind="token")
    by = {how: np.exp(log_scores(seen, normalisation=how))[0, 0] for how in ("utterance", "per_token", "as_printed")}
    assert all(np.isnan(scores[:unread]).all() for scores in by.values())
    assert by["utterance"][unread:].mean() == pytest.approx(1.0, rel=1e-5)
    assert np.average(by["per_token"][unread:], weights=tokens) == pytest.approx(1.0, rel=1e-5)
    # The printed factor is m / q in place of q: the average is m / q², and only at q tokens an utterance 100 %.
    assert by["as_printed"][unread:].mean() == pytest.approx(sum(tokens) / len(tokens) ** 2, rel=1e-5)


def test_scores_by_token_do_not_average_to_a_hundred_percent_over_utterances() -> None:
    """All attention on one token of ten: 1000 % there, 0 % on the other nine, 500 % over the two utterances."""
    assert percent(attention(1.0, 0.0, tokens=(1, 9), kind="token"), "per_token") == [1000.0, 0.0]
