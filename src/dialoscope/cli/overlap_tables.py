"""What people see of a measured overlap: shares over thresholds, and scores on the parts of a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from dialoscope.cli.console import print_table

if TYPE_CHECKING:
    from dialoscope.overlap import Contamination, OverlapResult
    from dialoscope.overlap.pairs import OverlapPairs


def print_measured(result: OverlapResult, scores: Contamination | None, threshold: float, out: Path | None) -> None:
    """Shares, the scores on the parts where there are any, and where the rest is."""
    print_shares(result, threshold)
    if scores is not None:
        print_scores(scores)
    if out is not None:
        typer.echo(
            f"The report is at {out / 'report.html'}; other thresholds: dialoscope overlap show {quote(str(out))}"
        )


def print_shares(result: OverlapResult, threshold: float) -> None:
    """Units over each threshold, the closest first."""
    from dialoscope.overlap.result import with_threshold

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


def print_kept_scores(kept: Mapping[str, Any], threshold: float) -> None:
    """The scores that a run kept; other thresholds would need the hypotheses again."""
    from dialoscope.overlap.output import kept_contamination

    scores = kept_contamination(kept)
    print_scores(scores)
    if scores.threshold != threshold:
        typer.echo(f"Scores are those at the run's threshold, {scores.threshold:g}; for {threshold:g}, measure again.")


def print_pairs(found: OverlapPairs, shown: Sequence[Mapping[str, Any]]) -> None:
    """Some pairs, and how many there are."""
    others = "" if found.other_units is None else f" and {found.other_units:,}"
    title = f"{len(found):,} pairs among {found.units:,}{others} units"
    order = "highest ratio first" if found.is_whole else "in the order of the corpus"
    if len(found) > len(shown):
        title += f" (first {len(shown)} of {len(found):,}, {order})"
    print_table(
        ["first", "second", "ratio"], [[row["first"], row["second"], row["ratio"]] for row in shown], title=title
    )


def print_left_out(left_out: Mapping[str, Any], most: int = 8) -> None:
    """What was not read: a line for each reason, and one for each file."""
    for reason, count in sorted(left_out.get("skipped", {}).items(), key=lambda item: -item[1]):
        typer.echo(f"skipped: {count:,} × {reason}")
    files = list(left_out.get("ignored", {}).items())
    for file, why in files[:most]:
        typer.echo(f"not read as dialogues: {Path(file).name} ({why})")
    if len(files) > most:
        typer.echo(f"not read as dialogues: {len(files) - most:,} more, see --json")
