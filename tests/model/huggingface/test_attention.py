from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.attention import Recorder
from dialoscope.model.protocol import Floats

Load = Callable[..., HuggingFaceModel]
WRITERS = ["gpt2", "llama", "mistral", "gemma2", "bloom", "bart", "t5"]
CONTEXTS = [["hello there", "", "where is the station?"], ["hi"], ["it is near the old bridge, near the bridge", "a"]]
RESPONSES = ["it is over there.", "", "hello 🙂"]
TURNS = st.lists(st.text(alphabet="abc ?é", min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def eager(checkpoint: Callable[[str], Path]) -> Callable[[str], Any]:
    """The same weights, loaded with eager attention: what to hold ours against."""
    transformers: Any = import_module("transformers")

    @cache
    def load(name: str) -> Any:
        kind = "AutoModelForSeq2SeqLM" if name in ("bart", "t5") else "AutoModelForCausalLM"
        return getattr(transformers, kind).from_pretrained(checkpoint(name), attn_implementation="eager").eval()

    return load


def by_hand(model: HuggingFaceModel, eager: Any, context: list[str], response: str) -> Floats:
    """One at a time, from all eager weights, with loops: (layers, heads, utterances)."""
    sample, network = model.sampler.pairs([context], [response])[0], model.network
    opening = sample.source if network.kind == "causal" else network.opening
    ids = torch.tensor([[*opening, *sample.target]])
    inputs = {"input_ids": ids}
    if network.kind != "causal":
        inputs = {"input_ids": torch.tensor([sample.source]), "decoder_input_ids": ids}
    with torch.no_grad():
        output = eager(**inputs, output_attentions=True)
    layers = output.attentions if network.kind == "causal" else output.cross_attentions
    rows = range(len(opening) - 1, len(opening) - 1 + len(sample.target))
    shares = np.zeros((len(layers), layers[0].shape[1], len(context)))
    for layer, head in np.ndindex(shares.shape[:2]):
        per_row = []
        for row in rows:
            weights = layers[layer][0, head, row].double().numpy()
            mass = [sum(weights[k] for k, turn in enumerate(sample.owner) if turn == u) for u in range(len(context))]
            per_row.append([each / sum(mass) for each in mass])
        shares[layer, head] = np.mean(per_row, axis=0)
    return shares.astype(np.float32)


@pytest.mark.parametrize("rows", ["auto", "eager"])
@pytest.mark.parametrize("name", WRITERS)
def test_shares_are_the_eager_weights_summed_by_hand(
    model: Load, eager: Callable[[str], Any], name: str, rows: str
) -> None:
    found = model(name).attend(CONTEXTS, RESPONSES, rows=rows)  # type: ignore[arg-type]
    for attention, context, response in zip(found, CONTEXTS, RESPONSES, strict=True):
        expected = by_hand(model(name), eager(name), context, response)
        np.testing.assert_allclose(np.exp(attention.log_share), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "gemma2", "bart", "t5"])
def test_rows_are_recomputed_without_asking_for_weights(
    model: Load, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope.model.huggingface import attention

    monkeypatch.setattr(attention, "_eager", None)
    assert len(model(name).attend(CONTEXTS, RESPONSES)) == 3


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "bart", "t5"])
def test_only_the_rows_of_the_response_are_ever_weighed(
    model: Load, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    usual = Recorder.add

    def note(self: Recorder, weights: torch.Tensor) -> None:
        seen.append(weights.shape[2])
        usual(self, weights)

    monkeypatch.setattr(Recorder, "add", note)
    model(name).attend([CONTEXTS[0] * 5], ["hi"])
    assert seen == [len(model(name).sampler.pairs([["a"]], ["hi"])[0].target)] * 2  # in each of two layers


def test_company_and_padding_change_nothing(model: Load) -> None:
    for name in ("llama", "t5"):
        _check_company(model(name))


def _check_company(loaded: HuggingFaceModel) -> None:
    @settings(max_examples=12)
    @given(TURNS, st.lists(TURNS, max_size=3))
    def check(context: list[str], others: list[list[str]]) -> None:
        alone = loaded.attend([context], ["abc"])[0].log_share
        among = loaded.attend([*others, context], [*["a b c a b"] * len(others), "abc"])[-1].log_share
        np.testing.assert_allclose(np.exp(among), np.exp(alone), atol=1e-5)
        np.testing.assert_allclose(np.exp(alone).sum(-1), 1, atol=1e-5)

    check()


def test_an_empty_utterance_has_no_share_and_no_tokens(model: Load) -> None:
    attention = model("llama").attend([CONTEXTS[0]], ["hello"])[0]
    assert attention.tokens.tolist()[1] == 0
    assert np.all(np.isneginf(attention.log_share[:, :, 1]))


def test_an_utterance_that_was_cut_has_no_share(model: Load) -> None:
    attention = model("gpt2", window=12).attend([["aa", "bb", "cc", "dd"]], ["ee"])[0]
    assert attention.tokens.tolist() == [0, 2, 2, 2]
    assert np.all(np.isneginf(attention.log_share[:, :, 0]))


def test_shares_of_a_context_without_words_are_not_numbers(model: Load) -> None:
    assert np.isnan(model("llama").attend([["", ""]], ["hello"])[0].log_share).all()


def test_a_row_whose_sliding_window_holds_no_utterance_is_left_out(model: Load) -> None:
    alone = model("mistral").attend([["aa", "bb"]], ["c" * 60])[0]  # late rows are 24 tokens or more from the context
    np.testing.assert_allclose(np.exp(alone.log_share).sum(-1), 1, atol=1e-5)


def test_the_network_keeps_its_usual_kernel(model: Load) -> None:
    loaded = model("llama")
    loaded.attend(CONTEXTS, RESPONSES)
    assert loaded.network.model.config._attn_implementation == "sdpa"


def test_kind_and_lengths_are_told(model: Load) -> None:
    attention = model("t5").attend([["abc", "de"]], ["f"])[0]
    assert (attention.kind, attention.tokens.tolist()) == ("transformer", [3, 2])


def test_a_network_without_attention_says_so(model: Load) -> None:
    with pytest.raises(UsageError, match="MambaForCausalLM gives no attention weights"):
        model("mamba").attend([["hi"]], ["a"])


def test_a_network_whose_weights_are_none_says_so(model: Load) -> None:
    with pytest.raises(UsageError, match="ProphetNetForConditionalGeneration gives scores in place of attention"):
        model("prophetnet").attend(CONTEXTS, RESPONSES)
