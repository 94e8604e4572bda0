"""The LSTM cell, forward and backward by hand, for several layers at a time; attention is in `attention.py`.

Autograd would record a dozen operations for every cell and add up a weight gradient at every step. Written by hand,
the loop keeps its values in the buffers of `Tape`, and the weights' gradients are one product over all steps
afterwards. On a GPU the same steps are the kernels of `kernels.py`, one launch each.

A cell (layer l, step t) reads Z[l, t] = [x ; h_{t-1}] and computes, with gates in the order i, f, g, o::

    gates = Z[l, t] W_l^T + b_l (+ the projected input for l = 0)
    c_t = σ(f) c_{t-1} + σ(i) tanh(g)        h_t = σ(o) tanh(c_t)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

aten = torch.ops.aten
SLOPES = (aten.sigmoid_backward, aten.sigmoid_backward, aten.tanh_backward, aten.sigmoid_backward)  # of i, f, g, o


@dataclass(eq=False)
class Tape:
    """All values of a recurrence over `steps` steps: what the backward pass reads again."""

    inputs: Tensor  # (steps, batch, 4 width) projected inputs of the first layer
    weight: Tensor  # (layers, 4 width, 2 width) of [x ; h]
    bias: Tensor  # (layers, 4 width)
    drop: Tensor | None  # (layers - 1, steps, batch, width) what a layer's output is multiplied by on its way up
    gates: Tensor  # (layers, steps, batch, 4 width) after their activation; the backward pass puts gradients here
    state: Tensor  # (layers, steps + 1, batch, 2 width) the Z above; Z[l, t + 1] ends with h_t
    cell: Tensor  # (layers, steps + 1, batch, width) c, in fp32 or better

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Layers, steps, batch, width."""
        layers, steps, batch, gates = self.gates.shape
        return layers, steps, batch, gates // 4

    def hidden(self, step: int) -> Tensor:
        """The top layer's h after a step: (batch, width)."""
        return self.state[-1, step + 1, :, self.sizes[3] :]


@dataclass(frozen=True)
class Group:
    """Cells that do not wait for each other: layers low to high, each one step behind the layer below."""

    low: int
    high: int
    step: int  # of layer `low`

    def view(self, values: Tensor, shift: int = 0) -> Tensor:
        """These cells' part of (layers, steps, batch, n): (high - low, batch, n), without a copy."""
        _, steps, batch, n = values.shape
        start = values.storage_offset() + (self.low * steps + self.step + shift) * batch * n
        return values.as_strided((self.high - self.low, batch, n), ((steps - 1) * batch * n, n, 1), start)


def wide(dtype: torch.dtype) -> torch.dtype:
    """fp32 for half precision, any other type as it is."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def at_least_fp32(values: Tensor) -> Tensor:
    """Half precision widened, the rest as it is and not copied."""
    return values.to(wide(values.dtype))


def tanh_(x: Tensor) -> Tensor:
    """In place, tanh(x) = 2σ(2x) - 1: four cheap passes take a third of the time of the library's tanh on a CPU."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)


def cell_forward(tape: Tape, group: Group) -> None:
    """From the products Z W^T in `gates` to activated gates, c and h, the latter also as input of the layer above."""
    width = tape.sizes[3]
    kept = group.view(tape.gates)
    gates = at_least_fp32(kept)  # half precision is only for keeping
    gates.add_(tape.bias[group.low : group.high, None])
    if group.low == 0:
        gates[0].add_(tape.inputs[group.step])
    gates[..., : 2 * width].sigmoid_()
    tanh_(gates[..., 2 * width : 3 * width])
    gates[..., 3 * width :].sigmoid_()
    i, f, g, o = gates.chunk(4, dim=-1)
    cell = torch.mul(f, group.view(tape.cell), out=group.view(tape.cell, shift=1)).addcmul_(i, g)
    hidden = group.view(tape.state, shift=1)[..., width:]
    torch.mul(o, tanh_(cell.clone()), out=hidden)
    _pass_up(tape, group, hidden)
    if gates is not kept:
        kept.copy_(gates)


def _pass_up(tape: Tape, group: Group, hidden: Tensor) -> None:
    layers, _, _, width = tape.sizes
    above = Group(group.low + 1, min(group.high + 1, layers), group.step)
    if above.low < above.high:
        hidden = hidden[: above.high - above.low]
        dropped = hidden if tape.drop is None else hidden * Group(group.low, above.high - 1, group.step).view(tape.drop)
        above.view(tape.state)[..., :width].copy_(dropped)


@dataclass(eq=False)
class Gradients:
    """What flows back through a tape: given by the outputs, and on its way."""

    hidden: Tensor  # (steps, batch, width) of the top layer's h
    last_hidden: Tensor  # (layers, batch, width) of h at each row's last step
    last_cell: Tensor  # (layers, batch, width) of c there
    last: Tensor  # (batch,) that step
    last_steps: frozenset[int] | None  # all of them; None: on a GPU, which would have to stop for the answer
    state: Tensor  # (layers, steps + 1, batch, 2 width) of Z; zero after the last step
    cell: Tensor  # (layers, batch, width) of c, on its way back


def cell_backward(tape: Tape, grads: Gradients, group: Group) -> None:
    """Turn activated gates into gradients of the gates, in place; c's gradient moves one step back."""
    gates, dc = group.view(tape.gates), grads.cell[group.low : group.high]
    i, f, g, o = at_least_fp32(gates).chunk(4, dim=-1)
    tanh = tanh_(group.view(tape.cell, shift=1).clone())
    dh = _hidden_gradient(tape, grads, group)
    _add_last(grads, group, dh, dc)
    dc += aten.tanh_backward(dh * o, tanh)
    products = dc * g, dc * group.view(tape.cell), dc * i, dh.mul_(tanh)  # before anything is overwritten
    dc *= f
    for gate, product, slope, kept in zip((i, f, g, o), products, SLOPES, gates.chunk(4, dim=-1), strict=True):
        kept.copy_(slope(product, gate))


def _add_last(grads: Gradients, group: Group, dh: Tensor, dc: Tensor) -> None:
    """What comes from a row's last state, where that is the step of one of these cells."""
    for cell, layer in enumerate(range(group.low, group.high)):
        if grads.last_steps is None or group.step - cell in grads.last_steps:
            is_last = (grads.last == group.step - cell)[:, None]
            dh[cell] += grads.last_hidden[layer] * is_last
            dc[cell] += grads.last_cell[layer] * is_last


def _hidden_gradient(tape: Tape, grads: Gradients, group: Group) -> Tensor:
    """Of h: from its own next step, the layer above, and for the top layer from outside."""
    layers, _, _, width = tape.sizes
    dh = group.view(grads.state, shift=1)[..., width:].to(tape.cell.dtype, copy=True)
    above = Group(group.low + 1, min(group.high + 1, layers), group.step)
    if above.low < above.high:
        risen = above.view(grads.state)[..., :width].to(dh.dtype)
        drop = None if tape.drop is None else Group(group.low, above.high - 1, group.step).view(tape.drop)
        dh[: above.high - above.low] += risen if drop is None else risen * drop
    if group.high == layers:
        dh[-1] += grads.hidden[group.step - (group.high - 1 - group.low)]
    return dh
