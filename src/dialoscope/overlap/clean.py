"""Clean a corpus of near-copies and split it again, so that no test dialogue stands in the training set.

Units are whole dialogues. A unit whose best overlap is strictly over the threshold goes, unless it was kept as
somebody's partner in the same pass; its best partner stays. Ratios and partners within a pass are those of its start,
and passes are repeated until nothing goes, for one is not enough. Then the units are shuffled and split, flattened into
samples, and exact duplicates among the samples removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus, resplit
from dialoscope.corpus.dialogue import SPLIT_ORDER
from dialoscope.errors import UsageError
from dialoscope.overlap.best import Ratios
from dialoscope.overlap.copies import Copies
from dialoscope.overlap.duplicates import without_duplicates
from dialoscope.overlap.index import Pairs
from dialoscope.overlap.join import exact_threshold, join_distinct
from dialoscope.overlap.measure import Match
from dialoscope.overlap.scan import Flags
from dialoscope.overlap.sides import Data, Places, corpus_of, named_apart, unit_texts
from dialoscope.overlap.tokens import Bags, bags_of
from dialoscope.record import Origin

Partners: TypeAlias = Callable[[Places], tuple[Places, Ratios]]
Dropped: TypeAlias = "tuple[tuple[Drop, ...], Places, int]"  # what went, the places that were kept, passes
OVER, SAME = "over the threshold", "the same text"  # reasons


@dataclass(frozen=True)
class Drop:
    """One dialogue that went: from which split, because of whom, how much they overlap, and in which pass."""

    id: str
    split: str
    partner: str
    ratio: float
    pass_number: int  # from 1
    place: int  # in the corpus as it was given
    partner_place: int
    reason: str = OVER


@dataclass(frozen=True, eq=False)
class Cleaned:
    """The corpus split again, what was dropped and why, and the samples of each split."""

    corpus: Corpus
    dropped: Corpus
    drops: tuple[Drop, ...]
    passes: int
    pairs: dict[str, dict[str, pa.Table]] = field(default_factory=dict)  # context turns -> split -> samples
    repeats: dict[str, pa.Table] = field(default_factory=dict)  # context turns -> duplicates: id, split, partner
    examples: tuple[Match, ...] = ()
    origin: Origin = field(default_factory=Origin)

    @property
    def duplicates(self) -> dict[str, dict[str, int]]:
        """Samples removed, by context turns and split."""
        return {turns: _counts(table["split"]) for turns, table in self.repeats.items()}

    def ledger(self) -> Iterator[dict[str, Any]]:
        """Everything that went: dialogues in the order of the passes, then samples that repeat another."""
        named: dict[str, Any]
        for drop in self.drops:
            named = {"unit": "dialogue", "id": drop.id, "split": drop.split, "reason": drop.reason}
            yield {**named, "partner": drop.partner, "ratio": drop.ratio, "pass": drop.pass_number}
        for turns, table in self.repeats.items():
            for row in table.to_pylist():
                named = {"unit": "sample", "context_turns": int(turns), "id": row["id"], "split": row["split"]}
                yield {**named, "reason": SAME, "partner": row["partner"], "ratio": 1.0, "pass": None}

    def to_dict(self) -> dict[str, Any]:
        """The cleaning as JSON has it."""
        return {
            "units": len(self.corpus) + len(self.drops),
            "kept": len(self.corpus),
            "dropped": len(self.drops),
            "passes": self.passes,
            "splits": {split: self.corpus.splits.get(split, 0) for split in SPLIT_ORDER},
            "pairs": {turns: _sizes(by) for turns, by in self.pairs.items()},
            "duplicates": self.duplicates,
            "signature": self.origin.signature,
        }


def clean(
    data: Data,
    *,
    threshold: float | str,
    validation: int,
    test: int,
    seed: int = 0,
    column: str | None = None,
    context_turns: Sequence[int] = (1, 3),
    tokeniser: str = "reference",
    drop: Callable[[Corpus], Dropped] | None = None,
) -> Cleaned:
    """Drop near-copies to convergence, split by whole dialogue, flatten, and remove exact duplicates.

    >>> clean(load("dailydialog"), threshold=0.75, validation=1000, test=1000)      # doctest: +SKIP

    Copies are found in this process unless `drop` finds them elsewhere, as on Spark.
    """
    given = corpus_of(data, column=column)
    corpus = named_apart(given)
    found = drop(corpus) if drop else drop_copies(corpus, unit_bags(corpus, tokeniser=tokeniser), threshold)
    drops, kept, passes = found
    if validation + test > len(kept):
        asked = f"{test} test and {validation} validation dialogues"
        raise UsageError(f"Cannot take {asked} from the {len(kept)} of {len(corpus)} that were kept. Ask for fewer.")
    again = resplit(corpus.select(kept), validation=validation, test=test, seed=seed)
    flat = {str(turns): without_duplicates(again, context_turns=turns) for turns in context_turns}
    choices = {"threshold": threshold, "validation": validation, "test": test, "tok": tokeniser}
    return Cleaned(
        again,
        corpus.select(np.setdiff1d(np.arange(len(corpus)), kept)),
        drops,
        passes,
        {turns: tables for turns, (tables, _) in flat.items()},
        {turns: repeats for turns, (_, repeats) in flat.items()},
        tuple(_spelt(corpus, drop) for drop in _shown(drops)),
        Origin(f"{given.name}@{given.fingerprint}", choices, seed),
    )


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


def _sizes(tables: dict[str, pa.Table]) -> dict[str, int]:
    return {split: len(tables.get(split, ())) for split in SPLIT_ORDER}


def _counts(splits: pa.ChunkedArray) -> dict[str, int]:
    found = {row["values"]: row["counts"] for row in pc.value_counts(splits).to_pylist()}
    return {split: found.get(split, 0) for split in SPLIT_ORDER}


def _shown(drops: Sequence[Drop], most: int = 5) -> list[Drop]:
    """Drops worth a look: the closest that are no copies, and the first that is."""
    near = sorted((drop for drop in drops if drop.ratio < 1), key=lambda drop: -drop.ratio)[: most - 1]
    return [*near, *[drop for drop in drops if drop.ratio == 1][:1]]


def _spelt(corpus: Corpus, drop: Drop) -> Match:
    texts, others = ("\n".join(corpus[place].texts) for place in (drop.place, drop.partner_place))
    return Match(drop.id, drop.partner, drop.ratio, (texts,), (others,))
