"""`dialoscope corpus`: show a corpus, check it, convert it, draw from it, or generate one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from dialoscope.cli.arguments import LAST_GROUP, Corpus, Output, Printing, Reading, command, epilog
from dialoscope.cli.console import print_json, print_table, print_text, working
from dialoscope.corpus.settings import ConciergeSettings, ConvertSettings, ReadSettings, SampleSettings
from dialoscope.settings import BaseSettings, option

if TYPE_CHECKING:
    from dialoscope.corpus.dialogue import Corpus as ReadCorpus
    from dialoscope.corpus.summary import CorpusSummary

app = typer.Typer(
    help="Show a corpus, check it, convert it, draw from it, or generate one.",
    epilog=epilog("corpus show concierge", "corpus formats"),
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class Shown(BaseSettings):
    """What a command does that only prints."""

    json: bool = option(False, "Print the result as JSON.", group=LAST_GROUP)
    quiet: bool = option(False, "No progress bars.", group=LAST_GROUP)

    @property
    def is_quiet(self) -> bool:
        """Whether progress bars are left out."""
        return self.quiet or self.json


@dataclass(frozen=True, kw_only=True)
class CorpusOutput(Output):
    """Where a corpus is written."""

    out: str | None = option(
        None, "A folder, or a file name with the format's ending.", group=LAST_GROUP, metavar="PATH"
    )
    overwrite: bool = option(False, "Replace an earlier corpus.", group=LAST_GROUP)
    json: bool = option(False, "Print counts as JSON.", group=LAST_GROUP)


def show(corpus: Corpus, settings: ReadSettings, reading: Reading, output: Shown) -> None:
    """Show sizes, splits, speakers, lengths and labels of a corpus."""
    data = reading.load(corpus, output, split=settings.split, limit=settings.limit)
    from dialoscope.corpus.summary import summarise

    summary = summarise(data)
    if output.json:
        print_json(summary.to_dict())
        return
    print_summary(summary)
    typer.echo(f"Next: dialoscope overlap measure {reading.words(corpus)}")


def print_summary(summary: CorpusSummary) -> None:
    """Print the tables of a summary."""
    title = f"{summary.name} ({summary.format}), {summary.speakers:,} speakers, fingerprint {summary.fingerprint}"
    columns = ["split", "dialogues", "turns", "mean", "std", "max", "words", "per turn"]
    rows = [
        [name, s.dialogues, s.turns, s.turns_mean, s.turns_std, s.turns_max, s.words, s.words_mean]
        for name, s in summary.splits.items()
    ]
    print_table(columns, rows, title=title)
    for heading, counts in (("label", summary.labels), ("skipped", summary.skipped)):
        if counts:
            print_table([heading, "count"], sorted(counts.items(), key=lambda item: -item[1]))
    if summary.ignored:
        print_table(["file not read as dialogues", "reason"], _by_reason(summary.ignored))


def _by_reason(ignored: Mapping[str, str], most: int = 8) -> list[list[str]]:
    rows = [[Path(file).name, reason] for file, reason in ignored.items()]
    return rows if len(rows) <= most else [*rows[:most], [f"… and {len(rows) - most} more", "see --json"]]


def validate(corpus: Corpus, settings: ReadSettings, reading: Reading, output: Shown) -> None:
    """List every bad record with its file and line, and count oddities. Exit code 2 if a record is bad."""
    problems: list[str] = []
    listed = {"on_error": "skip", "on_problem": problems.append if output.json else print_text}
    data = reading.load(corpus, output, split=settings.split, limit=settings.limit, **listed)
    from dialoscope.corpus.validate import check

    report = check(data)
    if output.json:
        print_json({**report.to_dict(), "problems": problems})
    else:
        print_table(["checked", "count"], report.counts.items())
        typer.echo(
            f"Next: dialoscope corpus show {reading.words(corpus)}{' --on-error skip' if report.bad_records else ''}"
        )
    raise typer.Exit(2 if report.bad_records else 0)


def convert(corpus: Corpus, settings: ConvertSettings, reading: Reading, output: CorpusOutput) -> None:
    """Write a corpus in another format; text, speakers, ids, splits and labels are kept."""
    out = output.required("a file or a folder")
    data = reading.load(corpus, output, split=settings.split, limit=settings.limit)
    from dialoscope.corpus.turns import merge_turns

    write_corpus(merge_turns(data) if settings.merge_turns else data, out, settings.to, output)


def sample(corpus: Corpus, settings: SampleSettings, reading: Reading, output: CorpusOutput) -> None:
    """Draw dialogues at random from each split and write them; the same seed draws the same ones."""
    out = output.required("a file or a folder")
    data = reading.load(corpus, output, split=settings.split)
    from dialoscope.corpus.split import sample_dialogues

    write_corpus(sample_dialogues(data, settings.dialogues, seed=settings.seed), out, settings.to, output)


def generate(settings: ConciergeSettings, output: CorpusOutput) -> None:
    """Generate the built-in corpus in any size: annotated, task-oriented, with near-duplicates across splits."""
    out = output.required("a file or a folder")
    from dialoscope.corpus.generate import generate as generate_corpus

    with working("writing dialogues", quiet=output.is_quiet):
        corpus = generate_corpus(dialogues=settings.dialogues, seed=settings.seed)
    write_corpus(corpus, out, settings.to, output)


def write_corpus(corpus: ReadCorpus, out: Path, to: str | None, output: CorpusOutput) -> None:
    """Write a corpus, and print what was written."""
    from dialoscope.corpus.write import write

    to = to or ("parquet" if out.suffix == ".parquet" else "messages")
    files = write(corpus, out, to=to, overwrite=output.overwrite)
    data = {
        "dialogues": len(corpus),
        "splits": corpus.splits,
        "skipped": dict(corpus.skipped),
        "fingerprint": corpus.fingerprint,
        "files": [str(file) for file in files],
    }
    if output.json:
        print_json(data)
        return
    splits = ", ".join(f"{name}: {count:,}" for name, count in corpus.splits.items())
    print_text(f"{len(corpus):,} dialogues ({splits}) were written to {out}.")
    for reason, count in corpus.skipped.items():
        print_text(f"Skipped: {count:,} x {reason}")
    typer.echo(f"Next: dialoscope corpus show {quote(str(out))}")


def formats(printing: Printing) -> None:
    """List all formats that are read, each with an example line."""
    from dialoscope.corpus.formats import FORMATS

    if printing.json:
        print_json({name: {"title": form.title, "example": form.example} for name, form in FORMATS.items()} | _HUB)
        return
    rows = [[name, form.title, form.example] for name, form in FORMATS.items()]
    print_table(["format", "meaning", "example"], [*rows, ["hf", _HUB["hf"]["title"], _HUB["hf"]["example"]]])
    typer.echo("Next: dialoscope corpus show FILES --format NAME")


_HUB = {"hf": {"title": "Hugging Face datasets: a hub name or a saved folder", "example": "hf:daily_dialog"}}

command(app, "show", show, examples=["corpus show concierge", "corpus show dailydialog/ --json"])
command(app, "validate", validate, examples=["corpus validate chats.jsonl", "corpus validate data/ --json"])
command(
    app,
    "convert",
    convert,
    examples=["corpus convert chats.json --out chats.parquet", "corpus convert dailydialog/ --to hf --out dd"],
)
command(
    app,
    "sample",
    sample,
    examples=["corpus sample concierge --dialogues 50 --out few.jsonl", "corpus sample chats/ --seed 1 --out few"],
)
command(
    app,
    "generate",
    generate,
    examples=["corpus generate --out concierge.jsonl", "corpus generate --dialogues 50 --seed 1 --out small.jsonl"],
)
command(app, "formats", formats, examples=["corpus formats", "corpus formats --json"])
