"""The steps of `cell.py`, `attention.py` and `cross_entropy.py` as Triton kernels: one launch each, fp32 inside.

tanh(x) is written 2σ(2x) - 1. Strides follow the shapes that `Tape` states. Threads of a program do not wait for each
other, so no kernel writes where another of its threads may still read.
"""

# Triton reads annotations: only its own may stand on a kernel's arguments.
# ruff: noqa: ANN001
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from dialoscope.model.attention import MASKED, Attended, AttendedGradients
from dialoscope.model.cell import Gradients, Group, Tape

VARYING = ["low", "step"]  # no kernel of its own for each of their values


@triton.jit(do_not_specialize=VARYING)  # type: ignore[untyped-decorator,unused-ignore]
def _cell_forward(
    inputs, bias, drop, gates, state, cell, low, step, layers, steps,
    batch, WIDTH: tl.constexpr, HAS_DROP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    layer, t, b = low + row // batch, step - row // batch, row % batch
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = column < WIDTH
    here = ((layer * steps + t) * batch + b).to(tl.int64)
    after = ((layer * (steps + 1) + t + 1) * batch + b).to(tl.int64)
    gate, of_bias = gates + here * 4 * WIDTH, bias + layer * 4 * WIDTH
    of_input = inputs + (t * batch + b).to(tl.int64) * 4 * WIDTH
    first = real & (layer == 0)
    i = tl.load(gate + column, real, 0).to(tl.float32) + tl.load(of_bias + column, real, 0)
    f = tl.load(gate + WIDTH + column, real, 0).to(tl.float32) + tl.load(of_bias + WIDTH + column, real, 0)
    g = tl.load(gate + 2 * WIDTH + column, real, 0).to(tl.float32) + tl.load(of_bias + 2 * WIDTH + column, real, 0)
    o = tl.load(gate + 3 * WIDTH + column, real, 0).to(tl.float32) + tl.load(of_bias + 3 * WIDTH + column, real, 0)
    i = tl.sigmoid(i + tl.load(of_input + column, first, 0).to(tl.float32))
    f = tl.sigmoid(f + tl.load(of_input + WIDTH + column, first, 0).to(tl.float32))
    g = 2 * tl.sigmoid(2 * (g + tl.load(of_input + 2 * WIDTH + column, first, 0).to(tl.float32))) - 1
    o = tl.sigmoid(o + tl.load(of_input + 3 * WIDTH + column, first, 0).to(tl.float32))
    c = f * tl.load(cell + (after - batch) * WIDTH + column, real, 0) + i * g
    h = o * (2 * tl.sigmoid(2 * c) - 1)
    tl.store(gate + column, i, real)
    tl.store(gate + WIDTH + column, f, real)
    tl.store(gate + 2 * WIDTH + column, g, real)
    tl.store(gate + 3 * WIDTH + column, o, real)
    tl.store(cell + after * WIDTH + column, c, real)
    tl.store(state + after * 2 * WIDTH + WIDTH + column, h, real)
    rises = real & (layer + 1 < layers)
    if HAS_DROP:
        h = h * tl.load(drop + here * WIDTH + column, rises, 0).to(tl.float32)
    above = (((layer + 1) * (steps + 1) + t) * batch + b).to(tl.int64)
    tl.store(state + above * 2 * WIDTH + column, h, rises)


@triton.jit(do_not_specialize=VARYING)  # type: ignore[untyped-decorator,unused-ignore]
def _cell_backward(
    drop, gates, cell, d_hidden, d_last_hidden, d_last_cell, last, d_state,
    d_cell, low, step, layers, steps, batch, WIDTH: tl.constexpr, HAS_DROP: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    layer, t, b = low + row // batch, step - row // batch, row % batch
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = column < WIDTH
    here = ((layer * steps + t) * batch + b).to(tl.int64)
    after = ((layer * (steps + 1) + t + 1) * batch + b).to(tl.int64)
    above = (((layer + 1) * (steps + 1) + t) * batch + b).to(tl.int64)
    final = (layer * batch + b) * WIDTH + column
    rises, top, ends = real & (layer + 1 < layers), real & (layer + 1 == layers), real & (tl.load(last + b) == t)
    risen = tl.load(d_state + above * 2 * WIDTH + column, rises, 0).to(tl.float32)
    if HAS_DROP:
        risen = risen * tl.load(drop + here * WIDTH + column, rises, 0).to(tl.float32)
    dh = tl.load(d_state + after * 2 * WIDTH + WIDTH + column, real, 0).to(tl.float32) + risen
    dh += tl.load(d_hidden + (t * batch + b).to(tl.int64) * WIDTH + column, top, 0).to(tl.float32)
    dh += tl.load(d_last_hidden + final, ends, 0).to(tl.float32)
    gate = gates + here * 4 * WIDTH
    i = tl.load(gate + column, real, 0).to(tl.float32)
    f = tl.load(gate + WIDTH + column, real, 0).to(tl.float32)
    g = tl.load(gate + 2 * WIDTH + column, real, 0).to(tl.float32)
    o = tl.load(gate + 3 * WIDTH + column, real, 0).to(tl.float32)
    tanh = 2 * tl.sigmoid(2 * tl.load(cell + after * WIDTH + column, real, 0)) - 1
    dc = tl.load(d_cell + final, real, 0) + tl.load(d_last_cell + final, ends, 0) + dh * o * (1 - tanh * tanh)
    before = tl.load(cell + (after - batch) * WIDTH + column, real, 0)
    tl.store(gate + column, dc * g * i * (1 - i), real)
    tl.store(gate + WIDTH + column, dc * before * f * (1 - f), real)
    tl.store(gate + 2 * WIDTH + column, dc * i * (1 - g * g), real)
    tl.store(gate + 3 * WIDTH + column, dh * tanh * o * (1 - o), real)
    tl.store(d_cell + final, dc * f, real)


@triton.jit(do_not_specialize=["step"])  # type: ignore[untyped-decorator,unused-ignore]
def _attend_forward(
    memory, is_real, state, context, log, step, layers, steps, batch,
    places, WIDTH: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
) -> None:  # fmt: skip
    b = tl.program_id(0)
    place = tl.arange(0, PLACES)
    inside = place < places
    query = state + (((layers - 1) * (steps + 1) + step + 1) * batch + b).to(tl.int64) * 2 * WIDTH + WIDTH
    entering = state + ((step + 1) * batch + b).to(tl.int64) * 2 * WIDTH
    row = memory + (b.to(tl.int64) * places + place[:, None]) * WIDTH
    products = tl.zeros([PLACES, BLOCK], tl.float32)
    for start in range(0, WIDTH, BLOCK):
        column = start + tl.arange(0, BLOCK)
        tile = tl.load(row + column[None, :], inside[:, None] & (column < WIDTH)[None, :], 0).to(tl.float32)
        products += tile * tl.load(query + column, column < WIDTH, 0).to(tl.float32)[None, :]
    scores = tl.sum(products, 1)
    scores = tl.where(tl.load(is_real + b * places + place, inside, 0) != 0, scores, MASKED)
    scores = tl.where(inside, scores, float("-inf"))
    highest = tl.max(scores, 0)
    found = scores - highest - tl.log(tl.sum(tl.exp(scores - highest), 0))
    tl.store(log + (step * batch + b).to(tl.int64) * places + place, found, inside)
    share = tl.exp(found)
    for start in range(0, WIDTH, BLOCK):
        column = start + tl.arange(0, BLOCK)
        tile = tl.load(row + column[None, :], inside[:, None] & (column < WIDTH)[None, :], 0).to(tl.float32)
        mixed = tl.sum(tile * share[:, None], 0)
        tl.store(context + (step * batch + b).to(tl.int64) * WIDTH + column, mixed, column < WIDTH)
        tl.store(entering + column, mixed, column < WIDTH)


@triton.jit(do_not_specialize=["step"])  # type: ignore[untyped-decorator,unused-ignore]
def _attend_backward(
    memory, is_real, log, d_state, outer_hidden, outer_context, d_log, d_hidden, d_context, d_scores,
    step, batch, places, WIDTH: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    b = tl.program_id(0)
    place = tl.arange(0, PLACES)
    inside = place < places
    now = (step * batch + b).to(tl.int64)
    entered = d_state + ((step + 1) * batch + b).to(tl.int64) * 2 * WIDTH
    row = memory + (b.to(tl.int64) * places + place[:, None]) * WIDTH
    products = tl.zeros([PLACES, BLOCK], tl.float32)
    for start in range(0, WIDTH, BLOCK):
        column = start + tl.arange(0, BLOCK)
        tile = tl.load(row + column[None, :], inside[:, None] & (column < WIDTH)[None, :], 0).to(tl.float32)
        dc = tl.load(outer_context + now * WIDTH + column, column < WIDTH, 0).to(tl.float32)
        dc += tl.load(entered + column, column < WIDTH, 0).to(tl.float32)
        tl.store(d_context + now * WIDTH + column, dc, column < WIDTH)
        products += tile * dc[None, :]
    share = tl.exp(tl.load(log + now * places + place, inside, float("-inf")))
    dlog = tl.load(d_log + now * places + place, inside, 0) + share * tl.sum(products, 1)
    ds = dlog - share * tl.sum(dlog, 0)
    ds = tl.where(tl.load(is_real + b * places + place, inside, 0) != 0, ds, 0.0)
    tl.store(d_scores + now * places + place, ds, inside)
    for start in range(0, WIDTH, BLOCK):
        column = start + tl.arange(0, BLOCK)
        tile = tl.load(row + column[None, :], inside[:, None] & (column < WIDTH)[None, :], 0).to(tl.float32)
        dh = tl.load(outer_hidden + now * WIDTH + column, column < WIDTH, 0).to(tl.float32)
        tl.store(d_hidden + now * WIDTH + column, dh + tl.sum(tile * ds[:, None], 0), column < WIDTH)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _to_gradients(
    logits, targets, share, losses, WORDS: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    here = logits + row.to(tl.int64) * WORDS
    highest = tl.full([BLOCK], LOWEST, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, WORDS, BLOCK):
        word = start + tl.arange(0, BLOCK)
        score = tl.load(here + word, word < WORDS, LOWEST).to(tl.float32)
        higher = tl.maximum(highest, score)
        total = total * tl.exp(highest - higher) + tl.exp(score - higher)
        highest = higher
    top = tl.max(highest, 0)
    log_sum = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
    target, weight = tl.load(targets + row), tl.load(share + row).to(tl.float32)
    at_target = tl.zeros([BLOCK], tl.float32)
    for start in range(0, WORDS, BLOCK):
        word = start + tl.arange(0, BLOCK)
        score = tl.load(here + word, word < WORDS, LOWEST).to(tl.float32)
        at_target += tl.where(word == target, score, 0.0)
        gradient = tl.exp(score - log_sum) - tl.where(word == target, 1.0, 0.0)
        tl.store(here + word, gradient * weight, word < WORDS)
    tl.store(losses + row, (log_sum - tl.sum(at_target, 0)) * weight)


def _block(width: int) -> int:
    """Columns of one program: at least one for each of its 128 threads.

    With fewer, several threads would share a value, and one could read it after another has overwritten it.
    """
    return max(128, min(512, int(triton.next_power_of_2(width))))


def cell_forward(tape: Tape, group: Group) -> None:
    """See `cell.cell_forward`."""
    layers, steps, batch, width = tape.sizes
    block = _block(width)
    _cell_forward[((group.high - group.low) * batch, triton.cdiv(width, block))](
        tape.inputs, tape.bias, tape.inputs if tape.drop is None else tape.drop, tape.gates, tape.state, tape.cell,
        group.low, group.step, layers, steps, batch, WIDTH=width, HAS_DROP=tape.drop is not None, BLOCK=block,
    )  # fmt: skip


def cell_backward(tape: Tape, grads: Gradients, group: Group) -> None:
    """See `cell.cell_backward`."""
    layers, steps, batch, width = tape.sizes
    block = _block(width)
    _cell_backward[((group.high - group.low) * batch, triton.cdiv(width, block))](
        tape.inputs if tape.drop is None else tape.drop, tape.gates, tape.cell, grads.hidden, grads.last_hidden,
        grads.last_cell, grads.last, grads.state, grads.cell, group.low, group.step, layers, steps, batch, WIDTH=width,
        HAS_DROP=tape.drop is not None, BLOCK=block,
    )  # fmt: skip


def attend_forward(tape: Tape, attended: Attended, step: int) -> None:
    """See `attention.attend_forward`."""
    layers, steps, batch, width = tape.sizes
    places, block = _tile(attended)
    _attend_forward[(batch,)](
        attended.memory, attended.is_real, tape.state, attended.context, attended.log, step, layers, steps, batch,
        attended.memory.shape[1], WIDTH=width, PLACES=places, BLOCK=block, MASKED=MASKED, num_warps=8,
    )  # fmt: skip


def attend_backward(tape: Tape, attended: Attended, grads: Gradients, seen: AttendedGradients, step: int) -> None:
    """See `attention.attend_backward`."""
    _, _, batch, width = tape.sizes
    places, block = _tile(attended)
    _attend_backward[(batch,)](
        attended.memory, attended.is_real, attended.log, grads.state, seen.hidden, seen.outer_context, seen.log,
        grads.hidden, seen.context, seen.scores, step, batch, attended.memory.shape[1], WIDTH=width, PLACES=places,
        BLOCK=block, num_warps=8,
    )  # fmt: skip


def _tile(attended: Attended) -> tuple[int, int]:
    """All places, rounded up, and as many columns as leave 32 values to a thread."""
    places = max(16, triton.next_power_of_2(attended.memory.shape[1]))
    return places, max(16, min(128, 8192 // places))


def to_gradients(logits: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """See `cross_entropy.to_gradients`."""
    losses = torch.empty(len(targets), dtype=torch.float32, device=logits.device)
    _to_gradients[(len(targets),)](
        logits, targets, share, losses, WORDS=logits.shape[1], BLOCK=4096, LOWEST=-1e30, num_warps=8
    )
    return losses.sum()
