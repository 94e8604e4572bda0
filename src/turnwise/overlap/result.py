"""What was measured: a ratio and a match for every test sample, which can be thresholded again without a rerun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnwise.overlap.best import Ratios
from turnwise.overlap.scan import Ints
from turnwise.record import Origin

THRESHOLDS = (0.5, 0.6, 0.75, 0.8, 0.9, 0.99)


@dataclass(frozen=True, eq=False)
class OverlapResult:
    """Overlap of test samples with a training set."""

    ratio: Ratios  # (test samples,) best overlap
    match: Ints  # (test samples,) the first training sample that reaches it, or -1
    n_train: int
    origin: Origin

    @property
    def n_test(self) -> int:
        """Number of test samples."""
        return len(self.ratio)

    def count_over(self, threshold: float) -> int:
        """Test samples strictly over a threshold."""
        return int((self.ratio > threshold).sum())

    def share_over(self, threshold: float) -> float:
        """Share of test samples strictly over a threshold."""
        return self.count_over(threshold) / self.n_test if self.n_test else 0.0

    @property
    def identical(self) -> int:
        """Test samples with a ratio of exactly 1."""
        return int((self.ratio == 1).sum())

    @property
    def identical_share(self) -> float:
        """Share of test samples with a ratio of exactly 1."""
        return self.identical / self.n_test if self.n_test else 0.0

    def histogram(self) -> tuple[list[float], list[int]]:
        """Edges and counts in bins of 0.05; the last bin holds ratios from 0.95 up to and including 1."""
        edges = np.arange(0, 21) / 20
        counts, _ = np.histogram(self.ratio, bins=edges)
        return edges.tolist(), counts.tolist()

    def to_dict(self, thresholds: Sequence[float] = THRESHOLDS) -> dict[str, Any]:
        """The result as JSON has it."""
        edges, counts = self.histogram()
        return {
            "n_train": self.n_train,
            "n_test": self.n_test,
            "identical": self.identical,
            "identical_share": self.identical_share,
            "share_over": {str(threshold): self.share_over(threshold) for threshold in thresholds},
            "mean": float(self.ratio.mean()) if self.n_test else None,
            "histogram": {"edges": edges, "counts": counts, "cumulative": np.cumsum(counts).tolist()},
            "signature": self.origin.signature,
        }
