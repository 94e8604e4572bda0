"""The pieces of Plotly figures as plain dicts, in Plotly's own words: frame, axes, bars, lines, grids, points.

Labels go through `label`: Plotly reads a little HTML in its texts, and what users wrote must stay text.
Categories are drawn at whole numbers and named by the ticks: Plotly would read "2020-01" as a date, "1e5" as a
number and two equal names as one bar.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dialoscope.record import Score
from dialoscope.report.cell import Number, checked_format, common_format, in_one_line, number_in, write_number
from dialoscope.report.theme import DIVERGING, INK, MUTED, QUIET, SEQUENTIAL, SERIES

Value = Number | Score | None
Json = dict[str, Any]

HEIGHT = 340
ROW_HEIGHT = 30  # of a horizontal bar or a heatmap's row
TICK_WIDTH = 24  # characters in a line of a category's name
NOTE_SIZE = 12
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# One more than there are colours, so that the seventh series has a colour that is taken in a shape of its own.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down")
BAND_OPACITY = 0.16
TINT_OPACITY = 0.32  # of bars that something is drawn over: whiskers, other bars


@dataclass(frozen=True)
class Axis:
    """What an axis measures and how its numbers are written."""

    title: str = ""
    number_format: str = ""  # as in Python: ",d", ".0%"; Plotly reads the same
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        checked_format(self.number_format)


def label(text: str, *, width: int = 0) -> str:
    """Text that Plotly shows as it is; with a width, in two lines of at most so many characters.

    >>> label("<b>hello</b>")
    '&lt;b&gt;hello&lt;/b&gt;'
    """
    lines = textwrap.wrap(text, width, max_lines=2, placeholder=" …") if width else [text]
    return "<br>".join(line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines)


def colour_at(place: int) -> str:
    """The colour of the series at this place; they begin anew after the last."""
    return SERIES[place % len(SERIES)][0]


def frame(x: Axis, y: Axis, *, series: int = 1, rows: int = 0, head: int = 28) -> Json:
    """The layout all charts share; horizontal ones grow with their rows."""
    return {
        "height": max(180, rows * ROW_HEIGHT + head + 64) if rows else HEIGHT,
        "margin": {"l": 8, "r": 20, "t": head, "b": 8},
        "showlegend": series > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "xaxis": {**_axis(x), "showgrid": False, "zeroline": False, "ticklabeloverflow": "allow"},
        "yaxis": _axis(y),
    }


def _axis(axis: Axis) -> Json:
    shown: Json = {"title": {"text": label(axis.title)}, "automargin": True}
    if axis.number_format:
        shown["tickformat"] = axis.number_format
    if axis.range:
        shown["range"] = list(axis.range)
    return shown


def category_ticks(names: Sequence[str], *, is_downward: bool = False) -> Json:
    """An axis with a name at each whole number; a downward one has the first name on top."""
    ends = [-0.5, len(names) - 0.5]
    texts = [label(name, width=TICK_WIDTH) for name in names]
    ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": texts}
    # Slanted names end at their tick; the other way round the last one would leave the picture.
    slant = {} if is_downward else {"autotickangles": [0, -35, -90]}
    return {**ticks, **slant, "range": ends[::-1] if is_downward else ends, "zeroline": False, "showgrid": False}


def room_below(names: Sequence[str]) -> int:
    """Pixels that names need below a grid where they have to slant, as on a phone."""
    longest = max((len(line) for name in names for line in label(name, width=TICK_WIDTH).split("<br>")), default=0)
    return min(110, 5 * longest)


def format_of(series: Mapping[str, Sequence[Value]]) -> str:
    """One number format for all values of all series."""
    return common_format([value for values in series.values() for value in values])


def hover(words: Sequence[str], *, has_name: bool = False) -> Json:
    """What is shown when a mark is touched; words go in as data, never into the template."""
    template = "%{customdata}" if has_name else "%{customdata}<extra></extra>"
    return {"customdata": [label(word) for word in words], "hovertemplate": template}


def bins(edges: Sequence[float], counts: Sequence[Number], name: str, place: int) -> Json:
    """Bars that stand on their bins."""
    if len(edges) != len(counts) + 1:
        raise ValueError(f"expected {len(counts) + 1} edges for {len(counts)} bins, found {len(edges)}")
    return {
        "type": "bar",
        "name": label(name),
        "legendgroup": f"series-{place}",
        "x": [(low + high) / 2 for low, high in pairwise(edges)],
        "width": [(high - low) * 0.92 for low, high in pairwise(edges)],
        "y": list(counts),
        "marker": {"color": colour_at(place)},
    }


def contour(bars: Json, edges: Sequence[float], place: int) -> list[Json]:
    """Pale bins under a line along their tops, for histograms that lie on each other."""
    widths = [high - low for low, high in pairwise(edges)]
    tint = {"width": widths, "marker": {"color": faded(colour_at(place), BAND_OPACITY)}, "showlegend": False}
    line = {"color": colour_at(place), "width": 2, "dash": DASHES[place % len(DASHES)], "shape": "hv"}
    steps = {"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"}
    ends = {"x": [edges[0], *edges], "y": [0, *bars["y"], 0]}
    return [bars | tint, {**steps, **ends, "name": bars["name"], "legendgroup": bars["legendgroup"]}]


def bin_names(edges: Sequence[float], number_format: str, *, is_open: bool) -> list[str]:
    """Each bin in words; the last of an open histogram has no end."""
    form = number_format or common_format(list(edges))
    names = [_span(low, high, form) for low, high in pairwise(edges)]
    if is_open and names:
        first = math.ceil(edges[-2]) if form.endswith("d") else edges[-2]
        names[-1] = f"{write_number(first, form)} or more"
    return names


def _span(low: float, high: float, form: str) -> str:
    """From 2.5 to 5.5 are the whole numbers 3–5; from 2.5 to 3.5 there is only 3."""
    if form.endswith("d"):
        low, high = math.ceil(low), math.ceil(high) - 1
    first, last = write_number(low, form), write_number(high, form)
    return first if low == high else f"{first}–{last}"


def bars(values: Sequence[Value], name: str, place: int) -> Json:
    """Upright bars at whole numbers, with whiskers where scores have intervals."""
    return {
        "type": "bar",
        "name": label(name),
        "x": list(range(len(values))),
        "y": [number_in(value) for value in values],
        "error_y": whiskers(values),
        "marker": _bar_paint([colour_at(place)], values),
    }


def lying_bars(values: Sequence[Value], colours: Sequence[str]) -> Json:
    """Bars from left to right, each in its own colour."""
    return {
        "type": "bar",
        "orientation": "h",
        "x": [number_in(value) for value in values],
        "y": list(range(len(values))),
        "error_x": whiskers(values),
        "marker": _bar_paint(colours, values),
    }


def _bar_paint(colours: Sequence[str], values: Sequence[Value]) -> Json:
    """Solid bars, or pale ones with an edge where whiskers have to be seen on them."""
    if not has_interval(values):
        return {"color": _one_or_all(colours)}
    pale = [faded(colour, TINT_OPACITY) for colour in colours]
    return {"color": _one_or_all(pale), "line": {"color": _one_or_all(colours), "width": 1.25}}


def _one_or_all(colours: Sequence[str]) -> str | list[str]:
    return colours[0] if len(colours) == 1 else list(colours)


def whiskers(values: Sequence[Value]) -> Json:
    """Error bars that reach from the low to the high end of each interval."""
    bounds = [_bounds(value) for value in values]
    return {
        "type": "data",
        "symmetric": False,
        "array": [bound and bound[1] - bound[2] for bound in bounds],
        "arrayminus": [bound and bound[2] - bound[0] for bound in bounds],
        "color": INK[0],
        "thickness": 1.2,
        "width": 4,
        "visible": any(bounds),
    }


def _bounds(value: Value) -> tuple[float, float, float] | None:
    """Low, high and the value itself, of a score that has them."""
    if isinstance(value, Score) and value.interval and value.value is not None:
        return (*value.interval, value.value)
    return None


def missing_notes(values: Sequence[Value]) -> list[Json]:
    """In place of a lying bar, why there is none."""
    reasons = {place: value.reason for place, value in enumerate(values) if isinstance(value, Score) and value.reason}
    return [
        {**_note(f"not computed: {reason}"), "x": 0, "y": place, "xanchor": "left", "align": "left"}
        for place, reason in reasons.items()
    ]


def named_lines(places: Mapping[str, float], *, middle: float | None = None) -> Json:
    """Upright lines with a name, such as a threshold or what chance would give.

    Names stand above the picture, or, where the legend is, at the line's inner side: to the left of a line
    that is right of the middle.
    """
    stroke = {"color": MUTED[0], "width": 1.5, "dash": "dash"}
    upright = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": stroke}
    return {
        "shapes": [{**upright, "x0": place, "x1": place} for place in places.values()],
        "annotations": [{**_note(name), **_beside(place, middle), "x": place} for name, place in places.items()],
    }


def _beside(place: float, middle: float | None) -> Json:
    at_top = {"xref": "x", "yref": "paper", "y": 1}
    if middle is None:
        return {**at_top, "yanchor": "bottom"}
    side = {"xanchor": "right", "xshift": -4} if place > middle else {"xanchor": "left", "xshift": 4}
    return {**at_top, "yanchor": "top", **side}


def _note(text: str) -> Json:
    return {"text": label(text, width=30), "showarrow": False, "font": {"color": MUTED[0], "size": NOTE_SIZE}}


def line(at: Sequence[Number], values: Sequence[Value], name: str, colour: str, place: int) -> Json:
    """A line with its own dash and its own marks, for those who cannot tell its colour."""
    is_quiet = colour == QUIET[0]
    return {
        "type": "scatter",
        "mode": "lines" if is_quiet else "lines+markers",
        "name": label(name),
        "legendgroup": f"series-{place}",
        "x": list(at),
        "y": [number_in(value) for value in values],
        "line": {"color": colour, "width": 1.5 if is_quiet else 2.25, "dash": DASHES[place % len(DASHES)]},
        "marker": {"color": colour, "size": 6, "symbol": SYMBOLS[place % len(SYMBOLS)]},
    }


def band(at: Sequence[Number], values: Sequence[Value], name: str, colour: str, place: int) -> Json:
    """The intervals around a line; the legend's switch takes it along with the line."""
    outline = list(_outline(at, values))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "legendgroup": f"series-{place}",
        "showlegend": False,
        "x": [x for x, _ in outline],
        "y": [y for _, y in outline],
        "fill": "toself",
        "fillcolor": faded(colour, BAND_OPACITY),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def has_interval(values: Sequence[Value]) -> bool:
    """Whether there is anything to draw a band from."""
    return any(map(_bounds, values))


