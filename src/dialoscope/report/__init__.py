"""Results for people: sections of prose, tables, charts and transcripts, on one page that works offline.

An instrument makes a `Section` of its result; `write_run` stores it with the numbers; `render` joins the
sections of any number of runs into one page.
"""

from dialoscope.report.html import render
from dialoscope.report.run import Run, read_run, write_run
from dialoscope.report.section import (
    Block,
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
    Verdict,
)

__all__ = [
    "Block",
    "Chart",
    "Column",
    "Fact",
    "Facts",
    "Mark",
    "Part",
    "Prose",
    "Run",
    "Section",
    "ShownTurn",
    "Table",
    "Transcript",
    "Verdict",
    "read_run",
    "render",
    "write_run",
]
