"""Which models are probed: checkpoints, layers and poolings are models of their own, opened one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.model.huggingface.conftest import build
from tests.probe.fakes import CHAT, Counting, probed

from dialoscope.errors import UsageError
from dialoscope.probe import ProbeSettings, planned
from dialoscope.probe.models import Probes, models_to_probe


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model of transformers, as a folder."""
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    build("gpt2", folder)
    return folder


def test_every_layer_and_pooling_is_a_model_of_its_own(causal: Path) -> None:
    result = probed(
        {"gpt": causal, "own": Counting()}, layer=[0, -1], pooling=["last", "mean"], controls=False, limit=5,
        train_limit=10,
    )  # fmt: skip
    names = [f"gpt, layer {layer}, {pooling}" for layer in (0, -1) for pooling in ("last", "mean")]
    assert list(result.models) == [*names, "own"]
    spreads = [model.spread for model in result.models.values()]
    assert len(set(spreads)) == len(spreads)  # no two of them are encoded alike
    assert result.origin.settings["layer"] == "0,-1"
    assert "gpt, layer 0, last/UtteranceLoc/f1" in result.scores()


def test_one_layer_keeps_the_name(causal: Path) -> None:
    options: dict[str, Any] = {"controls": False, "limit": 5, "train_limit": 10}
    first, last = (probed({"gpt": causal}, layer=[layer], **options).models["gpt"] for layer in (0, -1))
    assert first.spread != last.spread
    assert probed({"gpt": causal}, **options).models["gpt"].spread == last.spread  # the last is the usual one


def test_a_path_a_loaded_model_and_a_pair_are_the_same_model(causal: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from dialoscope.model.loading import load

    pair = AutoModelForCausalLM.from_pretrained(causal), AutoTokenizer.from_pretrained(causal)
    models = {"path": causal, "loaded": load(causal, device="cpu"), "pair": pair}
    result = probed(models, controls=False, limit=5, train_limit=10)
    scores = {model.f1["UtteranceLoc"].value for model in result.models.values()}
    assert len(scores) == 1


def test_a_plan_names_models_without_loading_them(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Probes, "open")
    plan = planned(CHAT, models={"gpt": causal}, layer=[0, -1])
    assert plan["models"] == ["gpt, layer 0, auto", "gpt, layer -1, auto"]


def test_a_layer_of_our_own_models_cannot_be_named() -> None:
    with pytest.raises(UsageError, match="are for Hugging Face models that are given by path, by name or as a pair"):
        models_to_probe({"own": Counting()}, ProbeSettings(layer=(0, -1)))