def _outline(at: Sequence[Number], values: Sequence[Value]) -> Iterator[tuple[Number | None, float | None]]:
    """Around each unbroken stretch: along the top, back along the bottom; a gap between stretches."""
    for number, stretch in enumerate(_stretches(at, values)):
        if number:
            yield None, None
        yield from ((place, high) for place, _, high in stretch)
        yield from ((place, low) for place, low, _ in reversed(stretch))


def _stretches(at: Sequence[Number], values: Sequence[Value]) -> Iterator[list[tuple[Number, float, float]]]:
    """Neighbours that all have an interval: place, low, high."""
    stretch: list[tuple[Number, float, float]] = []
    for place, value in zip(at, values, strict=True):
        bounds = _bounds(value)
        if bounds:
            stretch.append((place, bounds[0], bounds[1]))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def faded(colour: str, opacity: float) -> str:
    """The colour, half seen through."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def grid(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[Value]], form: str) -> Json:
    """A heatmap's cells, with what is written in them and what is shown when one is touched."""
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise ValueError(f"expected {len(rows)} rows of {len(columns)} values")
    words = [
        [label(f"{row}, {column}: {in_one_line(value, form)}") for column, value in zip(columns, cells, strict=True)]
        for row, cells in zip(rows, values, strict=True)
    ]
    return {
        "type": "heatmap",
        "x": list(range(len(columns))),
        "y": list(range(len(rows))),
        "z": [[number_in(value) for value in row] for row in values],
        "text": [[_short(value, form) for value in row] for row in values],
        "customdata": words,
        "hovertemplate": "%{customdata}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
    }


