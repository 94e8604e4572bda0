"""From dialogues to what models see: merged turns, and context-response samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus.columns import Columns
from dialoscope.corpus.dialogue import NO_LABELS, Corpus, Dialogue, Turn
from dialoscope.errors import UsageError, unknown_name

SEPARATOR = " __eou__ "
SLICE = 65_536  # samples whose contexts are joined at a time
ROLES = ("system", "user", "assistant")  # of a chat
INSTRUCTIONS = ("system", "developer", "tool", "function")  # roles beside an assistant that are no side of the talk
PROMPTS = INSTRUCTIONS[:2]  # those that open a chat
NAMED = 8  # speakers that a message names

Flags = np.ndarray[Any, np.dtype[np.bool_]]


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


def conversation(dialogue: Dialogue, *, until: int | None = None) -> Dialogue:
    """One dialogue as those had it who talked: without instructions, and with consecutive messages joined.

    Beside an assistant, turns of `INSTRUCTIONS` are left out. Without one, only a prompt is: a `system` or `developer`
    that opens the dialogue and never speaks again; task-oriented corpora call the answering side `system`, and it
    stays. The case of names does not matter, and a dialogue of nothing else stays whole. With `until`, only so many
    messages are taken, and the last of them stays whoever sent it.

    >>> chat = Dialogue((Turn("system", "Be kind."), Turn("user", "Hi."), Turn("assistant", "Hello.")))
    >>> conversation(chat).texts
    ['Hi.', 'Hello.']
    """
    aside = _aside(dialogue.turns)
    turns = dialogue.turns[:until]
    if aside:
        last = len(turns) if until is not None else 0
        kept = (turn for number, turn in enumerate(turns, 1) if number == last or turn.speaker not in aside)
        turns = tuple(kept) or turns
    return merged(dialogue._replace(turns=turns))


def _aside(turns: tuple[Turn, ...]) -> set[str]:
    """The speakers whose turns are instructions."""
    names = {turn.speaker: turn.speaker.lower() for turn in turns}  # a few, however long the dialogue is
    aside = {name for name, role in names.items() if role in INSTRUCTIONS}
    if not aside or "assistant" in names.values():
        return aside
    prompts = {name for name in aside if names[name] in PROMPTS}
    opening = next((place for place, turn in enumerate(turns) if turn.speaker not in prompts), len(turns))
    return prompts - {turn.speaker for turn in turns[opening:]}


def _joined(group: list[Turn], separator: str) -> Turn:
    if len(group) == 1:
        return group[0]
    labelled = [dict(turn.labels) for turn in group if turn.labels]
    labels = {"merged": labelled} if len(labelled) > 1 else labelled[0] if labelled else NO_LABELS
    return Turn(group[0].speaker, separator.join(turn.text for turn in group), labels)


class Said(str):
    """A turn's text that knows who said it, and in which role where the speaker has one of a chat's.

    It is a string like any other, so whoever does not ask for the speaker needs to know nothing of it.

    >>> turn = Said("Hello.", "Assistant")
    >>> turn == "Hello.", turn.speaker, turn.role
    (True, 'Assistant', 'assistant')
    """

    __slots__ = ("role", "speaker")
    speaker: str
    role: str  # system, user or assistant; empty: none of them

    def __new__(cls, text: str = "", speaker: str = "", role: str | None = None) -> Self:
        """Without a role, it is the speaker's name if that is one."""
        said = super().__new__(cls, text)
        name = speaker.lower() if role is None else role
        said.speaker, said.role = speaker, name if name in ROLES else ""
        return said


