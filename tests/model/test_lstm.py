from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialoscope.model import lstm, recurrence
from dialoscope.model.lstm import LSTM, State
from dialoscope.model.recurrence import Computed, Given, in_segments, recur, without_ended_rows


def library_twin(ours: LSTM) -> torch.nn.LSTM:
    twin = torch.nn.LSTM(ours.inputs.shape[1], ours.width, ours.layers, batch_first=True)
    with torch.no_grad():
        for layer in range(ours.layers):
            if layer == 0:
                parts: tuple[Tensor, Tensor] = (ours.inputs, ours.first)
            else:
                assert ours.upper is not None
                parts = ours.upper[layer - 1, :, : ours.width], ours.upper[layer - 1, :, ours.width :]
            getattr(twin, f"weight_ih_l{layer}").copy_(parts[0])
            getattr(twin, f"weight_hh_l{layer}").copy_(parts[1])
            getattr(twin, f"bias_ih_l{layer}").copy_(ours.bias[layer])
            getattr(twin, f"bias_hh_l{layer}").zero_()
    return twin


def values_and_gradients(
    done: Computed, real: Tensor, pulls: Sequence[Tensor], asked: Sequence[Tensor]
) -> list[Tensor]:
    """What counts of a recurrence, and the gradients of all of it, each value pulled by a number of its own."""
    values = done.hidden * real, done.last_hidden, done.last_cell
    pulled = torch.stack([(value * pull).sum() for value, pull in zip(values, pulls, strict=True)]).sum()
    return [*values, *torch.autograd.grad(pulled, asked)]


