"""The best match of every bag, or of every (context, response) sample, in a training set: exact, by counting.

For each probe, the posting lists of its tokens are walked once and shared tokens counted for every training bag at
once. A threshold cannot help here (the best match of a clean sample is a poor one), so this visits what a join skips;
counters stay in the processor's cache, and probes run on all cores. Within one corpus, identical units count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from dialoscope.cores import in_ranges
from dialoscope.overlap.copies import Copies
from dialoscope.overlap.scan import Ints, Ranks
from dialoscope.overlap.tokens import Bags

Ratios = np.ndarray[Any, np.dtype[np.float64]]
RANGES, FEW = 64, 64  # of probes: many ranges, for they differ in cost; one where there are few
NONE = -1  # the match of what overlaps with nothing


@dataclass(frozen=True)
class Best:
    """For each probe the highest ratio, and the first place that reaches it (or -1)."""

    ratio: Ratios
    match: Ints


def best_match(parts: list[tuple[Bags, Bags]], *, is_self: bool = False) -> Best:
    """Probe each part's first bags against its second; a sample scores the least of its parts, the best of all places.

    `parts` holds one pair of bags for whole units, two for samples (context and response). With `is_self` a place does
    not match itself.
    """
    return _best_of_distinct([known for _, known in parts]) if is_self else _best_of_all(parts)


def _best_of_distinct(parts: list[Bags]) -> Best:
    """Within one corpus: copies match the first other copy, and stand once where the rest is compared.

    The first place that reaches a ratio is the first of its copies, so ties fall as they do among all places.
    """
    group = _groups(parts)
    _, firsts, counts = np.unique(group, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    places = firsts[order]
    distinct = [bags.take(places) for bags in parts] if len(places) < len(group) else parts
    best = _best_of_all([(bags, bags) for bags in distinct], is_self=True)
    back = np.argsort(order)[group]  # for each place, where its unit stands among the distinct ones
    ratio, match = best.ratio[back], np.append(places, NONE)[best.match[back]]  # -1 stays -1
    filled = np.all([bags.sizes > 0 for bags in parts], axis=0)  # what is empty overlaps with nothing
    has_copy = filled & (counts[group] > 1)
    ratio[has_copy], match[has_copy] = 1.0, _first_other(group, firsts)[has_copy]
    return Best(ratio, match)


def _groups(parts: list[Bags]) -> Ints:
    """A number for each place, the same for identical units: those whose parts are all identical."""
    group = np.zeros(len(parts[0]), dtype=np.int64)
    for bags in parts:
        copies = Copies(bags)
        own = np.empty_like(group)
        own[copies.members] = np.repeat(np.arange(len(copies.bags)), copies.counts)
        _, group = np.unique(group * len(copies.bags) + own, return_inverse=True)
    return group


def _first_other(group: Ints, firsts: Ints) -> Ints:
    """The first place of each one's group; of the first itself, the second, or itself where there is none."""
    others = firsts[group]
    later = np.flatnonzero(others != np.arange(len(group)))
    again, seconds = np.unique(group[later], return_index=True)
    others[firsts[again]] = later[seconds]
    return others


def _best_of_all(parts: list[tuple[Bags, Bags]], *, is_self: bool = False) -> Best:
    indexes = [_postings(train.offsets, train.tokens) for _, train in parts]
    probes, count = len(parts[0][0]), len(parts[0][1])
    if len(parts) == 1:
        parts, indexes = parts * 2, indexes * 2  # the least of one part is the part itself

    def work(low: int, high: int) -> tuple[Ratios, Ints]:
        (first, first_train), (second, second_train) = parts
        found: tuple[Ratios, Ints] = _best(
            first.offsets,
            first.tokens,
            second.offsets,
            second.tokens,
            *indexes[0],
            *indexes[1],
            first_train.sizes,
            second_train.sizes,
            first is second,
            is_self,
            low,
            high,
        )
        return found

    ratios, matches = zip(*in_ranges(probes, work, ranges=RANGES, few=FEW), strict=True)
    if not count:
        return Best(np.zeros(probes), np.full(probes, NONE, dtype=np.int64))
    return Best(np.concatenate(ratios), np.concatenate(matches))


@numba.njit(cache=True, nogil=True)
def _postings(offsets: Ints, tokens: Ranks) -> tuple[Ints, Ranks]:
    """For each token the bags that hold it, in order."""
    vocabulary = tokens.max() + 1 if len(tokens) else 0
    starts = np.zeros(vocabulary + 1, dtype=np.int64)
    for token in tokens:
        starts[token + 1] += 1
    starts = np.cumsum(starts)
    free = starts.copy()
    bags = np.empty(len(tokens), dtype=np.int32)
    for bag in range(len(offsets) - 1):
        for place in range(offsets[bag], offsets[bag + 1]):
            bags[free[tokens[place]]] = bag
            free[tokens[place]] += 1
    return starts, bags


@numba.njit(cache=True, nogil=True)
def _count(mine: Ranks, starts: Ints, bags: Ranks, counts: Ranks) -> None:
    """Shared tokens of one bag with every other."""
    counts[:] = 0
    for token in mine:
        if token + 1 < len(starts):
            for place in range(starts[token], starts[token + 1]):
                counts[bags[place]] += 1


@numba.njit(cache=True, nogil=True)
def _best(
    first_offsets: Ints,
    first_tokens: Ranks,
    second_offsets: Ints,
    second_tokens: Ranks,
    first_starts: Ints,
    first_bags: Ranks,
    second_starts: Ints,
    second_bags: Ranks,
    first_sizes: Ints,
    second_sizes: Ints,
    is_one_part: bool,
    is_self: bool,
    low: int,
    high: int,
) -> tuple[Ratios, Ints]:
    """The best match of probes from `low` up to `high`.

    Ratios are compared as floating-point numbers: the quotient of two integers this small is rounded correctly, so
    equal ratios are equal numbers and different ratios are different ones.
    """
    ratios = np.zeros(high - low)
    matches = np.full(high - low, NONE, dtype=np.int64)
    first_counts = np.zeros(len(first_sizes), dtype=np.int32)
    second_counts = first_counts if is_one_part else np.zeros(len(second_sizes), dtype=np.int32)
    for probe in range(low, high):
        first = first_tokens[first_offsets[probe] : first_offsets[probe + 1]]
        second = second_tokens[second_offsets[probe] : second_offsets[probe + 1]]
        _count(first, first_starts, first_bags, first_counts)
        if not is_one_part:
            _count(second, second_starts, second_bags, second_counts)
        best = 0.0
        for place in range(len(first_counts)):
            if first_counts[place] == 0 or second_counts[place] == 0 or (is_self and place == probe):
                continue
            ratio = 2 * first_counts[place] / (len(first) + first_sizes[place])
            if ratio > best:
                ratio = min(ratio, 2 * second_counts[place] / (len(second) + second_sizes[place]))
                if ratio > best:
                    best = ratio
                    matches[probe - low] = place
        ratios[probe - low] = best
    return ratios, matches
