"""`dialoscope demo`: a study of the built-in corpus and real conversations, with two small models, on one page."""

from __future__ import annotations

from pathlib import Path

import typer

from dialoscope.cli.arguments import Output, command
from dialoscope.cli.console import working
from dialoscope.cli.steps import StepBars
from dialoscope.cli.study import finish_study
from dialoscope.study.settings import DemoSettings


def demo(settings: DemoSettings, output: Output) -> None:
    """Ask the main questions about the built-in corpus and write one page; called again, only what is missing."""
    from importlib.resources import as_file, files

    from dialoscope.corpus import generate
    from dialoscope.study.plan import read_plan
    from dialoscope.study.run import run

    with working("writing the built-in corpus", quiet=output.is_quiet):
        corpus = generate(dialogues=settings.dialogues, seed=settings.seed)
    with as_file(files("dialoscope.study") / "demo.toml") as path:
        plan = read_plan(path)
    with StepBars(quiet=output.is_quiet) as bars:
        study = run(plan, output.folder or Path("demo"), corpora={"concierge": corpus}, watcher=bars)
    finish_study(study, is_json=output.json)


def add_commands(main: typer.Typer) -> None:
    """Add the command to the program."""
    command(main, "demo", demo, examples=["demo", "demo --out /tmp/demo --json"])
