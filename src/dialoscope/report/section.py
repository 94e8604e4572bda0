"""What a report is made of: a `Section` answers one question with blocks of prose, numbers and pictures.

The nouns know nothing of any instrument. Blocks are data; `html` draws them, and `to_dict` / `from_dict`
keep them, so that runs can be joined into one page long after they were made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from dialoscope.record import Origin
from dialoscope.report.anchor import slug
from dialoscope.report.cell import Cell, Written, checked, checked_format, write
from dialoscope.report.plain import origin_from, plain, score_from
from dialoscope.report.table import Column, Table
from dialoscope.report.transcript import Mark, ShownTurn, Transcript

__all__ = [
    "Block",
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
    "Verdict",
]

Level = Literal["good", "warn", "bad", "info"]
SEVERITY: tuple[Level, ...] = ("good", "info", "warn", "bad")  # good is only what is good in all its parts

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

    def to_dict(self) -> dict[str, Any]:
        """The prose as JSON has it."""
        return {"kind": self.kind, **plain(self, "prose")}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Prose:
        """The prose that `to_dict` wrote."""
        return cls(value["text"], value["heading"])


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

    def to_dict(self) -> dict[str, Any]:
        """The chart as JSON has it."""
        return {"kind": self.kind, **plain(self, self.title)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Chart:
        """The chart that `to_dict` wrote."""
        return cls(value["figure"], value["title"], value["description"], bool(value["is_half"]))


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

    def to_dict(self) -> dict[str, Any]:
        """The tiles as JSON has them."""
        return {"kind": self.kind, **plain(self, "facts")}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Facts:
        """The tiles that `to_dict` wrote."""
        return cls([Fact(**{**each, "value": _cell_from(each["value"])}) for each in value["facts"]])


@dataclass(frozen=True)
class Part:
    """One of several that a verdict is of, such as a model: its number, and whether that is good news."""

    name: str
    number: Cell
    level: Level = "info"

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", checked(self.number))
        _check_level(self.level)


@dataclass(frozen=True)
class Verdict:
    """A section in one line: a headline, the number behind it or one for each part, and whether it is good news."""

    headline: str
    number: Cell
    level: Level = "info"
    number_format: str = ""
    parts: Sequence[Part] = ()

    def __post_init__(self) -> None:
        checked_format(self.number_format)
        object.__setattr__(self, "number", checked(self.number))
        object.__setattr__(self, "parts", tuple(self.parts))
        _check_level(self.level)

    @classmethod
    def of(cls, parts: Mapping[str, Verdict]) -> Verdict:
        """One verdict of several that say the same of different things; it is as bad as the worst of them."""
        first = next(iter(parts.values()))
        if len(parts) == 1:
            return first
        level = max((one.level for one in parts.values()), key=SEVERITY.index)
        each = [Part(name, one.number, one.level) for name, one in parts.items()]
        return cls(first.headline, None, level, first.number_format, each)

    @property
    def written(self) -> Written:
        """The number in words."""
        return write(self.number, self.number_format)

    @property
    def written_parts(self) -> list[tuple[Part, Written]]:
        """The parts with their numbers in words."""
        return [(one, write(one.number, self.number_format)) for one in self.parts]

    @property
    def line(self) -> str:
        """All of it in one line, for a terminal."""
        numbers = ", ".join(f"{one.name}: {written.text}" for one, written in self.written_parts)
        return f"{numbers or self.written.text} {self.headline}"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Verdict:
        """The verdict that JSON has; of an earlier version it has no parts."""
        parts = [Part(**{**one, "number": _cell_from(one["number"])}) for one in value.get("parts", ())]
        return cls(**{**value, "number": _cell_from(value["number"]), "parts": parts})


def _check_level(level: str) -> None:
    if level not in get_args(Level):
        raise ValueError(f"expected a level of {', '.join(get_args(Level))}, found {level!r}")


Block = Prose | Table | Chart | Transcript | Facts

BLOCKS: dict[str, type[Block]] = {each.kind: each for each in (Prose, Table, Chart, Transcript, Facts)}


@dataclass(frozen=True)
class Section:
    """One question and its answer."""

    title: str
    anchor: str
    question: str
    blocks: Sequence[Block]
    lead: str = ""  # the answer in a sentence or two
    verdict: Verdict | None = None
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

    def to_dict(self) -> dict[str, Any]:
        """The section as JSON has it."""
        words = {key: getattr(self, key) for key in ("title", "anchor", "question", "lead")}
        blocks = [block.to_dict() for block in self.blocks]
        return {**plain({**words, "verdict": self.verdict, "origin": self.origin}, self.anchor), "blocks": blocks}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Section:
        """The section that `to_dict` wrote."""
        verdict, origin = value["verdict"], value["origin"]
        return cls(
            value["title"],
            value["anchor"],
            value["question"],
            [_block_from(each) for each in value["blocks"]],
            value["lead"],
            None if verdict is None else Verdict.from_dict(verdict),
            None if origin is None else origin_from(origin),
        )


def _block_from(value: Mapping[str, Any]) -> Block:
    kind = value["kind"]
    if kind not in BLOCKS:
        raise ValueError(f"expected a block of {', '.join(BLOCKS)}, found {kind!r}")
    return BLOCKS[kind].from_dict(value)


def _cell_from(value: Any) -> Cell:
    return score_from(value) if isinstance(value, dict) else checked(value)
