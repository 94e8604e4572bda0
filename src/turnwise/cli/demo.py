"""`turnwise demo`: every instrument on the built-in corpus, one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwise.cli.console import Json, Quiet, print_json, working
from turnwise.study import run_study

EPILOG = "Try: turnwise demo  ·  turnwise demo --out /tmp/demo --json"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and the runs behind it.")] = Path("demo"),
    dialogues: Annotated[
        int, typer.Option("--dialogues", min=50, max=1_000_000, help="Size of the built-in corpus.")
    ] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same report.")] = 7,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every instrument on the built-in corpus and write one report."""
    from turnwise.corpus import generate

    with working("writing the built-in corpus", quiet=quiet or json):
        corpus = generate(dialogues=dialogues, seed=seed)
    with working("running the instruments", quiet=quiet or json):
        study = run_study(corpus, out, seed=seed)
    if json:
        print_json(study.to_dict())
        return
    for name, verdict in study.verdicts.items():
        typer.echo(f"{name}: {verdict}")
    typer.echo(f"The report is at {study.report}")
