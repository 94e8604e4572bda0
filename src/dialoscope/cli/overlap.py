"""`dialoscope overlap`: measure a leak, list near-copies, filter a test set, clean a corpus and split it again."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dialoscope.cli.arguments import Corpus, Output, Reading, command
from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Paths,
    Quiet,
    Seed,
    Split,
    check_output,
    finish,
    print_json,
    print_table,
    working,
)
from dialoscope.cli.overlap_data import Reading, read_both
from dialoscope.cli.overlap_engine import Engine, Master, check_engine, folder_at, read_at, room_at
from dialoscope.cli.overlap_tables import print_kept_scores, print_left_out, print_pairs, print_shares
from dialoscope.overlap.settings import OverlapSettings

app = typer.Typer(
    help="Is the test set in the training set? Measure it, filter it, clean it, split it again.",
    epilog="Try: dialoscope overlap measure concierge  ·  dialoscope overlap pairs concierge --threshold 0.9",
    no_args_is_help=True,
)
Tokeniser = Annotated[str, typer.Option("--tokeniser", help="reference (the paper's), words or blanks.")]
Threshold = Annotated[str, typer.Option("--threshold", help="Overlap ratio, taken by its decimal digits.")]
Leak = Annotated[float, typer.Option("--threshold", min=0, max=1, help="Over this an item counts as leaked.")]
ContextTurns = Annotated[int, typer.Option("--context-turns", min=1, help="Turns of context in a sample.")]
TextColumn = Annotated[
    str | None, typer.Option("--column", help="Compare this column of texts of Parquet, JSONL or CSV tables.")
]
Both = Annotated[str | None, typer.Argument(help="A corpus with splits; or use --train and --test.")]
Train = Annotated[list[str] | None, typer.Option("--train", help="Training data; may be given again.")]
Test = Annotated[list[str] | None, typer.Option("--test", help="Test data; may be given again.")]
TrainSplit = Annotated[
    str | None, typer.Option("--train-split", help="Split to train on; by default train, where there are several.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")]


def measure(corpus: Corpus, settings: OverlapSettings, reading: Reading, output: Output) -> None:
    """Measure how much of the test set stands in the training set: the best match of every sample, exactly."""
    from dialoscope.overlap import measure as measure_overlap

    check_output(output, [*(corpus or ()), *reading.paths, settings.hypotheses, settings.references])
    data = reading.load(corpus, output)
    with working("counting shared words", quiet=output.is_quiet):
        result = measure_overlap(data, settings=settings)
    given = " ".join(map(quote, corpus or ())) or f"--train {quote(reading.train[0])} --test {quote(reading.test[0])}"
    finish(result, output, next_command=f"dialoscope overlap filter {given} --out clean/")


command(
    app, "measure", measure, examples=["overlap measure dailydialog/", "overlap measure --train a.jsonl --test b.jsonl"]
)


@app.command(
    epilog="Try: dialoscope overlap measure concierge --out leak  ·  dialoscope overlap show leak --threshold 0.7"
)
def show(
    run: Annotated[Path, typer.Argument(help="Folder that 'overlap measure … --out' wrote.")],
    threshold: Annotated[
        float | None, typer.Option("--threshold", min=0, max=1, help="By default the one the run was made with.")
    ] = None,
    most: Annotated[int, typer.Option("--matches", min=0, help="How many of the closest matches to list.")] = 10,
    json: Json = False,
) -> None:
    """A measured overlap again, at any threshold, without a rerun."""
    from dialoscope.overlap import read_result
    from dialoscope.overlap.output import read_told
    from dialoscope.overlap.result import with_threshold

    result, told = read_result(run), read_told(run)
    threshold = told["threshold"] if threshold is None else threshold
    matches = result.table().take(result.closest(threshold, most=most)).to_pylist()
    if json:
        print_json({**result.to_dict(with_threshold(threshold)), **told, "threshold": threshold, "matches": matches})
        return
    print_shares(result, threshold)
    if "contamination" in told:
        print_kept_scores(told["contamination"], threshold)
    if matches:
        rows = [[row["id"], row["match_id"], row["ratio"]] for row in matches]
        print_table([result.unit, "match", "overlap"], rows, title=f"closest over {threshold:g}")
    print_left_out(told)


@app.command(
    epilog="Try: dialoscope overlap pairs concierge --threshold 0.9  ·  … pairs chats.jsonl --out pairs.parquet"
)
def pairs(
    path: Annotated[str, typer.Argument(help="A corpus.")],
    against: Annotated[str | None, typer.Option("--against", help="Another corpus to compare with.")] = None,
    unit: Annotated[str, typer.Option("--unit", help="dialogue, turn or sample.")] = "dialogue",
    threshold: Threshold = "0.75",
    context_turns: ContextTurns = 1,
    tokeniser: Tokeniser = "reference",
    column: TextColumn = None,
    distinct: Annotated[bool, typer.Option("--distinct", help="Give units with the same words once.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Parquet or CSV file for the pairs; a folder with --engine spark.")
    ] = None,
    engine: Engine = "here",
    master: Master = "local[*]",
    overwrite: Overwrite = False,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """All pairs at or over a threshold: exact, within one corpus or between two."""
    from dialoscope.errors import UsageError
    from dialoscope.overlap.output import check_apart, check_ending, write_table
    from dialoscope.overlap.sides import left_out

    check_engine(engine)
    if distinct and engine != "here":
        raise UsageError("--distinct works with --engine here only.")
    folder = folder_at(engine, out)
    check_apart(out, [path, against])
    check_free(out, overwrite=overwrite)
    check_ending(None if folder else out)
    reading = Reading(column, format, on_error, limit, seed, quiet or json)
    data = [read_at(engine, [one], reading, split=split) for one in (path, against) if one]
    options = {"unit": unit, "threshold": threshold, "context_turns": context_turns, "tokeniser": tokeniser}
    options |= {"is_distinct": True} if distinct else {}
    with working("joining", quiet=quiet or json), room_at(engine, master) as room:
        found = room.pairs(*data, **options, **({"folder": folder, "overwrite": overwrite} if folder else {}))
    if out is not None and folder is None:
        write_table(found.table, out, overwrite=overwrite)
    unread = left_out(*data)
    shown = found.closest(20) if found.is_whole else found.table.slice(0, 20).to_pylist()
    if json:
        print_json({**found.to_dict(), **({"examples": shown} if found.is_whole else {}), **unread})
        return
    print_pairs(found, shown)
    print_left_out(unread)


@app.command(
    epilog="Try: dialoscope overlap filter concierge --out honest  ·  … filter --train a.csv --test b.csv --out c"
)
def filter(
    out: Annotated[Path, typer.Option("--out", help="Folder for what is kept, what is dropped and the ledger.")],
    corpus: Both = None,
    train: Train = None,
    test: Test = None,
    train_split: TrainSplit = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Split to filter; by default test, where there are several.")
    ] = None,
    threshold: Leak = 0.8,
    unit: Annotated[
        str | None, typer.Option("--unit", help="dialogue or sample; by default sample for files of pairs only.")
    ] = None,
    context_turns: ContextTurns = 1,
    tokeniser: Tokeniser = "reference",
    column: TextColumn = None,
    overwrite: Overwrite = False,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    limit: Limit = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drop leaked test items without splitting again. Nothing is lost: what goes is written beside what stays."""
    from dialoscope.overlap import Settings, write_filtered
    from dialoscope.overlap import filter as filter_test
    from dialoscope.overlap.output import check_apart
    from dialoscope.overlap.sides import left_out

    check_apart(out, [corpus, *(train or ()), *(test or ())])
    check_free(out, overwrite=overwrite)
    reading = Reading(column, format, on_error, limit, seed, quiet or json)
    known, probes = read_both(corpus, train, test, reading, train_split=train_split, split=split)
    with working("filtering", quiet=quiet or json):
        settings = Settings(context_turns, tokeniser)
        filtered = filter_test(known, probes, threshold=threshold, unit=unit, settings=settings)
        unread = left_out(known, probes)
        write_filtered(filtered, out, left_out=unread, overwrite=overwrite)
    shown = {**filtered.to_dict(), **unread}
    if json:
        print_json(shown)
        return
    counts = f"{shown['kept']:,} of {shown['n_test']:,} {shown['unit']}s kept, {shown['dropped']:,} dropped"
    typer.echo(f"{counts} for an overlap over {threshold:g}, written to {out}")
    print_left_out(unread)


