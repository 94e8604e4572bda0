"""`dialoscope corpus`: look at a corpus, check it, convert it, make one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Paths,
    Quiet,
    Seed,
    Split,
    load_corpus,
    print_json,
    print_table,
    working,
)
from dialoscope.corpus import Corpus, CorpusSummary, generate, merge_turns, summarise, write

app = typer.Typer(
    help="Look at a corpus, check it, convert it, make one.",
    epilog="Try: dialoscope corpus show concierge  ·  dialoscope corpus formats",
    no_args_is_help=True,
)

To = Annotated[str | None, typer.Option("--to", help="messages, parquet, text or hf; by default what OUT ends in.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


@app.command(epilog="Try: dialoscope corpus show concierge  ·  dialoscope corpus show dailydialog/ --json")
def show(
    paths: Paths,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sizes, splits, speakers, lengths and labels of a corpus."""
    corpus = load_corpus(
        paths, format=format, on_error=on_error, split=split, limit=limit, seed=seed, quiet=quiet or json
    )
    summary = summarise(corpus)
    print_json(summary.to_dict()) if json else _print_summary(summary)


def _print_summary(summary: CorpusSummary) -> None:
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
        print_table(["file not read as dialogues", "why"], _by_reason(summary.ignored))


def _by_reason(ignored: Mapping[str, str], most: int = 8) -> list[list[str]]:
    rows = [[Path(file).name, reason] for file, reason in ignored.items()]
    return rows if len(rows) <= most else [*rows[:most], [f"… and {len(rows) - most} more", "see --json"]]


@app.command(epilog="Try: dialoscope corpus validate chats.jsonl  ·  dialoscope corpus validate data/ --json")
def validate(
    paths: Paths,
    format: Format = None,
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List every bad record with its file and line, and count oddities. Exit code 2 if any record is bad."""
    from dialoscope.corpus.validate import check

    problems: list[str] = []
    told = problems.append if json else typer.echo
    corpus = load_corpus(
        paths,
        format=format,
        on_error="skip",
        split=split,
        limit=limit,
        seed=seed,
        quiet=quiet or json,
        on_problem=told,
    )
    report = check(corpus)
    print_json({**report.to_dict(), "problems": problems}) if json else print_table(
        ["checked", "count"], report.counts.items()
    )
    raise typer.Exit(2 if report.bad_records else 0)


@app.command(
    epilog="Try: dialoscope corpus convert chats.json chats.parquet --to parquet  ·  … convert dailydialog/ x/ --to hf"
)
def convert(
    path: Annotated[str, typer.Argument(help="What to read: a file, a folder, a name.")],
    out: Annotated[Path, typer.Argument(help="A folder, or a file name with the format's ending.")],
    to: To = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    merge: Annotated[bool, typer.Option("--merge-turns", help="Join consecutive messages of one speaker.")] = False,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a corpus in another format; text, speakers, ids, splits and labels are kept."""
    corpus = load_corpus(
        [path], format=format, on_error=on_error, split=split, limit=limit, seed=seed, quiet=quiet or json
    )
    _written(merge_turns(corpus) if merge else corpus, out, to, overwrite=overwrite, json=json)


@app.command(name="generate", epilog="Try: dialoscope corpus generate concierge.jsonl --dialogues 5000 --seed 7")
def generate_corpus(
    out: Annotated[Path, typer.Argument(help="A folder, or a file name with the format's ending.")],
    dialogues: Annotated[int, typer.Option("--dialogues", min=1, max=10_000_000, help="How many dialogues.")] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same corpus.")] = 7,
    to: To = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the built-in concierge corpus: annotated, task-oriented, with near-duplicates planted across splits."""
    with working("writing dialogues", quiet=quiet or json):
        corpus = generate(dialogues=dialogues, seed=seed)
    _written(corpus, out, to, overwrite=overwrite, json=json)


def _written(corpus: Corpus, out: Path, to: str | None, *, overwrite: bool, json: bool) -> None:
    files = write(corpus, out, to=to or ("parquet" if out.suffix == ".parquet" else "messages"), overwrite=overwrite)
    data = {
        "dialogues": len(corpus),
        "splits": corpus.splits,
        "skipped": dict(corpus.skipped),
        "fingerprint": corpus.fingerprint,
        "files": [str(file) for file in files],
    }
    if json:
        print_json(data)
        return
    splits = ", ".join(f"{name}: {count:,}" for name, count in corpus.splits.items())
    typer.echo(f"{len(corpus):,} dialogues ({splits}) written to {out}")
    for reason, count in corpus.skipped.items():
        typer.echo(f"left out: {count:,} × {reason}")


@app.command(epilog="Try: dialoscope corpus formats  ·  dialoscope corpus formats --json")
def formats(json: Json = False) -> None:
    """All formats that are read, each with an example line."""
    from dialoscope.corpus.formats import FORMATS

    if json:
        print_json({name: {"title": form.title, "example": form.example} for name, form in FORMATS.items()} | _HUB)
        return
    rows = [[name, form.title, form.example] for name, form in FORMATS.items()]
    print_table(["format", "what", "example"], [*rows, ["hf", _HUB["hf"]["title"], _HUB["hf"]["example"]]])


_HUB = {"hf": {"title": "Hugging Face datasets: a hub name or a saved folder", "example": "hf:daily_dialog"}}
