"""A dialogue to look at: turns shaded by a value, outlined, tagged, with words marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar


@dataclass(frozen=True, order=True)
class Mark:
    """A stretch of a turn's text to mark, in characters: ``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True)
class ShownTurn:
    """One turn as it is shown."""

    speaker: str
    text: str
    value: float | None = None  # 0-1, shades the turn
    tag: str = ""  # a few words or a number beside it; the value itself where empty
    is_outlined: bool = False
    marks: Sequence[Mark] = ()

    def __post_init__(self) -> None:
        if self.value is not None and not 0 <= self.value <= 1:
            raise ValueError(f"expected a turn's value between 0 and 1, found {self.value}")
        object.__setattr__(self, "value", None if self.value is None else float(self.value))
        object.__setattr__(self, "marks", tuple(sorted(self.marks)))
        for mark in self.marks:
            if not 0 <= mark.start < mark.end <= len(self.text):
                raise ValueError(f"expected a mark within {len(self.text)} characters, found {mark}")

    @property
    def label(self) -> str:
        """What stands beside the turn; a shade alone would tell nothing to those who cannot see it."""
        return self.tag or ("" if self.value is None else f"{self.value:.2f}")

    @property
    def pieces(self) -> tuple[tuple[str, bool], ...]:
        """The text cut where marks begin and end: (piece, whether it is marked)."""
        cuts = sorted({0, len(self.text), *(edge for mark in self.marks for edge in (mark.start, mark.end))})
        return tuple((self.text[start:end], self._is_marked(start)) for start, end in pairwise(cuts))

    def _is_marked(self, place: int) -> bool:
        return any(mark.start <= place < mark.end for mark in self.marks)


@dataclass(frozen=True)
class Transcript:
    """A dialogue, and what its shades, outlines and marks mean."""

    kind: ClassVar[str] = "transcript"

    turns: Sequence[ShownTurn]
    title: str
    description: str = ""
    shade: str = ""  # what the value is: "attention, stronger is more"
    outline: str = ""  # what an outlined turn is: "inserted distraction"
    mark: str = ""  # what a marked word is: "also in the training dialogue"

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", tuple(self.turns))
