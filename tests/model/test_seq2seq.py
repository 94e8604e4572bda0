from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.model.samples import network, tiny

from turnwise.errors import UsageError
from turnwise.model.batching import collate
from turnwise.model.presets import PRESETS
from turnwise.model.protocol import Decoding, DialogueModel
from turnwise.model.seq2seq import Seq2SeqModel
from turnwise.model.vocabulary import Vocabulary

CONTEXTS = [
    ["Hello.", "Good day! Do you have tea?"],
    ["Tea, bread, milk, rice and salt please, and a good fish. How much?"],
    ["Good day!", "Hello.", "How much tea do you have?", "Salt?"],
]
RESPONSES = ["Yes.", "", "We have a good rice, a good fish and a good bread."]
WORDS = Vocabulary.of([turn for context in CONTEXTS for turn in context] + RESPONSES, size=40)
ATTENDING = [name for name, preset in PRESETS.items() if preset.settings.attention != "none"]


def model(name: str, **changes: object) -> Seq2SeqModel:
    settings = replace(tiny(name), vocabulary=len(WORDS), **changes)  # type: ignore[arg-type]
    return Seq2SeqModel(network(settings), WORDS, name=name, batch_size=2)


@pytest.mark.parametrize("name", PRESETS)
def test_it_is_a_dialogue_model_and_order_and_company_change_nothing(name: str) -> None:
    asked: DialogueModel = model(name)
    vectors, likely = asked.encode(CONTEXTS), asked.log_likelihood(CONTEXTS, RESPONSES)
    written = asked.generate(CONTEXTS, decoding=Decoding("sample", max_tokens=4))
    assert isinstance(asked, DialogueModel) and vectors.shape == (3, 8)
    for row, (context, response) in enumerate(zip(CONTEXTS, RESPONSES, strict=True)):
        np.testing.assert_allclose(asked.encode([context])[0], vectors[row], atol=1e-5)
        alone = asked.log_likelihood([context], [response])[0]
        assert alone.total == pytest.approx(likely[row].total, abs=1e-4) and alone.tokens == likely[row].tokens
        assert asked.generate([context], decoding=Decoding("sample", max_tokens=4)) == [written[row]]
    assert [one.tokens for one in likely] == [3, 1, 15]  # words and signs, and the end


@pytest.mark.parametrize("name", ATTENDING)
def test_shares_sum_to_one_over_utterances(name: str) -> None:
    asked = model(name)
    for context, found in zip(CONTEXTS, asked.attend(CONTEXTS, RESPONSES), strict=True):
        settings = asked.network.settings
        by_head = (settings.layers, settings.heads) if settings.encoder == "transformer" else (1, 1)
        assert found.log_share.shape == (*by_head, len(context)) and len(found.tokens) == len(context)
        np.testing.assert_allclose(np.exp(found.log_share).sum(-1), 1, atol=1e-5)
        assert found.kind == ("transformer" if settings.encoder == "transformer" else settings.attention)


@pytest.mark.parametrize("name", ["non-hier", "static", "transformer"])
def test_attention_does_not_depend_on_what_else_is_asked(name: str) -> None:
    asked = model(name)
    together = asked.attend(CONTEXTS, RESPONSES)
    for context, response, found in zip(CONTEXTS, RESPONSES, together, strict=True):
        alone = asked.attend([context], [response])[0]
        np.testing.assert_allclose(found.log_share, alone.log_share, atol=1e-4)


def test_tokens_count_the_end_of_the_turn() -> None:
    assert model("static").attend([["Hello.", "Tea"]], ["Yes."])[0].tokens.tolist() == [3, 2]


def test_an_utterance_that_is_cut_away_has_no_tokens_and_no_share() -> None:
    asked = model("non-hier", context_tokens=4)
    found = asked.attend([["Hello.", "Salt?", "Tea"]], ["Yes."])[0]
    assert found.tokens.tolist() == [0, 2, 2]  # of "Salt?" only the sign and the end of the turn are left
    assert np.exp(found.log_share[0, 0, 0]) == 0
    assert np.exp(found.log_share).sum() == pytest.approx(1)


def test_the_shares_of_token_attention_are_means_over_the_responses_own_steps() -> None:
    asked = model("non-hier")
    _, log, utterance = asked.network.observe(collate([WORDS.encode(CONTEXTS[2])], WORDS.encode(RESPONSES[2:])))
    shares = log[0, 0, 0].exp()  # (steps, places)
    expected = [shares[:, utterance[0] == k].sum(1).mean().item() for k in range(4)]
    found = asked.attend(CONTEXTS, RESPONSES)[2]
    np.testing.assert_allclose(np.exp(found.log_share[0, 0]), expected, atol=1e-5)


def test_a_model_without_attention_says_so() -> None:
    with pytest.raises(UsageError, match="has no attention"):
        model("lstm").attend(CONTEXTS, RESPONSES)


def test_a_missing_response_is_refused() -> None:
    with pytest.raises(UsageError, match="response to each of 3 contexts, found 2"):
        model("lstm").log_likelihood(CONTEXTS, RESPONSES[:2])


def test_no_contexts_give_nothing() -> None:
    asked = model("lstm")
    assert asked.encode([]).shape == (0, 8) and asked.generate([]) == [] and asked.log_likelihood([], []) == []


def test_asking_leaves_a_training_network_in_training() -> None:
    asked = model("static", dropout=0.5)
    asked.network.train()
    first, again = asked.encode(CONTEXTS), asked.encode(CONTEXTS)
    assert asked.network.training and np.array_equal(first, again)


def test_the_name_changes_with_the_weights() -> None:
    first, other = model("static"), model("static")
    assert first.name == other.name and first.name.startswith("static@")
    changed = model("static")
    with torch.no_grad():
        changed.network.out.bias[0] += 1
    assert changed.name != first.name
