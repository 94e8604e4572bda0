"""Take leaked items out of a test set, and leave everything else as it is.

No new split: the training set stays, and the test set keeps its order. Dropped items are kept beside it, with their
partners.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.corpus import Corpus
from dialoscope.corpus.write import write_messages
from dialoscope.errors import UsageError
from dialoscope.overlap.made import Made
from dialoscope.overlap.measure import check_data, measure, parts_for
from dialoscope.overlap.passes import OVER
from dialoscope.overlap.result import OverlapResult
from dialoscope.overlap.section import filtered_section
from dialoscope.overlap.settings import FilterSettings, threshold_text
from dialoscope.overlap.sides import is_of_pairs, side_of
from dialoscope.record import Origin, Scores
from dialoscope.report.section import Section
from dialoscope.settings import with_options


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Filtered(Made):
    """A test set without its leaked items, the leaked items, and the training item that each of them matched.

    Saved as a folder::

        DIR/kept.jsonl, DIR/dropped.jsonl  dialogues as messages; samples of longer dialogues are .parquet
        DIR/ledger.jsonl                   each dropped item: its reason, partner and ratio
        DIR/result.json, report.html, …    the counts and a page
    """

    instrument: ClassVar[str] = "overlap-filter"

    settings: FilterSettings
    kept: Corpus | pa.Table
    dropped: Corpus | pa.Table
    result: OverlapResult

    def ledger(self) -> Iterator[dict[str, Any]]:
        """Each dropped item in the order of the test set: its reason, its partner, their ratio."""
        rows = self.result.table.take(pa.array(np.flatnonzero(self.result.is_over(self.settings.threshold))))
        for row in rows.to_pylist():
            drop = {"unit": self.result.unit, "id": row["id"], "reason": OVER}
            yield {**drop, "partner": row["match_id"], "ratio": row["ratio"]}

    def with_rows(self, rows: pa.Table) -> Filtered:
        """The same with the rows of a table in place of the dialogues that were made of them, one for each."""
        is_leaked = self.result.is_over(self.settings.threshold)
        kept, dropped = (rows.take(pa.array(np.flatnonzero(mask))) for mask in (~is_leaked, is_leaked))
        return replace(self, kept=kept, dropped=dropped)

    def scores(self) -> Scores:
        """The share of dropped items."""
        part = self.result.measured[0]
        name = f"ratio/{part}/share_over_{threshold_text(self.settings.threshold)}"
        return {name: self.result.scores()[name]}

    def section(self) -> Section:
        """What was kept and dropped, as a section of a page."""
        return filtered_section(self)

    def fill(self, folder: Path) -> None:
        """Write what was kept and what was dropped."""
        for name, rows in (("kept", self.kept), ("dropped", self.dropped)):
            if isinstance(rows, Corpus):
                write_messages(rows, folder / f"{name}.jsonl")
            else:
                pq.write_table(rows, folder / f"{name}.parquet")


def filter(corpus: Corpus, *, settings: FilterSettings | None = None, **options: Any) -> Filtered:
    """Drop test items whose best overlap with the training split is strictly over the threshold.

    Items are whole dialogues, because a dialogue without some of its turns is none; where every dialogue is one context
    and one response, or where `unit` says sample, they are samples.

    >>> texts = Corpus.of_texts(["a b c d"], ["a b c d e", "x"])
    >>> filter(texts, threshold=0.8).kept[0].texts
    ['x']
    """
    settings = with_options(settings, FilterSettings, options)
    check_data(corpus, None)
    parts = parts_for(corpus, None, settings)
    if parts.is_same:
        raise UsageError(
            f"filter compares two splits, found one in {corpus.name}. Give --train and --test; "
            "'dialoscope overlap clean' drops near-copies within one split."
        )
    ((part, test),) = parts.measured.items()
    unit = settings.unit or ("sample" if is_of_pairs(parts.uncut[part]) else "dialogue")
    shared = {name: getattr(settings, name) for name in ("split", "train_split", "limit", "context_turns", "words")}
    result = measure(corpus, unit=unit, leak=settings.threshold, **shared)
    if reason := result.reasons.get(part):
        raise UsageError(f"There is nothing to filter: {reason}.")
    is_leaked = result.is_over(settings.threshold)
    side = side_of(test, unit=unit, context_turns=settings.context_turns)
    units, dropped = result.counts["units"], int(is_leaked.sum())
    choices = {**{name: value for name, value in settings.changed().items()}, "unit": unit}
    return Filtered(
        settings=settings,
        parts=result.parts,
        used=result.used,
        counts={
            **result.counts,
            "measured": units[part],
            "reference": units["reference"],
            "kept": units[part] - dropped,
            "dropped": dropped,
        },
        origin=Origin(result.origin.corpus, choices),
        kept=side.take(np.flatnonzero(~is_leaked)),
        dropped=side.take(np.flatnonzero(is_leaked)),
        result=result,
    )
