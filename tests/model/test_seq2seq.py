from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.samples import network, tiny

from dialoscope.errors import UsageError
from dialoscope.model import seq2seq
from dialoscope.model.batch import Batch
from dialoscope.model.batching import Shapes, collate
from dialoscope.model.presets import PRESETS
from dialoscope.model.protocol import Account, Decoding, DialogueModel
from dialoscope.model.seq2seq import Seq2SeqModel
from dialoscope.model.vocabulary import Vocabulary

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


@pytest.mark.parametrize("name", PRESETS)
def test_the_few_shapes_of_a_gpu_change_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, decoding = model(name), Decoding(max_tokens=4)
    has_attention = asked.network.settings.attention != "none"
    plain = (
        asked.encode(CONTEXTS),
        asked.log_likelihood(CONTEXTS, RESPONSES),
        asked.generate(CONTEXTS, decoding=decoding),
    )
    attention = asked.attend(CONTEXTS, RESPONSES) if has_attention else []
    sizes: list[tuple[int, int, int]] = []

    def padded(*given: Any, shapes: Shapes | None, **named: Any) -> Batch:
        made = collate(*given, shapes=shapes, **named)
        sizes.append((*made.context.shape, made.response.shape[1]))
        return made

    monkeypatch.setattr(seq2seq, "shapes_for", lambda device: Shapes())
    monkeypatch.setattr(seq2seq, "collate", padded)
    np.testing.assert_allclose(asked.encode(CONTEXTS), plain[0], atol=1e-5)
    for found, expected in zip(asked.log_likelihood(CONTEXTS, RESPONSES), plain[1], strict=True):
        assert found.total == pytest.approx(expected.total, abs=1e-4) and found.tokens == expected.tokens
    assert asked.generate(CONTEXTS, decoding=decoding) == plain[2]
    for found_, expected_ in zip(asked.attend(CONTEXTS, RESPONSES) if has_attention else [], attention, strict=True):
        np.testing.assert_allclose(np.exp(found_.log_share), np.exp(expected_.log_share), atol=1e-5)
        assert found_.tokens.tolist() == expected_.tokens.tolist()
    assert {size[1:] for size in sizes} == {(32, 17)}  # one shape where there were as many as batches


@pytest.mark.parametrize(("batch_size", "expected"), [(8, [8]), (16, [8]), (6, [6]), (4, [4, 1]), (2, [2, 2, 1])])
def test_batches_are_filled_up_to_powers_of_two_on_a_gpu(
    batch_size: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = model("static-ui")
    contexts, responses = [*CONTEXTS, *CONTEXTS[:2]], [*RESPONSES, "Yes.", "Salt?"]
    plain = asked.log_likelihood(contexts, responses)
    account, asked.account, asked.batch_size = asked.account, Account(), batch_size
    sizes: list[int] = []

    def counted(*given: Any, **named: Any) -> Batch:
        made = collate(*given, **named)
        sizes.append(len(made.context))
        assert made.response_length.tolist().count(1) <= 1  # only one response is empty: what fills up is whole
        return made

    monkeypatch.setattr(seq2seq, "shapes_for", lambda device: Shapes())
    monkeypatch.setattr(seq2seq, "collate", counted)
    found = asked.log_likelihood(contexts, responses)
    assert [one.total for one in found] == pytest.approx([one.total for one in plain], abs=1e-4)
    assert sizes == expected and asked.account == account


def test_what_was_cut_and_what_was_unknown_is_counted() -> None:
    asked = model("non-hier", context_tokens=4)
    contexts = [["Hello.", "Salt?", "Tea"], ["Tea"], ["Rice and salt please"]]  # 8, 2 and 5 tokens with their ends
    asked.log_likelihood(contexts, ["Yes.", "Good submarine!", ""])
    assert asked.account == Account(contexts=2, turns=1, unknown=1, words=5)  # one loses a turn, the other two words
    asked.read(contexts[:1], ["A yellow submarine"])
    assert asked.account == Account(contexts=3, turns=2, unknown=3, words=8)


def test_turns_that_are_not_read_are_told() -> None:
    contexts = [["Hello.", "Salt?", "Tea"], ["Tea"], ["Hello.", "Tea", "Salt?", "Tea"]]  # 3, 3, 2; 2; 3, 2, 3, 2 tokens
    for limit, expected in ((4, [1, 0, 2]), (2, [2, 0, 3]), (6, [0, 0, 1]), (None, [0, 0, 0])):
        asked = model("non-hier", context_tokens=limit)
        assert asked.unread_turns(contexts, ["Yes."] * 3) == expected
        assert [int((one.tokens == 0).sum()) for one in asked.attend(contexts, ["Yes."] * 3)] == expected


def test_all_of_a_context_is_read_where_there_is_no_limit() -> None:
    asked = model("static")
    asked.log_likelihood(CONTEXTS, RESPONSES)
    assert asked.account == Account(contexts=0, turns=0, unknown=0, words=16)


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
