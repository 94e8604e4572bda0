"""Where the overlap commands run: in this process, or on Apache Spark, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnwise.cli.overlap_data import Reading, read_both
from turnwise.corpus.split import SPLIT_NAMES
from turnwise.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from turnwise.overlap.spark.parquet import Parquet

Engine = Annotated[
    str, typer.Option("--engine", help="here (this process, all cores) or spark (extra 'spark', Java 17).")
]
Master = Annotated[str, typer.Option("--master", help="Of --engine spark: local[2], spark://HOST:PORT, yarn …")]


@contextmanager
def _here(master: str) -> Iterator[SimpleNamespace]:
    from turnwise.overlap import clean, pairs
    from turnwise.overlap.measure import measure_with_examples

    yield SimpleNamespace(clean=clean, pairs=pairs, measure_with_examples=measure_with_examples)


@contextmanager
def _on_spark(master: str) -> Iterator[Any]:
    from turnwise.overlap.spark.engine import spark

    with spark(master) as room:
        yield room


ENGINES: dict[str, Callable[[str], AbstractContextManager[Any]]] = {"here": _here, "spark": _on_spark}


def room_at(engine: str, master: str) -> AbstractContextManager[Any]:
    """Measure, pairs and clean, wherever they run."""
    check_engine(engine)
    return ENGINES[engine](master)


def check_engine(engine: str) -> None:
    """An unknown engine is refused before anything is read."""
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)


def read_at(engine: str, paths: Sequence[str], reading: Reading, *, split: str | None = None) -> Any:
    """Data for an engine: Spark reads Parquet by itself, unless only some of it is wanted; this process all else."""
    found = _parquet(engine, paths, reading)
    if found is None:
        return reading.read(paths, split=split)
    names = split.replace(" ", "").split(",") if split else []
    return found.split(*(SPLIT_NAMES.get(name, name) for name in names)) if names else found


def read_both_at(
    engine: str,
    corpus: str | None,
    train: Sequence[str] | None,
    test: Sequence[str] | None,
    reading: Reading,
    *,
    within: bool = False,
    train_split: str | None = None,
    split: str | None = None,
) -> tuple[Any, Any]:
    """Training and test data for an engine: two splits of one corpus, or files of their own; within one, no test."""
    if within:
        if train or test or train_split or corpus is None:
            raise UsageError(
                "--within compares one corpus with itself: give its path, without --train, --train-split and --test."
            )
        return read_at(engine, [corpus], reading, split=split), None
    if train and test and corpus is None:
        known = read_at(engine, train, reading, split=train_split)
        return known, read_at(engine, test, reading, split=split)
    is_one = corpus is not None and not (train or test) and reading.column is None
    if not is_one or corpus is None or _parquet(engine, [corpus], reading) is None:
        return read_both(corpus, train, test, reading, train_split=train_split, split=split)
    names = (train_split or "train", split or "test")
    known, probes = (read_at(engine, [corpus], reading, split=name) for name in names)
    return known, probes


def _parquet(engine: str, paths: Sequence[str], reading: Reading) -> Parquet | None:
    is_whole = reading.limit is None and reading.on_error == "fail" and reading.format in (None, "parquet")
    if engine != "spark" or not is_whole:
        return None
    from turnwise.overlap.spark.parquet import parquet_at

    return parquet_at(paths, column=reading.column)


def folder_at(engine: str, out: Path | None) -> Path | None:
    """Where Spark writes pairs itself: a name without an ending is a folder."""
    return out if engine == "spark" and out is not None and not out.suffix else None
