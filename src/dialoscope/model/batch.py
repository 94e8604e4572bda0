"""Samples as tensors: what goes into a sequence-to-sequence model, and what comes out of its decoder."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples of one batch; padding is on the right and never counts."""

    context: Tensor  # (batch, tokens) ids of all turns, one after the other, each ended by the end-of-turn token
    length: Tensor  # (batch,) tokens of each context
    utterance: Tensor  # (batch, tokens) which turn each token belongs to; padding: -1
    end: Tensor  # (batch, utterances) place of each turn's last token; padding: 0
    utterances: Tensor  # (batch,) turns of each context
    is_distraction: Tensor  # (batch, utterances) the bitmask M of equation 9; padding: False
    response: Tensor  # (batch, steps + 1) ids, from the start token to the end token
    response_length: Tensor  # (batch,) steps: tokens to predict, the end token included
    real_places: Tensor  # (tokens,) where the real steps are among all batch × steps
    steps: tuple[int, ...]  # the response lengths again: reading them from a GPU would mean to wait for it

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return self.each(lambda tensor: tensor.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with every tensor changed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        steps = values.pop("steps")
        return Batch(**{name: change(tensor) for name, tensor in values.items()}, steps=steps)


@dataclass(frozen=True, eq=False)
class Output:
    """What a decoder computed over a batch's responses, the true tokens fed back (teacher forcing)."""

    states: Tensor  # (batch, steps, width) what the output layer reads: h_t and c_t combined
    log_attention: Tensor | None  # (batch, steps, places) of the memory; static: (batch, 1, places); None: no attention
    memory_utterance: Tensor | None  # (batch, places) the utterance of each place of the memory; padding: -1