@app.command(
    epilog="Try: dialoscope overlap clean dailydialog/ --threshold 0.75 --test 1000 --validation 1000 --out clean/"
)
def clean(
    paths: Paths,
    out: Annotated[Path, typer.Option("--out", help="Folder for splits, samples, the ledger and a report.")],
    threshold: Threshold = "0.75",
    test: Annotated[int, typer.Option("--test", min=0, help="Test dialogues.")] = 1000,
    validation: Annotated[int, typer.Option("--validation", min=0, help="Validation dialogues.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the new split.")] = 0,
    context_turns: Annotated[
        list[int] | None,
        typer.Option("--context-turns", min=1, help="Of the samples; may be given again. Else 1 and 3."),
    ] = None,
    tokeniser: Tokeniser = "reference",
    column: TextColumn = None,
    overwrite: Overwrite = False,
    engine: Engine = "here",
    master: Master = "local[*]",
    format: Format = None,
    on_error: OnErrorOption = "fail",
    split: Split = None,
    limit: Limit = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drop near-copies to convergence, split by whole dialogue, flatten, remove exact duplicates. Nothing is lost."""
    from dialoscope.overlap import write_cleaned
    from dialoscope.overlap.output import check_apart
    from dialoscope.overlap.sides import left_out

    check_apart(out, paths)
    check_free(out, overwrite=overwrite)
    check_engine(engine)
    data = Reading(column, format, on_error, limit, None, quiet or json).read(paths, split=split)
    with working("cleaning", quiet=quiet or json), room_at(engine, master) as room:
        cleaned = room.clean(
            data,
            threshold=threshold,
            validation=validation,
            test=test,
            seed=seed,
            context_turns=context_turns or (1, 3),
            tokeniser=tokeniser,
        )
        unread = left_out(data)
        write_cleaned(cleaned, out, left_out=unread, overwrite=overwrite)
    shown = {**cleaned.to_dict(), **unread}
    if json:
        print_json(shown)
        return
    passes = f"{shown['passes']} {'pass' if shown['passes'] == 1 else 'passes'}"
    typer.echo(f"{shown['kept']:,} of {shown['units']:,} dialogues kept after {passes}, written to {out}")
    rows = [[turns, *by.values()] for turns, by in shown["pairs"].items()]
    print_table(["context turns", *shown["splits"]], rows, title="samples without duplicates")
    print_left_out(unread)
