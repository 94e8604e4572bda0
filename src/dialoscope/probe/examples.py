"""From dialogues to positions: every turn that is a response, and what the annotation says of it.

A position's context is everything before the response. Of an annotated corpus, only the system's responses are
positions, for states and acts are written for those; of any other, every turn from the second on is a response.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import is_
from typing import Any, NamedTuple

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.corpus.turns import NAMED, Said, said_by
from dialoscope.errors import UsageError

TOKEN = re.compile(r"\w+|[^\w\s]+")
SERVICE = re.compile(r"_\d+$")
ANNOTATIONS = ("state", "acts", "goal", "persona")


class Info(NamedTuple):
    """Something the user gave: the price range of a hotel, cheap."""

    domain: str
    slot: str
    value: str

    @property
    def name(self) -> str:
        """The slot with its domain."""
        return f"{self.domain}-{self.slot}"


State = frozenset[Info]


def domain_of(service: str) -> str:
    """What a service is about: SGD has several of a kind, `Hotels_2` and `Hotels_4`, some of them in one split only."""
    return SERVICE.sub("", service)


@dataclass(frozen=True)
class Position:
    """A context, and what its annotation says; what a corpus does not annotate is empty."""

    dialogue: str
    context: tuple[str, ...]
    state: State = frozenset()  # all that was given so far, s_t
    recent: State = frozenset()  # what the Query gave, d_t = s_t - s_{t-1}
    earlier: frozenset[str] = frozenset()  # slot names, without domains, given before the Query
    topics: frozenset[str] = frozenset()  # domains of the last information that was given
    goal: frozenset[str] = frozenset()  # domains of the whole dialogue
    acts: tuple[Mapping[str, Any], ...] = ()  # of the response
    persona: tuple[str, ...] = ()  # sentences of whoever answers; where there are none, of whoever asks


@dataclass(frozen=True, eq=False)
class Examples:
    """The positions of one split, and which annotations it has."""

    corpus: Corpus
    positions: Sequence[Position]
    annotations: frozenset[str]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def dialogues(self) -> list[str]:
        """The dialogue of each position."""
        return [position.dialogue for position in self.positions]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all contexts, their turns and who said them, whatever their annotation."""
        digest = hashlib.sha256()
        read = hashlib.sha256()
        before: tuple[str, ...] = ()
        for position in self.positions:
            # Contexts of one dialogue grow at their end: each turn is read once, or long dialogues take minutes.
            if len(position.context) < len(before) or not all(map(is_, before, position.context)):
                read, before = hashlib.sha256(), ()
            for turn in position.context[len(before) :]:
                read.update(f"{_who(turn)}\x1f{turn}\x1e".encode())
            digest.update(read.digest())
            before = position.context
        return digest.hexdigest()[:12]

    @cached_property
    def texts(self) -> list[str]:
        """A hash of each dialogue that has positions: all that was said in it, the last response included."""
        asked = set(self.dialogues)
        return [
            hashlib.sha256("\x1e".join(dialogue.texts).encode()).hexdigest()[:16]
            for dialogue in self.corpus
            if dialogue.id in asked
        ]

    def contexts(self, tokens: int | None) -> list[tuple[str, ...]]:
        """Contexts as models get them: their last so many tokens."""
        if tokens is not None and tokens < 1:
            raise UsageError(f"A context is cut to one token or more, found {tokens}; None keeps all of it.")
        if tokens is None:
            return [position.context for position in self.positions]
        return [last_tokens(position.context, tokens) for position in self.positions]


def examples(corpus: Corpus, *, split: str | None = None) -> Examples:
    """The positions of a corpus, or of one of its splits."""
    part = corpus if split is None else corpus.split(split)
    annotations = _annotations(part)
    is_response = said_by(part, "assistant") if annotations & {"state", "acts"} else None
    positions: list[Position] = []
    base = 0
    for dialogue in part:
        count = len(dialogue.turns)
        marks = None if is_response is None else is_response[base : base + count].tolist()
        positions += _positions(dialogue, marks)
        base += count
    if not positions:
        raise UsageError(f"{corpus.name}: expected {_wanting(part)}.")
    return Examples(part, positions, annotations)


def _wanting(corpus: Corpus) -> str:
    """What a corpus without a position lacks."""
    if (corpus.turns_per_dialogue < 2).all():
        return "dialogues of two turns or more to probe, found none"
    speakers = sorted(map(str, corpus.turn_column("speaker").unique().to_pylist()))
    named = ", ".join(speakers[:NAMED]) + (", …" if len(speakers) > NAMED else "")
    return f"answers by assistant or system, whose states and acts are annotated, found turns by {named} alone"


