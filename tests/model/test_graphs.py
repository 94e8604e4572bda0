"""Fused kernels and captured graphs against the plain path: only where there is a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.model.samples import batch_of, network, tiny
from torch.nn.attention import SDPBackend

from turnwise.model import graphs, kernels, transformer
from turnwise.model.batch import Batch
from turnwise.model.network import Seq2Seq

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

BATCHES = [batch_of(([[5, 6, 7], [8]], [9, 10]), ([[11]], [5])), batch_of(([[7, 7, 8], [9]], [6, 6]), ([[12]], [13]))]


def gradients(model: Seq2Seq, batch: Batch) -> list[torch.Tensor]:
    model.zero_grad(set_to_none=True)
    output = model(batch)
    loss = model.loss(output, batch)
    if output.log_attention is not None:
        loss = loss + output.log_attention.exp().square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return [loss.detach(), *(weight.grad for weight in model.parameters() if weight.grad is not None)]


@pytest.mark.parametrize("name", ["non-hier", "static-ui", "dynamic-ui", "lstm-attn", "bilstm-attn", "hred", "lstm"])
def test_fused_and_captured_steps_are_the_plain_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    settings = replace(tiny(name), width=24, embedding=24)
    plain = network(settings)
    expected = [gradients(plain, batch) for batch in BATCHES]
    fast = network(settings).cuda()
    graphs.clear()
    for _ in range(3):  # plain launches, then captured, then replayed with the other batch's values between
        for batch, wanted in zip(BATCHES, expected, strict=True):
            for found, one in zip(gradients(fast, batch.to("cuda")), wanted, strict=True):
                torch.testing.assert_close(found.cpu(), one, atol=2e-5, rtol=1e-4)
    monkeypatch.setattr(kernels, "_fused", lambda values: None)
    graphs.clear()
    for found, one in zip(gradients(fast, BATCHES[0].to("cuda")), expected[0], strict=True):
        torch.testing.assert_close(found.cpu(), one, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["non-hier", "static-ui", "hred"])
def test_captured_passes_without_gradients_are_the_plain_ones(name: str) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    model = network(tiny(name)).eval()
    with torch.no_grad():
        expected = [model.loss(model(batch), batch).item() for batch in BATCHES]
        fast = model.cuda()
        graphs.clear()
        for _ in range(3):
            found = [fast.loss(fast(batch), batch).item() for batch in (one.to("cuda") for one in BATCHES)]
            assert found == pytest.approx(expected, rel=1e-4)


def test_a_transformers_attention_in_half_precision_errs_as_little_as_plain_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(tiny("transformer"), width=64, embedding=64)
    model = network(settings).cuda()
    many = [([[5, 6, 7] * size, [8]], [9, 10] * size) for size in range(1, 12)]  # masks that differ by row
    batch = batch_of(*many).to("cuda")
    exact = torch.cat([gradient.flatten() for gradient in gradients(model, batch)])
    errors = []
    for kernels_used in (transformer.KERNELS, [SDPBackend.MATH]):
        monkeypatch.setattr(transformer, "KERNELS", kernels_used)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            found = torch.cat([gradient.flatten() for gradient in gradients(model, batch)])
        errors.append(((found - exact).norm() / exact.norm()).item())
    assert errors[0] <= 1.5 * errors[1]  # which no NaN is


def test_runs_that_find_no_room_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "SHARE_OF_MEMORY", 0.0)
    model = network(tiny("static-ui")).cuda()
    batches = [batch.to("cuda") for batch in BATCHES]
    expected = [gradients(model, batch) for batch in batches]
    for _ in range(3):
        for batch, wanted in zip(batches, expected, strict=True):
            for found, one in zip(gradients(model, batch), wanted, strict=True):
                torch.testing.assert_close(found, one, atol=2e-5, rtol=1e-4)


def test_two_forward_passes_before_their_backward_passes_do_not_mix() -> None:
    model = network(tiny("non-hier")).cuda()
    batches = [batch.to("cuda") for batch in BATCHES]
    expected = [gradients(model, batch) for batch in batches]
    for _ in range(3):
        model.zero_grad(set_to_none=True)
        losses = [model.loss(model(batch), batch) for batch in batches]
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
        summed = [weight.grad for weight in model.parameters() if weight.grad is not None]
        assert len(summed) == len(expected[0]) - 1
        again = [model.loss(model(batch), batch).item() for batch in batches]
        assert again == pytest.approx([loss.item() for loss in losses], rel=1e-5)
