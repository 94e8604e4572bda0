"""The items behind a run's numbers, as ratios of sums, so that two runs can be compared on the items they share.

A mean is a ratio whose denominators are 1; micro-F1 is 2·right / (2·right + too many + missing); the DAS ratio of means
is the attention on distractions over that on History; perplexity is compared by its logarithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dialoscope.errors import UsageError
from dialoscope.report import Run

CONTROLS = ("untrained", "untrained layer")  # of engage, which predicts remaining depth with them as with a model
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Items:
    """One number of one model: what each item adds above and below the line, and which dialogue it is of."""

    keys: Sequence[tuple[str, ...]]
    dialogues: Sequence[str]
    above: Floats
    below: Floats
    best: Literal["high", "low"]
    people: Floats | None = None  # where the number is a correlation with these

    def is_same_as(self, other: Items) -> bool:
        """Whether both have the same values, one by one."""
        pairs = ((self.above, other.above), (self.below, other.below))
        return bool(self.keys) and all(np.array_equal(one, two, equal_nan=True) for one, two in pairs)

    def at(self, places: list[int]) -> Items:
        """Only these items, in this order."""
        return Items(
            [self.keys[one] for one in places],
            [self.dialogues[one] for one in places],
            self.above[places],
            self.below[places],
            self.best,
            None if self.people is None else self.people[places],
        )

    @property
    def is_scored(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which items have a number at all."""
        return ~(np.isnan(self.above) | np.isnan(self.below))


Named = Iterator[tuple[tuple[str, str], Items]]  # (model, what), items


def items_of(folder: Path, run: Run) -> dict[tuple[str, str], Items]:
    """The items of a run's folder by model and number."""
    if run.instrument not in READERS:
        raise UsageError(f"{folder}: runs of '{run.instrument}' have no items to compare.")
    try:
        return {name: _told_apart(items) for name, items in READERS[run.instrument](folder, run)}
    except (OSError, KeyError, pa.ArrowException) as error:
        found = " ".join(str(error).split())
        raise UsageError(
            f"{folder}: expected a whole run with its items, found {type(error).__name__}: {found}."
        ) from error


def _told_apart(items: Items) -> Items:
    """With a number in each key, for items of one dialogue and turn can be several."""
    seen: Counter[tuple[str, ...]] = Counter()
    keys = []
    for key in items.keys:
        seen[key] += 1
        keys.append((*key, str(seen[key])))
    return replace(items, keys=keys)


def _overlap(folder: Path, run: Run) -> Named:
    from dialoscope.overlap.result import PARTS  # here, for a room takes its time to be imported

    table = pq.read_table(folder / "matches.parquet")
    threshold = float(run.data.get("threshold", 0.8))
    ids = table["id"].to_pylist()
    ratio = table["ratio"].to_numpy()
    # Parts of dialogues are called `dialogue#3`; a whole dialogue, or the row of a table, may have a # of its own.
    is_part = run.data.get("unit", "sample") in PARTS
    dialogues = [one.rpartition("#")[0] or one for one in ids] if is_part else ids
    keys = [(one,) for one in ids]
    yield ("", f"share over {threshold:g}"), _mean(keys, dialogues, (ratio > threshold).astype(float), "low")
    yield ("", "mean overlap"), _mean(keys, dialogues, ratio.astype(float), "low")


def _distract(folder: Path, run: Run) -> Named:
    for (model, name), table in _parts(pq.read_table(folder / "cases.parquet"), "model", "set"):
        dialogues = table["dialogue"].to_pylist()
        keys = list(zip(dialogues, map(str, table["turn"].to_pylist()), strict=True))
        if name == "original":
            above, below = -_column(table, "log_likelihood"), _column(table, "tokens")
            yield (model, "log perplexity"), Items(keys, dialogues, above, below, "low")
            continue
        above, below = np.exp(_column(table, "distraction")), np.exp(_column(table, "history"))
        is_whole = ~(np.isnan(above) | np.isnan(below))
        above, below = (np.where(is_whole, one, np.nan) for one in (above, below))
        yield (model, f"DAS ratio of means, {name}"), Items(keys, dialogues, above, below, "low")


def _probe(folder: Path, run: Run) -> Named:
    for (model, task), table in _parts(pq.read_table(folder / "positions.parquet"), "model", "task"):
        dialogues = table["dialogue"].to_pylist()
        keys = list(zip(dialogues, map(str, table["turn"].to_pylist()), strict=True))
        right, too_many, missing = (_column(table, name) for name in ("right", "too_many", "missing"))
        yield (model, f"F1 of {task}"), Items(keys, dialogues, 2 * right, 2 * right + too_many + missing, "high")


def _engage(folder: Path, run: Run) -> Named:
    return _people(folder) if (folder / "items.parquet").is_file() else _depth(folder, run)


def _depth(folder: Path, run: Run) -> Named:
    table = pq.read_table(folder / "turns.parquet")
    dialogues = table["dialogue"].to_pylist()
    keys = list(zip(dialogues, map(str, table["turn"].to_pylist()), strict=True))
    target = _column(table, "remaining_depth")
    # Before baselines had columns of their own, one that was called as a model is had taken the model's.
    taken = set() if any(one.startswith("baseline ") for one in table.column_names) else set(run.data["baselines"])
    for name in run.data["models"]:
        if name not in CONTROLS and name not in taken:
            errors = 100 * np.square(_column(table, f"score {name}") - target)
            yield (name, "MSE × 100 of remaining depth"), _mean(keys, dialogues, errors, "low")


def _people(folder: Path) -> Named:
    rows = pq.read_table(folder / "items.parquet")
    models = rows.filter(pc.equal(rows["kind"], "models"))  # a baseline may be called as one of them is
    for (name, rater), table in _parts(models, "set", "rater"):
        keys = [(str(one),) for one in table["item"].to_pylist()]
        score, people = _column(table, "score"), _column(table, "people")
        what = f"Spearman with people, {name}"
        yield (rater, what), Items(keys, table["dialogue"].to_pylist(), score, np.ones(len(score)), "high", people)


READERS: Mapping[str, Callable[[Path, Run], Named]] = {
    "overlap": _overlap,
    "distract": _distract,
    "probe": _probe,
    "engage": _engage,
}


def _mean(
    keys: Sequence[tuple[str, ...]], dialogues: Sequence[str], values: Floats, best: Literal["high", "low"]
) -> Items:
    return Items(keys, dialogues, values, np.ones(len(values)), best)


def _parts(table: pa.Table, first: str, second: str) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """The rows of each pair of values, in the order in which the pairs appear."""
    pairs = dict.fromkeys(zip(table[first].to_pylist(), table[second].to_pylist(), strict=True))
    for one, other in pairs:
        yield (one, other), table.filter(pc.and_(pc.equal(table[first], one), pc.equal(table[second], other)))


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)
