"""Oddities that do not keep a corpus from being read, but that its owner would want to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from dialoscope.corpus.dialogue import Corpus


@dataclass(frozen=True)
class Validation:
    """Bad records by reason, the first of them word by word, and oddities by kind."""

    dialogues: int
    bad_records: int
    problems: tuple[str, ...]
    skipped: Mapping[str, int]
    oddities: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """Everything counted, for a table."""
        return {"dialogues read": self.dialogues, **self.skipped, **self.oddities}

    def to_dict(self) -> dict[str, Any]:
        """The validation as JSON has it."""
        return {
            "dialogues": self.dialogues,
            "bad_records": self.bad_records,
            "problems": list(self.problems),
            "skipped": dict(self.skipped),
            "oddities": dict(self.oddities),
        }


def check(corpus: Corpus) -> Validation:
    """Count oddities of a corpus that was read with `on_error="skip"`."""
    return Validation(len(corpus), corpus.bad_records, corpus.problems, corpus.skipped, _oddities(corpus))


def _oddities(corpus: Corpus) -> dict[str, int]:
    turns = corpus.turns_per_dialogue
    blank = pc.sum(pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(corpus.turn_column("text"))), 0)).as_py()
    counts = {
        "ids that occur more than once": len(corpus) - pc.count_distinct(corpus.table["id"]).as_py(),
        "dialogues of one turn": int((turns == 1).sum()),
        "turns without text": blank or 0,
        "dialogues that repeat an earlier one word for word": len(corpus) - _distinct(corpus),
    }
    return {kind: count for kind, count in counts.items() if count}


def _distinct(corpus: Corpus) -> int:
    return len({hash(tuple(dialogue.texts)) for dialogue in corpus})
