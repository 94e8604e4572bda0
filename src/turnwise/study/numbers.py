"""All numbers of a run, each with the path that leads to it: what gates test and other tools read.

A score is ``{"value": …, "n": …, "interval": …}``, or a plain number whose interval stands beside it, under `interval`
or by its name under `intervals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

WORDS = ("interval", "intervals", "control_intervals", "signature", "reason", "interval_reason")


@dataclass(frozen=True)
class Number:
    """A value, what it stands for, and how sure it is."""

    path: tuple[str, ...]
    value: float
    interval: tuple[float, float] | None = None
    n: int | None = None


def numbers_of(data: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Number]:
    """Every number in a run's data; lists, such as histograms, are left out.

    >>> [(one.path, one.interval) for one in numbers_of({"f1": 0.5, "interval": [0.4, 0.6], "words": ["a"]})]
    [(('f1',), (0.4, 0.6))]
    """
    if _is_score(data):
        if _is_number(data["value"]):
            yield Number(path, float(data["value"]), _pair(data.get("interval")), data.get("n"))
        return
    intervals: Mapping[str, Any] = data.get("intervals") or {}
    first = True  # an interval that stands alone belongs to the first number beside it
    for key, value in data.items():
        if key in WORDS:
            continue
        if isinstance(value, Mapping):
            yield from numbers_of(value, (*path, str(key)))
        elif _is_number(value):
            beside = intervals.get(key) or (data.get("interval") if first else None)
            yield Number((*path, str(key)), float(value), _pair(beside), data.get("n", data.get("samples")))
            first = False


def _is_score(data: Mapping[str, Any]) -> bool:
    return {"value", "n"} <= data.keys()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pair(value: Any) -> tuple[float, float] | None:
    return (float(value[0]), float(value[1])) if isinstance(value, list | tuple) and len(value) == 2 else None
