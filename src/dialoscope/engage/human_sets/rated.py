"""A set of turns that people have rated, and the half of it that predictors may be selected on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dialoscope.engage.human_sets.keys import item_key, keys_of, pair_key, selection_keys

Turns = tuple[str, ...]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HumanSet:
    """Rated turns, each with the turns before it, and what every annotator said of it."""

    name: str
    dialogues: tuple[Turns, ...]  # the rated turn is the last; consecutive messages of one speaker are one turn
    ratings: Numbers  # (items, annotators), NaN where somebody did not rate
    clusters: tuple[str, ...]  # the dialogue each item comes from
    annotators: tuple[str, ...]
    metrics: Mapping[str, Numbers] = field(default_factory=dict)  # other metrics' scores, NaN where there is none
    aspect: str = ""
    note: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> items

    def __post_init__(self) -> None:
        n = len(self.dialogues)
        shapes = {"clusters": (len(self.clusters),), **{name: one.shape for name, one in self.metrics.items()}}
        if self.ratings.shape != (n, len(self.annotators)) or any(shape != (n,) for shape in shapes.values()):
            raise ValueError(f"{n} dialogues: expected as many rows of ratings, clusters and scores of each metric")

    def __len__(self) -> int:
        return len(self.dialogues)

    @cached_property
    def mean(self) -> Numbers:
        """The mean rating of each item, over those who rated it: (items,)."""
        return np.asarray(np.nanmean(self.ratings, axis=1))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """A hash of each item's rated turn and the turn before it, which recognises it in any file (`pair_key`)."""
        return tuple(map(pair_key, self.dialogues))

    @cached_property
    def selection_keys(self) -> frozenset[str]:
        """What is kept of all items where a predictor is selected on them (`selection_keys`)."""
        return frozenset(key for turns in self.dialogues for key in selection_keys(turns))

    @cached_property
    def known_as(self) -> tuple[frozenset[str], ...]:
        """All keys under which each item may have been selected on (`keys_of`)."""
        return tuple(frozenset(keys_of(turns)) for turns in self.dialogues)

    @property
    def annotators_per_item(self) -> float:
        """How many people rated an item, on average."""
        return float(np.isfinite(self.ratings).sum(axis=1).mean()) if len(self) else 0.0

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all that a number may depend on: turns, dialogues, ratings and other metrics' scores."""
        exact = tuple(map(item_key, self.dialogues))
        digest = hashlib.sha256(repr((exact, self.clusters, self.annotators, tuple(self.metrics))).encode())
        for numbers in (self.ratings, *self.metrics.values()):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()[:12]

    def select(self, places: Sequence[int] | npt.NDArray[np.int64]) -> HumanSet:
        """The items at these places, in this order."""
        rows = np.asarray(places, dtype=np.int64)
        return replace(
            self,
            dialogues=tuple(self.dialogues[row] for row in rows),
            ratings=self.ratings[rows],
            clusters=tuple(self.clusters[row] for row in rows),
            metrics={name: values[rows] for name, values in self.metrics.items()},
        )


def some_of(rated: HumanSet, most: int) -> HumanSet:
    """The first items, at most this many."""
    return rated if most >= len(rated) else rated.select(range(most))


class Halves(NamedTuple):
    """A set cut in two: models may be chosen by one half, and are reported on the other."""

    selection: HumanSet
    reported: HumanSet


def halves(rated: HumanSet) -> Halves:
    """The half that may be selected on and the half that is reported, always the same, whatever the items' order.

    Dialogues are sorted by the hash of their items' `keys` and cut in the middle, so that both halves are equally large
    to within one (the reported half is the larger). Only a dialogue on the cut can have items in both. The keys are of
    normalised pairs: case, punctuation, spacing and earlier context do not move an item to the other half.
    """
    members: dict[str, list[str]] = {}
    for dialogue, key in zip(rated.clusters, rated.keys, strict=True):
        members.setdefault(dialogue, []).append(key)
    # Of all items together: the least of their hashes would bring long dialogues to the front.
    ranks = {dialogue: item_key(sorted(keys)) for dialogue, keys in members.items()}

    def rank(place: int) -> tuple[str, str, str]:
        return ranks[rated.clusters[place]], rated.keys[place], item_key(rated.dialogues[place])

    order = sorted(range(len(rated)), key=rank)
    middle = len(order) // 2
    return Halves(rated.select(sorted(order[:middle])), rated.select(sorted(order[middle:])))
