from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.corpus.turns import Said
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.conversation import Passage, conversation
from dialoscope.model.huggingface.tokens import NOBODY, Reader, Tokens

Load = Callable[..., HuggingFaceModel]
MARKUP = st.sampled_from(
    ["<|im_end|>", "<|im_start|>", "<s>", "</s>", "<pad>", "<|im_", "end|>", " ", "\n", "user\n", "é", "🙂"]
)
UTTERANCES = st.lists(st.one_of(st.text(max_size=8), st.lists(MARKUP, max_size=4).map("".join)), min_size=1, max_size=4)
WORDS = st.lists(st.text(alphabet="abc dé🙂\n'?.", max_size=10), min_size=1, max_size=4)
FEW = settings(max_examples=60)


def read(model: HuggingFaceModel, context: list[str], response: str | None = None) -> Tokens:
    passage = model.sampler.conversation.passage(context, response)
    return model.sampler.reader.read([passage])[0]


def decoded(model: HuggingFaceModel, tokens: Tokens, utterance: int) -> str:
    ids = [index for index, owner in zip(tokens.ids, tokens.owner, strict=True) if owner == utterance]
    return str(model.sampler.reader.tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def control_tokens(model: HuggingFaceModel, tokens: Tokens) -> list[int]:
    """Those written, less the one that stands for any unknown word."""
    reader = model.sampler.reader
    return [index for index in tokens.ids if index in reader.control and index != reader.tokenizer.unk_token_id]


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5"])
def test_the_tokens_of_a_span_are_the_utterance(model: Load, name: str) -> None:
    loaded = model(name)

    @FEW
    @given(UTTERANCES)
    def check(context: list[str]) -> None:
        encodable = [turn.encode("utf-8", "ignore").decode() for turn in context]
        tokens = read(loaded, encodable)
        assert [decoded(loaded, tokens, k) for k in range(len(context))] == [turn.strip() for turn in encodable]

    check()


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart", "bert"])
def test_no_utterance_can_write_a_control_token(model: Load, name: str) -> None:
    loaded = model(name)
    names = [token.content for token in loaded.sampler.reader.tokenizer.added_tokens_decoder.values() if token.special]
    contexts = [[f"a {token}b", f"{token}", f"{token}{token} c"] for token in names[:5]]
    harmless = control_tokens(loaded, read(loaded, ["a", "b", "c"]))
    for context in contexts:
        assert control_tokens(loaded, read(loaded, context)) == harmless


def test_what_an_injected_token_says_is_still_read(model: Load) -> None:
    for name in ("llama", "gpt2", "t5"):
        tokens = read(model(name), ["hello <|im_end|> you", "a</s>"])
        assert decoded(model(name), tokens, 0) == "hello <|im_end|> you"
        assert decoded(model(name), tokens, 1) == "a</s>"


def test_a_response_cannot_write_a_control_token(model: Load) -> None:
    loaded = model("llama")
    tokens = read(loaded, ["a"], "b<|im_end|>")
    assert control_tokens(loaded, tokens) == control_tokens(loaded, read(loaded, ["a"], "b"))
    assert decoded(loaded, tokens, 1) == "b<|im_end|>"


def test_template_and_utterance_cannot_write_a_control_token_together(model: Load) -> None:
    loaded = model("llama")
    passage = Passage("say <|im_end|> now", ((10, 14),))  # the template says "say <|im_e", an utterance "nd|>"
    tokens = loaded.sampler.reader.read([passage])[0]
    assert not control_tokens(loaded, tokens)
    assert decoded(loaded, tokens, 0) == "nd|>"


@FEW
@given(WORDS)
def test_ordinary_turns_are_read_as_the_tokenizer_reads_its_own_chat(model: Load, context: list[str]) -> None:
    loaded = model("llama")
    roles = ["user", "assistant"]
    messages = [{"role": roles[(len(context) - 1 - k) % 2], "content": turn} for k, turn in enumerate(context)]
    own = loaded.sampler.reader.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert read(loaded, context).ids == own


STRICT = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('in turns') }}"
    "{% endif %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@FEW
@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant", "ann"]), st.text("ab é", max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_turns_keep_their_own_tokens_whatever_roles_and_merging(model: Load, turns: list[tuple[str, str]]) -> None:
    tokenizer: Any = deepcopy(model("llama").sampler.reader.tokenizer)
    tokenizer.chat_template = STRICT
    joined = conversation(tokenizer, joining="chat", separator="auto", kind="causal")
    context = [Said(text, speaker) for speaker, text in turns]
    tokens = Reader(tokenizer).read([joined.passage(context, Said("fine", "assistant"))])[0]
    own = [decoded(model("llama"), tokens, k) for k in range(len(context) + 1)]
    assert [each.strip() for each in own] == [*(turn.strip() for turn in context), "fine"]


def test_unknown_words_belong_to_their_utterance(model: Load) -> None:
    loaded = model("bert")
    tokens = read(loaded, ["hello 猫", "猫"])
    assert [decoded(loaded, tokens, k) for k in (0, 1)] == ["hello [UNK]", "[UNK]"]


def test_sentence_pieces_belong_to_their_utterance(model: Load) -> None:
    loaded = model("bart")
    tokens = read(loaded, ["where is it?", "near the bridge", "near the bridge"])
    assert [decoded(loaded, tokens, k) for k in range(3)] == ["where is it?", "near the bridge", "near the bridge"]


def test_words_added_to_a_vocabulary_are_words_and_template_words_are_control(model: Load) -> None:
    tokenizer: Any = deepcopy(model("gpt2").sampler.reader.tokenizer)
    tokenizer.chat_template = "<tool>{% for m in messages %}{{ m.content }}{% endfor %}"
    tokenizer.add_tokens(["<tool>", "kaffee", "  "])
    reader = Reader(tokenizer)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in ("<tool>", "kaffee", "  ")}
    tokens = reader.read([Passage("<tool>kaffee  <tool>", ((6, 20),))])[0]
    assert tokens.ids[:3] == [ids["<tool>"], ids["kaffee"], ids["  "]]
    assert tokens.owner[:3] == [NOBODY, 0, 0]
    assert ids["<tool>"] not in tokens.ids[1:]


def test_a_token_whose_whitespace_was_trimmed_from_its_offsets_keeps_its_utterance() -> None:
    found = Reader(tokenizer=type("T", (), {"unk_token_id": None, "chat_template": "", "added_tokens_decoder": {}})())
    passage = Passage("x: a  b", ((3, 7),))
    assert found._owners(passage, [5, 6, 7, 8, 9], [(0, 1), (1, 2), (3, 4), (5, 5), (6, 7)]) == [
        NOBODY,
        NOBODY,
        0,
        0,
        0,
    ]
