"""What a report is made of: a `Section` answers one question with blocks of prose, numbers and pictures.

The nouns know nothing of any question. Blocks are data, and `html` draws them. A section is made from a result
whenever a page is written, and is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dialoscope.record import Origin
from dialoscope.report.anchor import slug
from dialoscope.report.cell import Cell, Written, checked, checked_format, write
from dialoscope.report.plain import plain
from dialoscope.report.table import Column, Table
from dialoscope.report.transcript import Mark, ShownTurn, Transcript
from dialoscope.report.verdict import LEVELS, Level

__all__ = [
    "Block",
    "Card",
    "Chart",
    "Column",
    "Fact",
    "Facts",
    "Level",
    "Mark",
    "Part",
    "Prose",
    "Section",
    "ShownTurn",
    "Table",
    "Transcript",
]

SEVERITY: tuple[Level, ...] = ("good", "not_measurable", "cannot_tell", "concern")  # good: good in all its parts

DEFAULT_HEIGHT = 450  # pixels; Plotly's own, for figures that give none


@dataclass(frozen=True)
class Prose:
    """Plain text; a blank line starts a new paragraph. A heading opens a part of the section."""

    kind: ClassVar[str] = "prose"

    text: str
    heading: str = ""

    @property
    def paragraphs(self) -> list[str]:
        """The text cut at blank lines."""
        return [part.strip() for part in self.text.split("\n\n") if part.strip()]


@dataclass(frozen=True)
class Chart:
    """A Plotly figure as JSON has it; the description tells those who cannot see it what it shows."""

    kind: ClassVar[str] = "chart"

    figure: Mapping[str, Any]
    title: str
    description: str
    is_half: bool = False  # two of them share a line where there is room

    def __post_init__(self) -> None:
        if not self.title or not self.description:
            raise ValueError("a chart has a title and a description")
        if not isinstance(self.figure.get("data"), list) or not isinstance(self.figure.get("layout"), Mapping):
            raise ValueError(f"chart '{self.title}': expected a Plotly figure with a list 'data' and a dict 'layout'")
        object.__setattr__(self, "figure", plain(self.figure, f"chart '{self.title}'"))

    @property
    def height(self) -> int:
        """Pixels to keep free, so that the page does not jump when the chart is drawn."""
        height = self.figure["layout"].get("height")
        return int(height) if isinstance(height, int | float) else DEFAULT_HEIGHT


@dataclass(frozen=True)
class Fact:
    """One number worth a large letter."""

    label: str
    value: Cell
    detail: str = ""
    number_format: str = ""

    def __post_init__(self) -> None:
        checked_format(self.number_format)
        object.__setattr__(self, "value", checked(self.value))

    @property
    def written(self) -> Written:
        """The value in words."""
        return write(self.value, self.number_format)


@dataclass(frozen=True)
class Facts:
    """A row of number tiles."""

    kind: ClassVar[str] = "facts"

    facts: Sequence[Fact]

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", tuple(self.facts))


@dataclass(frozen=True)
class Part:
    """One of several things that a card is about, such as a model: its number and its level."""

    name: str
    number: Cell
    level: Level

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", checked(self.number))
        _check_level(self.level)


@dataclass(frozen=True)
class Card:
    """A section in one line: a headline, the number behind it or one for each part, and its level."""

    headline: str
    number: Cell
    level: Level
    number_format: str = ""
    parts: Sequence[Part] = ()

    def __post_init__(self) -> None:
        checked_format(self.number_format)
        object.__setattr__(self, "number", checked(self.number))
        object.__setattr__(self, "parts", tuple(self.parts))
        _check_level(self.level)

    @property
    def written(self) -> Written:
        """The number in words."""
        return write(self.number, self.number_format)

    @property
    def written_parts(self) -> list[tuple[Part, Written]]:
        """The parts with their numbers in words."""
        return [(part, write(part.number, self.number_format)) for part in self.parts]


def _check_level(level: str) -> None:
    if level not in LEVELS:
        raise ValueError(f"expected a level of {', '.join(LEVELS)}, found {level!r}")


Block = Prose | Table | Chart | Transcript | Facts


@dataclass(frozen=True)
class Section:
    """One question and its answer."""

    title: str
    anchor: str
    question: str
    blocks: Sequence[Block]
    lead: str = ""  # the answer in a sentence or two
    verdict: Card | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "anchor", slug(self.anchor or self.title, default="section"))
        object.__setattr__(self, "blocks", tuple(self.blocks))

    @property
    def tables(self) -> list[Table]:
        """The tables among the blocks, in order."""
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def has_chart(self) -> bool:
        """Whether anything here needs Plotly."""
        return any(isinstance(block, Chart) for block in self.blocks)

    def at(self, anchor: str) -> Section:
        """The same section under another anchor."""
        return replace(self, anchor=anchor)
