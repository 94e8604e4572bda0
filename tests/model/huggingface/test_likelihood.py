from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.model.huggingface.adapter import HuggingFaceModel

Load = Callable[..., HuggingFaceModel]
WRITERS = ["gpt2", "llama", "mistral", "gemma2", "bloom", "bart", "t5"]
CONTEXTS = [["hello there", "", "where is the station?"], ["hi"], ["it is near the old bridge, near the bridge", "a"]]
RESPONSES = ["it is over there.", "", "hello 🙂"]
TURNS = st.lists(st.text(alphabet="abc ?é", max_size=12), min_size=1, max_size=4)


def naive(model: HuggingFaceModel, context: list[str], response: str) -> float:
    """One at a time, every logit of the whole sequence, a plain softmax."""
    sample, network = model.sampler.pairs([context], [response])[0], model.network
    opening = sample.source if network.kind == "causal" else network.opening
    ids = torch.tensor([[*opening, *sample.target]])
    inputs = {"input_ids": ids}
    if network.kind != "causal":
        inputs = {"input_ids": torch.tensor([sample.source]), "decoder_input_ids": ids}
    with torch.no_grad():
        chances = network.model(**inputs).logits[0].double().softmax(-1).log()
    return float(sum(chances[len(opening) - 1 + t, token] for t, token in enumerate(sample.target)))


@pytest.mark.parametrize("name", WRITERS)
def test_a_batch_gives_what_each_gives_alone_by_a_plain_softmax(model: Load, name: str) -> None:
    found = model(name).log_likelihood(CONTEXTS, RESPONSES)
    expected = [naive(model(name), *pair) for pair in zip(CONTEXTS, RESPONSES, strict=True)]
    assert [each.total for each in found] == pytest.approx(expected, rel=1e-5)
    assert [each.tokens for each in found] == [len(s.target) for s in model(name).sampler.pairs(CONTEXTS, RESPONSES)]


@pytest.mark.parametrize("name", ["llama", "bart"])
def test_company_and_padding_change_nothing(model: Load, name: str) -> None:
    loaded = model(name)

    @settings(max_examples=12)
    @given(TURNS, st.text(alphabet="abc", max_size=6), st.lists(TURNS, max_size=3))
    def check(context: list[str], response: str, others: list[list[str]]) -> None:
        alone = loaded.log_likelihood([context], [response])[0].total
        among = loaded.log_likelihood([*others, context], [*["abc a"] * len(others), response])[-1].total
        assert among == pytest.approx(alone, abs=1e-5, rel=1e-6)

    check()


@pytest.mark.parametrize("name", WRITERS)
def test_the_output_layer_sees_the_responses_places_only(model: Load, name: str) -> None:
    seen: list[int] = []
    loaded = model(name)

    def note(_: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        seen.append(output.shape[:-1].numel())

    handle = loaded.network.model.get_output_embeddings().register_forward_hook(note)
    found = loaded.log_likelihood(CONTEXTS, RESPONSES)
    handle.remove()
    assert seen == [sum(each.tokens for each in found)]


def test_a_network_without_a_known_output_layer_gives_the_same(model: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = model("gpt2")
    expected = [each.total for each in loaded.log_likelihood(CONTEXTS, RESPONSES)]
    monkeypatch.setattr(loaded.network.model, "get_output_embeddings", lambda: None)
    assert [each.total for each in loaded.log_likelihood(CONTEXTS, RESPONSES)] == pytest.approx(expected, rel=1e-6)


def test_an_output_layer_that_predicts_several_tokens_at_once_gives_the_next_one(model: Load) -> None:
    loaded = model("prophetnet")  # its output layer reads (batch, tokens ahead, places, width)
    for context, response in zip(CONTEXTS, RESPONSES, strict=True):
        found = loaded.log_likelihood([context], [response])[0]
        assert found.total == pytest.approx(naive(loaded, context, response), abs=1e-3)


def test_small_batches_give_the_same(model: Load) -> None:
    whole = model("llama").log_likelihood(CONTEXTS, RESPONSES)
    parts = model("llama", batch_size=1).log_likelihood(CONTEXTS, RESPONSES)
    assert [each.total for each in parts] == pytest.approx([each.total for each in whole], rel=1e-6)
