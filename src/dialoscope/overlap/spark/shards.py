"""What one Spark task does with its share of the units: plain functions from Arrow tables to Arrow tables.

Nothing here knows Spark, and nothing runs in Python row by row. Units travel as rows `key, id, part_0 …`: the key
orders them as the corpus does, and each part is a text at first, then a bag of integer tokens. What is sent to every
task (a broadcast) has its content in `value`. Tasks name these functions instead of carrying them, so that the compiled
ones are loaded from Numba's cache and not compiled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus
from dialoscope.corpus.dialogue import SCHEMA
from dialoscope.overlap.best import best_match
from dialoscope.overlap.copies import Copies
from dialoscope.overlap.index import Index, Pairs
from dialoscope.overlap.passes import best_partners
from dialoscope.overlap.sample_join import shared_tokens
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.sides import UNITS
from dialoscope.overlap.tokens import Bags, bags_of

TURN_BITS = 20  # of a key: the turn within its dialogue; the place of the dialogue stands above it
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Work = Callable[[pa.Table], pa.Table]


def on_partition(work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark hands over batches; a vocabulary or an index is looked up once for the whole partition."""
    held = list(batches)
    if held:
        yield from work(pa.Table.from_batches(held)).to_batches()


# --- Units and their tokens -------------------------------------------------------------------------------------------


def units_of(table: pa.Table, *, unit: str, context_turns: int) -> pa.Table:
    """Dialogues `place, id, split, turns` into units `key, id, part_0 …`, named as in one process."""
    unlabelled = table.append_column("labels", pa.nulls(len(table), pa.string()))
    corpus = Corpus(unlabelled.select(SCHEMA.names))
    side = UNITS[unit](corpus, context_turns)  # ids are those of the whole corpus, and told apart already
    turns = corpus.turns_per_dialogue
    units = {"dialogue": np.ones_like(turns), "turn": turns, "sample": np.maximum(0, turns - 1)}[unit]
    within = np.arange(len(side)) - np.repeat(np.cumsum(units) - units, units)
    keys = np.repeat(table["place"].to_numpy(), units) << TURN_BITS | within
    return unit_table(keys, side.ids, side.texts)


def unit_table(keys: Ints, ids: pa.ChunkedArray, parts: Sequence[pa.ChunkedArray]) -> pa.Table:
    """Units as Spark takes them."""
    columns = {f"part_{place}": part.cast(pa.string()) for place, part in enumerate(parts)}
    return pa.table({"key": keys, "id": ids.cast(pa.string()), **columns})


def words_of(table: pa.Table, *, tokeniser: str) -> pa.Table:
    """How many texts of this share hold each word."""
    bags, vocabulary = bags_of(*_parts(table), tokeniser=tokeniser)
    counts = np.bincount(np.concatenate([part.tokens for part in bags]), minlength=len(vocabulary))
    return pa.table({"word": vocabulary.words.cast(pa.string()), "texts": counts})


def ranked(table: pa.Table, *, tokeniser: str, words: Any) -> pa.Table:
    """Texts into bags over the common vocabulary, which every task holds with the rarest word first."""
    bags, vocabulary = bags_of(*_parts(table), tokeniser=tokeniser)
    ranks = pc.index_in(vocabulary.words.cast(pa.string()), value_set=words.value).to_numpy()
    parts = {f"part_{place}": _reordered(part, ranks, len(words.value)) for place, part in enumerate(bags)}
    return pa.table({"key": table["key"], "id": table["id"], **parts})


def _reordered(bags: Bags, ranks: Ranks, words: int) -> pa.Array:
    """Every token by its new rank, ascending within each bag: one sort of (bag, rank) packed into a number."""
    packed = np.repeat(np.arange(len(bags)), bags.sizes) * max(1, words) + ranks[bags.tokens]
    packed.sort()
    tokens = (packed % max(1, words)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bags.offsets, pa.int32()), pa.array(tokens))


def _parts(table: pa.Table) -> list[pa.ChunkedArray]:
    return [table[name] for name in table.column_names if name.startswith("part_")]


@dataclass(frozen=True)
class Share:
    """Units in memory: their keys and, for each part, their bags."""

    keys: Ints
    parts: Sequence[Bags]

    def take(self, places: Ints) -> Share:
        """These units, in this order."""
        return Share(self.keys[places], [part.take(places) for part in self.parts])


def share_of(table: pa.Table) -> Share:
    """Rows `key, part_0 …` as arrays, in order of key."""
    share = Share(table["key"].to_numpy(), [_bags(part) for part in _parts(table)])
    return share.take(np.argsort(share.keys))


def _bags(column: pa.ChunkedArray) -> Bags:
    sizes = pc.list_value_length(column).to_numpy()
    tokens = [np.zeros(0, np.int32), *(chunk.flatten().to_numpy() for chunk in column.chunks)]
    return Bags(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(tokens))


# --- All pairs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """Which pairs are wanted, and which part of the units is joined; the others are held against the threshold then."""

    limit: Fraction
    is_strict: bool = False
    is_self: bool = True
    part: int = 0


@dataclass(frozen=True)
class Held:
    """One side of a join with an index of its distinct bags, as every task holds it."""

    share: Share
    copies: Copies
    index: Index


def held_of(share: Share, terms: Terms) -> Held:
    """Ten thousand times "yes" are looked up once, and spelt out when they are found."""
    copies = Copies(share.parts[terms.part])
    return Held(share, copies, Index(copies.bags, terms.limit, is_self=False))