def _short(value: Value, form: str) -> str:
    number = number_in(value)
    return "" if number is None else write_number(number, form)


def colour_scale(values: Sequence[Value], value: Axis, middle: float | None) -> Json:
    """Numbers to colours; a scale with a middle reaches equally far to both sides of it."""
    stops = SEQUENTIAL if middle is None else DIVERGING
    scale = [[place / (len(stops) - 1), light] for place, (light, _) in enumerate(stops)]
    numbers = [number for number in map(number_in, values) if number is not None]
    low, high = value.range or (min(numbers, default=0), max(numbers, default=1))
    if middle is not None:
        reach = max(abs(high - middle), abs(low - middle)) or 1
        low, high = middle - reach, middle + reach
    return {"colorscale": scale, "zmin": low, "zmax": high, "showscale": True, "colorbar": _colour_bar(value)}


def _colour_bar(value: Axis) -> Json:
    """A thin bar above the grid; beside it, it would take a phone's whole width."""
    place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "ypad": 6, "xpad": 0}
    size = {"thickness": 8, "len": 0.5, "outlinewidth": 0, "nticks": 4}
    ticks = {"tickformat": value.number_format} if value.number_format else {}
    return {**place, **size, **ticks, "title": {"text": label(value.title), "side": "top", "font": {"size": NOTE_SIZE}}}


def points(pairs: Sequence[tuple[float, float]], name: str, place: int) -> Json:
    """Points in a colour and a shape of their own."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "x": [pair[0] for pair in pairs],
        "y": [pair[1] for pair in pairs],
        "marker": {"color": colour_at(place), "symbol": SYMBOLS[place % len(SYMBOLS)], "size": 7, "opacity": 0.72},
    }
