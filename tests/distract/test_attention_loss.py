"""Equation 9 by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from dialoscope.distract import AttentionLoss
from dialoscope.errors import UsageError
from dialoscope.model.batch import Batch, Output
from dialoscope.model.batching import collate


def output(attention: list[list[list[float]]], utterance: list[list[int]]) -> Output:
    weights = torch.tensor(attention)
    return Output(torch.zeros(len(attention), weights.shape[1], 1), weights.log(), torch.tensor(utterance))


def batch(flags: list[list[bool]], steps: list[int]) -> Batch:
    contexts = [[[5]] * len(row) for row in flags]
    return collate(contexts, [[5] * (count - 1) for count in steps], is_distraction=flags)


def test_dynamic_attention_is_averaged_over_utterances_and_steps() -> None:
    found = output([[[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]]], [[0, 1, 2]])
    # Only the first utterance is a distraction: steps give 0.04 / 3 and 0.36 / 3.
    assert AttentionLoss()(found, batch([[True, False, False]], [2])).item() == pytest.approx(0.4 / 6)
    assert AttentionLoss(reduction="sum")(found, batch([[True, False, False]], [2])).item() == pytest.approx(0.2)
    assert AttentionLoss(3.0)(found, batch([[True, False, False]], [2])).item() == pytest.approx(0.2)


def test_token_attention_spreads_the_mask_over_the_tokens_of_an_utterance() -> None:
    found = output([[[0.1, 0.2, 0.3, 0.4]]], [[0, 1, 1, 2]])
    one = batch([[False, True, False]], [1])
    assert AttentionLoss()(found, one).item() == pytest.approx((0.04 + 0.09) / 4)


def test_static_attention_counts_once_however_long_the_response() -> None:
    found = output([[[0.25, 0.75]]], [[0, 1]])
    assert AttentionLoss()(found, batch([[True, False]], [7])).item() == pytest.approx(0.0625 / 2)


def test_padding_of_places_and_steps_never_counts() -> None:
    # Sample 1: two places, one step. Sample 2: three places, two steps, no distraction.
    attention = [[[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]]
    found = output(attention, [[0, 1, -1], [0, 1, 2]])
    given = batch([[True, False], [False, False, False]], [1, 2])
    assert AttentionLoss()(found, given).item() == pytest.approx((0.25 / 2 + 0) / 2)


def test_the_size_of_the_term_at_the_papers_size_is_as_the_design_says() -> None:
    places = [[0] * 10 + [1] * 60 + [2] * 10]
    found = output([[[1 / 80] * 80]], places)
    assert AttentionLoss()(found, batch([[True, False, True]], [1])).item() == pytest.approx(20 / 80**3)
    assert math.isclose(20 / 80**3, 4e-5, rel_tol=0.03)


def test_an_underflown_or_padded_place_gives_a_finite_gradient() -> None:
    scores = torch.tensor([[[0.0, -1e4, 2.0]]], requires_grad=True)
    masked = scores.masked_fill(torch.tensor([[[False, False, True]]]), -math.inf)
    found = Output(torch.zeros(1, 1, 1), masked.log_softmax(-1), torch.tensor([[0, 1, -1]]))
    [gradient] = torch.autograd.grad(AttentionLoss()(found, batch([[True, True]], [1])), [scores])
    assert gradient.isfinite().all()


def test_a_model_without_attention_is_told_what_to_do() -> None:
    found = Output(torch.zeros(1, 1, 1), None, None)
    with pytest.raises(UsageError, match="--no-attention-loss"):
        AttentionLoss()(found, batch([[True, False]], [1]))


@pytest.mark.parametrize("options", [{"reduction": "median"}, {"weight": -1.0}, {"weight": math.nan}])
def test_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        AttentionLoss(**options)
