from __future__ import annotations

import math

import pytest

from turnwise.metrics import Pairs, perplexity_score, score_pairs


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
    assert perplexity_score([-1e6], [1]).reason is not None


def test_pairs_without_likelihoods_say_what_is_missing() -> None:
    scored = score_pairs(Pairs(["a"], ["a"]), metrics=["perplexity"]).scores["perplexity"]
    assert scored.reason is not None
    assert "log_likelihood" in scored.reason


def test_pairs_with_likelihoods_have_a_perplexity() -> None:
    pairs = Pairs(["a b", "c"], ["a b", "c"], log_likelihoods=[math.log(1 / 4), math.log(1 / 2)], token_counts=[2, 1])
    assert score_pairs(pairs, metrics=["perplexity"]).scores["perplexity"].value == pytest.approx(2)
