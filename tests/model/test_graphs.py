"""Fused kernels and captured graphs against the plain path: only where there is a GPU."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
import torch
from tests.model.samples import batch_of, network, tiny
from torch.nn.attention import SDPBackend

from dialoscope.model import graphs, kernels, transformer
from dialoscope.model.batch import Batch
from dialoscope.model.network import Seq2Seq

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

BATCHES = [batch_of(([[5, 6, 7], [8]], [9, 10]), ([[11]], [5])), batch_of(([[7, 7, 8], [9]], [6, 6]), ([[12]], [13]))]


def loss_of(model: Seq2Seq, batch: Batch) -> torch.Tensor:
    output = model(batch)
    loss = model.loss(output, batch)
    return loss if output.log_attention is None else loss + output.log_attention.exp().square().mean()


def gradients(model: Seq2Seq, batch: Batch) -> list[torch.Tensor]:
    model.zero_grad(set_to_none=True)
    loss = loss_of(model, batch)
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


def wide_batch(words: int) -> Batch:
    """50 turns of one word: 100 places among tokens, 50 among utterances; words from all over the vocabulary."""
    spread = [[5 + 97 * place % (words - 5)] for place in range(50)]
    return batch_of((spread, [words - 1, 6, words // 2]), (spread[:20], [7]), ([[8]], [9, 10]))


@pytest.mark.parametrize(("width", "words"), [(200, 5_000), (520, 5_000)])
@pytest.mark.parametrize("name", ["non-hier", "static-ui", "dynamic-ui"])
def test_kernels_go_over_all_columns_places_and_words(name: str, width: int, words: int) -> None:
    """Over 128 places attention has 64 columns at a time, a cell 512, cross-entropy 4,096 words: more than one of each.

    Errors are held against a gradient's norm, for fp32 adds up 100 steps in another order.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    settings = replace(tiny(name), width=width, embedding=width, vocabulary=words)
    batch = wide_batch(words)
    expected = gradients(network(settings, scale=1.0), batch)
    fast = network(settings, scale=1.0).cuda()
    graphs.clear()
    for _ in range(3):
        for found, wanted in zip(gradients(fast, batch.to("cuda")), expected, strict=True):
            assert (found.cpu() - wanted).norm() <= 1e-3 * wanted.norm() + 1e-7


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
    assert errors[0] <= 3 * errors[1]  # 1.5 was seen; a wrong kernel gives NaN


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
    sums = [one + other for one, other in zip(*expected, strict=True)][1:]  # without the losses
    for _ in range(3):
        model.zero_grad(set_to_none=True)
        losses = [loss_of(model, batch) for batch in batches]
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
        summed = [weight.grad for weight in model.parameters() if weight.grad is not None]
        for found, wanted in zip(summed, sums, strict=True):
            torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)
        assert [loss.item() for loss in losses] == pytest.approx([one[0].item() for one in expected], rel=1e-5)


def pooled_bytes() -> int:
    """What pools of graphs keep: those that wait, and those of others that nothing has let go of."""
    gc.collect()  # a run that was in use when its test ended
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    segments = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
    return sum(one["total_size"] for one in segments if tuple(one["segment_pool_id"]) != (0, 0))


def test_a_captured_run_counts_all_that_its_pool_keeps() -> None:
    model = network(replace(tiny("non-hier"), width=200, embedding=200)).cuda()
    batch = wide_batch(14).to("cuda")
    graphs.clear()
    before = pooled_bytes()
    for _ in range(2):
        gradients(model, batch)
    counted = sum(run.bytes for runs in graphs._waiting.values() for run in runs)
    pooled = pooled_bytes() - before
    assert 0 < pooled <= counted
