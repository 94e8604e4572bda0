from __future__ import annotations

import math

import pytest
import torch

from dialoscope.model.attention import Scorer, log_shares


def test_equal_scores_share_equally_and_padding_gets_nothing() -> None:
    log = log_shares(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]))
    assert log[0, :3].tolist() == pytest.approx([math.log(1 / 3)] * 3)
    assert log[0, 3].exp() == 0 and log.isfinite().all()


def test_dot_attention_by_hand() -> None:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    scorer = Scorer(2, is_additive=False)
    context, log = scorer(torch.tensor([[math.log(3), 0.0]]), memory, torch.tensor([[True, True, False]]))
    assert log.exp()[0].tolist() == pytest.approx([0.75, 0.25, 0])
    assert context[0].tolist() == pytest.approx([0.75, 0.25])


def test_additive_attention_by_hand() -> None:
    scorer = Scorer(1, is_additive=True)
    with torch.no_grad():
        scorer.keys.weight.fill_(1)
        scorer.keys.bias.fill_(0)
        scorer.query.weight.fill_(2)
        scorer.score.fill_(3)
    memory, real = torch.tensor([[[0.5], [-1.0]]]), torch.tensor([[True, True]])
    scores = [3 * math.tanh(0.5 + 2 * 0.25), 3 * math.tanh(-1 + 2 * 0.25)]
    share = 1 / (1 + math.exp(scores[1] - scores[0]))
    context, log = scorer(torch.tensor([[0.25]]), memory, real)
    assert log.exp()[0].tolist() == pytest.approx([share, 1 - share])
    assert context.item() == pytest.approx(0.5 * share - (1 - share))


def test_shares_too_small_for_a_number_keep_their_logarithm() -> None:
    log = log_shares(torch.tensor([[0.0, 400.0]]), torch.tensor([[True, True]]))
    assert log[0].tolist() == pytest.approx([-400, 0]) and log[0, 0].exp() == 0
