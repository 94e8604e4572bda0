from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.adapter import HuggingFaceModel

Load = Callable[..., HuggingFaceModel]
CONTEXTS = [["hello there", "", "where is the station?"], ["hi"], ["it is near the old bridge", "a"]]
POOLED = {
    "last": lambda states, owner: states[-1],
    "first": lambda states, owner: states[0],
    "mean": lambda states, owner: states.mean(0),
    "query": lambda states, owner: states[[k for k, turn in enumerate(owner) if turn == max(owner)]].mean(0),
}


@pytest.mark.parametrize("layer", [-1, 1])
@pytest.mark.parametrize("pooling", list(POOLED))
@pytest.mark.parametrize("name", ["llama", "bart", "bert"])
def test_an_encoding_is_a_layers_states_pooled(model: Load, name: str, pooling: str, layer: int) -> None:
    loaded = model(name, pooling=pooling, layer=layer)
    found = loaded.encode(CONTEXTS)
    network = loaded.network.model
    part = network.get_encoder() if name == "bart" else network
    for vector, sample in zip(found, loaded.sampler.prompts(CONTEXTS), strict=True):
        with torch.no_grad():
            states = part(input_ids=torch.tensor([sample.source]), output_hidden_states=True).hidden_states[layer][0]
        np.testing.assert_allclose(vector, POOLED[pooling](states.numpy(), sample.owner), atol=1e-5)


@pytest.mark.parametrize(("name", "pooling"), [("llama", "last"), ("bart", "mean"), ("bert", "mean")])
def test_pooling_suits_the_kind_of_model_unless_told(model: Load, name: str, pooling: str) -> None:
    assert model(name).settings["pooling"] == pooling


def test_an_empty_query_is_encoded_by_the_last_token(model: Load) -> None:
    by_query, by_last = (model("llama", pooling=each).encode([["hello", ""]]) for each in ("query", "last"))
    np.testing.assert_array_equal(by_query, by_last)


def test_a_layer_that_does_not_exist_is_refused(model: Load) -> None:
    with pytest.raises(UsageError, match=r"Layer 3 does not exist: 0 \(embeddings\) to 2"):
        model("gpt2", layer=3).encode([["hi"]])


def test_an_unknown_pooling_gets_a_suggestion(model: Load) -> None:
    with pytest.raises(UsageError, match="Did you mean 'mean'"):
        model("gpt2", pooling="men")


@pytest.mark.parametrize("method", ["attend", "log_likelihood", "generate"])
def test_an_encoder_can_only_encode(model: Load, method: str) -> None:
    arguments = ([["hi"]],) if method == "generate" else ([["hi"]], ["a"])
    with pytest.raises(UsageError, match=f"'bert' is an encoder: it can encode, but not {method}"):
        getattr(model("bert"), method)(*arguments)
