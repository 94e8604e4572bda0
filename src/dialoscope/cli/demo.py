"""`dialoscope demo`: a study of every instrument on the built-in corpus and real conversations, one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialoscope.cli.console import Json, Quiet, working
from dialoscope.cli.steps import StepBars
from dialoscope.cli.study import end_with

EPILOG = "Try: dialoscope demo  ·  dialoscope demo --out /tmp/demo --json"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and the runs behind it.")] = Path("demo"),
    dialogues: Annotated[
        int, typer.Option("--dialogues", min=50, max=1_000_000, help="Size of the built-in corpus.")
    ] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the built-in corpus. Same seed, same report.")] = 7,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every instrument on the built-in corpus and write one report; called again, only what is missing."""
    from dialoscope.corpus import generate
    from dialoscope.study import run_study
    from dialoscope.study.demonstration import demo_plan

    with working("writing the built-in corpus", quiet=quiet or json):
        corpus = generate(dialogues=dialogues, seed=seed)
    with StepBars(quiet=quiet or json) as bars:
        study = run_study(demo_plan(), out, given={"concierge": corpus}, watcher=bars)
    end_with(study, json=json)
