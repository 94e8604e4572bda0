"""Hugging Face data sets: a hub name, or a folder written by `save_to_disk` (extra: datasets)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from dialoscope.corpus.formats import parser_of_rows
from dialoscope.corpus.readers import Item, Part, tables
from dialoscope.corpus.split import split_of_name
from dialoscope.errors import CorpusError, MissingExtraError

MARKS = ("dataset_dict.json", "state.json")


def is_saved(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return any((path / mark).is_file() for mark in MARKS)


def hub_parts(name: str) -> list[Part]:
    """The splits of a data set, ready to be read."""
    return dataset_parts(_open(name), name)


def dataset_parts(loaded: Any, name: str) -> list[Part]:
    """The splits of a data set that is in memory."""
    splits = dict(loaded.items()) if isinstance(loaded, dict) else {"all": loaded}
    return [_part(name, split, data) for split, data in splits.items()]


def is_dataset(value: Any) -> bool:
    """Whether this is a `datasets.Dataset` or `DatasetDict`, told without importing the library."""
    return type(value).__module__.startswith("datasets.") and hasattr(value, "column_names")


def _open(name: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("Reading Hugging Face data sets", "datasets") from error
    try:
        return datasets.load_from_disk(name) if is_saved(Path(name)) else datasets.load_dataset(name)
    except Exception as error:  # the library raises dozens of kinds, from the network up
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorpusError(f"hf:{name}: the data set cannot be loaded: {reason}") from error


def _part(name: str, split: str, data: Any) -> Part:
    def read(moved: Callable[[int], None]) -> Iterator[Item]:
        first = data.with_format("arrow")[:1]
        parse = None if tables.is_native(first.schema) else parser_of_rows(first.to_pylist())
        yield from tables.table_items(_batches(data, moved), parse)

    size = int(data.data.nbytes) if len(data) else 0
    return Part(f"{name}/{split}", split_of_name(split) or "all", "hf", size, read)


def _batches(data: Any, moved: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    done = 0
    for table in data.with_format("arrow").iter(batch_size=4096):
        yield from table.to_batches()
        done += int(table.nbytes)
        moved(done)
