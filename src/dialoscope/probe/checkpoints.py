"""Checkpoints of a training run, so that what an encoding knows can be followed as the model learns."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoscope.errors import UsageError

LOG = "log.csv"
# Columns with underscores; a metric is written with hyphens, too. The first kind has values neither good nor bad.
NO_CHOICE = ("epoch", "step", "rate", "samples_per_second", "seconds", "length", "length_ratio")
OTHERS = (*NO_CHOICE, "loss", "extra_loss")  # columns of no held-out text, or no choice
LOWEST = ("perplexity", "loss", "extra_loss", "repetition_2", "repetition_4")  # best where lowest; all others highest
BY = "by:"


@dataclass(frozen=True)
class Choice:
    """The checkpoint that a column of the log chooses, and the value that made it the best."""

    checkpoint: str
    value: float


def checkpoints(run: Path, wanted: Sequence[str]) -> dict[str, Path]:
    """The checkpoints of a run, by name: `all`, names, or `by:COLUMN`, the best epoch by a column of its log.

    >>> checkpoints(Path("run"), ["untrained", "by:bleu_2", "last"])      # doctest: +SKIP
    """
    epochs = sorted(path.name for path in run.glob("epoch-*") if path.is_dir())
    there = [name for name in ("untrained", *epochs, "best", "last") if (run / name).is_dir()]
    if not there:
        raise UsageError(f"{run}: expected a folder of dialoscope train with its checkpoints, found none.")
    folders: dict[str, Path] = {}
    for name in wanted:
        if name == "all":
            folders |= {each: run / each for each in ("untrained", *epochs) if each in there}
            continue
        folder = best_epoch(run, name.removeprefix(BY)).checkpoint if name.startswith(BY) else name
        if folder not in there:
            raise UsageError(f"{run} has no checkpoint '{folder}'; it has {', '.join(there)}.")
        folders[name] = run / folder
    return folders


def choices(run: Path) -> dict[str, Choice]:
    """What each metric of the log would choose; nothing where a run has no log."""
    if not (run / LOG).is_file():
        return {}
    ended = _ended(run)
    columns = [column for column in (ended[0] if ended else ()) if _spelt(column) not in OTHERS]
    return {column: best_epoch(run, column) for column in columns if any(_is_number(row[column]) for row in ended)}


def best_epoch(run: Path, column: str) -> Choice:
    """The epoch whose line in the log is best by a column."""
    if _spelt(column) in NO_CHOICE:
        raise UsageError(
            f"'{BY}{column}' chooses nothing, for no {column} is better than another: give a metric of {LOG}."
        )
    # A run that diverged has epochs without a number; they are no choice.
    ended = [row for row in _ended(run) if _is_number(row.get(column))]
    if not ended:
        raise UsageError(f"{run / LOG} has no column '{column}' with numbers at the end of an epoch.")
    sign = -1 if _spelt(column) in LOWEST else 1
    best = max(ended, key=lambda row: (sign * float(row[column]), -int(row["epoch"])))
    return Choice(f"epoch-{int(best['epoch']):03d}", float(best[column]))


def _ended(run: Path) -> list[dict[str, str]]:
    """The lines at the ends of epochs: a line within one has no perplexity."""
    try:
        with (run / LOG).open(newline="") as lines:
            return [row for row in csv.DictReader(lines) if row.get("epoch", "0") != "0" and row.get("perplexity")]
    except OSError as error:
        raise UsageError(f"{run}: expected its {LOG}, found none: {error.strerror}.") from error


def _spelt(column: str) -> str:
    """A column as the tables above spell it."""
    return column.replace("-", "_")


def _is_number(written: str | None) -> bool:
    try:
        return math.isfinite(float(written or "nan"))
    except ValueError:
        return False
