"""What a classifier is taught, and what it answers: the same type, so that answers are scored against truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dialoscope.errors import UsageError
from dialoscope.model.protocol import Floats

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Targets:
    """What a classifier shall say of each position: one class, or a set of labels.

    >>> Targets(np.array([2, 0]), 3).take(np.array([1])).codes
    array([0])
    """

    codes: Ints | sparse.csr_array  # (n,) the class of each position, or (n, classes) true where a label is in the set
    classes: int

    @property
    def is_multi(self) -> bool:
        """Whether a position has a set of labels."""
        return not isinstance(self.codes, np.ndarray)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def take(self, rows: Ints) -> Targets:
        """The same task at these positions, in this order."""
        return Targets(self.codes[rows], self.classes)

    def canonical(self) -> Targets:
        """The same with every label of a set stored once and in order, and nothing else stored."""
        if isinstance(self.codes, np.ndarray):
            return self
        codes = sparse.csr_array(self.codes, dtype=bool, copy=True)
        codes.sum_duplicates()
        codes.eliminate_zeros()
        return Targets(codes, self.classes)


def check_training(features: Floats, targets: Sequence[Targets]) -> None:
    """Refuse what no classifier can be taught from, before hours are spent on it."""
    if features.ndim != 2 or not features.size:
        raise UsageError(f"Features of shape {features.shape}: expected (rows, numbers) with at least one of each.")
    if not np.isfinite(features).all():
        raise UsageError(f"{np.sum(~np.isfinite(features)):,} features are NaN or infinite: expected finite numbers.")
    for number, target in enumerate(targets):
        if len(target) != len(features):
            raise UsageError(
                f"Task {number} has {len(target):,} rows, the features {len(features):,}: expected as many."
            )
        if reason := _out_of_range(target):
            raise UsageError(f"Task {number}: {reason}.")


def _out_of_range(targets: Targets) -> str | None:
    """Why codes and the number of classes do not fit together, if they do not."""
    codes, classes = targets.codes, targets.classes
    if not isinstance(codes, np.ndarray):
        return None if codes.shape[1] == classes else f"{codes.shape[1]:,} columns of labels, expected {classes:,}"
    low, high = int(codes.min()), int(codes.max())
    return None if low >= 0 and high < classes else f"classes {low} to {high}, expected 0 to {classes - 1}"
