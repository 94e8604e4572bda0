"""Portions of long work, kept in a folder as they are done, so that an interrupted run resumes.

A portion's name is made of all that it depends on: this version, the model's weights and settings, every word of its
cases, and what is measured of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.files import whole_file
from dialoscope.model.protocol import DialogueModel
from dialoscope.record import version


class Portion(NamedTuple):
    """Cases that are done together, and what is measured of them."""

    cases: Sequence[Case]
    how: Mapping[str, Any]


def work_folder(out: Path) -> Path:
    """Where portions are kept beside a result's folder until it is whole; the first portion makes the folder."""
    return out.resolve().with_name(f".{out.name}.work")


def portions(cases: Sequence[Case], size: int, how: Mapping[str, Any]) -> Iterator[Portion]:
    """Cases in portions of this size."""
    return (Portion(cases[first : first + size], how) for first in range(0, len(cases), size))


def portion_path(work: Path, model: DialogueModel, portion: Portion) -> Path:
    """Where a portion is kept."""
    parts = [version(), model.name, dict(getattr(model, "settings", {})), dict(portion.how)]
    named = orjson.dumps(parts, default=str, option=orjson.OPT_SORT_KEYS)
    key = hashlib.sha256(named + DistractingSet("", portion.cases).fingerprint.encode()).hexdigest()[:32]
    return work / f"{key}.parquet"


def resumable(
    work: Path | None,
    model: DialogueModel,
    portion: Portion,
    make: Callable[[DialogueModel, Sequence[Case]], pa.Table],
) -> pa.Table:
    """The table of a portion: read where an earlier run left it in the folder, otherwise made, and left there."""
    path = None if work is None else portion_path(work, model, portion)
    if path is not None and path.is_file():
        return pq.read_table(path)
    made = make(model, portion.cases)
    if path is not None:
        with whole_file(path) as unfinished:
            pq.write_table(made, unfinished)
    return made
