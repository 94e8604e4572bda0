"""`dialoscope engage score`: a score for every turn of a corpus, here or on Apache Spark."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Quiet,
    Seed,
    Split,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
    working,
)
from dialoscope.cli.engage_options import (
    INPUT,
    BatchSize,
    DryRun,
    Dtype,
    Model,
    Overwrite,
    bar,
    loaded,
    show_estimate,
)
from dialoscope.cli.train import Device
from dialoscope.errors import UsageError
from dialoscope.files import check_free

if TYPE_CHECKING:
    import pyarrow as pa

Engine = Annotated[
    str, typer.Option("--engine", help="here (this process, all cores) or spark (extra 'spark', Java 17).")
]
Master = Annotated[str, typer.Option("--master", help="Of --engine spark: local[2], spark://HOST:PORT, yarn …")]


def check_engine(engine: str) -> None:
    """An unknown engine is refused before anything is read."""
    from dialoscope.errors import unknown_name

    if engine not in ("here", "spark"):
        raise unknown_name("engine", engine, ("here", "spark"))


EPILOG = "Try: dialoscope engage score engaged chats.jsonl --out scores.parquet  ·  … score engaged - --json < chats"


def score(
    model: Model,
    path: Annotated[str, typer.Argument(help="A corpus, or - for messages from standard input.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Parquet file for the scores; a killed run goes on. With Spark: a folder of them."),
    ] = None,
    engine: Engine = "here",
    master: Master = "local[*]",
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = None,
    split: Split = None,
    limit: Limit = None,
    seed: Seed = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A score for every turn of every dialogue."""
    quiet = quiet or json
    check_engine(engine)
    check_free(out, overwrite=overwrite)
    predictor = loaded(model, device, dtype, batch_size)
    from dialoscope.engage.estimate import estimate_scores
    from dialoscope.engage.scoring import score_corpus, write_scores

    if engine == "spark":
        _check_spark({"limit": limit, "seed": seed, "format": format, "dry-run": dry_run or None}, on_error)
        options = {"device": device, "dtype": dtype, "batch_size": batch_size}
        with working("scoring", quiet=quiet):
            counts = _on_spark(master, model, path, out, split, overwrite=overwrite, **options)
        _show_written({"model": predictor.name, **counts, "out": str(out)}, json=json)
        return
    with _file(path) as place:
        reading: dict[str, Any] = {"format": format, "on_error": on_error, "split": split, "limit": limit, "seed": seed}
        corpus = load_corpus([place], quiet=quiet, **reading)
    if dry_run:
        show_estimate(estimate_scores(predictor, corpus, out=out), json=json)
        return
    with progress_bar("scoring", quiet=quiet) as progress:
        if out is not None:
            write_scores(predictor, corpus, out, overwrite=overwrite, progress=progress)
            _show_written({"model": predictor.name, "dialogues": len(corpus), "out": str(out)}, json=json)
            return
        tables = score_corpus(predictor, corpus, progress=progress)
        _print_as_json(predictor.name, tables) if json else _print_tables(tables)


def _on_spark(
    master: str, model: str, path: str, out: Path | None, split: str | None, *, overwrite: bool, **options: Any
) -> dict[str, int]:
    from dialoscope.engage.spark import score_files
    from dialoscope.engage.storage import find
    from dialoscope.overlap.spark.parquet import parquet_at
    from dialoscope.overlap.spark.session import session_at

    if out is None or out.suffix:
        raise UsageError("--engine spark writes a folder of Parquet files: name it with --out, without an ending.")
    found = None if path == INPUT else parquet_at([path])
    if found is None:
        raise UsageError(
            f"--engine spark reads Parquet in our own columns; dialoscope corpus convert makes it of {path}."
        )
    files = dict(zip(found.files, found.splits, strict=True))
    only = split.replace(" ", "").split(",") if split else ()
    with session_at(master) as session:
        return score_files(session, files, find(model), out, only=only, overwrite=overwrite, **options)


def _check_spark(others: dict[str, Any], on_error: str) -> None:
    """Refuse options that Spark would not heed."""
    given = [f"--{name}" for name, value in others.items() if value is not None]
    given += ["--on-error"] if on_error != "fail" else []
    if given:
        raise UsageError(f"--engine spark scores whole Parquet files: leave out {', '.join(given)}.")


@contextmanager
def _file(path: str) -> Iterator[str]:
    """The path, or a file of what standard input holds."""
    if path != INPUT:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.jsonl"
        file.write_bytes(sys.stdin.buffer.read())
        yield os.fspath(file)


def _show_written(found: dict[str, Any], *, json: bool) -> None:
    print_json(found) if json else typer.echo(f"Scores of {found['dialogues']:,} dialogues are in {found['out']}")


def _print_as_json(model: str, tables: Iterable[pa.Table]) -> None:
    """One JSON object, written as scores come: a corpus of them is never in memory."""
    write = sys.stdout.buffer.write
    write(b'{"model": ' + orjson.dumps(model) + b', "dialogues": [')
    for place, dialogue in enumerate(one for table in tables for one in _by_dialogue(table.to_pylist())):
        write((b",\n" if place else b"\n") + orjson.dumps(dialogue))
    write(b"\n]}\n")
    sys.stdout.buffer.flush()


def _by_dialogue(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of one dialogue together; the next one begins where turns are counted from 1 again."""
    found: dict[str, Any] = {}
    for row in rows:
        if row["turn"] == 1:
            if found:
                yield found
            found = {"dialogue": row["dialogue"], "split": row["split"], "turns": []}
        found["turns"].append({key: row[key] for key in ("turn", "speaker", "score")})
    if found:
        yield found


def _print_tables(tables: Iterable[pa.Table]) -> None:
    """A table for each portion."""
    for table in tables:
        rows = table.to_pylist()
        print_table(
            ["dialogue", "turn", "speaker", "score", "", "text"],
            [[one[key] for key in ("dialogue", "turn", "speaker", "score")] + [bar(one["score"]), one["text"]]
             for one in rows],
        )  # fmt: skip
