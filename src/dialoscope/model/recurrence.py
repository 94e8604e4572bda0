"""A stack of LSTM layers over a sequence, with or without attention at every step: the loop all our LSTMs share.

Without attention, layer l can compute step t while the layer below computes step t + 1: the cells of one diagonal are
one batched product, so 4 layers over 80 steps are 83 products and not 320. With attention (equations 3 and 5) the
context vector c_{t-1} enters step t, so cells follow each other. Static attention (equation 4) needs no such loop: its
context vector is known before the first step and belongs to the projected inputs.

Padding on the right cannot reach a row's real steps, and its last state is taken where its own sequence ends, so no
packing is needed and the length of the others in a batch changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dialoscope.model import graphs
from dialoscope.model.attention import Attended, AttendedGradients, memory_gradient, queries, query_gradient
from dialoscope.model.cell import Gradients, Group, Tape
from dialoscope.model.kernels import attend_backward, attend_forward, cell_backward, cell_forward

# Steps of one run on a GPU. Captured runs keep their buffers: with one for each length of context they would fill a
# card, while runs of this many steps are lent to contexts of any length, as many as it takes.
SEGMENT = 64
# Steps between looks at which responses go on. The longest of a batch is three times as long as the mean one: on
# DailyDialog, batches of 256 are padded to 69 steps, and rows that go on fill 26 of them.
RESPONSE_SEGMENT = 16
LEAST_ROWS = 32  # of a segment; above, powers of two: few shapes, for each is captured as a graph of its own
SKIPS_ENDED_ROWS = True


class Given(NamedTuple):
    """What a recurrence is computed from; time comes first."""

    inputs: Tensor  # (steps, batch, 4 width) projected inputs of the first layer
    weight: Tensor  # (layers, 4 width, 2 width) of [x ; h]; the first layer's x is the context vector
    bias: Tensor  # (layers, 4 width)
    hidden: Tensor  # (layers, batch, width) where it starts
    cell: Tensor  # (layers, batch, width)
    length: Tensor  # (batch,) real steps, at least 1
    drop: Tensor | None = None  # (layers - 1, steps, batch, width) factors between layers
    memory: Tensor | None = None  # (batch, places, width) what is attended to
    is_real: Tensor | None = None  # (batch, places) False: padding
    context: Tensor | None = None  # (batch, width) the context vector before the first step
    keys: Tensor | None = None  # (batch, places, width) additive scoring: projected memory
    query: Tensor | None = None  # (width, width) additive scoring: projection of the query
    score: Tensor | None = None  # (width,) additive scoring: the vector that turns tanh into a score


BATCH_AXES = (1, None, None, 1, 1, 0, 2, 0, 0, 0, 0, None, None)  # which axis of each is the batch; None: it has none


class Computed(NamedTuple):
    """What a recurrence gives."""

    hidden: Tensor  # (steps, batch, width) of the top layer
    last_hidden: Tensor  # (layers, batch, width) at each row's last real step
    last_cell: Tensor  # (layers, batch, width)
    context: Tensor | None  # (steps, batch, width) context vectors
    log_attention: Tensor | None  # (steps, batch, places)


def recur(given: Given, steps: tuple[int, ...] | None = None) -> Computed:
    """Run the layers over all steps; differentiable once. `steps`, the numbers in `length`, let a GPU skip padding."""
    if given.inputs.is_cuda and steps is not None and SKIPS_ENDED_ROWS and len(given.inputs) > 1:
        return without_ended_rows(given, steps, RESPONSE_SEGMENT)
    if given.inputs.is_cuda and given.memory is None and len(given.inputs) > SEGMENT:
        return in_segments(given, SEGMENT)
    return Computed(*_Recurrence.apply(*given))  # type: ignore[no-untyped-call]


def in_segments(given: Given, size: int) -> Computed:
    """The same, so many steps at a time, each part from the state where the one before it ended."""
    hidden, last_hidden, last_cell = list[Tensor](), given.hidden, given.cell
    for first in range(0, len(given.inputs), size):
        part = slice(first, first + size)
        inputs, drop = given.inputs[part], None if given.drop is None else given.drop[:, part]
        length = (given.length - first).clamp(1, len(inputs))
        some = given._replace(inputs=inputs, drop=drop, hidden=last_hidden, cell=last_cell, length=length)
        done = Computed(*_Recurrence.apply(*some))  # type: ignore[no-untyped-call]
        hidden.append(done.hidden)
        goes_on = (given.length > first)[:, None]  # other rows have ended before, and stay where they are
        last_hidden = torch.where(goes_on, done.last_hidden, last_hidden)
        last_cell = torch.where(goes_on, done.last_cell, last_cell)
    return Computed(torch.cat(hidden), last_hidden, last_cell, None, None)


def without_ended_rows(given: Given, steps: tuple[int, ...], size: int) -> Computed:
    """The same in segments of `size` steps, each over those rows alone that have not ended before it.

    What comes out after a row's end is 0. That is no state to go on from: `last_hidden` and `last_cell` are.
    """
    order = given.length.argsort(descending=True, stable=True)
    drops = [None] * len(given.inputs) if given.drop is None else torch.split(given.drop, size, dim=1)
    state, segments = given, list[Computed]()
    for number, (inputs, drop) in enumerate(zip(torch.split(given.inputs, size), drops, strict=False)):
        going_on = sum(ends > number * size for ends in steps)
        length = given.length - number * size
        segment = state._replace(inputs=inputs, drop=drop, length=length)
        rows = _filled(going_on, order)
        done = _over_rows(segment._replace(length=length.clamp(1, len(inputs))), rows, is_empty=not going_on)
        goes_on = (length > 0)[:, None]  # other rows stay where they ended
        hidden = torch.where(goes_on, done.last_hidden, state.hidden)
        cell = torch.where(goes_on, done.last_cell, state.cell)
        state = state._replace(hidden=hidden, cell=cell, context=None if done.context is None else done.context[-1])
        segments.append(done)
    attends = given.memory is not None
    return Computed(
        torch.cat([done.hidden for done in segments]),
        state.hidden,
        state.cell,
        torch.cat([done.context for done in segments if done.context is not None]) if attends else None,
        torch.cat([done.log_attention for done in segments if done.log_attention is not None]) if attends else None,
    )


def _filled(count: int, order: Tensor) -> Tensor | None:
    """The first rows in this order, a few more than `count` so that few numbers of rows occur; None: all rows."""
    filled = max(LEAST_ROWS, 1 << max(0, count - 1).bit_length())
    return None if filled >= len(order) else order[:filled]


def _over_rows(given: Given, rows: Tensor | None, *, is_empty: bool) -> Computed:
    """The recurrence over some rows; zeros for the others, and for all where none is left."""
    if rows is None and not is_empty:
        return Computed(*_Recurrence.apply(*given))  # type: ignore[no-untyped-call]
    steps, batch, width = len(given.inputs), len(given.length), given.hidden.shape[2]
    places = 0 if given.memory is None else given.memory.shape[1]
    computed = Computed(
        given.inputs.new_zeros(steps, batch, width),
        torch.zeros_like(given.hidden),
        torch.zeros_like(given.cell),
        None if given.memory is None else given.inputs.new_zeros(steps, batch, width),
        None if given.memory is None else given.cell.new_zeros(steps, batch, places),
    )
    if rows is None or is_empty:
        return computed
    done = _Recurrence.apply(  # type: ignore[no-untyped-call]
        *(
            tensor if tensor is None or axis is None else tensor.index_select(axis, rows)
            for tensor, axis in zip(given, BATCH_AXES, strict=True)
        )
    )
    pairs = zip(computed, done, strict=True)
    return Computed(*(every if every is None else every.index_copy(1, rows, part) for every, part in pairs))  # type: ignore[arg-type]


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        given = Given(*map(_in_order, tensors))  # type: ignore[arg-type]
        with torch.autocast(given.inputs.device.type, enabled=False):
            is_single = len(given.inputs) == 1  # a step of generation, whose batches shrink as responses end
            run = Loop(*given) if is_single else graphs.take(Loop, given, goes_back=any(ctx.needs_input_grad))
            ctx.run = run
            return tuple(run.forward())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        run, ctx.run = ctx.run, None
        if run is None:
            raise RuntimeError("A recurrence runs backward once: its buffers hold gradients afterwards.")
        with torch.autocast(gradients[0].device.type, enabled=False):  # type: ignore[union-attr]
            return tuple(run.backward(*map(_in_order, gradients)))


def _in_order(values: Tensor | None) -> Tensor | None:
    """Without gaps and turned axes: the kernels and `Group.view` count places by the shape alone."""
    return None if values is None else values.contiguous()


class Loop:
    """The buffers of one recurrence, filled by `forward` and used up by `backward`."""

    def __init__(self, *given: Tensor | None) -> None:
        self.given = Given(*given)  # type: ignore[arg-type]
        steps, batch, gates = self.given.inputs.shape
        self.layers, self.steps, self.batch, self.width = len(self.given.weight), steps, batch, gates // 4
        self.tape = Tape(
            self.given.inputs,
            self.given.weight,
            self.given.bias,
            self.given.drop,
            gates=self.given.inputs.new_empty(self.layers, steps, batch, gates),
            state=self.given.inputs.new_zeros(self.layers, steps + 1, batch, 2 * self.width),
            cell=self.given.cell.new_empty(self.layers, steps + 1, batch, self.width),
        )
        self.attended = self._attended()

    def _attended(self) -> Attended | None:
        given = self.given
        if given.memory is None or given.is_real is None:
            return None
        context = given.inputs.new_empty(self.steps, self.batch, self.width)
        log = given.cell.new_empty(self.steps, self.batch, given.memory.shape[1])
        return Attended(given.memory, given.is_real, given.keys, given.query, given.score, context, log)

    def _schedule(self) -> Iterator[Group]:
        """Cells in an order in which each finds what it needs, as many at a time as can be."""
        if self.attended is not None:
            yield from (Group(layer, layer + 1, step) for step in range(self.steps) for layer in range(self.layers))
            return
        for diagonal in range(self.steps + self.layers - 1):
            low = max(0, diagonal - self.steps + 1)
            yield Group(low, min(self.layers, diagonal + 1), diagonal - low)

    def forward(self) -> Computed:
        """Fill the buffers step by step."""
        tape, given, width = self.tape, self.given, self.width
        tape.state[:, 0, :, width:] = given.hidden
        tape.cell[:, 0] = given.cell
        if given.context is not None:
            tape.state[0, 0, :, :width] = given.context
        for group in self._schedule():
            self._project(group)
            cell_forward(tape, group)
            if self.attended is not None and group.high == self.layers:
                attend_forward(tape, self.attended, group.step)
        return self._computed()

    def _project(self, group: Group) -> None:
        """Z W^T into the gates: one launch for all cells on a GPU; without the first layer's unused half on a CPU."""
        state, gates, weight = group.view(self.tape.state), group.view(self.tape.gates), self.tape.weight
        if gates.is_cuda:
            torch.bmm(state, weight[group.low : group.high].mT, out=gates)
            return
        for cell, layer in enumerate(range(group.low, group.high)):
            used = slice(self._unused(layer), None)
            torch.mm(state[cell, :, used], weight[layer, :, used].mT, out=gates[cell])

    def _project_back(self, group: Group, gradients: Tensor) -> None:
        """The gates' gradient, by W, into that of Z."""
        gates, weight, out = group.view(self.tape.gates), self.tape.weight, group.view(gradients)
        if gates.is_cuda:
            torch.bmm(gates, weight[group.low : group.high], out=out)
            return
        for cell, layer in enumerate(range(group.low, group.high)):
            used = slice(self._unused(layer), None)
            torch.mm(gates[cell], weight[layer, :, used], out=out[cell, :, used])

    def _unused(self, layer: int) -> int:
        """The width of the first layer's place for a context vector, where there is none."""
        return self.width if layer == 0 and self.attended is None else 0

    def _computed(self) -> Computed:
        tape, rows = self.tape, torch.arange(self.batch, device=self.given.length.device)
        last = self.given.length
        return Computed(
            queries(tape).contiguous(),
            tape.state[:, last, rows, self.width :],
            tape.cell[:, last, rows],
            None if self.attended is None else self.attended.context,
            None if self.attended is None else self.attended.log,
        )

    def backward(self, *gradients: Tensor | None) -> Given:
        """The gradients of everything given, in the same places."""
        tape, grads = self.tape, self._gradients(Computed(*gradients))  # type: ignore[arg-type]
        seen = self._attended_gradients(Computed(*gradients))  # type: ignore[arg-type]
        for group in reversed(list(self._schedule())):
            if self.attended is not None and seen is not None and group.high == self.layers:
                attend_backward(tape, self.attended, grads, seen, group.step)
            cell_backward(tape, grads, group)
            self._project_back(group, grads.state)
        return self._collected(grads, seen)

    def _gradients(self, outer: Computed) -> Gradients:
        state, cell = torch.zeros_like(self.tape.state), torch.zeros_like(self.given.cell)
        last = self.given.length - 1
        hidden = outer.hidden if self.attended is None else torch.empty_like(outer.hidden)  # filled step by step
        steps = None if last.is_cuda else frozenset(last.tolist())
        return Gradients(hidden, outer.last_hidden, outer.last_cell, last, steps, state, cell)

    def _attended_gradients(self, outer: Computed) -> AttendedGradients | None:
        if self.attended is None or outer.context is None or outer.log_attention is None:
            return None
        keys = None if self.given.keys is None else torch.zeros_like(self.given.keys)
        query = None if keys is None else torch.zeros_like(outer.context)
        score = None if self.given.score is None else torch.zeros_like(self.given.score)
        context, scores = torch.empty_like(outer.context), torch.empty_like(outer.log_attention)
        given = outer.hidden, outer.log_attention, outer.context
        return AttendedGradients(*given, context, scores, keys, query, score)

    def _weight_gradient(self, gates: Tensor) -> Tensor:
        state = self.tape.state[:, : self.steps].flatten(1, 2)
        if gates.is_cuda:
            return torch.bmm(gates.mT, state)
        found = torch.zeros_like(self.tape.weight)
        for layer in range(self.layers):
            used = slice(self._unused(layer), None)
            torch.mm(gates[layer].mT, state[layer, :, used], out=found[layer, :, used])
        return found

    def _collected(self, grads: Gradients, seen: AttendedGradients | None) -> Given:
        """Weights over all steps at once, then what reaches the start."""
        gates = self.tape.gates.flatten(1, 2)
        none = Given(*(None,) * len(Given._fields))  # type: ignore[arg-type]
        found = none._replace(
            inputs=self.tape.gates[0],
            weight=self._weight_gradient(gates),
            bias=gates.sum(1, dtype=self.given.bias.dtype),
            hidden=grads.state[:, 0, :, self.width :],
            cell=grads.cell,
        )
        if self.attended is None or seen is None:
            return found
        return found._replace(
            memory=memory_gradient(self.tape, self.attended, seen),
            context=grads.state[0, 0, :, : self.width],
            keys=seen.keys,
            query=query_gradient(self.tape, seen),
            score=seen.score,
        )