class Sample(NamedTuple):
    """A response and the turns before it; samples of a corpus have turns that know who `Said` them."""

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

    @property
    def turns(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of each response among the turns of its dialogue, from 0."""
        ends = np.cumsum(self.corpus.turns_per_dialogue)
        starts: np.ndarray[Any, np.dtype[np.int64]] = ends - self.corpus.turns_per_dialogue
        turns: np.ndarray[Any, np.dtype[np.int64]] = self.response - starts[self.dialogue]
        return turns

    def __iter__(self) -> Iterator[Sample]:
        sample, base = 0, 0
        is_assistant = said_by(self.corpus, "assistant")
        for dialogue in self.corpus:
            texts = list(map(_said, dialogue.turns, is_assistant[base : base + len(dialogue.turns)]))
            while sample < len(self) and self.response[sample] < base + len(texts):
                start, response = int(self.start[sample]) - base, int(self.response[sample]) - base
                yield Sample(dialogue.id, tuple(texts[start:response]), texts[response])
                sample += 1
            base += len(texts)

    def to_table(self, *, separator: str = SEPARATOR) -> pa.Table:
        """Samples as a table `dialogue, split, context, response`, context turns joined by the separator."""
        texts = pa.chunked_array(self.corpus.turn_column("text").cast(pa.large_string()).chunks, pa.large_string())
        flat = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.large_string())
        dialogues = pa.array(self.dialogue)
        columns = {name: self.corpus.table[name].combine_chunks().take(dialogues) for name in ("id", "split")}
        responses = flat.take(pa.array(self.response))
        return pa.table(
            [columns["id"], columns["split"], self._contexts(flat, separator), responses],
            names=["dialogue", "split", "context", "response"],
        )

    def _contexts(self, texts: pa.Array, separator: str) -> pa.ChunkedArray:
        """Contexts joined, some thousands at a time: long contexts repeat most of their text."""
        joined = []
        for low in range(0, len(self), SLICE):
            start, end = self.start[low : low + SLICE], self.response[low : low + SLICE]
            offsets = np.concatenate([[0], np.cumsum(end - start)])
            places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - start, end - start)
            turns = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.take(pa.array(places)))
            joined.append(pc.binary_join(turns, pa.scalar(separator, pa.large_string())))
        return pa.chunked_array(joined, pa.large_string())


def _said(turn: Turn, is_assistant: bool) -> Said:
    return Said(turn.text, turn.speaker, "assistant" if is_assistant else None)


def said_by(corpus: Corpus, speaker: str) -> Flags:
    """Which turns somebody says, whatever the case of the name: (turns,).

    The assistant also speaks where a dialogue has none, but a `system` that answers: task-oriented corpora call it so.
    """
    speakers = pc.utf8_lower(corpus.turn_column("speaker"))
    is_said = _equal(speakers, speaker.lower())
    if speaker.lower() != "assistant":
        return is_said
    is_system = _equal(speakers, "system")
    dialogue, is_first = _places(corpus)
    has_assistant, has_answer = (
        np.bincount(dialogue[flags], minlength=len(corpus)) > 0 for flags in (is_said, is_system & ~is_first)
    )
    is_said |= is_system & (has_answer & ~has_assistant)[dialogue]
    return is_said


def _equal(names: pa.ChunkedArray, name: str) -> Flags:
    return np.asarray(pc.fill_null(pc.equal(names, name), False).to_numpy(), dtype=bool)


def _places(corpus: Corpus) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Flags]:
    """The dialogue of each turn, and whether it opens it."""
    turns = corpus.turns_per_dialogue
    dialogue = np.repeat(np.arange(len(turns)), turns)
    return dialogue, np.diff(dialogue, prepend=-1) > 0


def _no_such_speaker(corpus: Corpus, speaker: str) -> UsageError:
    counts = pc.value_counts(corpus.turn_column("speaker").combine_chunks()).to_pylist()
    common = sorted(counts, key=lambda row: -row["counts"])[:NAMED]
    return unknown_name("speaker", speaker, [str(row["values"]) for row in common])


def samples(corpus: Corpus, *, context_turns: int | None = None, responses: str | None = None) -> Samples:
    """Flatten dialogues into samples; `context_turns` limits how far back a context reaches.

    `responses` names a speaker: only turns of that one are responses; contexts stay as they are.

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
    if responses is not None:
        is_said = said_by(corpus, responses)
        if not is_said.any():
            raise _no_such_speaker(corpus, responses)
        is_response &= is_said
    start = first if context_turns is None else np.maximum(first, place - context_turns)
    return Samples(corpus, dialogue[is_response], start[is_response], place[is_response])
