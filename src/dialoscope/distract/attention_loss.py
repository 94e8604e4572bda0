r"""The attention loss: attention on distractions is an error, so that training lowers it.

Equation 9 of the paper, for each decoding step t: ``MSE(α_t ∘ M, 0)``, with M the bitmask of distractions, spread over
an utterance's tokens where the memory holds tokens. The mean is over the sample's own places of the memory, never over
padding, then over its own steps (static attention has one), then over the samples::

    loss = λ · mean_samples mean_t  1/m · Σ_i (α_ti · M_i)²

Over tokens the mean makes the term tiny: 2 distractions of 10 tokens in a context of 80, attended to evenly, give
20 · (1/80)² / 80 ≈ 4e-5 beside a cross-entropy near 4. Over utterances it is not: 2 of 5 give 2 · (1/5)² / 5 = 0.016,
and at the start of training it pulls at static attention a hundred times as hard as cross-entropy does
(`examples/attention_pull.py`). Its least value is reached by attending to the Query alone. ``reduction="sum"`` leaves
the 1/m out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialoscope.errors import UsageError, unknown_name
from dialoscope.model.batch import Batch, Output

if TYPE_CHECKING:
    from torch import Tensor

REDUCTIONS = ("mean", "sum")


@dataclass(frozen=True)
class AttentionLoss:
    """An extra loss for the training loop: `weight` (λ) times the attention on distractions, squared."""

    weight: float = 1.0
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise unknown_name("reduction", self.reduction, REDUCTIONS)
        if not 0 <= self.weight < float("inf"):
            raise UsageError(f"The weight of the attention loss is a number from 0, found {self.weight}.")

    def __call__(self, output: Output, batch: Batch) -> Tensor:
        """The loss of a batch; a model without attention has none to lower."""
        if output.log_attention is None or output.memory_utterance is None:
            raise UsageError("The attention loss needs a model with attention. Give --no-attention-loss.")
        is_own = output.memory_utterance >= 0  # (batch, places)
        mask = is_own & batch.is_distraction.gather(1, output.memory_utterance.clamp(min=0))
        steps = None if output.log_attention.shape[1] == 1 else batch.response_length
        each = squared_attention(output.log_attention.exp(), mask, is_own, steps=steps, reduction=self.reduction)
        return self.weight * each.mean()


def squared_attention(
    attention: Tensor, mask: Tensor, is_own: Tensor, *, steps: Tensor | None, reduction: str
) -> Tensor:
    """Each sample's mean over its steps of MSE(α_t ∘ M, 0): (batch,).

    `attention` is (batch, steps, places), `mask` and `is_own` are (batch, places); `steps` counts each sample's own
    steps, None where all of them are.
    """
    import torch

    # Selected, not multiplied: a place outside M must not leave a NaN behind.
    squared = attention.float().masked_fill(~mask[:, None, :], 0.0).square().sum(dim=2)  # (batch, steps)
    if reduction == "mean":
        squared = squared / is_own.sum(dim=1, keepdim=True).clamp(min=1)
    if steps is None:
        return squared.mean(dim=1)
    is_step = torch.arange(squared.shape[1], device=squared.device) < steps[:, None]
    return squared.masked_fill(~is_step, 0.0).sum(dim=1) / steps.clamp(min=1)
