"""The join where neither side fits into one task: bags are sent to the buckets of their prefix tokens.

Two bags that overlap enough share a token within their prefixes (see `join`), so each bag goes to the bucket of every
token of its prefix, and each bucket is joined by itself. A token that too many bags have in their prefix is cut: its
bags fall into groups, and each pair of groups is a cell of its own. A pair belongs to the cell of its first common
token and its two groups, hence to one bucket, and is given there and nowhere else: no shuffle has to find duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.overlap.index import prefix_length
from dialoscope.overlap.join import join
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.spark.shards import Terms, scored, share_of, where

WITHIN, LEFT, RIGHT = 0, 1, 2  # one set with itself, or the sides of two


@dataclass(frozen=True)
class Plan:
    """How bags are sent to buckets."""

    terms: Terms
    buckets: int
    heavy: Ranks  # tokens that are cut, ascending
    groups: Ints  # into how many groups each


def prefix_lengths(sizes: Ints, limit: Fraction) -> Ints:
    """How many of a bag's first tokens may be the first that it shares with a partner."""
    lengths: Ints = _prefixes(sizes, limit.numerator, limit.denominator)
    return lengths


def prefix_counts(table: pa.Table, *, terms: Terms) -> pa.Table:
    """How many bags of this share have each token in their prefix."""
    bags = share_of(table).parts[terms.part]
    within = np.arange(len(bags.tokens)) - np.repeat(bags.offsets[:-1], bags.sizes)
    tokens = bags.tokens[within < np.repeat(prefix_lengths(bags.sizes, terms.limit), bags.sizes)]
    found, counts = np.unique(tokens, return_counts=True)
    return pa.table({"token": found.astype(np.int32), "bags": counts.astype(np.int64)})


def sent(table: pa.Table, *, plan: Plan, is_right: bool) -> pa.Table:
    """Each unit once for every bucket that it has to be in."""
    table = table.drop_columns(["id"]).sort_by("key")
    share = share_of(table)
    bags = share.parts[plan.terms.part]
    lengths = prefix_lengths(bags.sizes, plan.terms.limit)
    way = WITHIN if plan.terms.is_self else RIGHT if is_right else LEFT
    rows, buckets = _sent(bags.offsets, bags.tokens, lengths, share.keys, plan.heavy, plan.groups, plan.buckets, way)
    marks = {"bucket": buckets, "is_right": np.full(len(rows), is_right)}
    copies = table.take(pa.array(rows))
    return pa.table({**{name: copies[name] for name in copies.column_names}, **marks})


def joined(table: pa.Table, *, plan: Plan) -> pa.Table:
    """Join what came to one bucket, and keep the pairs that belong to it."""
    terms, bucket = plan.terms, table["bucket"][0].as_py()
    one = other = share_of(table.filter(pc.invert(table["is_right"])))
    if not terms.is_self:
        other = share_of(table.filter(table["is_right"]))
    mine, theirs = one.parts[terms.part], other.parts[terms.part]
    found = join(mine, None if terms.is_self else theirs, threshold=terms.limit, is_strict=terms.is_strict)
    tokens = _first_shared(mine.offsets, mine.tokens, theirs.offsets, theirs.tokens, found.first, found.second)
    ends = one.keys[found.first], other.keys[found.second]
    is_own = _buckets(tokens, *ends, plan.heavy, plan.groups, plan.buckets, terms.is_self) == bucket
    return scored(one, other, where(found, is_own), terms)


# --- Compiled ---------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _prefixes(sizes: Ints, top: int, bottom: int) -> Ints:
    lengths = np.zeros(len(sizes), dtype=np.int64)
    for bag in range(len(sizes)):
        if sizes[bag] > 0:
            lengths[bag] = prefix_length(sizes[bag], top, bottom)
    return lengths


@numba.njit(cache=True, nogil=True)
def _first_shared(left: Ints, tokens: Ranks, right: Ints, others: Ranks, first: Ints, second: Ints) -> Ints:
    """The first token that the bags of each pair share."""
    found = np.full(len(first), -1, dtype=np.int64)
    for pair in range(len(first)):
        one, other = left[first[pair]], right[second[pair]]
        while tokens[one] != others[other]:  # found pairs do share one
            if tokens[one] < others[other]:
                one += 1
            else:
                other += 1
        found[pair] = tokens[one]
    return found


@numba.njit(cache=True, nogil=True)
def _mixed(number: np.uint64) -> np.uint64:
    """A number with its bits stirred (the finaliser of MurmurHash3)."""
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return number ^ (number >> np.uint64(33))


@numba.njit(cache=True, nogil=True)
def _groups_of(token: int, heavy: Ranks, groups: Ints) -> int:
    place = np.searchsorted(heavy, token)
    return groups[place] if place < len(heavy) and heavy[place] == token else 1


@numba.njit(cache=True, nogil=True)
def _group(key: int, count: int) -> int:
    return int(_mixed(np.uint64(key)) % np.uint64(count))


@numba.njit(cache=True, nogil=True)
def _bucket(token: int, one: int, other: int, buckets: int) -> int:
    """The bucket of a cell."""
    code = _mixed(_mixed(_mixed(np.uint64(token)) ^ np.uint64(one)) ^ np.uint64(other))
    return int(code % np.uint64(buckets))


@numba.njit(cache=True, nogil=True)
def _sent(
    offsets: Ints, tokens: Ranks, lengths: Ints, keys: Ints, heavy: Ranks, groups: Ints, buckets: int, way: int
) -> tuple[Ints, Ints]:
    """Bags and the buckets they go to."""
    total = 0
    for bag in range(len(keys)):
        for place in range(lengths[bag]):
            total += _groups_of(tokens[offsets[bag] + place], heavy, groups)
    rows, targets = np.empty(total, np.int64), np.empty(total, np.int64)
    last = np.full(buckets, -1, np.int64)  # the last bag that was sent to a bucket
    filled = 0
    for bag in range(len(keys)):
        for place in range(lengths[bag]):
            token = tokens[offsets[bag] + place]
            count = _groups_of(token, heavy, groups)
            mine = _group(keys[bag], count)
            for theirs in range(count):
                is_turned = way == RIGHT or (way == WITHIN and theirs < mine)
                one, other = (theirs, mine) if is_turned else (mine, theirs)
                bucket = _bucket(token, one, other, buckets)
                if last[bucket] != bag:
                    last[bucket] = bag
                    rows[filled], targets[filled] = bag, bucket
                    filled += 1
    return rows[:filled].copy(), targets[:filled].copy()


@numba.njit(cache=True, nogil=True)
def _buckets(tokens: Ints, first: Ints, second: Ints, heavy: Ranks, groups: Ints, buckets: int, is_self: bool) -> Ints:
    """The one bucket to which each pair belongs, by its first common token and the groups of its ends."""
    found = np.empty(len(tokens), np.int64)
    for pair in range(len(tokens)):
        count = _groups_of(tokens[pair], heavy, groups)
        one, other = _group(first[pair], count), _group(second[pair], count)
        if is_self and other < one:
            one, other = other, one
        found[pair] = _bucket(tokens[pair], one, other, buckets)
    return found
