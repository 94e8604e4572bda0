"""Small functions from numbers to a `Chart`: histogram, bars, lines with bands, heatmap, scatter.

Figures are plain dicts (see `figure`), so nothing heavy is imported until a page is written. Values may be
numbers, scores or None; a score brings its interval as a whisker or a band, and its n to the text that is
shown when a mark is touched. Colours are the light ones of `theme`; the page swaps them in the dark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from dialoscope.report import figure
from dialoscope.report.cell import Number, common_format, in_one_line, write_number
from dialoscope.report.figure import Axis, Json, Value, label
from dialoscope.report.section import Chart
from dialoscope.report.theme import QUIET

__all__ = ["Axis", "grouped_bars", "heatmap", "histogram", "interval_bars", "label", "lines", "scatter"]

BARE = Axis()
COUNTS = Axis(number_format=",d")
WRITTEN_CELLS = 300  # a heatmap with more has no room for its numbers


def histogram(
    edges: Sequence[float],
    counts: Mapping[str, Sequence[Number]],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    y: Axis = COUNTS,
    marks: Mapping[str, float] | None = None,
    is_open: bool = False,
    is_half: bool = False,
) -> Chart:
    """Counts in bins, one set of bars for each name; `marks` are named places on the x axis, such as thresholds.

    Bin i reaches from ``edges[i]`` to ``edges[i + 1]``; the last bin of an open histogram holds all the rest.
    """
    names = figure.bin_names(edges, x.number_format, is_open=is_open)
    data = []
    for place, (name, heights) in enumerate(counts.items()):
        words = names if len(counts) == 1 else [f"{each}, {name}" for each in names]
        bars = figure.bins(edges, heights, name, place) | _words(words, heights, y.number_format)
        data += [bars] if len(counts) == 1 else figure.contour(bars, edges, place)
    low, high = x.range or (edges[0], edges[-1])
    layout = figure.frame(replace(x, range=(low, high)), y, series=len(counts)) | {"barmode": "overlay"}
    layout["yaxis"] |= {"rangemode": "tozero"}
    layout |= figure.named_lines(marks or {}, middle=(low + high) / 2)
    return Chart({"data": data, "layout": layout}, title, description, is_half)


def grouped_bars(
    categories: Sequence[str],
    series: Mapping[str, Sequence[Value]],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    y: Axis = BARE,
    is_half: bool = False,
) -> Chart:
    """Bars side by side at each category, one colour for each series."""
    form = y.number_format or figure.format_of(series)
    data = [
        figure.bars(values, name, place) | _words([f"{each}, {name}" for each in categories], values, form)
        for place, (name, values) in enumerate(series.items())
    ]
    layout = figure.frame(x, y, series=len(series)) | {"barmode": "group", "bargap": 0.28, "bargroupgap": 0.06}
    layout["xaxis"] |= figure.category_ticks(categories)
    return Chart({"data": data, "layout": layout}, title, description, is_half)


def interval_bars(
    values: Mapping[str, Value],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    controls: Collection[str] = (),
    marks: Mapping[str, float] | None = None,
    is_half: bool = False,
) -> Chart:
    """Lying bars with whiskers, one for each name; controls are grey, what could not be computed says so."""
    names, cells = list(values), list(values.values())
    colours = [QUIET[0] if name in controls else figure.colour_at(0) for name in names]
    bar = figure.lying_bars(cells, colours) | _words(names, cells, x.number_format or common_format(cells))
    layout = figure.frame(x, BARE, rows=len(names)) | {"bargap": 0.42} | figure.named_lines(marks or {})
    layout["xaxis"] |= {"showgrid": True, "zeroline": True}
    layout["yaxis"] |= figure.category_ticks(names, is_downward=True)
    layout["annotations"] += figure.missing_notes(cells)
    return Chart({"data": [bar], "layout": layout}, title, description, is_half)


def lines(
    places: Sequence[Number | str],
    series: Mapping[str, Sequence[Value]],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    y: Axis = BARE,
    controls: Collection[str] = (),
    is_half: bool = False,
) -> Chart:
    """A line for each series over the same places; intervals become bands, what is missing a gap."""
    named = [str(place) for place in places] if any(isinstance(place, str) for place in places) else []
    at = list(range(len(places))) if named else [place for place in places if not isinstance(place, str)]
    form = y.number_format or figure.format_of(series)
    colours = [QUIET[0] if name in controls else figure.colour_at(place) for place, name in enumerate(series)]
    data = [
        trace
        for place, (name, values) in enumerate(series.items())
        for trace in _line_and_band(at, values, name, colours[place], place, form)
    ]
    layout = figure.frame(x, y, series=len(series)) | {"hovermode": "x unified", "hoverdistance": -1}
    layout["xaxis"] |= figure.category_ticks(named) if named else {}
    return Chart({"data": data, "layout": layout}, title, description, is_half)


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[Value]],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    y: Axis = BARE,
    value: Axis = BARE,
    middle: float | None = None,
    is_half: bool = False,
) -> Chart:
    """A grid of coloured cells; `middle` gives two colours, one for below and one for above it."""
    flat = [cell for row in values for cell in row]
    grid = figure.grid(rows, columns, values, value.number_format or common_format(flat))
    grid |= figure.colour_scale(flat, value, middle)
    grid |= {"texttemplate": "%{text}"} if len(flat) <= WRITTEN_CELLS else {}
    layout = figure.frame(x, y, rows=len(rows), head=8)
    layout["height"] += figure.room_below(columns)
    layout["xaxis"] |= figure.category_ticks(columns)
    layout["yaxis"] |= figure.category_ticks(rows, is_downward=True)
    return Chart({"data": [grid], "layout": layout}, title, description, is_half)


def scatter(
    points: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    description: str,
    x: Axis = BARE,
    y: Axis = BARE,
    texts: Mapping[str, Sequence[str]] | None = None,
    is_half: bool = False,
) -> Chart:
    """Points in one colour and shape for each name; `texts` are shown when a point is touched."""
    data = [
        figure.points(pairs, name, place) | _point_words(pairs, (texts or {}).get(name), x, y)
        for place, (name, pairs) in enumerate(points.items())
    ]
    layout = figure.frame(x, y, series=len(points))
    layout["xaxis"] |= {"showgrid": True}
    layout["yaxis"] |= {"zeroline": False}
    return Chart({"data": data, "layout": layout}, title, description, is_half)


def _words(names: Sequence[str], values: Sequence[Value], form: str) -> Json:
    return figure.hover([f"{name}: {in_one_line(value, form)}" for name, value in zip(names, values, strict=True)])


def _line_and_band(
    at: Sequence[Number], values: Sequence[Value], name: str, colour: str, place: int, form: str
) -> list[Json]:
    """The band first, so that the line lies on top of it."""
    bands = [figure.band(at, values, name, colour, place)] if figure.has_interval(values) else []
    words = figure.hover([in_one_line(value, form) for value in values], has_name=True)
    return [*bands, figure.line(at, values, name, colour, place) | words]


def _point_words(pairs: Sequence[tuple[float, float]], texts: Sequence[str] | None, x: Axis, y: Axis) -> Json:
    forms = [axis.number_format or common_format([pair[place] for pair in pairs]) for place, axis in enumerate((x, y))]
    places = [
        f"({', '.join(write_number(each, form) for each, form in zip(pair, forms, strict=True))})" for pair in pairs
    ]
    words = [f"{text} {place}" for text, place in zip(texts, places, strict=True)] if texts else places
    return figure.hover(words, has_name=True)
