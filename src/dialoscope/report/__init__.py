"""Results for people: sections of prose, tables, charts and transcripts, on one page that works offline.

Every result is a `Result` and makes a `Section` of itself; `render` joins sections into one page.
"""

from dialoscope.report.html import render
from dialoscope.report.run import write_run
from dialoscope.report.section import (
    Block,
    Card,
    Chart,
    Column,
    Fact,
    Facts,
    Mark,
    Part,
    Prose,
    Section,
    ShownTurn,
    Table,
    Transcript,
)

__all__ = [
    "Block",
    "Card",
    "Chart",
    "Column",
    "Fact",
    "Facts",
    "Mark",
    "Part",
    "Prose",
    "Section",
    "ShownTurn",
    "Table",
    "Transcript",
    "render",
    "write_run",
]
