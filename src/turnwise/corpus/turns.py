"""From dialogues to what models see: merged turns, and context-response samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from turnwise.corpus.columns import Columns
from turnwise.corpus.dialogue import NO_LABELS, Corpus, Dialogue, Turn
from turnwise.errors import UsageError

SEPARATOR = " __eou__ "


def merge_turns(corpus: Corpus, *, separator: str = " ") -> Corpus:
    """Join consecutive messages of one speaker into one turn.

    Where several of the joined messages carry labels, the turn keeps them all as a list under ``merged``.
    """
    columns = Columns()
    for dialogue in corpus:
        columns.add(merged(dialogue, separator=separator), default_id="", default_split="")
    return replace(corpus, table=columns.table())


def merged(dialogue: Dialogue, *, separator: str = " ") -> Dialogue:
    """One dialogue with its consecutive messages of one speaker joined."""
    groups = (list(group) for _, group in groupby(dialogue.turns, key=lambda turn: turn.speaker))
    return dialogue._replace(turns=tuple(_joined(group, separator) for group in groups))


def _joined(group: list[Turn], separator: str) -> Turn:
    if len(group) == 1:
        return group[0]
    labelled = [dict(turn.labels) for turn in group if turn.labels]
    labels = {"merged": labelled} if len(labelled) > 1 else labelled[0] if labelled else NO_LABELS
    return Turn(group[0].speaker, separator.join(turn.text for turn in group), labels)


class Sample(NamedTuple):
    """A response and the turns before it."""

    dialogue: str
    context: tuple[str, ...]
    response: str


@dataclass(frozen=True)
class Samples:
    """Every turn from the second on as a response, the turns before it as its context, as places in one text column."""

    corpus: Corpus
    dialogue: np.ndarray[Any, np.dtype[np.int64]]  # (samples,) which dialogue
    start: np.ndarray[Any, np.dtype[np.int64]]  # (samples,) first turn of the context, counted over the corpus
    response: np.ndarray[Any, np.dtype[np.int64]]  # (samples,) the response, which is where the context ends

    def __len__(self) -> int:
        return len(self.response)

    def __iter__(self) -> Iterator[Sample]:
        texts = self.corpus.turn_column("text").to_pylist()
        ids = self.corpus.table["id"].to_pylist()
        for dialogue, start, response in zip(self.dialogue, self.start, self.response, strict=True):
            yield Sample(ids[dialogue], tuple(texts[start:response]), texts[response])

    def to_table(self, *, separator: str = SEPARATOR) -> pa.Table:
        """Samples as a table `dialogue, split, context, response`, context turns joined by the separator."""
        rows = [(sample.dialogue, separator.join(sample.context), sample.response) for sample in self]
        ids, contexts, responses = zip(*rows, strict=True) if rows else ((), (), ())
        splits = self.corpus.table["split"].take(pa.array(self.dialogue))
        columns = [pa.array(column, pa.string()) for column in (ids, contexts, responses)]
        return pa.table([columns[0], splits, *columns[1:]], names=["dialogue", "split", "context", "response"])


def samples(corpus: Corpus, *, context_turns: int | None = None) -> Samples:
    """Flatten dialogues into samples; `context_turns` limits how far back a context reaches.

    >>> len(samples(load("dailydialog/test"), context_turns=1))      # doctest: +SKIP
    6740
    """
    if context_turns is not None and context_turns < 1:
        raise UsageError(f"A context has at least one turn, found --context-turns {context_turns}.")
    turns = corpus.turns_per_dialogue
    starts = np.concatenate([[0], np.cumsum(turns)[:-1]]) if len(turns) else np.zeros(0, dtype=np.int64)
    dialogue = np.repeat(np.arange(len(turns)), turns)
    place = np.arange(len(dialogue))
    first = starts[dialogue]
    is_response = place > first
    start = first if context_turns is None else np.maximum(first, place - context_turns)
    return Samples(corpus, dialogue[is_response], start[is_response], place[is_response])
