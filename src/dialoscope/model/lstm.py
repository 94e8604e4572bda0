"""LSTM layers as a module: the weights, and who computes them.

On a GPU, and wherever every step attends, that is the shared loop of `recurrence.py`. Otherwise a CPU's own library is
faster. It gives a layer's c after the last step only, but rows end at different steps: so a further input, which is 1
after a row's end, holds c where it is, by shutting the input gate and opening the forget gate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dialoscope.model.attention import Scorer
from dialoscope.model.cell import wide
from dialoscope.model.recurrence import Computed, Given, recur

HOLD = 1e4  # a gate's input at which its sigmoid is 0 or 1 to the last bit, and its slope 0


class State(NamedTuple):
    """h and c of every layer: (layers, batch, width)."""

    hidden: Tensor
    cell: Tensor


class Memory(NamedTuple):
    """What a decoder attends to."""

    values: Tensor  # (batch, places, width)
    utterance: Tensor  # (batch, places) the utterance of each place; padding: -1

    @property
    def is_real(self) -> Tensor:
        """False where there is only padding."""
        return self.utterance >= 0


class LSTM(nn.Module):
    """A stack of LSTM layers of one width, with dropout between layers.

    Weights start within the bounds of `torch.nn.LSTM`, which has two biases where this has one.
    """

    def __init__(self, inputs: int, width: int, *, layers: int, dropout: float = 0.0, attends: bool = False) -> None:
        super().__init__()
        self.width, self.layers, self.dropout = width, layers, dropout
        self.inputs = nn.Parameter(torch.empty(4 * width, inputs))
        self.first = nn.Parameter(torch.empty(4 * width, (2 if attends else 1) * width))  # of [c_{t-1} ; h] or of h
        above = torch.empty(layers - 1, 4 * width, 2 * width)  # of [h below ; h]
        self.upper = nn.Parameter(above) if layers > 1 else None
        self.bias = nn.Parameter(torch.empty(layers, 4 * width))
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def forward(
        self,
        inputs: Tensor,
        length: Tensor,
        *,
        start: State | None = None,
        memory: Memory | None = None,
        context: Tensor | None = None,
        scorer: Scorer | None = None,
        steps: tuple[int, ...] | None = None,
    ) -> Computed:
        """Over inputs (batch, steps, n), from zeros or `start`; with a memory, each step attends and c_0 is given.

        With `steps`, the numbers in `length`, a GPU skips steps after a row's end; what it gives there is 0.
        """
        batch, most_steps, _ = inputs.shape
        if memory is None and is_for_library(inputs):
            return self._by_library(inputs.transpose(0, 1), length.clamp(min=1), start)
        projected = functional.linear(inputs.transpose(0, 1), self.inputs)  # autocast chooses the precision here
        dtype = projected.dtype
        hidden, cell = start or State(*inputs.new_zeros(2, self.layers, batch, self.width).unbind())
        given = Given(
            projected,
            self._weight().to(dtype),
            self.bias,
            hidden.to(dtype),
            cell.to(wide(dtype)),
            length.clamp(min=1),
            self._drop(projected, most_steps, batch),
        )
        return recur(given if memory is None else _with_memory(given, memory, context, scorer), steps)

    def _by_library(self, below: Tensor, length: Tensor, start: State | None) -> Computed:
        """Layer after layer over inputs (steps, batch, n)."""
        steps, batch, _ = below.shape
        # Where all rows end together, as in every step of writing, none has to be held.
        is_ragged = steps > 1 and bool((length < steps).any())
        hidden, cell = start or State(*below.new_zeros(2, self.layers, batch, self.width).unbind())
        drop = self._drop(below, steps, batch)
        is_over = (torch.arange(steps)[:, None] >= length)[..., None].to(below)
        gates = below.new_tensor([-HOLD, HOLD, 0.0, 0.0]).repeat_interleave(self.width)[:, None]
        none, rows, ended = torch.zeros_like(self.bias[0]), torch.arange(batch), list[State]()
        for layer in range(self.layers):
            if layer and drop is not None:
                below = below * drop[layer - 1]
            read, kept = self._weights_of(layer)
            first = hidden[layer, None].contiguous(), cell[layer, None].contiguous()
            if is_ragged:
                below, read = torch.cat([below, is_over], dim=2), torch.cat([read, gates], dim=1)
            given = below, first, [read, kept, self.bias[layer], none]
            below, _, last = torch._VF.lstm(*given, True, 1, 0.0, self.training, False, False)
            ended.append(State(below[length - 1, rows], last[0]))
        last_hidden, last_cell = map(torch.stack, zip(*ended, strict=True))
        return Computed(below, last_hidden, last_cell, None, None)

    def _weights_of(self, layer: int) -> tuple[Tensor, Tensor]:
        """Of what a layer reads, and of its own h."""
        if layer == 0:
            return self.inputs, self.first
        assert self.upper is not None
        return self.upper[layer - 1, :, : self.width], self.upper[layer - 1, :, self.width :]

    def _weight(self) -> Tensor:
        """All layers as (layers, 4 width, 2 width); without a context vector the first one's half for it is zero."""
        missing = 2 * self.width - self.first.shape[1]
        first = functional.pad(self.first, (missing, 0))[None]
        return first if self.upper is None else torch.cat([first, self.upper])

    def _drop(self, like: Tensor, steps: int, batch: int) -> Tensor | None:
        if not self.training or not self.dropout or self.layers == 1:
            return None
        keep = 1 - self.dropout
        return like.new_empty(self.layers - 1, steps, batch, self.width).bernoulli_(keep).div_(keep)


def is_for_library(inputs: Tensor) -> bool:
    """Whether a CPU's library computes this: in short precision it would keep c short, too, which the loop does not."""
    is_short = torch.is_autocast_enabled("cpu") or wide(inputs.dtype) != inputs.dtype
    return inputs.device.type == "cpu" and not is_short


def _with_memory(given: Given, memory: Memory, context: Tensor | None, scorer: Scorer | None) -> Given:
    dtype = given.inputs.dtype
    values = memory.values.to(dtype)
    start = torch.zeros_like(values[:, 0]) if context is None else context.to(dtype)
    given = given._replace(memory=values, is_real=memory.is_real, context=start)
    if scorer is None or not scorer.is_additive:
        return given
    keys, query, score = scorer.keys(values), scorer.query.weight, scorer.score
    return given._replace(keys=keys.to(dtype), query=query.to(dtype), score=score.to(dtype))
