"""What a training run writes while it runs: a CSV file, and a call to whoever listens."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dialoscope.files import whole_file

if TYPE_CHECKING:
    from accelerate import Accelerator

FILE = "log.csv"
EXTRA = "extra_loss"  # a column only where there is one
COLUMNS = ("epoch", "step", "loss", EXTRA, "perplexity", "bleu_2", "rate", "samples_per_second", "seconds")


@dataclass(frozen=True)
class Moment:
    """Where a run is: after some steps of an epoch, or, with a perplexity, at the end of one."""

    epoch: int
    step: int  # over all epochs
    done: int  # batches of this epoch
    batches: int  # in this epoch
    loss: float | None  # mean cross-entropy of a response token in this epoch so far
    rate: float
    samples_per_second: float
    seconds: float
    perplexity: float | None = None  # on the validation split
    bleu_2: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)  # what `validate` measured
    extra_loss: float | None = None  # mean of a sample in this epoch so far; not part of `loss`

    def row(self) -> dict[str, Any]:
        """The columns of the log, and those that only some logs have."""
        return {name: _written(getattr(self, name)) for name in COLUMNS} | {
            name: _written(value) for name, value in self.more.items()
        }


Progress = Callable[[Moment], None]


def _written(value: float | int | None) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


class Sums(NamedTuple):
    """Of an epoch so far: cross-entropy over tokens, the extra loss over samples."""

    loss: float
    tokens: int
    extra_loss: float
    samples: int


class Watch:
    """Losses and speed of an epoch, added up where they are computed: only a look waits for the device."""

    def __init__(self, before: Sums, device: torch.device) -> None:
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.before, self.tokens, self.samples = before, 0, 0
        self.losses = torch.zeros(2, dtype=dtype, device=device)  # cross-entropy, extra loss
        self.since = self.since_save = time.monotonic()

    def add(self, loss: Tensor, extra_loss: Tensor | None, *, tokens: int, samples: int) -> None:
        """Count a batch: its tokens' summed cross-entropy, its samples' summed extra loss, its tokens and samples."""
        self.losses[0] += loss.to(self.losses)
        if extra_loss is not None:
            self.losses[1] += extra_loss.to(self.losses)
        self.tokens += tokens
        self.samples += samples

    def total(self, accelerator: Accelerator) -> Sums:
        """Of the whole epoch, over all processes."""
        loss, extra_loss = (float(one) for one in accelerator.reduce(self.losses.clone(), "sum").cpu())
        before = self.before
        counts = before.tokens + self.tokens, before.samples + self.samples
        return Sums(before.loss + loss, counts[0], before.extra_loss + extra_loss, counts[1])

    @property
    def samples_per_second(self) -> float:
        """Since this watch began."""
        return self.samples / max(1e-9, time.monotonic() - self.since)

    def is_time(self, seconds: float, accelerator: Accelerator) -> bool:
        """Whether so much time has passed since it last said so; all processes agree."""
        is_late = torch.tensor(float(time.monotonic() - self.since_save >= seconds), device=self.losses.device)
        is_said = float(accelerator.reduce(is_late, "sum")) > 0
        if is_said:
            self.since_save = time.monotonic()
        return is_said


class Log:
    """A CSV file that grows line by line; a resumed run goes on after the last step it still remembers.

    Without a folder nothing is written or told: of several processes, one is enough.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        step: int | None = None,
        progress: Progress | None = None,
        has_extra_loss: bool = False,
    ) -> None:
        self.is_silent, self.has_extra_loss = folder is None, has_extra_loss
        if folder is None:
            return
        self.path = folder / FILE
        self.progress = progress
        self.columns: list[str] = []
        kept = _rows_until(self.path, step) if step is not None else []
        if kept:  # otherwise an older log stays until the first row replaces it
            self._begin(list(kept[0]), kept)

    def tell(self, moment: Moment, *, is_logged: bool = True) -> None:
        """Pass a moment on; only those that are logged are written."""
        if self.is_silent:
            return
        if self.progress is not None:
            self.progress(moment)
        if not is_logged:
            return
        row = moment.row()
        if not self.columns:
            self._begin(list(row), [row])
        else:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                self._writer(file).writerow(row)

    def _begin(self, columns: list[str], rows: list[dict[str, Any]]) -> None:
        self.columns = _with_extra(columns) if self.has_extra_loss else [name for name in columns if name != EXTRA]
        with whole_file(self.path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = self._writer(file)
            writer.writeheader()
            writer.writerows(rows)

    def _writer(self, file: Any) -> csv.DictWriter[str]:
        return csv.DictWriter(file, self.columns, extrasaction="ignore", restval="", lineterminator="\n")


def _with_extra(columns: list[str]) -> list[str]:
    """Also where an older log, which a run goes on with, had no such column."""
    after = columns.index("loss") + 1 if "loss" in columns else len(columns)
    return columns if EXTRA in columns else [*columns[:after], EXTRA, *columns[after:]]


def _rows_until(path: Path, step: int) -> list[dict[str, Any]]:
    """Rows of an older log up to a step; a line that an interrupted run left unfinished ends it."""
    if not path.is_file():
        return []
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if None in row.values() or None in row or not str(row.get("step", "")).isdigit() or int(row["step"]) > step:
                break
            rows.append(dict(row))
    return rows
