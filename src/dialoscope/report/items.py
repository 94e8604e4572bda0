"""What a number is made of: for each item a numerator, a denominator and the dialogue, so that runs can be paired.

A mean is a ratio whose denominators are 1; micro-F1 is 2·right / (2·right + too many + missing); a DAS ratio of means
is the attention on distractions over that on History; perplexity is compared by its logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Items:
    """The items of one score."""

    keys: Sequence[tuple[str, ...]]  # what an item is called in every run: its dialogue and turn, say
    dialogues: Sequence[str]
    above: Floats  # numerators; NaN for an item that has no number
    below: Floats  # denominators
    people: Floats | None = None  # ratings, where the number is a correlation with them

    @classmethod
    def mean_of(cls, keys: Sequence[tuple[str, ...]], dialogues: Sequence[str], values: Floats) -> Items:
        """The items of a mean."""
        return cls(keys, dialogues, np.asarray(values, dtype=np.float64), np.ones(len(values)))

    def is_same_as(self, other: Items) -> bool:
        """Whether both have the same values, one by one."""
        pairs = ((self.above, other.above), (self.below, other.below))
        return bool(self.keys) and all(np.array_equal(mine, theirs, equal_nan=True) for mine, theirs in pairs)

    def at(self, places: list[int]) -> Items:
        """Only these items, in this order."""
        return Items(
            [self.keys[place] for place in places],
            [self.dialogues[place] for place in places],
            self.above[places],
            self.below[places],
            None if self.people is None else self.people[places],
        )

    @property
    def is_scored(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which items have a number at all."""
        return ~(np.isnan(self.above) | np.isnan(self.below))
