from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dialoscope.model import cross_entropy
from dialoscope.model.cross_entropy import mean_cross_entropy


@pytest.mark.parametrize("aligned", [1, 16])
@pytest.mark.parametrize("at_once", [7, 30, 10_000])
def test_pieces_give_the_librarys_loss_and_gradients(
    at_once: int, aligned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "LOGITS_AT_ONCE", at_once)
    monkeypatch.setattr(cross_entropy, "alignment", lambda weight: aligned)
    torch.manual_seed(0)
    targets, real = torch.tensor([3, 0, 6, 2, 2]), torch.tensor([True, False, True, True, False])
    parts = [torch.randn(shape, requires_grad=True) for shape in ((5, 4), (7, 4), (7,))]
    states, weight, bias = parts
    loss = mean_cross_entropy(states, weight, bias, targets, real)
    found = torch.autograd.grad(3 * loss, parts)
    expected_loss = functional.cross_entropy(functional.linear(*parts)[real], targets[real])
    expected = torch.autograd.grad(3 * expected_loss, parts)
    assert loss.item() == pytest.approx(expected_loss.item())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_without_gradients_only_the_loss_is_computed() -> None:
    states, weight, bias = torch.randn(2, 3), torch.randn(4, 3), torch.zeros(4)
    with torch.no_grad():
        loss = mean_cross_entropy(states, weight, bias, torch.tensor([1, 3]), torch.tensor([True, True]))
    assert not loss.requires_grad
