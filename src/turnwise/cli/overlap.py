"""`turnwise overlap`: measure a leak, list near-copies, clean a corpus and split it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwise.cli.console import (
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

app = typer.Typer(
    help="Is the test set in the training set? Measure it, clean it, split it again.",
    epilog="Try: turnwise overlap measure concierge  ·  turnwise overlap pairs concierge --threshold 0.9",
    no_args_is_help=True,
)
Tokeniser = Annotated[str, typer.Option("--tokeniser", help="reference (the paper's), words or blanks.")]
Threshold = Annotated[str, typer.Option("--threshold", help="Overlap ratio, taken by its decimal digits.")]
ContextTurns = Annotated[int, typer.Option("--context-turns", min=1, help="Turns of context in a sample.")]


@app.command(epilog="Try: turnwise overlap measure dailydialog/  ·  … measure --train a.jsonl --test b.jsonl --json")
def measure(
    corpus: Annotated[str | None, typer.Argument(help="A corpus with splits; or use --train and --test.")] = None,
    train: Annotated[list[str] | None, typer.Option("--train", help="Training data; may be given again.")] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="Test data; may be given again.")] = None,
    train_split: Annotated[str, typer.Option("--train-split", help="Split of the corpus to train on.")] = "train",
    split: Annotated[str, typer.Option("--split", help="Split of the corpus to measure.")] = "test",
    context_turns: ContextTurns = 1,
    tokeniser: Tokeniser = "reference",
    format: Format = None,
    on_error: OnErrorOption = "fail",
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How much of a test set is in its training set: the best match of every sample, exactly."""
    from turnwise.errors import UsageError
    from turnwise.overlap import Settings
    from turnwise.overlap import measure as measure_overlap

    options = {"format": format, "on_error": on_error, "limit": limit, "seed": seed, "quiet": quiet or json}
    if corpus is not None and not (train or test):
        whole = load_corpus([corpus], **options)  # type: ignore[arg-type]
        known, probes = whole.split(train_split), whole.split(split)
    elif train and test and corpus is None:
        known, probes = load_corpus(train, **options), load_corpus(test, **options)  # type: ignore[arg-type]
    else:
        raise UsageError("Give one corpus with splits, or both --train and --test.")
    with working("counting shared words", quiet=quiet or json):
        result = measure_overlap(known, probes, settings=Settings(context_turns, tokeniser))
    if json:
        print_json(result.to_dict())
        return
    rows = [["identical", result.identical, 100 * result.identical_share]]
    rows += [[f"over {t}", result.count_over(t), 100 * result.share_over(t)] for t in (0.99, 0.9, 0.8, 0.75, 0.6, 0.5)]
    print_table(["overlap", "samples", "percent"], rows, title=f"{result.n_test:,} samples against {result.n_train:,}")


@app.command(epilog="Try: turnwise overlap pairs concierge --threshold 0.9  ·  … pairs chats.jsonl --out pairs.parquet")
def pairs(
    path: Annotated[str, typer.Argument(help="A corpus.")],
    against: Annotated[str | None, typer.Option("--against", help="Another corpus to compare with.")] = None,
    unit: Annotated[str, typer.Option("--unit", help="dialogue, turn or sample.")] = "dialogue",
    threshold: Threshold = "0.75",
    context_turns: ContextTurns = 1,
    tokeniser: Tokeniser = "reference",
    out: Annotated[Path | None, typer.Option("--out", help="Write the pairs to this Parquet or CSV file.")] = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """All pairs at or over a threshold: exact, within one corpus or between two."""
    from turnwise.overlap import pairs as find_pairs
    from turnwise.overlap.output import write_table

    options = {"format": format, "on_error": on_error, "split": split, "limit": limit, "seed": seed}
    corpora = [load_corpus([one], quiet=quiet or json, **options) for one in (path, against) if one]  # type: ignore[arg-type]
    with working("joining", quiet=quiet or json):
        found = find_pairs(*corpora, unit=unit, threshold=threshold, context_turns=context_turns, tokeniser=tokeniser)
    if out is not None:
        write_table(found.table, out)
    if json:
        print_json(found.to_dict())
        return
    rows = [[row["first"], row["second"], row["ratio"]] for row in found.table.slice(0, 20).to_pylist()]
    print_table(["first", "second", "ratio"], rows, title=f"{len(found):,} pairs among {found.units:,} units")


@app.command(
    epilog="Try: turnwise overlap clean dailydialog/ --threshold 0.75 --test 1000 --validation 1000 --out clean/"
)
def clean(
    paths: Paths,
    out: Annotated[Path, typer.Option("--out", help="Folder for splits, samples and the ledger.")],
    threshold: Threshold = "0.75",
    test: Annotated[int, typer.Option("--test", min=0, help="Test dialogues.")] = 1000,
    validation: Annotated[int, typer.Option("--validation", min=0, help="Validation dialogues.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the new split.")] = 0,
    tokeniser: Tokeniser = "reference",
    format: Format = None,
    on_error: OnErrorOption = "fail",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drop near-copies to convergence, split by whole dialogue, flatten, remove exact duplicates. Nothing is lost."""
    from turnwise.overlap import clean as clean_corpus
    from turnwise.overlap.output import write_cleaned

    corpus = load_corpus(paths, format=format, on_error=on_error, quiet=quiet or json)
    with working("cleaning", quiet=quiet or json):
        cleaned = clean_corpus(
            corpus, threshold=threshold, validation=validation, test=test, seed=seed, tokeniser=tokeniser
        )
        write_cleaned(cleaned, out)
    if json:
        print_json(cleaned.to_dict())
        return
    shown = cleaned.to_dict()
    typer.echo(
        f"{shown['kept']:,} of {shown['units']:,} dialogues kept after {shown['passes']} passes, written to {out}"
    )
    rows = [[turns, *by.values()] for turns, by in shown["pairs"].items()]
    print_table(["context turns", *shown["splits"]], rows, title="samples without duplicates")
