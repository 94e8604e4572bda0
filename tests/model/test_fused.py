"""The Triton kernels in Triton's interpreter: checked without a GPU, and skipped where Triton is missing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from tests.model.samples import batch_of, network, tiny

from dialoscope.model import kernels, lstm
from dialoscope.model.network import Seq2Seq

BATCH = batch_of(([[5, 6, 7], [8]], [9, 10]), ([[11]], []), ([[6, 6], [7, 12, 13, 5], [9, 8, 10]], [5, 13, 6, 7]))
DOT = ("non-hier", "static", "static-ui", "dynamic", "dynamic-ui", "lstm")


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    if torch.cuda.is_available() or find_spec("triton") is None:
        pytest.skip("on a GPU the kernels themselves are checked; without Triton there are none")
    if "triton.language" in sys.modules and "dialoscope.model.fused" not in sys.modules:
        pytest.skip("Triton was imported before it could be told to interpret")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(lstm, "is_for_library", lambda inputs: False)
    yield importlib.import_module("dialoscope.model.fused")


def gradients(model: Seq2Seq) -> list[torch.Tensor]:
    """Over rows of different length, with gradients into the attention as well."""
    model.zero_grad(set_to_none=True)
    output = model(BATCH)
    loss = model.loss(output, BATCH)
    if output.log_attention is not None:
        loss = loss + output.log_attention.exp().square()[:, :1].mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return [loss.detach(), *(weight.grad for weight in model.parameters() if weight.grad is not None)]


@pytest.mark.parametrize("name", DOT)
def test_kernels_compute_what_the_plain_steps_compute(
    name: str, fused: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network(tiny(name))
    expected = gradients(model)
    monkeypatch.setattr(kernels, "_fused", lambda values: fused)
    for found, wanted in zip(gradients(model), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
