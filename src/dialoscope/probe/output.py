"""A probed run on disk: the run's folder with `positions.parquet`, a row for each model, task and held-out position."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.probe.measure import Measured
from dialoscope.probe.pictures import Picture
from dialoscope.probe.report import section_of
from dialoscope.probe.result import ProbeResult
from dialoscope.report import write_run

POSITIONS = "positions.parquet"


def write_result(
    result: ProbeResult,
    measured: Measured,
    out: str | Path,
    *,
    pictures: Sequence[Picture] = (),
    overwrite: bool = False,
) -> Path:
    """Write the run's folder (see `dialoscope.report.run`), whole or not at all."""
    return write_run(
        out,
        instrument="probe",
        data=result.to_dict(),
        section=section_of(result, labels=measured.labels, pictures=pictures),
        origin=result.origin,
        overwrite=overwrite,
        fill=lambda folder: pq.write_table(_positions(measured), folder / POSITIONS),
    )


def _positions(measured: Measured) -> pa.Table:
    """Right, too many and missing labels of every position, so that scores can be computed again."""
    held_out = measured.held_out.positions
    dialogues = pa.array([one.dialogue for one in held_out], pa.string())
    turns = pa.array([len(one.context) for one in held_out], pa.int32())
    parts = []
    for model in measured.models:
        for task, answered in model.own.items():
            named = {"model": model.name, "task": task}
            columns = {key: pa.array([value] * len(held_out), pa.string()) for key, value in named.items()}
            numbers = {
                key: pa.array(column.astype("int32"))
                for key, column in zip(("right", "too_many", "missing"), answered.all.T, strict=True)
            }
            parts.append(pa.table({**columns, "dialogue": dialogues, "turn": turns, **numbers}))
    return pa.concat_tables(parts)