def probed(table: pa.Table, *, held: Any, terms: Terms) -> pa.Table:
    """Pairs of this share with the side that every task holds."""
    one, other = share_of(table), held.value.share
    mine, theirs = Copies(one.parts[terms.part]), held.value.copies
    met = held.value.index.pairs_with(mine.bags, is_strict=terms.is_strict)
    found = _spelt_forward(mine, theirs, met, one.keys, other.keys) if terms.is_self else mine.spelt_out(met, theirs)
    return scored(one, other, found, terms)


def _spelt_forward(mine: Copies, theirs: Copies, met: Pairs, keys: Ints, other_keys: Ints) -> Pairs:
    """Pairs of distinct bags as pairs of units, the one with the smaller key first: no pair twice, none with itself."""
    places = mine.members, mine.edges, theirs.members, theirs.edges
    return Pairs(*_forward(*places, *met.columns, keys, other_keys))


def scored(one: Share, other: Share, found: Pairs, terms: Terms) -> pa.Table:
    """Pairs by key with their ratio: the least over their parts, each of which must reach the threshold."""
    top, bottom = terms.limit.numerator, terms.limit.denominator
    ratios, is_over = np.ones(len(found)), np.ones(len(found), dtype=bool)
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        shared = shared_tokens(mine.offsets, mine.tokens, theirs.offsets, theirs.tokens, found.first, found.second)
        sizes = mine.sizes[found.first] + theirs.sizes[found.second]
        over = 2 * bottom * shared - top * sizes  # by how much the threshold is passed, in whole numbers
        is_over &= (over > 0 if terms.is_strict else over >= 0) & (sizes > 0)
        ratios = np.minimum(ratios, 2 * shared / np.maximum(1, sizes))
    first, second = one.keys[found.first], other.keys[found.second]
    return pa.table({"first": first[is_over], "second": second[is_over], "ratio": ratios[is_over]})


def where(found: Pairs, is_wanted: Flags) -> Pairs:
    """The pairs that are wanted."""
    return Pairs(found.first[is_wanted], found.second[is_wanted], found.shared[is_wanted])


# --- The best match, and the best partner -----------------------------------------------------------------------------


def best_in_held(table: pa.Table, *, known: Any) -> pa.Table:
    """The best match of these probes in the training set that every task holds."""
    return _best(share_of(table), known.value)


def best_in_share(table: pa.Table, *, probes: Any, is_self: bool) -> pa.Table:
    """The best match that this share of the training set has for the probes that every task holds."""
    known = share_of(table)
    if not is_self:
        return _best(probes.value, known)
    is_own = np.isin(probes.value.keys, known.keys, assume_unique=True)
    outside = probes.value.take(np.flatnonzero(~is_own))
    mine = _best(known, known, is_self=True)
    is_asked = pc.is_in(mine["key"], value_set=pa.array(probes.value.keys))
    return pa.concat_tables([_best(outside, known), mine.filter(is_asked)])


def _best(probes: Share, known: Share, *, is_self: bool = False) -> pa.Table:
    best = best_match(list(zip(probes.parts, known.parts, strict=True)), is_self=is_self)
    is_met = best.match >= 0
    matches = known.keys[best.match[is_met]]
    return pa.table({"key": probes.keys[is_met], "ratio": best.ratio[is_met], "match": matches})


def tallied(table: pa.Table, *, matches: Any) -> pa.Table:
    """How many units of this share stand before each match but not before the match before it."""
    at = np.searchsorted(matches.value, table["key"].to_numpy(), side="right")
    found, counts = np.unique(at, return_counts=True)
    return pa.table({"at": found.astype(np.int64), "units": counts.astype(np.int64)})


def partners_in_share(table: pa.Table, *, left: Any) -> pa.Table:
    """The best partner that this share of the pairs offers to the first unit left of each bag."""
    first, second, ratios = (table[name].to_numpy() for name in ("first", "second", "ratio"))
    partner, best = best_partners(Pairs(first, second, np.zeros_like(first)), ratios, left.value)
    units = np.flatnonzero(partner >= 0)
    return pa.table({"key": units, "ratio": best[units], "match": partner[units]})


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _first_after(places: Ints, low: int, high: int, keys: Ints, key: int) -> int:
    """Where in a group, whose keys ascend, those behind a key begin."""
    while low < high:
        middle = (low + high) // 2
        if keys[places[middle]] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _forward(
    left: Ints,
    left_edges: Ints,
    right: Ints,
    right_edges: Ints,
    one: Ints,
    other: Ints,
    shared: Ints,
    keys: Ints,
    other_keys: Ints,
) -> tuple[Ints, Ints, Ints]:
    """Every unit of one distinct bag with every unit of its partner that has a larger key."""
    total = 0
    for pair in range(len(one)):
        end = right_edges[other[pair] + 1]
        for i in range(left_edges[one[pair]], left_edges[one[pair] + 1]):
            total += end - _first_after(right, right_edges[other[pair]], end, other_keys, keys[left[i]])
    first, second, common = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    filled = 0
    for pair in range(len(one)):
        end = right_edges[other[pair] + 1]
        for i in range(left_edges[one[pair]], left_edges[one[pair] + 1]):
            for j in range(_first_after(right, right_edges[other[pair]], end, other_keys, keys[left[i]]), end):
                first[filled], second[filled], common[filled] = left[i], right[j], shared[pair]
                filled += 1
    return first, second, common
