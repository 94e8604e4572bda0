"""Where the overlap commands run: in this process, or on Apache Spark, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.overlap_data import Reading, has_usual, read_both, read_side, split_names
from dialoscope.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from dialoscope.overlap.spark.parquet import Parquet

Engine = Annotated[
    str, typer.Option("--engine", help="here (this process, all cores) or spark (extra 'spark', Java 17).")
]
Master = Annotated[str, typer.Option("--master", help="Of --engine spark: local[2], spark://HOST:PORT, yarn …")]


@contextmanager
def _here(master: str) -> Iterator[SimpleNamespace]:
    from dialoscope.overlap import clean, pairs
    from dialoscope.overlap.measure import measure_with_examples

    yield SimpleNamespace(clean=clean, pairs=pairs, measure_with_examples=measure_with_examples)


@contextmanager
def _on_spark(master: str) -> Iterator[Any]:
    from dialoscope.overlap.spark.engine import spark

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
    return found.split(*split_names(split)) if split else found


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
    if train and test and corpus is None and any(_parquet(engine, paths, reading) for paths in (train, test)):
        known = _side_at(engine, train, reading, split=train_split, usual="train")
        return known, _side_at(engine, test, reading, split=split, usual="test")
    is_one = corpus is not None and not (train or test) and reading.column is None
    if not is_one or corpus is None or _parquet(engine, [corpus], reading) is None:
        return read_both(corpus, train, test, reading, train_split=train_split, split=split)
    names = (train_split or "train", split or "test")
    known, probes = (read_at(engine, [corpus], reading, split=name) for name in names)
    return known, probes


def _side_at(engine: str, paths: Sequence[str], reading: Reading, *, split: str | None, usual: str) -> Any:
    """As `read_side`; Spark takes the usual split of one path, and of several that have one they are read here."""
    found = _parquet(engine, paths, reading)
    if found is None:
        return read_side(paths, reading, split=split, usual=usual)
    if split is not None or reading.column is not None:
        return read_at(engine, paths, reading, split=split)
    if len(paths) == 1:
        return found.split(usual) if has_usual(_splits_in(found), usual) else found
    several = (_parquet(engine, [path], reading) for path in paths)
    is_cut = any(one is not None and has_usual(_splits_in(one), usual) for one in several)
    return read_side(paths, reading, split=split, usual=usual) if is_cut else found


def _splits_in(found: Parquet) -> set[str]:
    """Splits that the rows name, or else their files; only that column is read."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    named: set[str] = set()
    for file, own in zip(found.files, found.splits, strict=True):
        for batch in pq.ParquetFile(file).iter_batches(columns=["split"]):
            named.update(name or own for name in pc.unique(batch.column(0)).to_pylist())
    return named


def _parquet(engine: str, paths: Sequence[str], reading: Reading) -> Parquet | None:
    is_whole = reading.limit is None and reading.on_error == "fail" and reading.format in (None, "parquet")
    if engine != "spark" or not is_whole:
        return None
    from dialoscope.overlap.spark.parquet import parquet_at

    return parquet_at(paths, column=reading.column)


def folder_at(engine: str, out: Path | None) -> Path | None:
    """Where Spark writes pairs itself: a name without an ending is a folder."""
    return out if engine == "spark" and out is not None and not out.suffix else None
