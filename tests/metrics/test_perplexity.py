from __future__ import annotations

import math

import numpy as np
import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics import Pairs, measure, perplexity_score, score_pairs


@pytest.mark.parametrize(
    ("likelihoods", "tokens", "expected"),
    [
        ([math.log(1 / 8), math.log(1 / 2)], [3, 1], 2.0),  # four tokens, each with probability 1/2
        ([0.0], [5], 1.0),
        # tokens weigh alike, whatever response they stand in: exp(4 · ln 10 / 4), not the mean of 1 and 10000
        ([0.0, -4 * math.log(10)], [3, 1], 10.0),
    ],
)
def test_perplexity_weighs_tokens_not_responses(likelihoods: list[float], tokens: list[int], expected: float) -> None:
    assert perplexity_score(likelihoods, tokens).value == pytest.approx(expected)


def test_no_tokens_have_no_perplexity() -> None:
    assert perplexity_score([0.0], [0]).reason is not None


def test_a_perplexity_that_no_number_holds_is_said() -> None:
    assert perplexity_score([-1e6], [1]).reason == "the perplexity is larger than any number that can be written"


def test_an_impossible_response_is_not_left_out() -> None:
    scored = perplexity_score([-1.0, -math.inf, -2.0], [1, 4, 2])
    assert (scored.value, scored.n) == (None, 3)
    assert scored.reason is not None
    assert scored.reason.startswith("a response has probability 0")


def test_two_systems_are_not_compared_by_perplexity_where_one_holds_a_response_impossible() -> None:
    texts, tokens = ["a", "b", "c", "d"], [1, 1, 1, 1]
    ours = Pairs(texts, texts, log_likelihoods=[-1.0, -1.0, -1.0, -math.inf], token_counts=tokens)
    theirs = Pairs(texts, texts, log_likelihoods=[-1.0, -2.0, -1.0, -5.0], token_counts=tokens)
    compared = measure(ours, against={"theirs": theirs}, metrics=["perplexity"]).comparisons["theirs"]["perplexity"]
    assert compared.p_value is None
    assert compared.difference.reason is not None
    assert "probability 0" in compared.difference.reason


@pytest.mark.parametrize(
    ("likelihoods", "tokens", "message"),
    [
        ([-1.0, 2.5], [1, 1], r"Response 2: log-likelihood 2\.5: .* negative log-likelihoods .* change their sign"),
        ([-1.0, math.inf], [1, 1], "Response 2: log-likelihood inf"),
        ([-1.0], [-3], "Response 1: token count -3: expected 0 tokens or more"),
        ([-1.0], [math.inf], "Response 1: token count inf"),
        ([0.0, -1.0], [0, 0], "Response 2: 0 tokens, but log-likelihood -1: .* Count the tokens"),
        ([-math.inf], [0], "Response 1: 0 tokens, but log-likelihood -inf"),
    ],
)
def test_what_no_likelihood_or_count_can_be_is_refused(
    likelihoods: list[float], tokens: list[float], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        perplexity_score(likelihoods, tokens)


@pytest.mark.parametrize(
    ("likelihoods", "tokens"),
    [([-math.log(8), last], [3, count]) for last, count in ((np.nan, 1), (-1, np.nan), (-math.inf, np.nan))],
)
def test_a_gap_is_skipped_and_counted(likelihoods: list[float], tokens: list[float]) -> None:
    scored = perplexity_score(likelihoods, tokens)
    assert scored.value == pytest.approx(2)
    assert scored.n == 1
    assert "skipped:1" in scored.signature


def test_an_impossible_response_whose_tokens_nobody_counted_is_a_gap() -> None:
    reason = perplexity_score([-math.inf], [math.nan]).reason
    assert reason is not None
    assert reason.startswith("perplexity needs log-likelihoods and token counts")


def test_the_notes_say_why_a_response_has_no_perplexity() -> None:
    pairs = Pairs(["a", "b"], ["a", "b"], log_likelihoods=[-1.0, math.nan], token_counts=[1, 1])
    notes = score_pairs(pairs, metrics=["perplexity"]).notes
    assert notes == ("perplexity (pairs): 1 of 2 pairs skipped: their log-likelihood or token count is missing.",)


def test_pairs_without_likelihoods_say_what_is_missing() -> None:
    scored = score_pairs(Pairs(["a"], ["a"]), metrics=["perplexity"]).scores["perplexity"]
    assert scored.reason is not None
    assert "log_likelihood" in scored.reason


def test_pairs_with_likelihoods_have_a_perplexity() -> None:
    pairs = Pairs(["a b", "c"], ["a b", "c"], log_likelihoods=[math.log(1 / 4), math.log(1 / 2)], token_counts=[2, 1])
    assert score_pairs(pairs, metrics=["perplexity"]).scores["perplexity"].value == pytest.approx(2)