@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("steps", [1, 3, 9])
def test_layers_compute_what_the_library_computes_over_packed_sequences(layers: int, steps: int) -> None:
    torch.manual_seed(0)
    ours = LSTM(3, 4, layers=layers)
    inputs, length = torch.randn(4, steps, 3), torch.tensor([steps, 1, (steps + 1) // 2, steps])
    packed, (hidden, cell) = library_twin(ours)(
        pack_padded_sequence(inputs, length, batch_first=True, enforce_sorted=False)
    )
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    found = ours(inputs, length)
    real = (torch.arange(steps) < length[:, None])[..., None]
    torch.testing.assert_close(found.hidden.transpose(0, 1) * real, expected * real, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.last_hidden, hidden, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.last_cell, cell, atol=1e-6, rtol=0)


@pytest.mark.parametrize("width", [4, 48])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_library_and_our_loop_agree_in_values_and_gradients(
    layers: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a state of their own, with dropout, rows of all lengths, and gradients from everything that counts."""
    torch.manual_seed(0)
    ours = LSTM(3, width, layers=layers, dropout=0.4).train()
    length = torch.tensor([7, 1, 4, 7, 2])
    real = (torch.arange(7)[:, None] < length)[..., None]
    pulls = torch.randn(7, 5, width), torch.randn(layers, 5, width), torch.randn(layers, 5, width)
    found = []
    for who in ("library", "loop"):
        monkeypatch.setattr(lstm, "is_for_library", lambda inputs, who=who: who == "library")
        torch.manual_seed(1)
        inputs = torch.randn(5, 7, 3).requires_grad_()
        start = State(*(torch.randn(layers, 5, width).requires_grad_() for _ in range(2)))
        done = ours(inputs, length, start=start)
        found.append(values_and_gradients(done, real, pulls, [inputs, *start, *ours.parameters()]))
    for by_library, by_loop in zip(*found, strict=True):
        torch.testing.assert_close(by_library, by_loop, atol=2e-5, rtol=1e-4)


def test_what_follows_a_rows_end_reaches_nothing() -> None:
    """The library runs on to the longest row's end: c is held there, to the last bit."""
    torch.manual_seed(0)
    ours, length = LSTM(3, 32, layers=2), torch.tensor([3, 9])
    inputs = torch.randn(2, 9, 3)
    other = inputs.clone()
    other[0, 3:] = 1e3
    found, expected = ours(inputs, length), ours(other, length)
    assert torch.equal(found.last_cell, expected.last_cell) and torch.equal(found.last_hidden, expected.last_hidden)


@pytest.mark.parametrize("size", [1, 3, 4, 7, 9])
def test_segments_give_what_the_whole_gives(size: int) -> None:
    """Values and gradients, with dropout between layers and rows that end at, before and after a segment's end."""
    torch.manual_seed(0)
    layers, steps, batch, width = 3, 9, 5, 4
    shapes = (
        (steps, batch, 4 * width),
        (layers, 4 * width, 2 * width),
        (layers, 4 * width),
        *((layers, batch, width),) * 2,
    )
    made = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    drop = torch.rand(layers - 1, steps, batch, width, dtype=torch.float64)
    inputs, weight, bias, hidden, cell = made
    given = Given(inputs, weight, bias, hidden, cell, torch.tensor([9, 1, 3, 4, 8]), drop)
    real = (torch.arange(steps)[:, None] < given.length)[..., None]
    pulls = torch.randn(steps, batch, width), torch.randn(layers, batch, width), torch.randn(layers, batch, width)
    found = []
    for done in (recur(given), in_segments(given, size)):
        found.append(values_and_gradients(done, real, pulls, made))
    for whole, parts in zip(*found, strict=True):
        torch.testing.assert_close(parts, whole, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("attention", ["none", "dot", "additive"])
@pytest.mark.parametrize("size", [2, 4, 16])
def test_skipping_ended_rows_changes_nothing_that_counts(
    size: int, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients, where most rows end early and padding goes on beyond the longest."""
    monkeypatch.setattr(recurrence, "LEAST_ROWS", 1)
    torch.manual_seed(0)
    layers, steps, batch, width, places, length = 3, 11, 6, 4, 5, [1, 9, 3, 4, 1, 2]

    def made(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, requires_grad=True)

    inputs, weight, bias = made(steps, batch, 4 * width), made(layers, 4 * width, 2 * width), made(layers, 4 * width)
    hidden, cell = made(layers, batch, width), made(layers, batch, width)
    drop = torch.rand(layers - 1, steps, batch, width, dtype=torch.float64)
    given = Given(inputs, weight, bias, hidden, cell, torch.tensor(length), drop)
    asked = [inputs, weight, bias, hidden, cell]
    if attention != "none":
        is_real = torch.arange(places) < torch.tensor([5, 1, 3, 4, 2, 5])[:, None]
        memory, context = made(batch, places, width), made(batch, width)
        given, asked = given._replace(memory=memory, is_real=is_real, context=context), [*asked, memory, context]
    if attention == "additive":
        scoring = made(batch, places, width), made(width, width), made(width)
        given = given._replace(keys=scoring[0], query=scoring[1], score=scoring[2])
        asked = [*asked, *scoring]
    real = (torch.arange(steps)[:, None] < given.length)[..., None]
    shapes = (steps, batch, width), *((layers, batch, width),) * 2, (steps, batch, width), (steps, batch, places)
    pulls = [made(*shape).detach() for shape in shapes]
    results = []
    for done in (recur(given), without_ended_rows(given, tuple(length), size)):
        values = [done.hidden * real, done.last_hidden, done.last_cell]
        if done.context is not None and done.log_attention is not None:
            values += [done.context * real, done.log_attention.exp() * real]
        pulled = torch.stack([(value * pull).sum() for value, pull in zip(values, pulls, strict=False)]).sum()
        results.append([*values, *torch.autograd.grad(pulled, asked)])
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, atol=1e-12, rtol=1e-9)


def test_a_run_in_two_parts_is_a_run_in_one() -> None:
    torch.manual_seed(0)
    ours, inputs = LSTM(3, 4, layers=3), torch.randn(2, 5, 3)
    first = ours(inputs[:, :2], torch.tensor([2, 2]))
    second = ours(inputs[:, 2:], torch.tensor([3, 3]), start=State(first.last_hidden, first.last_cell))
    whole = ours(inputs, torch.tensor([5, 5]))
    torch.testing.assert_close(torch.cat([first.hidden, second.hidden]), whole.hidden)


def test_dropout_between_layers_keeps_the_mean() -> None:
    torch.manual_seed(0)
    drop = LSTM(3, 4, layers=2, dropout=0.25)._drop(torch.zeros(1), 200, 50)
    assert drop is not None and drop.shape == (1, 200, 50, 4)
    assert drop.mean().item() == pytest.approx(1, abs=0.02)
    assert sorted(set(drop.flatten().tolist())) == pytest.approx([0, 4 / 3])


def test_half_precision_keeps_the_cell_in_full() -> None:
    torch.manual_seed(0)
    ours, inputs, length = LSTM(3, 16, layers=3), torch.randn(2, 20, 3), torch.tensor([20, 2])
    real = (torch.arange(20)[:, None] < length)[..., None]
    exact = ours(inputs, length).hidden * real
    with torch.autocast("cpu", torch.bfloat16):
        found = ours(inputs, length)
    assert found.hidden.dtype == torch.bfloat16 and found.last_cell.dtype == torch.float32
    assert (found.hidden * real - exact).norm() < 0.005 * exact.norm()
    assert ours.bfloat16()(inputs.bfloat16(), length).last_cell.dtype == torch.float32
