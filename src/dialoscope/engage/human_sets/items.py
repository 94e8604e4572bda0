"""Rated turns one by one, on their way from a file into a set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialoscope.corpus.streams import shown
from dialoscope.engage.human_sets.keys import item_key
from dialoscope.engage.human_sets.rated import HumanSet, Turns
from dialoscope.errors import UsageError
from dialoscope.metrics import ratings_matrix

GAPS = ("", "na", "n/a", "nan", "none", "null")  # how tables write that somebody did not rate


class Rated(NamedTuple):
    """One item on its way into a set."""

    turns: Turns
    dialogue: str
    ratings: Mapping[str, float]  # by annotator
    scores: Mapping[str, float]  # by metric


def set_of(name: str, items: Sequence[Rated], metrics: Sequence[str]) -> HumanSet:
    """All items as columns."""
    triples = [(place, who, rating) for place, one in enumerate(items) for who, rating in one.ratings.items()]
    return HumanSet(
        name,
        tuple(one.turns for one in items),
        ratings_matrix(triples),
        tuple(one.dialogue for one in items),
        tuple(dict.fromkeys(who for _, who, _ in triples)),
        {metric: np.array([one.scores.get(metric, math.nan) for one in items]) for metric in metrics},
    )


def dialogues_of(items: Sequence[Turns], *, whole: Iterable[Turns] = ()) -> list[str]:
    """Which dialogue each item comes from, where nobody says: the longest that begins with it or with its context.

    FED has several turns of a dialogue as items of their own, each with the turns before it.
    """
    names: dict[Turns, str] = {}
    for turns in sorted({*items, *whole}, key=lambda one: (-len(one), one)):
        own = names.get(turns) or names.get(turns[:-1]) or item_key(turns)[:12]
        for end in range(1, len(turns) + 1):
            names.setdefault(turns[:end], own)
    return [names[turns] for turns in items]


def present(values: Mapping[str, Any], where: str) -> dict[str, float]:
    """Numbers by name, without the gaps."""
    read = {name: number(value, f"{where} '{name}'") for name, value in values.items()}
    return {name: value for name, value in read.items() if value is not None}


def number(value: Any, where: str) -> float | None:
    """A rating or a score as a number, None for a gap; anything else is an error that says where it stands."""
    if is_gap(value):
        return None
    found = as_float(value)
    if found is None or not math.isfinite(found):
        raise UsageError(f"{where}: expected a number, found {shown(str(value))}.")
    return found


def is_gap(value: Any) -> bool:
    """Whether somebody did not rate: nothing, a word that says so, or NaN."""
    if isinstance(value, str):
        return value.strip().lower() in GAPS
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_float(value: Any) -> float | None:
    """A number, written as text or not; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
