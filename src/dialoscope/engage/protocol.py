"""What rates turns: trained predictors, baselines, and other people's metrics alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]
Dialogue = Sequence[str]  # turns, each by another speaker than the one before


class Rater(Protocol):
    """Gives every turn a number: the higher, the more engaging."""

    @property
    def name(self) -> str:
        """What it is called, with a fingerprint where it was trained: ``rdep@1f09c2ab``."""
        ...

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        """The score of each dialogue's last turn, given the turns before it: (dialogues,)."""
        ...
