from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Decoding, TooLong

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
        loaded.log_likelihood([["aa", "bb", "cc", "dd", "ee"]], ["ff"])
    assert (loaded.account.contexts, loaded.account.turns) == (2, 4)
    said = "gpt2 reads 13 tokens: longer contexts lose their oldest turns, such as 1 of the first 2."
    assert caplog.text.count(said) == caplog.text.count("gpt2 reads") == 1


def test_generation_leaves_room_to_write(model: Load) -> None:
    sample = model("gpt2", window=12).sampler.prompts([["aa", "bb", "cc"]], room=5)[0]
    assert (sample.cut, len(sample.source)) == (1, 6)


@pytest.mark.parametrize(
    ("name", "window", "context", "room", "size"),
    [
        ("gpt2", 12, ["aa", "bb", "cc"], 3, 9),  # three times two letters and a newline, and three to write
        ("gpt2", 9, ["aa", "bb", "cc"], 0, 9),
        ("bert", None, [" ".join(["hello"] * 62)], 0, 64),  # [CLS], 62 words and [SEP], in a window of 64
        ("t5", 6, ["aaaaa"], 0, 6),  # and </s>
    ],
)
def test_a_context_that_fills_the_window_is_not_cut(
    model: Load, name: str, window: int | None, context: list[str], room: int, size: int
) -> None:
    sample = model(name, window=window).sampler.prompts([context], room=room)[0]
    assert (sample.cut, len(sample.source), sample.target) == (0, size, [])


def test_one_token_more_is_cut(model: Load) -> None:
    sample = model("gpt2", window=12).sampler.prompts([["aa", "bb", "cc"]], room=4)[0]
    assert (sample.cut, len(sample.source)) == (1, 6)


@pytest.mark.parametrize(
    ("name", "window", "context", "response", "message"),
    [
        (
            "gpt2",
            12,
            ["aa", "b" * 20],
            "ee",
            r"A Query of 20 tokens needs 24 with the response .* window of 12: shorten",
        ),
        (
            "gpt2",
            12,
            ["aa", "bb"],
            "e" * 30,
            r"A response of 31 tokens needs 34 with the Query .* window of 12: shorten",
        ),
        ("t5", 20, ["a"], "b" * 30, r"A response of 31 tokens is longer than the model's window of 20: shorten"),
        ("t5", 20, ["a" * 30], "b", r"A Query of 30 tokens needs 31 with what stands around .* window of 20: shorten"),
    ],
)
def test_a_query_and_a_response_are_never_cut(
    model: Load, name: str, window: int, context: list[str], response: str, message: str
) -> None:
    with pytest.raises(TooLong, match=message):
        one(model(name, window=window), context, response)


def test_every_sample_that_is_too_long_is_named_by_its_place(model: Load) -> None:
    with pytest.raises(TooLong, match="1 more of the samples are too long") as caught:
        model("gpt2", window=12).log_likelihood([["a"], ["b" * 20], ["c"]], ["d", "e", "f" * 20])
    assert caught.value.parts == {1: "Query", 2: "response"}


def test_room_to_write_is_part_of_what_a_query_needs(model: Load) -> None:
    with pytest.raises(TooLong, match="A Query of 9 tokens needs 14 with 4 to write and what stands around it"):
        model("gpt2", window=12).generate([["b" * 9]], decoding=Decoding(max_tokens=4))


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
