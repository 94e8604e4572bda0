"""Several runs of one model: their mean, and how far they lie apart.

Runs of one model are called alike but for what follows a `#`: `lstm#0` and `lstm#1`, or `lstm#0@last` and `lstm#1@last`
where their checkpoints are probed. An interval over dialogues says how another test set would change one run's score;
the standard deviation over runs says how another seed would.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MARK = re.compile(r"#[^@#,]+")  # a seed, up to a checkpoint's or a layer's name


@dataclass(frozen=True)
class Spread:
    """A mean over runs, and the standard deviation between them (of a sample: divided by n - 1)."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of two values or more.

        >>> Spread.of([1.0, 3.0]).mean
        2.0
        """
        return cls(statistics.mean(values), statistics.stdev(values), len(values))


@dataclass(frozen=True)
class Pooled:
    """All runs of one model; a score that one of them lacks has no mean."""

    runs: tuple[str, ...]
    tasks: Mapping[str, Spread]
    groups: Mapping[str, Spread]


def runs_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Runs by the model they are of, where there are two or more.

    >>> runs_of(["lstm#0@last", "lstm#1@last", "hred"])
    {'lstm@last': ['lstm#0@last', 'lstm#1@last']}
    """
    runs_by_model: dict[str, list[str]] = {}
    for name in names:
        if MARK.search(name):
            runs_by_model.setdefault(MARK.sub("", name, count=1), []).append(name)
    return {model: runs for model, runs in runs_by_model.items() if len(runs) > 1}


def spreads(runs: Sequence[Mapping[str, float | None]]) -> dict[str, Spread]:
    """By task or group, over the runs."""
    columns = {name: [run.get(name) for run in runs] for name in runs[0]}
    values = {name: [score for score in column if score is not None] for name, column in columns.items()}
    return {name: Spread.of(scores) for name, scores in values.items() if len(scores) == len(runs)}
