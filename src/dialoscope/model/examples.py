"""What a model is trained on: every turn encoded once, and examples that only point at turns.

A corpus becomes one flat array of token ids. An example is the places of its context's turns and the place of its
response, so an inserted distraction is one more place, and drawing new ones every epoch copies no text.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus, samples
from dialoscope.model.vocabulary import TURN, Vocabulary

Ids = np.ndarray[Any, np.dtype[np.int32]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Turns:
    """Turns of a corpus as token ids: turn i is `tokens[offsets[i]:offsets[i + 1]]`, ended by the end-of-turn mark."""

    tokens: Ids
    offsets: Ints  # (turns + 1,)
    first: Ints  # (dialogues + 1,) the first turn of each dialogue, and where the last one ends

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Tokens of each turn, its end mark included."""
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False)
class Examples:
    """Contexts and responses as places among turns: example i has `context[offsets[i]:offsets[i + 1]]`, Query last."""

    turns: Turns
    context: Ints  # places of all contexts' turns, one context after the other
    is_distraction: Flags  # for each of those places
    offsets: Ints  # (examples + 1,)
    response: Ints  # (examples,) places of the responses
    dialogue: Ints  # (examples,) which dialogue each belongs to

    def __len__(self) -> int:
        return len(self.response)

    @property
    def utterances(self) -> Ints:
        """Turns of each context."""
        return np.diff(self.offsets)

    @property
    def steps(self) -> Ints:
        """Tokens of each response that have to be predicted: its own, and the end mark."""
        return self.turns.sizes[self.response]  # the turn's end mark is in the place of the end mark

    @property
    def lengths(self) -> Ints:
        """Tokens of each context, nothing cut."""
        ends = np.concatenate([[0], np.cumsum(self.turns.sizes[self.context])])
        return np.asarray(ends[self.offsets[1:]] - ends[self.offsets[:-1]], dtype=np.int64)

    def take(self, places: Ints) -> Examples:
        """These examples, in this order."""
        counts = self.utterances[places]
        offsets = ends_of(counts)
        kept = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - self.offsets[places], counts)
        return Examples(
            self.turns, self.context[kept], self.is_distraction[kept], offsets, self.response[places],
            self.dialogue[places],
        )  # fmt: skip

    def within(self, context_tokens: int | None) -> Examples:
        """The same without turns that are wholly older than a context's last so many tokens, and are never read."""
        if context_tokens is None:
            return self
        ends = np.cumsum(self.turns.sizes[self.context])
        follow = np.repeat(ends[self.offsets[1:] - 1], self.utterances) - ends  # tokens of a context after each turn
        is_kept = follow < context_tokens
        offsets = np.concatenate([[0], np.cumsum(is_kept)])[self.offsets]
        kept = self.context[is_kept], self.is_distraction[is_kept]
        return Examples(self.turns, *kept, offsets, self.response, self.dialogue)


def whole_lengths(examples: Examples, *, context_turns: int | None = None) -> Ints:
    """Tokens of each context as the corpus has it: nothing left out but turns older than the last `context_turns`."""
    turns = examples.turns
    start = turns.first[examples.dialogue]
    if context_turns is not None:
        start = np.maximum(start, examples.response - context_turns)
    return np.asarray(turns.offsets[examples.response] - turns.offsets[start], dtype=np.int64)


def ends_of(counts: Ints) -> Ints:
    """Offsets of pieces with these lengths: where each begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def encode_turns(corpus: Corpus, vocabulary: Vocabulary) -> Turns:
    """Every turn of a corpus as token ids, in one array."""
    texts = (text.as_py() or "" for chunk in corpus.turn_column("text").chunks for text in chunk)
    tokens, sizes = array("i"), array("q")
    for ids in vocabulary.encode_each(texts):
        tokens.extend(ids)
        tokens.append(TURN)
        sizes.append(len(ids) + 1)
    flat = np.array(tokens, dtype=np.int32)
    return Turns(flat, ends_of(np.array(sizes, dtype=np.int64)), ends_of(corpus.turns_per_dialogue))


def examples_of(
    corpus: Corpus, vocabulary: Vocabulary, *, context_turns: int | None = None, context_tokens: int | None = None
) -> Examples:
    """Every turn from the second on as a response, the turns before it as its context.

    With `context_tokens`, turns that are wholly older than the last so many tokens are left out here already: they
    could never be read, and in a long dialogue they are most of all places.
    """
    found, turns = samples(corpus, context_turns=context_turns), encode_turns(corpus, vocabulary)
    start = found.start
    if context_tokens is not None:
        oldest = turns.offsets[found.response] - context_tokens  # the first token that is read
        start = np.maximum(start, np.searchsorted(turns.offsets, oldest, side="right") - 1)
    counts = found.response - start
    offsets = ends_of(counts)
    context = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - start, counts)
    return Examples(turns, context, np.zeros(len(context), dtype=bool), offsets, found.response, found.dialogue)
