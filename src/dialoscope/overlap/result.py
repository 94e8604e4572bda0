"""What was measured: a ratio and a match for every unit, which can be thresholded again without a rerun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.metrics import mean_score
from dialoscope.overlap.best import Ratios
from dialoscope.overlap.scan import Ints
from dialoscope.record import Origin, Score

THRESHOLDS = (0.5, 0.6, 0.75, 0.8, 0.9, 0.99)
LEAK = 0.8  # over this an item counts as leaked, as in Figure 2 of the paper
PARTS = ("turn", "sample")  # units of which a dialogue has several
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class OverlapResult:
    """Overlap of test units with a training set, or of the units of one corpus with the rest of it."""

    ratio: Ratios  # (test units,) best overlap
    match: Ints  # (test units,) the first training unit that reaches it, or -1
    n_train: int
    origin: Origin
    unit: str = "sample"
    is_within: bool = False  # each unit against the rest of its own corpus
    ids: pa.ChunkedArray | None = None  # of the test units
    partners: pa.ChunkedArray | None = None  # id of each match, or null

    @property
    def n_test(self) -> int:
        """Number of test units."""
        return len(self.ratio)

    def is_over(self, threshold: float) -> Flags:
        """Which test units are strictly over a threshold."""
        return np.asarray(self.ratio > threshold)

    def count_over(self, threshold: float) -> int:
        """Test units strictly over a threshold."""
        return int(self.is_over(threshold).sum())

    def share_over(self, threshold: float) -> float:
        """Share of test units strictly over a threshold."""
        return self.count_over(threshold) / self.n_test if self.n_test else 0.0

    def share(self, threshold: float) -> Score:
        """The same share as a score: with n, and with an interval over dialogues."""
        if threshold not in self._shares:
            self._shares[threshold] = self._mean(self.is_over(threshold))
        return self._shares[threshold]

    @cached_property
    def _shares(self) -> dict[float, Score]:
        """Those that were asked for: the numbers, the verdict and the table of a page need the same ones."""
        return {}

    def _mean(self, values: Flags | Ratios) -> Score:
        return mean_score(values, clusters=self._dialogues, origin=self.origin)

    @cached_property
    def _dialogues(self) -> Ints | None:
        """The dialogue of each unit, as a number; None where every unit is one of its own.

        Parts of dialogues are called `dialogue#3`; a whole dialogue, or the row of a table, may have a # of its own.
        """
        if self.ids is None or self.unit not in PARTS:
            return None
        names = pc.replace_substring_regex(self.ids, r"#\d+$", "").combine_chunks()
        return np.asarray(names.dictionary_encode().indices, dtype=np.int64)

    @property
    def identical(self) -> int:
        """Test units with a ratio of exactly 1."""
        return int((self.ratio == 1).sum())

    @property
    def identical_share(self) -> float:
        """Share of test units with a ratio of exactly 1."""
        return self.identical / self.n_test if self.n_test else 0.0

    def histogram(self) -> tuple[list[float], list[int]]:
        """Edges and counts in bins of 0.05; the last bin holds ratios from 0.95 up to and including 1."""
        edges = np.arange(0, 21) / 20
        counts, _ = np.histogram(self.ratio, bins=edges)
        return edges.tolist(), counts.tolist()

    def closest(self, threshold: float, most: int | None = None) -> Ints:
        """Places of the units strictly over a threshold, the highest ratio first and the first of equals before."""
        order = np.argsort(-self.ratio, kind="stable")
        return np.asarray(order[: min(self.count_over(threshold), self.n_test if most is None else most)])

    def table(self) -> pa.Table:
        """One row for each test unit: its id, its ratio, the id of its match and the match's place."""
        ids = self.ids if self.ids is not None else _places(np.arange(self.n_test))
        partners = self.partners if self.partners is not None else _places(self.match)
        return pa.table({"id": ids, "ratio": self.ratio, "match_id": partners, "match": self.match})

    def to_dict(self, thresholds: Sequence[float] = THRESHOLDS) -> dict[str, Any]:
        """The result as JSON has it."""
        edges, counts = self.histogram()
        shares = {str(threshold): self.share(threshold) for threshold in thresholds}
        means = {"identical_share": self._mean(self.ratio == 1), "mean": self._mean(self.ratio)}
        named = {f"share_over {name}": share for name, share in shares.items()} | means
        return {
            "unit": self.unit,
            "is_within": self.is_within,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "identical": self.identical,
            "identical_share": self.identical_share,
            "share_over": {name: share.value or 0.0 for name, share in shares.items()},
            "share_over_intervals": {name: share.interval for name, share in shares.items()},
            "mean": float(self.ratio.mean()) if self.n_test else None,
            "intervals": {name: one.interval for name, one in means.items()},
            "reasons": {name: one.interval_reason for name, one in named.items() if one.interval_reason},
            "histogram": {"edges": edges, "counts": counts, "cumulative": np.cumsum(counts).tolist()},
            "signature": self.origin.signature,
        }


def with_threshold(threshold: float) -> tuple[float, ...]:
    """The usual thresholds and one more, in order."""
    return tuple(sorted({*THRESHOLDS, threshold}))


def _places(places: Ints) -> pa.ChunkedArray:
    """Names for units that have none: their row from 1, null for no unit."""
    return pa.chunked_array([pa.array(places + 1, mask=places < 0).cast(pa.large_string())])
