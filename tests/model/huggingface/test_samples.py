from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from turnwise.errors import UsageError
from turnwise.model.huggingface.adapter import HuggingFaceModel
from turnwise.model.huggingface.samples import Sample
from turnwise.model.protocol import Decoding

Load = Callable[..., HuggingFaceModel]


def text(model: HuggingFaceModel, ids: list[int]) -> str:
    return str(model.sampler.reader.tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def one(model: HuggingFaceModel, context: list[str], response: str) -> Sample:
    return model.sampler.pairs([context], [response])[0]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("gpt2", "hello\nyou\n", "fine\n"),
        (
            "llama",
            "<s><|im_start|>assistant\nhello<|im_end|>\n<|im_start|>user\nyou<|im_end|>\n<|im_start|>assistant\n",
            "fine<|im_end|>",
        ),
        ("t5", "hello</s>you</s>", "fine</s>"),
    ],
)
def test_context_response_and_end(model: Load, name: str, source: str, target: str) -> None:
    sample = one(model(name), ["hello", "you"], "fine")
    assert (text(model(name), sample.source), text(model(name), sample.target)) == (source, target)


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5"])
def test_an_empty_response_is_its_end(model: Load, name: str) -> None:
    assert one(model(name), ["hello"], " ").target == [model(name).sampler.end]


def test_the_oldest_turns_are_cut_until_the_rest_fits(model: Load) -> None:
    sample = one(model("gpt2", window=12), ["aa", "bb", "cc", "dd"], "ee")  # a turn has two tokens and a newline
    assert (sample.cut, text(model("gpt2"), sample.source)) == (1, "bb\ncc\ndd\n")
    assert sample.lengths() == [0, 2, 2, 2]


def test_what_was_cut_is_counted_and_said(model: Load, caplog: pytest.LogCaptureFixture) -> None:
    loaded = model("gpt2", window=13)
    with caplog.at_level(logging.WARNING):
        loaded.log_likelihood([["aa", "bb", "cc", "dd", "ee"], ["aa"]], ["ff", "ff"])
    assert (loaded.cut.contexts, loaded.cut.turns) == (1, 2)
    assert "gpt2 reads 13 tokens: 1 of 2 contexts lost their oldest turns, 2 in all." in caplog.text


def test_generation_leaves_room_to_write(model: Load) -> None:
    sample = model("gpt2", window=12).sampler.prompts([["aa", "bb", "cc"]], room=5)[0]
    assert (sample.cut, len(sample.source)) == (1, 6)


def test_a_query_is_never_cut(model: Load) -> None:
    with pytest.raises(UsageError, match=r"A Query of 20 tokens needs 24 .* window is 12"):
        one(model("gpt2", window=12), ["aa", "b" * 20], "ee")


def test_a_response_longer_than_a_decoders_window_is_refused(model: Load) -> None:
    with pytest.raises(UsageError, match="A response of 31 tokens"):
        one(model("t5", window=20), ["a"], "b" * 30)


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_more_tokens_than_a_window_holds_cannot_be_written(model: Load, name: str) -> None:
    with pytest.raises(UsageError, match="max_tokens=300 does not fit"):
        model(name).generate([["hi"]], decoding=Decoding(max_tokens=300))


@pytest.mark.parametrize(("name", "window"), [("gpt2", 128), ("llama", 256), ("bert", 64), ("t5", None)])
def test_the_window_is_the_checkpoints(model: Load, name: str, window: int | None) -> None:
    assert model(name).sampler.window == window


def test_every_context_needs_its_response(model: Load) -> None:
    with pytest.raises(UsageError, match="2 contexts, 1 responses"):
        model("gpt2").log_likelihood([["a"], ["b"]], ["c"])


def test_no_contexts_give_no_results(model: Load) -> None:
    loaded = model("gpt2")
    found = [*loaded.log_likelihood([], []), *loaded.attend([], []), *loaded.generate([], decoding=Decoding())]
    assert found == []
    assert loaded.encode([]).shape == (0, 32)
