from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from dialoscope.corpus.turns import Said
from dialoscope.errors import UsageError
from dialoscope.model.huggingface.conversation import Conversation, Passage, conversation, roles_of

LOOP = "{% for m in messages %}{{ m.role }}:BODY;{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
TEMPLATES = {
    "plain body": LOOP.replace("BODY", "{{ m.content }}"),
    "trims": LOOP.replace("BODY", "{{ m.content | trim }}"),
    "repeats": LOOP.replace("BODY", "{{ m.content }}{{ m.content }}"),
    "drops": LOOP.replace("BODY", "{% if loop.last %}{{ m.content }}{% endif %}"),
    "user first": "{% if messages[0].role != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}"
    + LOOP.replace("BODY", "{{ m.content }}"),
    "refuses": "{{ raise_exception('never') }}",
    "divides by zero": "{{ 1 / 0 }}",
    # As Mistral's: a system message may come first, then user and assistant take turns.
    "alternates": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if not (loop.first and m.role == 'system') %}"
    "{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}" + LOOP.replace("BODY", "{{ m.content | trim }}"),
    # As Gemma's.
    "no system": "{% for m in messages %}{% if m.role == 'system' or (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('no system, and in turns') }}{% endif %}{% endfor %}" + LOOP.replace("BODY", "{{ m.content }}"),
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


def S(text: str) -> Said:
    return Said(text, "system")


def U(text: str) -> Said:
    return Said(text, "user")


def A(text: str) -> Said:
    return Said(text, "assistant")


def test_roles_of_the_speakers_reach_the_template() -> None:
    context = [S("be kind"), U("a"), U("b"), A("c"), Said("d", "USER")]
    passage = chat("plain body").passage(context, A("e"))
    assert passage.text == "system:be kind;user:a;user:b;assistant:c;user:d;assistant:e"
    assert utterances(passage) == ["be kind", "a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("context", "response", "roles"),
    [
        (
            [S("s"), U("a"), "x", A("b"), U("c")],
            A("d"),
            "system user user assistant user",
        ),  # a distraction before an answer
        ([U("a"), A("b"), "x", U("c")], A("d"), "user assistant assistant user"),
        (["x", "y", S("s"), U("a")], None, "user assistant system user"),
        ([Said("a", "ann"), Said("b", "bob"), Said("c", "ann")], Said("d", "bob"), "user assistant user"),
        (
            [Said("a", "ann"), Said("b", "bob"), "x", Said("c", "ann")],
            Said("d", "bob"),
            "user assistant assistant user",
        ),  # a distraction does not make two people change places
        ([Said("a", "bob"), "x", Said("c", "ann")], None, "assistant assistant user"),
        ([Said("a", "user"), A("call"), Said("found", "tool")], A("b"), "user assistant user"),
        ([S("s"), U("a"), A("b")], U("c"), "system assistant user"),  # the model takes the user's part
        ([S("s"), U("a"), A("b")], None, "system assistant user"),
        ([U("a"), A("b")], A("c"), "user assistant"),  # the assistant goes on
    ],
)
def test_a_turn_without_a_role_takes_the_other_one_than_the_turn_after_it(
    context: list[str], response: str | None, roles: str
) -> None:
    assert " ".join(roles_of(context, response)) == roles


@pytest.mark.parametrize(
    ("template", "context", "expected", "warning"),
    [
        ("alternates", [S("s"), U("a"), A("b"), U("c")], "system:s;user:a;assistant:b;user:c;", ""),
        ("alternates", [U(" a "), "a", U("b"), A("c"), U("d")], "", ""),
        ("alternates", [S("s"), U(" a "), U("a"), A("c"), U("d")], "system:s;user:a\na;assistant:c;user:d;", "as one"),
        ("alternates", [S("s")], "system:s;user:;", ""),
        ("alternates", [A("a"), A("b"), U("c")], "user:;assistant:a\nb;user:c;", "as one message"),
        ("alternates", [U("a"), S("s"), A("b"), U("c")], "user:a\ns;assistant:b;user:c;", "as the user's"),
        (
            "alternates",
            [U("a"), A("b"), S("s"), A("c"), U("d")],
            "user:a;assistant:b;user:s;assistant:c;user:d;",
            "as the",
        ),
        ("no system", [S("s"), U("a"), A("b"), U("c")], "user:s\na;assistant:b;user:c;", "as the user's"),
    ],
)
def test_what_a_template_refuses_is_written_the_nearest_way(
    template: str, context: list[str], expected: str, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    joined = chat(template)
    with caplog.at_level(logging.WARNING):
        passages = [joined.passage(context, A("e")) for _ in range(2)]
        joined.passage([*context, A("x"), U("y")], A("z"))
    assert passages[0].text == f"{expected or 'user:a;assistant:a;user:b;assistant:c;user:d;'}assistant:e"
    assert utterances(passages[0]) == [*(turn.strip() for turn in context), "e"]
    assert len(caplog.messages) == bool(warning)  # said once
    assert warning in caplog.text


def test_roles_that_no_merging_can_save_alternate(caplog: pytest.LogCaptureFixture) -> None:
    passage = chat("alternates").passage([U("a"), A("b")], A("c"))  # what the assistant goes on with stands alone
    assert passage.text == "user:;assistant:a;user:b;assistant:c"
    assert utterances(passage) == ["a", "b", "c"]
    assert "turns alternate between user and assistant. The chat template cannot write this" in caplog.text


@pytest.mark.parametrize("template", ["repeats", "drops", "refuses", "divides by zero"])
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joining": "chatty", "separator": "auto"}, "Unknown joining 'chatty'. Did you mean 'chat'"),
        ({"joining": "plain", "separator": "newlines"}, "Unknown separator 'newlines'. Did you mean 'newline'"),
    ],
)
def test_an_unknown_joining_gets_a_suggestion(options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        conversation(tokenizer(), kind="causal", **options)


def test_a_context_without_turns_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        chat("plain body").passage([])
