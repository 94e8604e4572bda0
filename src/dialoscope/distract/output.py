"""A measured run on disk: the run's folder with `cases.parquet`, a row for each model, set and context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.distract.measure import Measured
from dialoscope.distract.report import Picture, section_of
from dialoscope.distract.result import DistractResult
from dialoscope.report import write_run

CASES = "cases.parquet"


def work_folder(out: Path) -> Path:
    """Where portions wait beside a run's folder until it is whole; the first portion makes it."""
    return out.resolve().with_name(f".{out.name}.work")


def write_result(
    result: DistractResult,
    measured: Sequence[Measured],
    out: str | Path,
    *,
    pictures: Sequence[Picture] = (),
    overwrite: bool = False,
) -> Path:
    """Write the run's folder (see `dialoscope.report.run`), whole or not at all."""
    return write_run(
        out,
        instrument="distract",
        data=result.to_dict(),
        section=section_of(result, pictures=pictures),
        origin=result.origin,
        overwrite=overwrite,
        fill=lambda folder: pq.write_table(_cases(measured), folder / CASES),
    )


def _cases(measured: Sequence[Measured]) -> pa.Table:
    """Every case; attention scores are logs, 0 for 100 %."""
    parts = []
    for one in measured:
        count = one.table.num_rows
        table = one.table.add_column(0, "set", pa.array([one.name] * count, pa.string()))
        parts.append(table.add_column(0, "model", pa.array([one.model] * count, pa.string())))
    return pa.concat_tables(parts)
