"""All pairs over a threshold: within one corpus or between two, of dialogues, turns or samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from turnwise.corpus import Corpus
from turnwise.errors import unknown_name
from turnwise.overlap.clean import unit_texts
from turnwise.overlap.join import Pairs, exact_threshold, join
from turnwise.overlap.measure import sample_table
from turnwise.overlap.tokens import Bags, bags_of

UNITS = ("dialogue", "turn", "sample")


@dataclass(frozen=True, eq=False)
class OverlapPairs:
    """Pairs of units, by id, with their overlap ratio; sorted by the first, then the second."""

    table: pa.Table  # first, second, ratio
    unit: str
    threshold: str
    units: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_dict(self) -> dict[str, Any]:
        """The pairs' number as JSON has it; the pairs themselves go to a file."""
        return {"unit": self.unit, "threshold": self.threshold, "units": self.units, "pairs": len(self)}


def pairs(
    corpus: Corpus,
    against: Corpus | None = None,
    *,
    unit: str = "dialogue",
    threshold: float | str = 0.75,
    context_turns: int = 1,
    tokeniser: str = "reference",
) -> OverlapPairs:
    """Find all pairs of units whose overlap ratio is at least the threshold: exact, nothing is sampled or hashed away.

    A sample (context, response) overlaps by the least of its two parts.
    """
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    corpora = [corpus] if against is None else [corpus, against]
    parts = [_texts(one, unit, context_turns) for one in corpora]
    bags, _ = bags_of(*(column for columns in parts for column in columns), tokeniser=tokeniser)
    width = len(parts[0])
    sides = [bags[place : place + width] for place in range(0, len(bags), width)]
    found, ratios = _joined(sides, threshold)
    ids = [_ids(one, unit) for one in corpora]
    table = pa.table({"first": ids[0].take(found.first), "second": ids[-1].take(found.second), "ratio": ratios})
    return OverlapPairs(table, unit, str(threshold), len(ids[0]))


def _joined(sides: list[list[Bags]], threshold: float | str) -> tuple[Pairs, np.ndarray[Any, Any]]:
    """Join the last part (a response, or the only part) and hold the others against the threshold as well."""
    left, right = sides[0], sides[-1]
    found = join(left[-1], right[-1] if len(sides) > 1 else None, threshold=threshold)
    ratios = _ratios(left[-1], right[-1], found)
    for one, other in zip(left[:-1], right[:-1], strict=True):
        shared = np.array(
            [
                len(np.intersect1d(one.bag(i), other.bag(j), assume_unique=True))
                for i, j in zip(found.first, found.second, strict=True)
            ],
            dtype=np.int64,
        )
        sizes = one.sizes[found.first] + other.sizes[found.second]
        limit = exact_threshold(threshold)
        is_over = (2 * limit.denominator * shared >= limit.numerator * sizes) & (sizes > 0)
        ratios = np.minimum(ratios, 2 * shared / np.maximum(sizes, 1))[is_over]
        found = Pairs(found.first[is_over], found.second[is_over], found.shared[is_over])
    return found, ratios


def _ratios(one: Bags, other: Bags, found: Pairs) -> np.ndarray[Any, Any]:
    return np.asarray(2 * found.shared / np.maximum(1, one.sizes[found.first] + other.sizes[found.second]))


def _texts(corpus: Corpus, unit: str, context_turns: int) -> list[Any]:
    if unit == "turn":
        return [corpus.turn_column("text")]
    if unit == "sample":
        table = sample_table(corpus, context_turns=context_turns)
        return [table["context"], table["response"]]
    return [unit_texts(corpus)]


def _ids(corpus: Corpus, unit: str) -> pa.Array:
    """Names of units: a dialogue's id; a turn's or a sample's is that with the place of the turn (from 1) behind it."""
    ids = corpus.table["id"].combine_chunks()
    if unit == "dialogue":
        return ids
    sizes = corpus.turns_per_dialogue
    of = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    chosen = np.flatnonzero(place > 1) if unit == "sample" else np.arange(len(of))
    names = [
        f"{name}#{number}"
        for name, number in zip(ids.take(pa.array(of[chosen])).to_pylist(), place[chosen], strict=True)
    ]
    return pa.array(names, pa.string())
