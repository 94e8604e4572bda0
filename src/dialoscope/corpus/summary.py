"""What is in a corpus, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus.dialogue import Corpus
from dialoscope.corpus.text import words_per_text


@dataclass(frozen=True)
class SplitSummary:
    """Sizes of one split; words are separated by blanks."""

    dialogues: int
    turns: int
    turns_mean: float
    turns_std: float
    turns_max: int
    words: int
    words_mean: float  # per turn


@dataclass(frozen=True)
class CorpusSummary:
    """Sizes, lengths and labels of a corpus, and what was left out when it was read."""

    name: str
    format: str
    fingerprint: str
    dialogues: int
    turns: int
    speakers: int
    splits: Mapping[str, SplitSummary]
    labels: Mapping[str, int]  # label key -> dialogues or turns that carry it
    turn_lengths: Mapping[int, int]  # turns per dialogue -> dialogues
    word_lengths: Mapping[int, int]  # words per turn -> turns
    skipped: Mapping[str, int]
    ignored: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it; `splits` counts dialogues, `split_lengths` has the rest."""
        shown = asdict(self)
        shown["splits"] = {name: split.dialogues for name, split in self.splits.items()}
        shown["split_lengths"] = {name: asdict(split) for name, split in self.splits.items()}
        shown["turn_lengths"] = {str(length): count for length, count in self.turn_lengths.items()}
        shown["word_lengths"] = {str(length): count for length, count in self.word_lengths.items()}
        return shown


def summarise(corpus: Corpus) -> CorpusSummary:
    """Count a corpus: by split, by speaker, by length, by label."""
    turns = corpus.turns_per_dialogue
    words = words_per_text(corpus.turn_column("text"))
    return CorpusSummary(
        name=corpus.name,
        format=corpus.format,
        fingerprint=corpus.fingerprint,
        dialogues=len(corpus),
        turns=int(turns.sum()),
        speakers=int(pc.count_distinct(corpus.turn_column("speaker")).as_py()),
        splits=_by_split(corpus, turns, words),
        labels=dict(_label_counts(corpus.table["labels"]) + _label_counts(corpus.turn_column("labels"))),
        turn_lengths=_histogram(turns),
        word_lengths=_histogram(words),
        skipped=dict(corpus.skipped),
        ignored=dict(corpus.ignored),
    )


def _by_split(corpus: Corpus, turns: np.ndarray[Any, Any], words: np.ndarray[Any, Any]) -> dict[str, SplitSummary]:
    names = corpus.table["split"].combine_chunks()
    of_turn = np.repeat(np.arange(len(turns)), turns)
    summaries = {}
    for name in corpus.splits:
        is_in = pc.equal(names, name).to_numpy(zero_copy_only=False)
        summaries[name] = _summary(turns[is_in], words[is_in[of_turn]])
    return summaries


def _summary(turns: np.ndarray[Any, Any], words: np.ndarray[Any, Any]) -> SplitSummary:
    return SplitSummary(
        dialogues=len(turns),
        turns=int(turns.sum()),
        turns_mean=float(turns.mean()),
        turns_std=float(turns.std()),
        turns_max=int(turns.max()),
        words=int(words.sum()),
        words_mean=float(words.mean()),
    )


def _label_counts(column: pa.ChunkedArray) -> Counter[str]:
    """How many entries carry each label; equal label texts are parsed once."""
    counts: Counter[str] = Counter()
    for chunk in column.chunks:
        for entry in pc.value_counts(chunk.drop_null()).to_pylist():
            counts.update(dict.fromkeys(orjson.loads(entry["values"]), entry["counts"]))
    return counts


def _histogram(lengths: np.ndarray[Any, Any]) -> dict[int, int]:
    values, counts = np.unique(lengths, return_counts=True)
    return {int(value): int(count) for value, count in zip(values, counts, strict=True)}
