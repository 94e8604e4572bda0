"""A context as one text, with the place of every turn in it: by the tokenizer's chat template, or plainly joined.

A template is rendered once for each row of roles, with marks where the turns go; the turns themselves never pass
through it. So no turn can be taken for template text, repeat another's place, or set off a template's own rules.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, get_args

from dialoscope.corpus.turns import Said
from dialoscope.errors import UsageError, unknown_name

LOG = logging.getLogger(__name__)
Joining = Literal["auto", "chat", "plain"]
Separator = Literal["auto", "newline", "eos"]
Messages = list[tuple[str, tuple[int, ...]]]  # a role, and the turns that a message of it holds
OTHER = {"user": "assistant", "assistant": "user"}
JOINT = "\n"  # between turns that share a message
MARK = re.compile(r"(\n\t)?DIALOSCOPE-(\d+)-TURN(\t\n)?")  # whitespace around it shows whether a template trims


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
    layouts: dict[tuple[str, ...], Layout] = field(default_factory=dict, repr=False)  # of a chat, by roles
    warnings: set[str] = field(default_factory=set, repr=False)  # that were given: each is said once

    def passage(self, context: Sequence[str], response: str | None = None) -> Passage:
        """The text of a context up to where a model would write, or with a response written."""
        if not context:
            raise UsageError("A context needs at least one turn, found none.")
        layout = self.layout(roles_of(context, response))
        words = [*context] if response is None else [*context, response]
        around = layout.before if response is None else (*layout.before, layout.prompt + layout.glue)
        text, spans = "", []
        for before, word, is_trimmed in zip(around, words, layout.trimmed, strict=False):
            said = word.strip() if is_trimmed else word
            start = len(text) + len(before)
            text += before + said
            spans.append((start, start + len(said)))
        return Passage(text + (layout.prompt if response is None else ""), tuple(spans))

    def layout(self, roles: tuple[str, ...]) -> Layout:
        """The text around turns of these roles; a template is rendered once for each row of them."""
        if not self.is_chat:
            return self._plain(len(roles))
        if roles not in self.layouts:
            self.layouts[roles] = self._chat(roles)
        return self.layouts[roles]

    def _plain(self, turns: int) -> Layout:
        before = ("", *[self.separator] * (turns - 1))
        prompt = self.separator if self.ends_source else ""
        return Layout(before, prompt, "", self.separator, (True,) * (turns + 1))

    def _chat(self, roles: tuple[str, ...]) -> Layout:
        """By the first way of writing the roles that the template accepts; another than their own is said."""
        refusals = []
        for way, warning in _ways(roles):
            try:
                layout = _rendered(self.tokenizer, way)
            except UsageError as error:
                refusals.append(error)
                continue
            if warning and warning not in self.warnings:
                self.warnings.add(warning)
                LOG.warning("%s %s", warning, refusals[0])
            return layout
        raise refusals[0]


def conversation(tokenizer: Any, *, joining: Joining, separator: Separator, kind: str) -> Conversation:
    """Choose the joining: a chat template where the tokenizer has one, else newlines (encoders: their end token)."""
    for kind_of_name, name, names in (("joining", joining, Joining), ("separator", separator, Separator)):
        if name not in get_args(names):
            raise unknown_name(kind_of_name, name, get_args(names))
    if joining == "chat" and not tokenizer.chat_template:
        raise UsageError("joining='chat' needs a tokenizer with a chat template; this one has none: use 'plain'.")
    is_chat = joining == "chat" or (joining == "auto" and bool(tokenizer.chat_template))
    mark = tokenizer.eos_token if kind != "encoder" else tokenizer.sep_token or tokenizer.eos_token
    if separator == "eos" and not mark:
        raise UsageError("separator='eos' needs a tokenizer with an end token; this one has none: use 'newline'.")
    wants_mark = separator == "eos" or (separator == "auto" and kind != "causal")
    joint = mark if wants_mark and mark else "\n"
    return Conversation(tokenizer, is_chat, joint, ends_source=kind == "causal")


def roles_of(context: Sequence[str], response: str | None = None) -> tuple[str, ...]:
    """The role of each turn for a model that writes as the assistant.

    Where it is the user's turn to answer, the model takes the user's part, and the two roles change places. Speakers
    who have no role get one: whoever answers is the assistant. A turn without a speaker either, as plain strings are,
    takes the other role than the turn after it.
    """
    own, answers = [_role(turn) or _part(turn, context[-1], response) for turn in context], _role(response)
    if answers == "user" or (not answers and own[-1] == "assistant"):
        own = [OTHER.get(role, role) for role in own]
    roles, following = [], "assistant"
    for role in reversed(own):
        roles.append(role or OTHER[following])
        following = roles[-1] if roles[-1] in OTHER else following
    return tuple(reversed(roles))


def _part(turn: str, query: str, response: str | None) -> str:
    """The role that a speaker without one takes, by who answers, or else by who asked; none where nobody is named."""
    speaker, asks, answers = (getattr(one, "speaker", "") for one in (turn, query, response))
    if not speaker or _role(query) or _role(response) or not (asks or answers):
        return ""
    is_answering = speaker == answers if answers else speaker != asks
    return "assistant" if is_answering else "user"


def _role(turn: str | None) -> str:
    return turn.role if isinstance(turn, Said) else ""


def _ways(roles: tuple[str, ...]) -> Iterator[tuple[Messages, str]]:
    """Ways of writing a conversation, the truest first, with what has to be said where one is taken."""
    own: Messages = [(role, (turn,)) for turn, role in enumerate(roles)]
    without_system: Messages = [("user" if role == "system" else role, turns) for role, turns in own]
    alternating: Messages = [(role, (turn,)) for turn, role in enumerate(roles_of([""] * len(roles)))]
    tried: list[Messages] = []
    for way, warning in (
        (own, ""),
        (_merged(own), "Consecutive turns of one role are given to the chat template as one message."),
        (_merged(without_system), "A system turn is given to the chat template as the user's."),
        (alternating, "Roles are not given to the chat template: turns alternate between user and assistant."),
    ):
        for each in (way, _opened(way)):
            if each not in tried:
                tried.append(each)
                yield each, warning


def _merged(messages: Messages) -> Messages:
    """Consecutive messages of one role as one."""
    groups = ((role, list(group)) for role, group in groupby(messages, key=lambda message: message[0]))
    return [(role, tuple(turn for _, turns in group for turn in turns)) for role, group in groups]


def _opened(messages: Messages) -> Messages:
    """Some templates insist that the user speaks first: then an empty turn of the user's opens the conversation."""
    place = int(messages[0][0] == "system")
    follows = messages[place][0] if place < len(messages) else "assistant"
    return [*messages[:place], ("user", ()), *messages[place:]] if follows == "assistant" else messages


