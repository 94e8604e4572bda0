"""`dialoscope metrics`: score responses against references, and against another system's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialoscope.cli.console import Json, Quiet, print_json, print_table, working
from dialoscope.errors import UsageError
from dialoscope.metrics import DEFAULT_METRICS, METRICS, score_files

EPILOG = "Try: dialoscope metrics hyp.txt ref.txt  ·  dialoscope metrics a.jsonl ref.jsonl --compare b.jsonl --json"


def metrics(
    hypotheses: Annotated[
        Path | None, typer.Argument(help="Responses: text (one a line), JSONL or Parquet.", metavar="HYPOTHESES")
    ] = None,
    references: Annotated[
        Path | None, typer.Argument(help="References, in the same order.", metavar="REFERENCES")
    ] = None,
    names: Annotated[
        str, typer.Option("--metrics", help="Names separated by commas, or 'all'. What there is: --list.")
    ] = ",".join(DEFAULT_METRICS),
    compare: Annotated[Path | None, typer.Option("--compare", help="Another system's responses.")] = None,
    column: Annotated[str | None, typer.Option("--column", help="Column of the responses.")] = None,
    reference_column: Annotated[str | None, typer.Option("--reference-column", help="Of the references.")] = None,
    dialogue_column: Annotated[
        str | None, typer.Option("--dialogue-column", help="Whole dialogues are resampled, not single responses.")
    ] = None,
    tokeniser: Annotated[str, typer.Option("--tokeniser", help="sacreBLEU's 13a, or a paper's.")] = "13a",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Compare without case.")] = False,
    interval: Annotated[str, typer.Option("--interval", help="jackknife, percentile or bca.")] = "jackknife",
    test: Annotated[str, typer.Option("--test", help="With --compare: randomisation or bootstrap.")] = "randomisation",
    resamples: Annotated[int, typer.Option("--resamples", min=100, help="Of the bootstrap and the test.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same intervals.")] = 0,
    is_listing: Annotated[
        bool, typer.Option("--list", help="List the metrics, their units and what they are.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score responses against references: every number with its n, its interval and its signature."""
    if is_listing:
        list_metrics(json=json)
        return
    if hypotheses is None or references is None:
        raise UsageError("metrics needs two files, HYPOTHESES and REFERENCES. See: dialoscope metrics --help")
    with working("scoring", quiet=quiet or json):
        result = score_files(
            hypotheses,
            references,
            metrics=list(METRICS) if names == "all" else names.replace(",", " ").split(),
            compare=compare,
            column=column,
            reference_column=reference_column,
            dialogue_column=dialogue_column,
            tokeniser=tokeniser,
            lowercase=lowercase,
            interval=interval,
            test=test,
            resamples=resamples,
            seed=seed,
        )
    if json:
        print_json(result.to_dict())
        return
    heading, *rows = result.table()
    print_table(heading, rows)
    for note in result.notes:
        typer.echo(note)


def list_metrics(*, json: bool) -> None:
    """Every metric with its unit and what it is."""
    if json:
        print_json({"metrics": {name: {"unit": one.unit, "about": one.about} for name, one in METRICS.items()}})
        return
    print_table(("metric", "unit", "what it is"), [(name, one.unit, one.about) for name, one in METRICS.items()])
