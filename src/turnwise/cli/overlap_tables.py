"""What people see of a measured overlap: shares over thresholds, and scores on the parts of a test set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from turnwise.cli.console import print_table

if TYPE_CHECKING:
    from pathlib import Path

    from turnwise.overlap import Contamination, OverlapResult


def print_measured(result: OverlapResult, scores: Contamination | None, threshold: float, out: Path | None) -> None:
    """Shares, the scores on the parts where there are any, and where the rest is."""
    print_shares(result, threshold)
    if scores is not None:
        print_scores(scores)
    if out is not None:
        typer.echo(f"The report is at {out / 'report.html'}; other thresholds: turnwise overlap show {out}")


def print_shares(result: OverlapResult, threshold: float) -> None:
    """Units over each threshold, the closest first."""
    from turnwise.overlap.result import with_threshold

    rows = [["identical", result.identical, 100 * result.identical_share]]
    for limit in reversed(with_threshold(threshold)):
        rows.append([f"over {limit:g}", result.count_over(limit), 100 * result.share_over(limit)])
    other = "the rest" if result.is_within else f"{result.n_train:,}"
    print_table(
        ["overlap", f"{result.unit}s", "percent"], rows, title=f"{result.n_test:,} {result.unit}s against {other}"
    )


def print_scores(scores: Contamination) -> None:
    """Each metric on the full, the clean and the leaked part, and why some have no interval."""
    parts = [f"{part} ({count:,})" for part, count in scores.counts.items()]
    print_table(["metric", "unit", *parts], scores.lines(), title=scores.caption)
    for note in scores.remarks:
        typer.echo(note)