def _rendered(tokenizer: Any, messages: Messages) -> Layout:
    turns = sum(len(some) for _, some in messages)
    prompt, _ = _render(tokenizer, messages, is_answered=False)
    whole, trimmed = _render(tokenizer, [*messages, ("assistant", (turns,))], is_answered=True)
    # A template may open its generation prompt otherwise than it prints an answer ("<think>"): then what a model
    # sees when it writes is what counts.
    glue = whole[-2].removeprefix(prompt[-1]) if whole[-2].startswith(prompt[-1]) else ""
    return Layout(tuple(prompt[:-1]), prompt[-1], glue, whole[-1], trimmed)


def _render(tokenizer: Any, messages: Messages, *, is_answered: bool) -> tuple[list[str], tuple[bool, ...]]:
    """The template's text between the marks, and which turns it trims."""
    marked = [
        {"role": role, "content": JOINT.join(f"\n\tDIALOSCOPE-{k}-TURN\t\n" for k in some)} for role, some in messages
    ]
    text = _template(tokenizer, marked, is_answered=is_answered)
    found = list(MARK.finditer(text))
    if [int(mark[2]) for mark in found] != [turn for _, some in messages for turn in some]:
        raise UsageError("The chat template does not print every turn once and in order: use joining='plain'.")
    edges = [0, *[edge for mark in found for edge in mark.span()], len(text)]
    pieces = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return pieces, tuple(not (mark[1] and mark[3]) for mark in found)


def _template(tokenizer: Any, messages: list[dict[str, str]], *, is_answered: bool) -> str:
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=not is_answered))
    except Exception as error:  # a template is a program of the checkpoint's: it can go wrong in any way
        line = str(error).partition("\n")[0]
        raise UsageError(f"The chat template cannot write this conversation ({line}): use joining='plain'.") from error
