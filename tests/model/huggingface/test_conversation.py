from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from turnwise.errors import UsageError
from turnwise.model.huggingface.conversation import Conversation, Passage, conversation

LOOP = "{% for m in messages %}{{ m.role }}:BODY;{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
TEMPLATES = {
    "plain body": LOOP.replace("BODY", "{{ m.content }}"),
    "trims": LOOP.replace("BODY", "{{ m.content | trim }}"),
    "repeats": LOOP.replace("BODY", "{{ m.content }}{{ m.content }}"),
    "drops": LOOP.replace("BODY", "{% if loop.last %}{{ m.content }}{% endif %}"),
    "user first": "{% if messages[0].role != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}"
    + LOOP.replace("BODY", "{{ m.content }}"),
    "refuses": "{{ raise_exception('never') }}",
    "spaced answer": "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}",
    "thinks": LOOP.replace("BODY", "{{ m.content }}").replace("assistant:", "assistant:<think>"),
}


def chat(template: str) -> Conversation:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    made: Any = PreTrainedTokenizerFast
    tokenizer = made(tokenizer_object=Tokenizer(models.BPE()), chat_template=TEMPLATES[template])
    return conversation(tokenizer, joining="auto", separator="auto", kind="causal")


def utterances(passage: Passage) -> list[str]:
    return [passage.text[start:end] for start, end in passage.spans]


def test_the_last_turn_is_always_the_users() -> None:
    found = [chat("plain body").passage(["a", "b", "c"][:turns]).text for turns in (1, 2, 3)]
    assert found == ["user:a;assistant:", "assistant:a;user:b;assistant:", "user:a;assistant:b;user:c;assistant:"]


def test_a_response_stands_where_the_template_prints_an_answer() -> None:
    passage = chat("plain body").passage(["a"], "b")
    assert (passage.text, utterances(passage)) == ("user:a;assistant:b", ["a", "b"])


def test_spans_find_turns_that_repeat_each_other_and_the_template() -> None:
    passage = chat("plain body").passage(["user:", "", "user:", "assistant"])
    assert utterances(passage) == ["user:", "", "user:", "assistant"]
    assert passage.text == "assistant:user:;user:;assistant:user:;user:assistant;assistant:"


@pytest.mark.parametrize(("template", "expected"), [("plain body", "  a "), ("trims", "a")])
def test_outer_whitespace_is_dropped_where_the_template_drops_it(template: str, expected: str) -> None:
    assert utterances(chat(template).passage(["  a "])) == [expected]


def test_a_template_that_wants_the_user_first_gets_an_empty_turn() -> None:
    passage = chat("user first").passage(["a", "b"])
    assert (passage.text, utterances(passage)) == ("user:;assistant:a;user:b;assistant:", ["a", "b"])


def test_what_a_template_writes_before_an_answer_is_not_part_of_it() -> None:
    passage = chat("spaced answer").passage(["a"], "b")
    assert (passage.text, utterances(passage)) == ("[user] a [assistant] b", ["a", "b"])


def test_a_prompt_that_opens_otherwise_than_answers_are_printed_is_kept() -> None:
    assert chat("thinks").passage(["a"], "b").text == "user:a;assistant:<think>b"


@pytest.mark.parametrize("template", ["repeats", "drops", "refuses"])
def test_a_template_that_does_not_print_every_turn_once_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="use joining='plain'"):
        chat(template).passage(["a", "b", "c"])


def tokenizer(**names: Any) -> Any:
    return SimpleNamespace(**{"chat_template": None, "eos_token": None, "sep_token": None, **names})


@pytest.mark.parametrize(
    ("kind", "separator", "names", "expected"),
    [
        ("causal", "auto", {"eos_token": "</s>"}, "a\nb\n"),
        ("causal", "eos", {"eos_token": "</s>"}, "a</s>b</s>"),
        ("encoder-decoder", "auto", {"eos_token": "</s>"}, "a</s>b"),
        ("encoder-decoder", "newline", {"eos_token": "</s>"}, "a\nb"),
        ("encoder", "auto", {"sep_token": "[SEP]"}, "a[SEP]b"),
        ("encoder", "auto", {}, "a\nb"),
    ],
)
def test_plain_joining_puts_a_separator_between_turns(
    kind: str, separator: Any, names: dict[str, str], expected: str
) -> None:
    joined = conversation(tokenizer(**names), joining="plain", separator=separator, kind=kind)
    assert joined.passage([" a ", "b"]).text == expected


@pytest.mark.parametrize(
    "options", [{"joining": "chat", "separator": "auto"}, {"joining": "plain", "separator": "eos"}]
)
def test_what_the_tokenizer_lacks_is_said(options: Any) -> None:
    with pytest.raises(UsageError, match="this one has none"):
        conversation(tokenizer(), kind="causal", **options)


def test_a_context_without_turns_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        chat("plain body").passage([])
