"""Training turns as token ids in one array, so that a million of them are some hundred megabytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dialoscope.engage.encoder import AT_ONCE, Encoder
from dialoscope.engage.examples import Examples, Ints, runs
from dialoscope.engage.predictor import readings
from dialoscope.engage.shape import Shape


@dataclass(frozen=True, eq=False)
class Tokens:
    """Ids of all turns, one after another: four bytes each, where lists of Python's numbers take eight and more."""

    ids: np.ndarray[Any, np.dtype[np.int32]]  # (tokens,)
    starts: Ints  # (turns + 1,) where each turn begins, and where the last one ends

    @classmethod
    def of(cls, given: Examples, encoder: Encoder, settings: Shape) -> Tokens:
        """Read all turns, some thousands at a time."""
        ids, lengths = [np.zeros(0, np.int32)], [0]
        for first, stop in runs(given.starts, turns=AT_ONCE):
            dialogues = (given.texts[low:high] for low, high in pairwise(given.starts[first : stop + 1]))
            read = encoder.read([text for one in dialogues for text in readings(one, settings)], settings)
            lengths += map(len, read)
            ids.append(np.fromiter((token for one in read for token in one), np.int32))
        return cls(np.concatenate(ids), np.cumsum(lengths))

    def lists(self, first: int, stop: int) -> list[list[int]]:
        """The ids of these turns."""
        return [self.ids[low:high].tolist() for low, high in pairwise(self.starts[first : stop + 1])]