def _annotations(corpus: Corpus) -> frozenset[str]:
    """Which annotations are anywhere in a corpus."""
    labels: set[str] = set()
    for dialogue in corpus:
        labels.update(dialogue.labels, *(turn.labels for turn in dialogue.turns))
    return frozenset(labels.intersection(ANNOTATIONS))


def _positions(dialogue: Dialogue, is_assistant: list[bool] | None) -> Iterator[Position]:
    """The positions of one dialogue, each with what is known by then."""
    texts = [_said(turn, is_assistant is not None and is_assistant[i]) for i, turn in enumerate(dialogue.turns)]
    empty = Position(dialogue.id, (), goal=_goal(dialogue))
    before = empty
    for number in range(1, len(texts)):
        if is_assistant is None or is_assistant[number]:
            now = _position(before, dialogue, number)
            yield replace(now, context=tuple(texts[:number]))
            before = now


def _position(before: Position, dialogue: Dialogue, number: int) -> Position:
    query, response = dialogue.turns[number - 1], dialogue.turns[number]
    annotated = response.labels.get("state", query.labels.get("state"))
    state = before.state if annotated is None else _state(annotated)
    recent = frozenset(info for info in state - before.state if not _is_respelt(info, before.state, annotated))
    return replace(
        before,
        state=state,
        recent=recent,
        earlier=before.earlier | {info.slot for info in before.state},
        topics=frozenset(info.domain for info in recent) or before.topics,
        acts=tuple(response.labels.get("acts", ())),
        persona=_persona(dialogue, response, query),
    )


def _state(annotated: Mapping[str, Mapping[str, Sequence[str]]]) -> State:
    """What a state holds; of several spellings of a value the first one."""
    return frozenset(
        Info(domain_of(domain), slot, values[0].strip().lower())
        for domain, slots in annotated.items()
        for slot, values in slots.items()
        if values
    )


def _is_respelt(info: Info, before: State, annotated: Mapping[str, Mapping[str, Sequence[str]]]) -> bool:
    """Whether an earlier value is among the spellings of this one: then nothing new was given."""
    spellings = {
        value.strip().lower()
        for domain, slots in annotated.items()
        if domain_of(domain) == info.domain
        for value in slots.get(info.slot, ())
    }
    return any(info[:2] == old[:2] and old.value in spellings for old in before)


def _goal(dialogue: Dialogue) -> frozenset[str]:
    """Domains of the goal; where none is written down, of the last state."""
    goal = dialogue.labels.get("goal")
    if goal:
        return frozenset(map(domain_of, goal))
    states = [turn.labels["state"] for turn in dialogue.turns if "state" in turn.labels]
    return frozenset(domain_of(domain) for domain, slots in states[-1].items() if slots) if states else frozenset()


def _persona(dialogue: Dialogue, response: Turn, query: Turn) -> tuple[str, ...]:
    personas = dialogue.labels.get("persona") or {}
    return tuple(personas.get(response.speaker) or personas.get(query.speaker) or ())


def _who(turn: str) -> str:
    return f"{turn.speaker}\x1f{turn.role}" if isinstance(turn, Said) else ""


def _said(turn: Turn, is_assistant: bool) -> Said:
    return Said(turn.text, turn.speaker, "assistant" if is_assistant else None)


# --- The end of a context ---------------------------------------------------------------------------------------------


def last_tokens(context: Sequence[str], tokens: int) -> tuple[str, ...]:
    """A context's last tokens (words and runs of punctuation), whole turns first, then the end of one.

    Every model gets the same text, whatever its own tokens are, so that what is compared is what they make of it.

    >>> last_tokens(["Hello there, you.", "Hi!"], 4)
    ('you.', 'Hi!')
    """
    kept: list[str] = []
    for turn in reversed(context):
        starts = _starts(str(turn))
        kept.append(turn if len(starts) <= tokens else _tail(turn, starts[-tokens]))
        tokens -= min(tokens, len(starts))
        if tokens == 0:
            break
    return tuple(reversed(kept))


@lru_cache(maxsize=1 << 16)
def _starts(text: str) -> tuple[int, ...]:
    return tuple(match.start() for match in TOKEN.finditer(text))


def _tail(turn: str, start: int) -> str:
    return Said(turn[start:], turn.speaker, turn.role) if isinstance(turn, Said) else turn[start:]
