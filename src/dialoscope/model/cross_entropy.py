"""Output layer and cross-entropy together, in pieces: a large vocabulary's logits are never all in memory.

The gradient of the logits, softmax minus the true word, overwrites them piece by piece in the forward pass. On a GPU
the vocabulary is filled up with words of probability zero to a multiple of `ALIGNED`: odd sizes make products several
times slower there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from dialoscope.model.cell import at_least_fp32
from dialoscope.model.kernels import to_gradients

LOGITS_AT_ONCE = 2**26
ALIGNED = 64


def mean_cross_entropy(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, is_real: Tensor) -> Tensor:
    """Mean of -log p(target) over the real rows; states (rows, width), weight (words, width), targets (rows,)."""
    device = states.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    share = is_real / is_real.sum()
    loss: Tensor = _CrossEntropy.apply(states.to(dtype), weight.to(dtype), bias, targets, share)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, share: Tensor) -> Tensor:
        with torch.autocast(states.device.type, enabled=False):
            return _forward(ctx, states, weight, bias, targets, share)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled = ((at_least_fp32(one) * gradient).to(one.dtype) for one in ctx.saved_tensors)  # not by a rounded number
        return (*scaled, None, None)


def _forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    is_trained, words = any(ctx.needs_input_grad), len(weight)
    weight, bias = _filled(weight, bias, -words % alignment(weight))
    total = at_least_fp32(states).new_zeros(())
    of_states = torch.empty_like(states)
    of_weight, of_bias = torch.zeros_like(weight, dtype=total.dtype), torch.zeros_like(bias)
    rows = max(1, LOGITS_AT_ONCE // len(weight))
    for piece in (slice(first, first + rows) for first in range(0, len(states), rows)):
        logits = torch.addmm(bias.to(states.dtype), states[piece], weight.mT)
        total += to_gradients(logits, targets[piece], share[piece])
        if is_trained:
            torch.mm(logits, weight, out=of_states[piece])
            of_weight += logits.mT @ states[piece]
            of_bias += logits.sum(0, dtype=of_bias.dtype)
    if is_trained:
        ctx.save_for_backward(of_states, of_weight[:words].to(weight.dtype), of_bias[:words])
    return total


def alignment(weight: Tensor) -> int:
    """Of what a vocabulary's size should be a multiple."""
    return ALIGNED if weight.is_cuda else 1


def _filled(weight: Tensor, bias: Tensor, more: int) -> tuple[Tensor, Tensor]:
    """With so many more words, of probability zero."""
    if not more:
        return weight, bias
    return functional.pad(weight, (0, 0, 0, more)), functional.pad(bias, (0, more), value=float("-inf"))
