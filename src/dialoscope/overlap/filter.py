"""Take leaked items out of a test set, and leave everything else as it is.

No new split: the training set stays, and the test set keeps its order. What goes is kept beside it, with its partner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.corpus.hub import is_dataset
from dialoscope.errors import unknown_name
from dialoscope.overlap.clean import OVER
from dialoscope.overlap.measure import Match, Settings, compared, match_at
from dialoscope.overlap.result import LEAK, OverlapResult
from dialoscope.overlap.sides import Data, Side, corpus_of, is_of_pairs, side_of
from dialoscope.record import Origin

UNITS = ("dialogue", "sample")


@dataclass(frozen=True, eq=False)
class Filtered:
    """A test set without its leaked items, the leaked items, and whom each of them matched."""

    kept: Corpus | pa.Table
    dropped: Corpus | pa.Table
    result: OverlapResult
    threshold: float
    examples: tuple[Match, ...] = ()

    @property
    def origin(self) -> Origin:
        """Where the numbers come from; the threshold decides them, too."""
        measured = self.result.origin
        return replace(measured, settings={**measured.settings, "threshold": self.threshold})

    def ledger(self) -> Iterator[dict[str, Any]]:
        """Each dropped item in the order of the test set: its reason, its partner, their ratio."""
        rows = self.result.table().take(pa.array(np.flatnonzero(self.result.is_over(self.threshold))))
        for row in rows.to_pylist():
            named = {"unit": self.result.unit, "id": row["id"], "reason": OVER}
            yield {**named, "partner": row["match_id"], "ratio": row["ratio"]}

    def to_dict(self) -> dict[str, Any]:
        """The filtering as JSON has it."""
        dropped = self.result.count_over(self.threshold)
        return {
            "unit": self.result.unit,
            "threshold": self.threshold,
            "n_train": self.result.n_train,
            "n_test": self.result.n_test,
            "kept": self.result.n_test - dropped,
            "dropped": dropped,
            "signature": self.origin.signature,
        }


def filter(  # beside measure, pairs and clean: `ds.overlap.filter`
    train: Data,
    test: Data,
    *,
    threshold: float = LEAK,
    unit: str | None = None,
    column: str | None = None,
    settings: Settings | None = None,
) -> Filtered:
    """Drop test items whose best overlap with the training set is strictly over the threshold.

    Items are whole dialogues, for a dialogue without some of its turns is none; where every dialogue is one context and
    one response, as in files of pairs, or where `unit` says sample, they are samples; texts are texts.

    >>> filter(["a b c d"], ["a b c d e", "x"], threshold=0.8).kept["text"].to_pylist()
    ['x']
    """
    if unit is not None and unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    settings = settings or Settings()
    if is_dataset(test) and column is None:
        test = corpus_of(test)
    chosen = unit or default_unit(test)
    known, probes = (
        side_of(data, unit=chosen, column=column, context_turns=settings.context_turns) for data in (train, test)
    )
    return _filtered(compared(known, probes, settings), known, probes, threshold)


def default_unit(test: Data) -> str:
    """Samples where that is all a dialogue is, dialogues everywhere else."""
    return "sample" if isinstance(test, Corpus) and is_of_pairs(test) else "dialogue"


def _filtered(result: OverlapResult, known: Side, probes: Side, threshold: float) -> Filtered:
    is_leaked = result.is_over(threshold)
    kept, dropped = (probes.taken(np.flatnonzero(mask)) for mask in (~is_leaked, is_leaked))
    shown = tuple(match_at(result, place, known, probes) for place in result.closest(threshold, most=5).tolist())
    return Filtered(kept, dropped, result, threshold, shown)
