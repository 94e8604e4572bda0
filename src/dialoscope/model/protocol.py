"""What the rooms need from a dialogue model, and nothing more.

A context is a dialogue's turns so far, oldest first, the last one being the Query. Turns are strings; one that is
`Said` (`dialoscope.corpus.turns`) also tells a chat model its role. Whatever else is in a call (other contexts, their
length) never changes the answer for one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dialoscope.errors import UsageError, unknown_name

Context = Sequence[str]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Kind = Literal["token", "static", "dynamic", "transformer"]
Method = Literal["greedy", "beam", "sample"]
METHODS = ("greedy", "beam", "sample")


@dataclass(frozen=True, eq=False)
class Attention:
    """Where a model looked while it read or wrote one response.

    Shares are means over the response's positions and sum to 1 over utterances. They are logarithms, for the share of
    an utterance under a static softmax can be smaller than any floating-point number.
    """

    log_share: Floats  # (layers, heads, utterances)
    tokens: Ints  # (utterances,) length of each utterance as the model reads it
    kind: Kind


@dataclass(frozen=True)
class Likelihood:
    """Natural log-likelihood of one response, its end included, and over how many tokens."""

    total: float
    tokens: int


class Reading(NamedTuple):
    """What one pass over a context and a given response shows."""

    attention: Attention
    likelihood: Likelihood


@dataclass
class Account:
    """What a model did not read of what it was given, over all calls so far; a model may have one as `account`."""

    contexts: int = 0  # that lost their oldest turns
    turns: int = 0  # that were lost with them
    unknown: int = 0  # words that its vocabulary lacks
    words: int = 0  # of which so many were read


class TooLong(UsageError):
    """Samples whose Query or response a model cannot read, by their places in the call: everything else can be."""

    def __init__(self, message: str, parts: Mapping[int, str]) -> None:
        super().__init__(message)
        self.parts = parts  # place -> which part is too long: "Query" or "response"


@dataclass(frozen=True)
class Decoding:
    """How a response is generated; sampling is deterministic under its seed."""

    method: Method = "greedy"
    beams: int = 4
    length_normalised: bool = True  # beams are compared by their mean log-likelihood of a token, not by the sum
    temperature: float = 1.0
    top_k: int = 0  # 0: all words
    top_p: float = 1.0
    max_tokens: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method of decoding", self.method, METHODS)
        for name, is_sound, expected in (
            ("beams", self.beams >= 1, "1 or more"),
            ("max_tokens", self.max_tokens >= 1, "1 or more"),
            ("temperature", self.temperature > 0, "a number over 0 (for none, decode greedily)"),
            ("top_k", self.top_k >= 0, "0 or more"),
            ("top_p", 0 <= self.top_p <= 1, "a share from 0 to 1"),
        ):
            if not is_sound:
                raise UsageError(f"{name} is {getattr(self, name)}, expected {expected}.")


@runtime_checkable
class DialogueModel(Protocol):
    """A model that reads contexts and answers them."""

    @property
    def name(self) -> str:
        """The preset or checkpoint, with a fingerprint of its weights: part of every score's origin."""
        ...

    def encode(self, contexts: Sequence[Context]) -> Floats:
        """One vector for each context: (contexts, width)."""
        ...

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        """Attention on each utterance of a context while the given response is read."""
        ...

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        """How likely each given response is after its context."""
        ...

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        """A response to each context."""
        ...


@runtime_checkable
class ReadsOnce(Protocol):
    """A model that gives attention and likelihood of a response in one pass; others make two."""

    def read(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Reading]:
        """Attention on each utterance of a context, and how likely the response is."""
        ...


@runtime_checkable
class TellsUnread(Protocol):
    """A model that can say which turns it would not read; others are taken to read all."""

    def unread_turns(self, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[int]:
        """How many of each context's oldest turns are cut away whole when the response is read, or (None) written.

        A model with a window leaves room for what it writes, and so reads less of a context.
        """
        ...


@runtime_checkable
class SharesPrefixes(Protocol):
    """A model that reads once what contexts begin with alike; others read each of them whole."""

    def log_likelihood_sharing(
        self, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
    ) -> list[Likelihood]:
        """What `log_likelihood` gives; the more a context begins as the first of its group does, the sooner."""
        ...


def log_likelihood_sharing(
    model: DialogueModel, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
) -> list[Likelihood]:
    """How likely each given response is after its context, reading no more of a group than the model has to."""
    if isinstance(model, SharesPrefixes):
        return model.log_likelihood_sharing(contexts, responses, groups)
    return model.log_likelihood(contexts, responses)


def unread_turns(model: DialogueModel, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[int]:
    """How many of each context's oldest turns a model does not read at all where it reads, or writes, a response."""
    return model.unread_turns(contexts, responses) if isinstance(model, TellsUnread) else [0] * len(contexts)


def read(model: DialogueModel, contexts: Sequence[Context], responses: Sequence[str]) -> list[Reading]:
    """Attention and likelihood of each response, in as few passes as the model can."""
    if isinstance(model, ReadsOnce):
        return model.read(contexts, responses)
    found = zip(model.attend(contexts, responses), model.log_likelihood(contexts, responses), strict=True)
    return [Reading(*both) for both in found]
