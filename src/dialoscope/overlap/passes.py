"""Near-copies are dropped pass by pass, until no two dialogues that are left overlap over the threshold.

A dialogue whose best overlap is strictly over the threshold is dropped, unless it was kept as a partner in the same
pass; its best partner stays. Ratios and partners within a pass are those of its start. One pass is not enough: two kept
partners may overlap with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.overlap.best import Ratios
from dialoscope.overlap.copies import Copies
from dialoscope.overlap.index import Pairs
from dialoscope.overlap.join import exact_threshold, join_distinct
from dialoscope.overlap.scan import Flags
from dialoscope.overlap.sides import Places, unit_texts
from dialoscope.overlap.tokens import Bags, bags_of

Partners: TypeAlias = Callable[[Places], tuple[Places, Ratios]]
Dropped: TypeAlias = "tuple[tuple[Drop, ...], Places, int]"  # what was dropped, the places that are kept, passes
OVER = "over the threshold"  # the reason of a drop


@dataclass(frozen=True)
class Drop:
    """One dropped dialogue: its split, its partner, their overlap ratio, and the pass in which it was dropped."""

    id: str
    split: str
    partner: str
    ratio: float
    pass_number: int  # from 1
    place: int  # in the corpus as it was given
    partner_place: int
    reason: str = OVER


def unit_bags(corpus: Corpus, *, tokeniser: str = "reference") -> Bags:
    """The bag of a dialogue is the union of its turns'."""
    (bags,), _ = bags_of(unit_texts(corpus), tokeniser=tokeniser)
    return bags


def drop_copies(corpus: Corpus, bags: Bags, threshold: float | str) -> Dropped:
    """Pass over the units until no two are left that overlap over the threshold."""
    limit = exact_threshold(threshold)
    pairs = join_distinct(bags, threshold=limit, is_strict=True).pairs
    ratios = 2 * pairs.shared / (bags.sizes[pairs.first] + bags.sizes[pairs.second])
    return drop_in_passes(corpus, lambda left: best_partners(pairs, ratios, left), firsts_of(bags, limit))


def firsts_of(bags: Bags, limit: Fraction) -> Places:
    """For each unit the first with the same words; itself where copies do not count, as of no words at all."""
    firsts = np.arange(len(bags))
    if limit < 1:  # copies overlap by 1, which is not over 1
        copies = Copies(bags)
        firsts[copies.members] = np.repeat(copies.firsts, copies.counts)
    return np.where(bags.sizes > 0, firsts, np.arange(len(bags)))


def drop_in_passes(corpus: Corpus, partners: Partners, firsts: Places) -> Dropped:
    """Ask for the best partner of each unit among those left, drop, and ask again until nothing goes.

    Thirty thousand copies of one dialogue are 450 million pairs, so `partners` knows of each distinct bag only the
    first unit that is left; the best partner of a unit with copies is another copy, the first there is.
    """
    is_kept = np.ones(len(corpus), dtype=bool)
    ids, splits = (corpus.table[name].to_pylist() for name in ("id", "split"))
    drops: list[Drop] = []
    passes = 0
    while True:
        left, copy = left_of(firsts, is_kept)
        partner, best = partners(left)
        partner[copy >= 0], best[copy >= 0] = copy[copy >= 0], 1.0
        going = going_units(partner)
        if not going:
            return tuple(drops), np.flatnonzero(is_kept), passes
        passes += 1
        is_kept[going] = False
        for unit in going:
            other = int(partner[unit])
            drops.append(Drop(ids[unit], splits[unit], ids[other], float(best[unit]), passes, unit, other))


def left_of(firsts: Places, is_kept: Flags) -> tuple[Places, Places]:
    """By the first unit of each bag the first that is left, or -1; and for each unit left its first copy, or -1."""
    units = np.flatnonzero(is_kept)
    units = units[np.argsort(firsts[units], kind="stable")]  # copies side by side, in corpus order
    bags, starts, counts = np.unique(firsts[units], return_index=True, return_counts=True)
    left, copy = np.full((2, len(firsts)), -1, dtype=np.int64)
    left[bags] = units[starts]
    copy[units] = np.repeat(np.where(counts > 1, units[starts], -1), counts)
    several = starts[counts > 1]
    copy[units[several]] = units[several + 1]
    return left, copy


def best_partners(pairs: Pairs, ratios: Ratios, left: Places) -> tuple[Places, Ratios]:
    """The best partner of the first unit left of each bag, the first of equals, or -1; and their ratio."""
    one, other = left[pairs.first], left[pairs.second]
    is_left = (one >= 0) & (other >= 0)
    one, other = np.concatenate([one[is_left], other[is_left]]), np.concatenate([other[is_left], one[is_left]])
    ratio = np.tile(ratios[is_left], 2)
    order = np.lexsort((other, -ratio, one))
    units, firsts = np.unique(one[order], return_index=True)
    partner, best = np.full(len(left), -1, dtype=np.int64), np.zeros(len(left))
    partner[units], best[units] = other[order][firsts], ratio[order][firsts]
    return partner, best


def going_units(partner: Places) -> list[int]:
    """Units that go in this pass, in corpus order: those not kept as the partner of one that went before."""
    kept: set[int] = set()
    going = []
    for unit in np.flatnonzero(partner >= 0).tolist():
        if unit not in kept:
            going.append(unit)
            kept.add(int(partner[unit]))
    return going
