"""A context as one text, with the place of every turn in it: by the tokenizer's chat template, or plainly joined.

A template is rendered once for each number of turns, with marks where the turns go; the turns themselves never pass
through it. So no turn can be taken for template text, repeat another's place, or set off a template's own rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from turnwise.errors import UsageError

Joining = Literal["auto", "chat", "plain"]
Separator = Literal["auto", "newline", "eos"]
MARK = re.compile(r"(\n\t)?TURNWISE-(\d+)-TURN(\t\n)?")  # whitespace around it shows whether a template trims


@dataclass(frozen=True)
class Layout:
    """What is written around the turns of a context, and around the response after them."""

    before: tuple[str, ...]  # before each turn
    prompt: str  # after the last turn, up to where a model begins to write
    glue: str  # what a template writes between the prompt and a response's own words
    end: str  # after the response
    trimmed: tuple[bool, ...]  # of each turn and the response: is outer whitespace dropped?


@dataclass(frozen=True)
class Passage:
    """A text and the places of its utterances: the turns of a context, then perhaps a response."""

    text: str
    spans: tuple[tuple[int, int], ...]  # start and end of each utterance, in characters


@dataclass(frozen=True, eq=False)
class Conversation:
    """How contexts become text for one tokenizer."""

    tokenizer: Any
    is_chat: bool
    separator: str  # plain joining only
    ends_source: bool  # plain joining: does the separator also follow the last turn? Not for an encoder
    layouts: dict[int, Layout] = field(default_factory=dict, repr=False)

    def passage(self, context: Sequence[str], response: str | None = None) -> Passage:
        """The text of a context up to where a model would write, or with a response written."""
        layout = self.layout(len(context))
        words = [*context] if response is None else [*context, response]
        around = layout.before if response is None else (*layout.before, layout.prompt + layout.glue)
        text, spans = "", []
        for before, word, is_trimmed in zip(around, words, layout.trimmed, strict=False):
            said = word.strip() if is_trimmed else word
            start = len(text) + len(before)
            text += before + said
            spans.append((start, start + len(said)))
        return Passage(text + (layout.prompt if response is None else ""), tuple(spans))

    def layout(self, turns: int) -> Layout:
        """The text around so many turns; a template is rendered once for each number."""
        if turns < 1:
            raise UsageError("A context needs at least one turn, found none.")
        if turns not in self.layouts:
            self.layouts[turns] = self._chat(turns) if self.is_chat else self._plain(turns)
        return self.layouts[turns]

    def _plain(self, turns: int) -> Layout:
        before = ("", *[self.separator] * (turns - 1))
        prompt = self.separator if self.ends_source else ""
        return Layout(before, prompt, "", self.separator, (True,) * (turns + 1))

    def _chat(self, turns: int) -> Layout:
        prompt, _ = _render(self.tokenizer, turns, is_answered=False)
        whole, trimmed = _render(self.tokenizer, turns, is_answered=True)
        # A template may open its generation prompt otherwise than it prints an answer ("<think>"): then what a model
        # sees when it writes is what counts.
        glue = whole[-2].removeprefix(prompt[-1]) if whole[-2].startswith(prompt[-1]) else ""
        return Layout(tuple(prompt[:-1]), prompt[-1], glue, whole[-1], trimmed)


def conversation(tokenizer: Any, *, joining: Joining, separator: Separator, kind: str) -> Conversation:
    """Choose the joining: a chat template where the tokenizer has one, else newlines (encoders: their end token)."""
    if joining == "chat" and not tokenizer.chat_template:
        raise UsageError("joining='chat' needs a tokenizer with a chat template; this one has none: use 'plain'.")
    is_chat = joining == "chat" or (joining == "auto" and bool(tokenizer.chat_template))
    mark = tokenizer.eos_token if kind != "encoder" else tokenizer.sep_token or tokenizer.eos_token
    if separator == "eos" and not mark:
        raise UsageError("separator='eos' needs a tokenizer with an end token; this one has none: use 'newline'.")
    wants_mark = separator == "eos" or (separator == "auto" and kind != "causal")
    joint = mark if wants_mark and mark else "\n"
    return Conversation(tokenizer, is_chat, joint, ends_source=kind == "causal")


def _render(tokenizer: Any, turns: int, *, is_answered: bool) -> tuple[list[str], tuple[bool, ...]]:
    """The template's text between the marks, and which turns it trims."""
    messages = _messages(turns, is_answered=is_answered)
    try:
        text = _template(tokenizer, messages, is_answered=is_answered)
    except UsageError:
        # Some templates insist that the user speaks first: then an empty turn of the user's opens the conversation.
        if messages[0]["role"] == "user":
            raise
        text = _template(tokenizer, [{"role": "user", "content": ""}, *messages], is_answered=is_answered)
    found = list(MARK.finditer(text))
    if [int(mark[2]) for mark in found] != list(range(len(messages))):
        raise UsageError("The chat template does not print every turn once and in order: use joining='plain'.")
    edges = [0, *[edge for mark in found for edge in mark.span()], len(text)]
    pieces = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return pieces, tuple(not (mark[1] and mark[3]) for mark in found)


def _messages(turns: int, *, is_answered: bool) -> list[dict[str, str]]:
    """Marked turns whose roles alternate so that the last turn of the context is the user's."""
    roles = ["user" if (turns - k) % 2 else "assistant" for k in range(turns + is_answered)]
    return [{"role": role, "content": f"\n\tTURNWISE-{k}-TURN\t\n"} for k, role in enumerate(roles)]


def _template(tokenizer: Any, messages: list[dict[str, str]], *, is_answered: bool) -> str:
    import jinja2

    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=not is_answered))
    except (jinja2.TemplateError, ValueError, TypeError, KeyError) as error:
        line = str(error).partition("\n")[0]
        raise UsageError(f"The chat template cannot write this conversation ({line}): use joining='plain'.") from error
