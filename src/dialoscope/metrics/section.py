"""The metrics section of the report: every metric of every system, and the comparisons between them."""

from __future__ import annotations

from collections.abc import Iterator

from dialoscope.metrics.result import MetricsResult
from dialoscope.metrics.score import METRICS
from dialoscope.record import direction
from dialoscope.report.cell import Cell, p_cell
from dialoscope.report.section import Block, Column, Fact, Facts, Prose, Section, Table

LARGE = 4  # metrics shown in large letters


def section_of(result: MetricsResult) -> Section:
    """A result as a section of a page."""
    return Section(
        title="Metrics",
        anchor="metrics",
        question="How good are the responses?",
        blocks=list(_blocks(result)),
        lead=f"{result.verdict.text} {result.used}",
        verdict=result.card,
        origin=result.origin,
    )


def _blocks(result: MetricsResult) -> Iterator[Block]:
    scores = result.system_scores[result.system]
    yield Facts([Fact(name, score, METRICS[name].unit) for name, score in list(scores.items())[:LARGE]])
    yield scores_table(result)
    for other in result.comparisons:
        yield comparison_table(result, other)
    if example := result.example():
        yield Prose(example.replace("\n", "\n\n"), heading="The response that scores lowest")


def scores_table(result: MetricsResult) -> Table:
    """A row for each metric, a column for each system, and what each comparison found."""
    names = dict.fromkeys(metric for scores in result.system_scores.values() for metric in scores)
    rows: list[list[Cell]] = []
    for name in names:
        row: list[Cell] = [name, METRICS[name].unit]
        row += [scores.get(name) for scores in result.system_scores.values()]
        for comparisons in result.comparisons.values():
            found = comparisons.get(name)
            row.append(None if found is None else p_cell(found.p_holm, n=found.difference.n, reason=found.reason))
        rows.append(row)
    systems = [Column(system, ".4g") for system in result.system_scores]
    tests = [Column(f"p against {other}", ".2g") for other in result.comparisons]
    notes = list(result.notes)
    if tests:
        notes.insert(0, "p-values are two-sided, by the same dialogues, with Holm's correction over the whole table.")
    columns: list[str | Column] = ["metric", "unit", *systems, *tests]
    return Table(columns, rows, "Scores of the responses", notes=notes, name="scores")


def comparison_table(result: MetricsResult, other: str) -> Table:
    """The difference to another system for each metric, and how easily chance would give one as large."""
    rows: list[list[Cell]] = []
    for name, found in result.comparisons[other].items():
        better = {"high": "higher", "low": "lower", "neither": "neither"}[direction(name)]
        p = p_cell(found.p_value, n=found.difference.n, reason=found.reason)
        corrected = p_cell(found.p_holm, n=found.difference.n, reason=found.reason)
        rows.append([name, found.difference, better, p, corrected, found.test])
    columns: list[Column | str] = [
        "metric",
        Column("difference", ".4g"),
        "better",
        Column("p", ".2g"),
        Column("p (Holm)", ".2g"),
        "test",
    ]
    return Table(columns, rows, f"{result.system} minus {other}", name=f"against {other}")
