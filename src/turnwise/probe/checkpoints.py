"""Checkpoints of a training run, so that what an encoding knows can be followed as the model learns."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from turnwise.errors import UsageError

LOG = "log.csv"
LOWEST = ("perplexity", "loss")  # columns whose best value is the lowest; of all others it is the highest
BY = "by:"


def checkpoints(run: Path, wanted: str) -> dict[str, Path]:
    """The checkpoints of a run, by name: `all`, names, or `by:COLUMN`, the best epoch by a column of its log.

    >>> checkpoints(Path("run"), "untrained,by:bleu_2,last")      # doctest: +SKIP
    """
    epochs = sorted(path.name for path in run.glob("epoch-*") if path.is_dir())
    there = [name for name in ("untrained", *epochs, "best", "last") if (run / name).is_dir()]
    if not there:
        raise UsageError(f"{run}: expected a folder of turnwise train with its checkpoints, found none.")
    if wanted == "all":
        return {name: run / name for name in ("untrained", *epochs) if name in there}
    found = {}
    for name in filter(None, wanted.replace(" ", "").split(",")):
        place = best_epoch(run, name.removeprefix(BY)) if name.startswith(BY) else name
        if place not in there:
            raise UsageError(f"{run} has no checkpoint '{place}'; it has {', '.join(there)}.")
        found[name] = run / place
    return found


def best_epoch(run: Path, column: str) -> str:
    """The epoch whose line in the log is best by a column."""
    try:
        with (run / LOG).open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row.get("epoch", "0") != "0" and row.get(column)]
            ended = [row for row in rows if row.get("perplexity")]  # a line within an epoch has none
    except OSError as error:
        raise UsageError(f"{run}: expected its {LOG}, found none: {error.strerror}.") from error
    ended = [row for row in ended if _is_number(row[column])]
    if not ended:
        raise UsageError(f"{run / LOG} has no column '{column}' with numbers at the end of an epoch.")
    # A run that diverged has epochs without a number; they are no choice.
    sign = -1 if column in LOWEST else 1
    best = max(ended, key=lambda row: (sign * float(row[column]), -int(row["epoch"])))
    return f"epoch-{int(best['epoch']):03d}"


def _is_number(written: str) -> bool:
    try:
        return math.isfinite(float(written))
    except ValueError:
        return False
