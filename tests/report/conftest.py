from __future__ import annotations

from typing import Any

import pytest

from dialoscope.record import Origin, Score
from dialoscope.report import (
    Card,
    Chart,
    Column,
    Fact,
    Facts,
    Mark,
    Prose,
    Section,
    ShownTurn,
    Table,
    Transcript,
    charts,
)

HOSTILE = (
    "<script>alert(1)</script></script></style><!-- {{ 7 * 7 }} {% raw %} \"double\" 'single' & &amp; "
    "<img src=x onerror=alert(2)> <a href='https://evil.example/'>x</a> \\u003c 😀 \u2028 ]]> end"
)


@pytest.fixture
def hostile() -> str:
    """Everything a user may have written that would like to be more than text."""
    return HOSTILE


def section_of(text: str, anchor: str = "all") -> Section:
    """A section with a block of every kind, with this text wherever text can stand."""
    score = Score(0.25, 40, (0.2, 0.3), signature="v:1")
    table = Table(
        [text, Column("Score", ".2f", best="high"), Column("Count")],
        [[text, score, 3], ["b", Score(0.5, 40, (0.4, 0.6)), 10], ["c", Score.missing(text), None]],
        text,
        notes=[text],
        highlight=[1],
        name="scores",
    )
    turns = [
        ShownTurn(text, text, 0.9, is_outlined=True, marks=[Mark(0, 3)], tag=text),
        ShownTurn("B", "Hello there.", 0.1, marks=[Mark(6, 11)]),
        ShownTurn("A", "Bye."),
    ]
    return Section(
        text,
        anchor,
        text,
        [
            Facts([Fact(text, score, text), Fact("Dialogues", 13118), Fact("Name", text)]),
            Prose(f"{text}\n\nSecond paragraph.", text),
            table,
            *chart_of_each_kind(text),
            Transcript(turns, text, text, shade=text, outline=text, mark=text),
        ],
        lead=text,
        verdict=Card(text, score, "cannot_tell", ".1%"),
        origin=Origin(corpus="demo@0123456789ab", settings={"note": text, "folds": (1, 2)}, seed=7, version="0.1.0"),
    )


def chart_of_each_kind(text: str) -> list[Chart]:
    """One chart from every function of `charts`, with this text in all its labels."""
    axis = charts.Axis(text)
    scores = [Score(0.4, 9, (0.3, 0.5)), None, Score(0.6, 9, (0.5, 0.7)), Score.missing(text)]
    names = [text, "b", "c", "d"]
    words: dict[str, Any] = {"description": text, "x": axis}
    return [
        charts.histogram([0, 0.5, 1], {text: [3, 4]}, title=f"histogram {text}", marks={text: 0.75}, **words),
        charts.histogram([0, 1, 2], {text: [3, 4], "b": [1, 1]}, title=f"two histograms {text}", is_half=True, **words),
        charts.grouped_bars(names, {text: scores, "b": [1, 2, 3, 4]}, title=f"groups {text}", is_half=True, **words),
        charts.interval_bars(
            dict(zip(names, scores, strict=True)), title=f"bars {text}", controls=["b"], marks={text: 0.5}, **words
        ),
        charts.lines([0, 1, 2, 3], {text: scores, "b": [1, 2, 3, 4]}, title=f"lines {text}", controls=["b"], **words),
        charts.lines(names, {text: scores}, title=f"named lines {text}", y=axis, **words),
        charts.heatmap(names, ["x", text], [[0.1, 0.2]] * 4, title=f"heatmap {text}", value=axis, **words),
        charts.heatmap(["a"], ["x", text], [[-0.1, None]], title=f"diverging {text}", middle=0, **words),
        charts.scatter(
            {text: [(0, 1), (2, 3)], "b": [(1, 1)]}, title=f"scatter {text}", texts={text: [text, ""]}, **words
        ),
    ]


@pytest.fixture
def section() -> Section:
    """A section with a block of every kind."""
    return section_of("Plain words")


@pytest.fixture
def hostile_section() -> Section:
    """The same, with hostile text everywhere."""
    return section_of(HOSTILE)
