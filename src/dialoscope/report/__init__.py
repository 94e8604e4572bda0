"""Results for people: sections of prose, tables, charts and transcripts, on one page that works offline.

Every question answers with a `Result`, which makes a `Section` of itself; `render` joins the sections of any number of
results into one page.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.report.html import render
    from dialoscope.report.result import Result
    from dialoscope.report.section import Block as Block
    from dialoscope.report.section import Card as Card
    from dialoscope.report.section import Chart as Chart
    from dialoscope.report.section import Column as Column
    from dialoscope.report.section import Fact as Fact
    from dialoscope.report.section import Facts as Facts
    from dialoscope.report.section import Mark as Mark
    from dialoscope.report.section import Part as Part
    from dialoscope.report.section import Prose as Prose
    from dialoscope.report.section import Section as Section
    from dialoscope.report.section import ShownTurn as ShownTurn
    from dialoscope.report.section import Table as Table
    from dialoscope.report.section import Transcript as Transcript

__all__ = [
    "Result",
    "render",
]
make_lazy(
    __name__,
    {
        "html": ("render",),
        "result": ("Result",),
        "section": (
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
        ),
    },
)
