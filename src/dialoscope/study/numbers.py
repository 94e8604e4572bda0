"""All numbers of a run, each with the path that leads to it: what gates test and other tools read.

A score is ``{"value": …, "n": …, "interval": …}``, or a plain number whose interval stands beside it: by its name under
`intervals`, in a table of intervals beside its own, or alone, where it belongs to the room's first number. What it was
computed over stands by its name under `counts`, or once for the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Tables of plain numbers -> the table beside them that has their intervals.
INTERVALS = {"groups": "group_intervals", "controls": "control_intervals", "share_over": "share_over_intervals"}
LONE = ("f1", "das_ratio", "spearman")  # whose an `interval` is that stands alone: of probe, distract, engage
COUNTS = ("n", "n_test")  # of what all numbers of a table were computed over
WORDS = ("interval", "intervals", "counts", *INTERVALS.values(), "signature", "reason", "reasons", "interval_reason")


@dataclass(frozen=True)
class Number:
    """A value, what it stands for, and how sure it is; None is one that could not be computed."""

    path: tuple[str, ...]
    value: float | None
    interval: tuple[float, float] | None = None
    n: int | None = None
    reason: str = ""  # why there is no value


def numbers_of(data: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Number]:
    """Every number in a run's data, also those that are missing; lists, such as histograms, are left out.

    >>> [(one.path, one.interval) for one in numbers_of({"f1": 0.5, "interval": [0.4, 0.6], "words": ["a"]})]
    [(('f1',), (0.4, 0.6))]
    """
    if _is_score(data):
        if _is_number(data["value"]):
            reason = data.get("reason") or ""
            yield Number(path, _float(data["value"]), _pair(data.get("interval")), data.get("n"), reason)
        return
    yield from _beside(data, path, _intervals(data), _count(data))


def _beside(
    data: Mapping[str, Any], path: tuple[str, ...], intervals: Mapping[str, Any], count: int | None
) -> Iterator[Number]:
    """The numbers of one table, whose intervals and count may stand outside of it, and those of the tables in it."""
    reasons = data.get("reasons") or {}
    counts = data["counts"] if isinstance(data.get("counts"), Mapping) else {}  # those of a histogram are a list
    for key, value in data.items():
        place = (*path, str(key))
        if key in WORDS:
            continue
        if isinstance(value, Mapping):
            is_scores = key not in INTERVALS
            beside = {} if is_scores else data.get(INTERVALS[key]) or {}
            of = _count_of_tasks(data) if key == "groups" else count
            yield from numbers_of(value, place) if is_scores else _beside(value, place, beside, of)
        elif _is_number(value):
            n = counts.get(key, count)
            yield Number(place, _float(value), _pair(intervals.get(key)), n, reasons.get(key) or "")


def model_place(path: tuple[str, ...]) -> int | None:
    """Where a model's name is: `models.NAME`, or `sets.SET.models.NAME` where models were held against people."""
    if path[:1] == ("models",):
        return 1
    return 3 if path[:1] == ("sets",) and path[2:3] == ("models",) else None


def _intervals(data: Mapping[str, Any]) -> dict[str, Any]:
    """Intervals by the names of their numbers."""
    owner = next((name for name in LONE if name in data), None)
    alone = {} if owner is None else {owner: data.get("interval")}
    return {**alone, **(data.get("intervals") or {})}


def _count(data: Mapping[str, Any]) -> int | None:
    """What a table's numbers are of; a table of counts, such as those of a test set's parts, is of no one number."""
    return next((data[name] for name in COUNTS if isinstance(data.get(name), int)), None)


def _count_of_tasks(data: Mapping[str, Any]) -> int | None:
    """What groups of probe tasks are of: all tasks are asked at the same places, and a group is a mean over tasks."""
    found = {_count(one) for one in (data.get("tasks") or {}).values()}
    return found.pop() if len(found) == 1 else None


def _is_score(data: Mapping[str, Any]) -> bool:
    return {"value", "n"} <= data.keys()


def _is_number(value: Any) -> bool:
    """Whether it is a number, or the place of one that is missing."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _pair(value: Any) -> tuple[float, float] | None:
    return (float(value[0]), float(value[1])) if isinstance(value, list | tuple) and len(value) == 2 else None
