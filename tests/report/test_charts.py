from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from dialoscope.record import Score
from dialoscope.report import Chart, Section, charts, figure
from dialoscope.report.charts import Axis
from dialoscope.report.theme import QUIET, SERIES, dark_counterparts

WORDS: dict[str, Any] = {"title": "Title", "description": "What it shows."}


def _charts(section: Section) -> list[Chart]:
    return [block for block in section.blocks if isinstance(block, Chart)]


def test_every_chart_is_one_that_plotly_knows(section: Section) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for chart in _charts(section):
        figure = graph_objects.Figure(chart.figure)  # refuses every key and value it does not know
        assert len(figure.data) == len(chart.figure["data"])


def test_every_colour_of_a_chart_has_a_dark_counterpart(section: Section) -> None:
    known = set(dark_counterparts())
    for chart in _charts(section):
        assert {colour for colour in _colours(chart.figure) if colour.startswith("#")} <= known


def _colours(value: Any, key: str = "") -> list[str]:
    if isinstance(value, str):
        return [value] if "color" in key else []
    items = (
        value.items() if isinstance(value, dict) else [(key, each) for each in value] if isinstance(value, list) else []
    )
    return [colour for name, each in items for colour in _colours(each, name if "color" not in key else key)]


def test_plotly_reads_no_markup_in_what_users_wrote(hostile_section: Section) -> None:
    for chart in _charts(hostile_section):
        figure = json.dumps(chart.figure).replace("<br>", "").replace("<extra></extra>", "")
        assert "<" not in figure


def test_words_of_users_never_enter_a_template() -> None:
    chart = charts.interval_bars({"%{x} evil": 1.0}, **WORDS)
    assert chart.figure["data"][0]["hovertemplate"] == "%{customdata}<extra></extra>"


def test_importing_the_report_imports_neither_plotly_nor_jinja() -> None:
    code = "import sys, dialoscope.report.charts as c; print({'plotly', 'jinja2'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_bars_of_a_histogram_stand_in_the_middle_of_their_bins() -> None:
    bars = charts.histogram([0, 0.5, 1], {"test": [3, 4]}, **WORDS).figure["data"][0]
    assert (bars["x"], bars["y"]) == ([0.25, 0.75], [3, 4])


def test_a_bin_of_whole_numbers_is_named_by_them() -> None:
    chart = charts.histogram([0.5, 1.5, 3.5, 5.5], {"": [9, 8, 7]}, x=Axis(number_format=",d"), is_open=True, **WORDS)
    assert chart.figure["data"][0]["customdata"] == ["1: 9", "2–3: 8", "4 or more: 7"]


def test_a_histogram_with_too_few_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 3 edges for 2 bins, found 2"):
        charts.histogram([0, 1], {"test": [3, 4]}, **WORDS)


def test_two_histograms_are_told_apart_by_a_line_along_their_tops() -> None:
    data = charts.histogram([0, 1, 2], {"a": [3, 4], "b": [1, 2]}, **WORDS).figure["data"]
    tops = [(trace["x"], trace["y"]) for trace in data if trace["type"] == "scatter"]
    assert tops == [([0, 0, 1, 2], [0, 3, 4, 0]), ([0, 0, 1, 2], [0, 1, 2, 0])]


def test_whiskers_reach_from_the_value_to_both_bounds() -> None:
    bars = charts.interval_bars({"a": Score(0.5, 10, (0.25, 1.0)), "b": 0.5}, **WORDS).figure["data"][0]
    assert (bars["error_x"]["arrayminus"], bars["error_x"]["array"]) == ([0.25, None], [0.5, None])


def test_a_bar_tells_value_interval_and_n() -> None:
    bars = charts.interval_bars({"a": Score(0.5, 10, (0.25, 1.0))}, x=Axis(number_format=".2f"), **WORDS).figure[
        "data"
    ][0]
    assert bars["customdata"] == ["a: 0.50 [0.25, 1.00] (n=10)"]


def test_a_bar_that_is_missing_says_why_in_its_place() -> None:
    layout = charts.interval_bars({"a": 1.0, "b": Score.missing("too short")}, **WORDS).figure["layout"]
    assert [(note["text"], note["y"]) for note in layout["annotations"]] == [("not computed: too short", 1)]


def test_controls_are_grey() -> None:
    bars = charts.interval_bars({"ours": 1.0, "random": 2.0}, controls=["random"], **WORDS).figure["data"][0]
    assert bars["marker"]["color"] == [SERIES[0][0], QUIET[0]]


def test_equal_names_stay_two_bars() -> None:
    chart = charts.grouped_bars(["2020-01", "2020-01"], {"a": [1, 2]}, **WORDS)
    assert chart.figure["data"][0]["x"] == [0, 1]


def test_a_band_goes_along_the_top_and_back_along_the_bottom_and_breaks_where_a_score_is_missing() -> None:
    scores = [Score(2, 5, (1, 3)), Score(3, 5, (2, 4)), None, Score(5, 5, (4, 6))]
    band = charts.lines([0, 1, 2, 3], {"a": scores}, **WORDS).figure["data"][0]
    assert band["x"] == [0, 1, 1, 0, None, 3, 3]
    assert band["y"] == [3, 4, 2, 1, None, 6, 4]


def test_lines_differ_in_dash_and_mark_as_well_as_in_colour() -> None:
    data = charts.lines([0, 1], {"a": [1, 2], "b": [2, 1]}, **WORDS).figure["data"]
    assert data[0]["line"]["dash"] != data[1]["line"]["dash"]
    assert data[0]["marker"]["symbol"] != data[1]["marker"]["symbol"]


def test_a_grid_with_a_middle_reaches_equally_far_to_both_sides() -> None:
    grid = charts.heatmap(["a"], ["x", "y"], [[-0.1, 0.4]], middle=0, **WORDS).figure["data"][0]
    assert (grid["zmin"], grid["zmax"]) == (-0.4, 0.4)


def test_a_grid_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 rows of 2 values"):
        charts.heatmap(["a"], ["x", "y"], [[1]], **WORDS)


def test_a_long_name_is_wrapped_and_cut() -> None:
    shown = charts.label("one two three four five six", width=10)
    assert shown == "one two<br>three …"


def test_a_dozen_series_of_points_are_told_apart() -> None:
    marks = [figure.points([(0.0, 0.0)], "labels", place)["marker"] for place in range(12)]
    assert len({(one["color"], one["symbol"]) for one in marks}) == 12
