"""Clean a corpus of near-copies and split it again, so that no test dialogue stands in the training set.

Units are whole dialogues. A unit whose best overlap is strictly over the threshold goes, unless it was kept as
somebody's partner in the same pass; its best partner stays. Ratios and partners within a pass are those of its start,
and passes are repeated until nothing goes, for one is not enough. Then the units are shuffled and split, flattened into
samples, and exact duplicates among the samples removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from turnwise.corpus import Corpus, resplit, samples
from turnwise.overlap.join import Pairs, exact_threshold, join
from turnwise.overlap.tokens import Bags, bags_of

Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Drop:
    """One unit that went: in which pass, because of whom, and how much they overlap."""

    id: str
    split: str
    partner: str
    ratio: float
    turn: int  # the pass, from 1


@dataclass(frozen=True, eq=False)
class Cleaned:
    """The corpus split again, what was dropped and why, and the samples of each split."""

    corpus: Corpus
    dropped: Corpus | None
    ledger: tuple[Drop, ...]
    passes: int
    pairs: dict[str, dict[str, pa.Table]] = field(default_factory=dict)  # context turns -> split -> samples
    duplicates: dict[str, dict[str, int]] = field(default_factory=dict)  # context turns -> split -> samples removed

    def to_dict(self) -> dict[str, Any]:
        """The cleaning as JSON has it."""
        return {
            "units": len(self.corpus) + len(self.ledger),
            "kept": len(self.corpus),
            "dropped": len(self.ledger),
            "passes": self.passes,
            "splits": self.corpus.splits,
            "pairs": {turns: {split: len(table) for split, table in by.items()} for turns, by in self.pairs.items()},
            "duplicates": self.duplicates,
        }


def clean(
    corpus: Corpus,
    *,
    threshold: float | str,
    validation: int,
    test: int,
    seed: int = 0,
    context_turns: Sequence[int] = (1, 3),
    tokeniser: str = "reference",
) -> Cleaned:
    """Drop near-copies to convergence, split by whole dialogue, flatten, and remove exact duplicates.

    >>> clean(load("dailydialog"), threshold=0.75, validation=1000, test=1000)      # doctest: +SKIP
    """
    bags = unit_bags(corpus, tokeniser=tokeniser)
    ledger, kept, passes = drop_copies(corpus, bags, threshold)
    gone = np.setdiff1d(np.arange(len(corpus)), kept)
    again = resplit(corpus.select(kept), validation=validation, test=test, seed=seed)
    dropped = corpus.select(gone) if len(gone) else None
    flat = {str(turns): without_duplicates(again, context_turns=turns) for turns in context_turns}
    tables = {turns: kept_by for turns, (kept_by, _) in flat.items()}
    return Cleaned(again, dropped, ledger, passes, tables, {turns: removed for turns, (_, removed) in flat.items()})


def unit_bags(corpus: Corpus, *, tokeniser: str = "reference") -> Bags:
    """The bag of a dialogue is the union of its turns'."""
    (bags,), _ = bags_of(unit_texts(corpus), tokeniser=tokeniser)
    return bags


def unit_texts(corpus: Corpus) -> list[str]:
    """Each dialogue as one text; a line break between turns keeps their tokens apart."""
    return ["\n".join(dialogue.texts) for dialogue in corpus]


def drop_copies(corpus: Corpus, bags: Bags, threshold: float | str) -> tuple[tuple[Drop, ...], Places, int]:
    """Pass over the units until no two are left that overlap over the threshold."""
    pairs = join(bags, threshold=exact_threshold(threshold), is_strict=True)
    ratios = 2 * pairs.shared / (bags.sizes[pairs.first] + bags.sizes[pairs.second])
    is_kept = np.ones(len(bags), dtype=bool)
    ids, splits = (corpus.table[name].to_pylist() for name in ("id", "split"))
    ledger: list[Drop] = []
    passes = 0
    while True:
        partner, best = _best_partners(pairs, ratios, is_kept)
        going = _going(partner)
        if not going:
            return tuple(ledger), np.flatnonzero(is_kept), passes
        passes += 1
        is_kept[going] = False
        ledger += [Drop(ids[u], splits[u], ids[partner[u]], float(best[u]), passes) for u in going]


def _best_partners(pairs: Pairs, ratios: np.ndarray[Any, Any], is_kept: np.ndarray[Any, Any]) -> tuple[Places, Any]:
    """For each unit its best partner among those left, the first of equals, or -1; and their ratio."""
    alive = is_kept[pairs.first] & is_kept[pairs.second]
    one = np.concatenate([pairs.first[alive], pairs.second[alive]])
    other = np.concatenate([pairs.second[alive], pairs.first[alive]])
    ratio = np.tile(ratios[alive], 2)
    order = np.lexsort((other, -ratio, one))
    units, firsts = np.unique(one[order], return_index=True)
    partner, best = np.full(len(is_kept), -1, dtype=np.int64), np.zeros(len(is_kept))
    partner[units], best[units] = other[order][firsts], ratio[order][firsts]
    return partner, best


def _going(partner: Places) -> list[int]:
    """Units that go in this pass, in corpus order: those not kept as the partner of one that went before."""
    kept: set[int] = set()
    going = []
    for unit in np.flatnonzero(partner >= 0).tolist():
        if unit not in kept:
            going.append(unit)
            kept.add(int(partner[unit]))
    return going


def without_duplicates(corpus: Corpus, *, context_turns: int) -> tuple[dict[str, pa.Table], dict[str, int]]:
    """Samples of each split without exact duplicates: within it, and of what comes before it in corpus order."""
    seen: set[tuple[str, str]] = set()
    tables: dict[str, pa.Table] = {}
    removed: dict[str, int] = {}
    for split in corpus.splits:  # train, validation, test: what comes later is held against what came before
        table = samples(corpus.split(split), context_turns=context_turns).to_table()
        is_new = []
        for key in _keys(table):
            is_new.append(key not in seen)
            seen.add(key)
        tables[split] = table.filter(pa.array(is_new, pa.bool_()))
        removed[split] = len(table) - len(tables[split])
    return tables, removed


def _keys(table: pa.Table) -> list[tuple[str, str]]:
    """Context and response in one spelling: lower case, single blanks."""
    columns = (table[name].to_pylist() for name in ("context", "response"))
    return [(_normal(context), _normal(response)) for context, response in zip(*columns, strict=True)]


def _normal(text: str) -> str:
    return " ".join(text.lower().split())
