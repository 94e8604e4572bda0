"""A transformer's layers as one run give what they give one by one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.model.samples import batch_of, network, tiny

from dialoscope.model import graphs, replayed
from dialoscope.model.batch import Batch
from dialoscope.model.network import Seq2Seq

NAMES = ["transformer", "overlap-transformer"]  # normalised before and after the blocks
BATCHES = [batch_of(([[5, 6, 7], [8]], [9, 10]), ([[11]], [5])), batch_of(([[7, 7, 8], [9]], [6, 6]), ([[12]], [13]))]


def learner(name: str, *, dropout: float) -> Seq2Seq:
    return network(replace(tiny(name), width=16, embedding=16, dropout=dropout), scale=1.0).train()


def trained(model: Seq2Seq, batches: list[Batch], *, precision: AbstractContextManager[Any] | None = None) -> list[Any]:
    """Losses of some steps, and the weights they end with; dropout draws the same in every call."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)  # Adam would make steps of rounding errors
    losses = []
    for step, batch in enumerate(batches):
        torch.manual_seed(step)
        with precision or nullcontext():
            loss = model.loss(model(batch), batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.detach())
    return [*losses, *(weight.detach() for weight in model.parameters())]


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_one_run_is_all_layers(name: str, is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    precision = torch.autocast("cpu", torch.bfloat16) if is_short else None
    expected = trained(learner(name, dropout=0.3), BATCHES * 2, precision=precision)
    passes = []

    def is_worth_it(module: torch.nn.Module, like: torch.Tensor) -> bool:
        passes.append(module)
        return True

    monkeypatch.setattr(replayed, "is_worth_it", is_worth_it)
    found = trained(learner(name, dropout=0.3), BATCHES * 2, precision=precision)
    assert len(passes) == 4
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, atol=0, rtol=0)


def test_a_run_goes_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed, "is_worth_it", lambda module, like: True)
    model = learner("transformer", dropout=0.0)
    loss = model.loss(model(BATCHES[0]), BATCHES[0])
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="backward once"):
        loss.backward()  # type: ignore[no-untyped-call]


def test_frozen_weights_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed, "is_worth_it", lambda module, like: True)
    model = learner("transformer", dropout=0.0)
    for weight in model.encoder.parameters():
        weight.requires_grad_(False)
    model.loss(model(BATCHES[0]), BATCHES[0]).backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is None for weight in model.encoder.parameters())
    assert all(weight.grad is not None for weight in model.decoder.parameters())


def test_nothing_is_replayed_at_rest_or_without_a_gpu() -> None:
    model = learner("transformer", dropout=0.0)
    words = torch.zeros(1)
    assert not replayed.is_worth_it(model, words)

    class OnGPU:
        is_cuda = True

    assert replayed.is_worth_it(model, OnGPU())  # type: ignore[arg-type]
    with torch.no_grad():
        assert not replayed.is_worth_it(model, OnGPU())  # type: ignore[arg-type]
    assert not replayed.is_worth_it(model.eval(), OnGPU())  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_captured_layers_learn_as_plain_ones_do(name: str, is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights move between replays, words and masks differ, dropout draws anew: a graph must follow all of them."""
    torch.backends.cuda.matmul.allow_tf32 = False
    batches = [batch.to("cuda") for batch in BATCHES * 6]
    precision = torch.autocast("cuda", torch.bfloat16) if is_short else None
    graphs.clear()
    found = trained(learner(name, dropout=0.3).cuda(), batches, precision=precision)
    assert any(graphs._waiting.values())
    graphs.clear()
    monkeypatch.setattr(replayed, "is_worth_it", lambda module, like: False)
    expected = trained(learner(name, dropout=0.3).cuda(), batches, precision=precision)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, atol=2e-2 if is_short else 1e-4, rtol=1e-3)
