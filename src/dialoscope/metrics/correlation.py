"""Pearson, Spearman and Kendall correlations with intervals, and partial correlations.

Ranks are taken anew in every resample: a dialogue drawn twice brings ties, and ties share their mean rank. In
an order sorted once, the mean ranks of a weighted sample are a running sum, so a resample costs O(n)
(Kendall's tau-b: O(n log n) with a Fenwick tree), and the values are exactly those of ranking the resample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics.bootstrap import DEFAULT, Resampling, score, unstated
from dialoscope.metrics.kernels import compiled
from dialoscope.metrics.resample import left_out_by_counts
from dialoscope.metrics.statistic import BoolArray, Clusters, FloatArray, Ids, IntArray, Interval, columns
from dialoscope.record import Origin, Score

FEWEST_ITEMS = 3  # two points always lie on a line; each variable held fixed takes one more
CORRECTED_FROM = 10  # dialogues; with fewer the jackknife's standard error is left as it is, too wide
# As U-statistics: how many items a term of the sum takes (Hoeffding 1948; the ranks of two items compare with a third).
DEGREES = {"pearson": 1, "spearman": 3, "kendall": 2}
NOTHING = 1e-12  # what is left of a variance of 1 and is this small is rounding


@dataclass(frozen=True, eq=False)
class Correlation:
    """The correlation of the first two variables as a statistic, given the others."""

    variables: FloatArray  # (variables, items)
    clusters: Clusters
    kind: str = "spearman"
    bounds: Interval = (-1.0, 1.0)

    @property
    def n(self) -> int:
        """Items behind the value."""
        return int(self.variables.shape[1])

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return self.clusters.count

    @property
    def is_grouped(self) -> bool:
        """Whether dialogues were named."""
        return self.clusters.is_grouped

    @property
    def fewest(self) -> int:
        """Items without which the correlation is always 1 or -1, or not there."""
        return FEWEST_ITEMS + len(self.variables) - 2

    @property
    def undefined(self) -> str:
        """Why the correlation is not defined: too few items, or something that does not vary."""
        if self.n < self.fewest:
            given = len(self.variables) - 2
            what = f"a correlation given {given} variable{'s'[: given > 1]}" if given else "a correlation"
            return f"{what} needs at least {self.fewest} pairs, found {self.n}"
        for name, values in zip(("first", "second"), self.variables, strict=False):
            if values.min() == values.max():
                return f"the {name} variable is constant, every value is {values[0]:g}"
        return "nothing is left of a variable once the others are held fixed"

    @property
    def is_recomputed(self) -> bool:
        """Whether leaving out each dialogue computes the value anew."""
        return True

    @property
    def error_share(self) -> float:
        """Sen's standard error over the jackknife's (1960): a rank moves when any other item is left out, too.

        It is that of a U-statistic of independent items. With several items in a dialogue it is too small.
        """
        is_independent = self.dialogues == self.n
        degree = DEGREES[self.kind] if is_independent and self.dialogues >= CORRECTED_FROM else 1
        return (self.dialogues - degree) / (self.dialogues - 1)

    def value(self) -> float:
        """The correlation, or NaN."""
        if self.n < self.fewest:
            return math.nan
        return float(self.resampled(np.ones((1, self.dialogues), dtype=np.int32))[0])

    def left_out(self) -> FloatArray:
        """The correlation without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The correlation in each resample, NaN where a variable does not vary in it."""
        return CORRELATIONS[self.kind](self.variables, self.clusters.codes, np.ascontiguousarray(counts, np.int32))


def pearson(variables: FloatArray, codes: IntArray, counts: IntArray) -> FloatArray:
    """Product-moment correlation: (variables, items) and (resamples, dialogues) to (resamples,)."""
    k = len(variables)
    covariances = np.zeros((len(counts), k, k))
    compiled(_covariances)(counts, codes.astype(np.int64), _scaled(variables), covariances)
    return _partial(covariances)


def spearman(variables: FloatArray, codes: IntArray, counts: IntArray) -> FloatArray:
    """Pearson's correlation of the ranks within each resample, ties sharing their mean rank."""
    k = len(variables)
    orders, starts = _sorted(variables)
    covariances = np.zeros((len(counts), k, k))
    compiled(_rank_covariances)(counts, codes.astype(np.int64), orders, starts, covariances)
    return _partial(covariances)


def kendall(variables: FloatArray, codes: IntArray, counts: IntArray) -> FloatArray:
    """Kendall's tau-b, corrected for ties, of the pairs within each resample."""
    if len(variables) > 2:
        raise UsageError("A partial correlation is 'pearson' or 'spearman'; Kendall's tau-b holds nothing fixed here.")
    orders, starts = _sorted(variables)
    groups = np.empty(variables.shape[1], dtype=np.int64)
    groups[orders[1]] = np.cumsum(starts[1]) - 1
    taus = np.full(len(counts), np.nan)
    compiled(_tau_b)(counts, codes.astype(np.int64), orders[0], starts[0], groups, taus)
    return taus


# Kinds of correlation, each over (variables, items), the dialogues of the items, and counts of dialogues.
CORRELATIONS: Mapping[str, Callable[[FloatArray, IntArray, IntArray], FloatArray]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    kind: str = "spearman",
    given: Sequence[npt.ArrayLike] = (),
    clusters: Ids | None = None,
) -> tuple[Correlation, int]:
    """The correlation as a statistic, and the number of items left out because a value is not finite."""
    if kind not in CORRELATIONS:
        raise unknown_name("correlation", kind, CORRELATIONS)
    variables = columns(first, second, *given)
    kept = np.asarray(np.isfinite(variables).all(axis=0))
    used = Clusters.of(clusters, n=len(kept)).select(kept).drawable()
    return Correlation(np.ascontiguousarray(variables[:, kept]), used, kind), int((~kept).sum())


def correlate(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    kind: str = "spearman",
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """A correlation with its interval; constant or too few values give a score that says so.

    >>> correlate([1, 2, 3, 4], [1, 3, 2, 4]).value
    0.8
    """
    statistic, skipped = correlation(first, second, kind=kind, clusters=clusters)
    return score(statistic, resampling=resampling, origin=of_kind(origin, kind), skipped=skipped)


def partial_correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    given: Sequence[npt.ArrayLike],
    kind: str = "spearman",
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The correlation of what is left of two variables once the `given` ones are held fixed.

    For one variable z: (r_xy − r_xz r_yz) / sqrt((1 − r_xz²)(1 − r_yz²)); with several they are taken out one
    after another. `spearman` does the same with ranks. `given` is a list of variables, even for one.
    """
    statistic, skipped = correlation(first, second, kind=kind, given=given, clusters=clusters)
    return score(statistic, resampling=resampling, origin=of_kind(origin, f"partial-{kind}"), skipped=skipped)


def of_kind(origin: Origin | None, kind: str) -> Origin:
    """The origin, with the kind of correlation among its settings."""
    origin = origin or unstated()
    return replace(origin, settings={"correlation": kind, **origin.settings})


def _scaled(variables: FloatArray) -> FloatArray:
    """Divide by the largest value, which changes no correlation and keeps squares from overflowing or vanishing."""
    largest = np.abs(variables).max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(np.divide(variables, largest, out=np.zeros_like(variables), where=largest > 0))


def _partial(covariances: FloatArray) -> FloatArray:
    """Take the other variables out of the first two, one by one, and correlate: (rows, k, k) to (rows,)."""
    left, nothing = covariances, NOTHING * np.einsum("rkk->rk", covariances)
    while left.shape[1] > 2:
        last, pivot = left[:, :, -1], left[:, -1, -1]
        # A variable that does not vary, or repeats an earlier one, explains nothing more.
        is_more = pivot > nothing[:, left.shape[1] - 1]
        share = np.divide(1.0, pivot, out=np.zeros_like(pivot), where=is_more)
        left = (left - last[:, :, None] * last[:, None, :] * share[:, None, None])[:, :-1, :-1]
    first, second = left[:, 0, 0], left[:, 1, 1]
    varies = (first > nothing[:, 0]) & (second > nothing[:, 1])
    spread = np.sqrt(np.where(varies, first * second, 1.0))
    return np.where(varies, np.clip(left[:, 0, 1] / spread, -1, 1), np.nan)


def _sorted(variables: FloatArray) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Each variable's sorting order, and where in that order a new value starts."""
    orders = np.argsort(variables, axis=1, kind="stable").astype(np.int64)
    values = np.take_along_axis(variables, orders, axis=1)
    starts = np.ones(values.shape, dtype=np.bool_)
    starts[:, 1:] = values[:, 1:] != values[:, :-1]
    return orders, starts


def _covariances(counts: IntArray, codes: IntArray, variables: FloatArray, found: FloatArray) -> None:
    k, n = variables.shape
    weights, centred = np.zeros(n), np.zeros((k, n))
    for row in range(len(counts)):
        total = 0.0
        for item in range(n):
            weights[item] = counts[row, codes[item]]
            total += weights[item]
        for variable in range(k):
            low, high = np.inf, -np.inf
            for item in range(n):
                if weights[item] > 0:
                    low, high = min(low, variables[variable, item]), max(high, variables[variable, item])
            # Of the items drawn, not of all: an outlier that was not drawn must not decide what is small.
            scale, mean = 1 / (high - low) if high > low else 0.0, 0.0
            for item in range(n):
                centred[variable, item] = (variables[variable, item] - low) * scale if weights[item] > 0 else 0.0
                mean += weights[item] * centred[variable, item] / total if total > 0 else 0.0
            for item in range(n):
                centred[variable, item] -= mean
        for a in range(k):
            for b in range(a, k):
                product = 0.0
                for item in range(n):
                    product += weights[item] * centred[a, item] * centred[b, item]
                found[row, a, b] = product
                found[row, b, a] = product


def _rank_covariances(
    counts: IntArray, codes: IntArray, orders: IntArray, starts: BoolArray, found: FloatArray
) -> None:
    k, n = orders.shape
    weights, ranks = np.zeros(n), np.zeros((k, n))
    for row in range(len(counts)):
        total = 0.0
        for item in range(n):
            weights[item] = counts[row, codes[item]]
            total += weights[item]
        for variable in range(k):
            behind, place = 0.0, 0
            while place < n:
                stop, tied = place, 0.0
                while stop < n and (stop == place or not starts[variable, stop]):
                    tied += weights[orders[variable, stop]]
                    stop += 1
                for tie in range(place, stop):  # mean rank of the tie, less the mean of all ranks
                    ranks[variable, orders[variable, tie]] = behind + (tied - total) / 2
                behind += tied
                place = stop
        for a in range(k):
            for b in range(a, k):
                product = 0.0
                for item in range(n):
                    product += weights[item] * ranks[a, item] * ranks[b, item]
                found[row, a, b] = product
                found[row, b, a] = product


def _tau_b(
    counts: IntArray, codes: IntArray, order: IntArray, starts: BoolArray, groups: IntArray, taus: FloatArray
) -> None:
    n, size = len(order), len(order) + 1
    tree, heights = np.zeros(size + 1, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for row in range(len(counts)):
        tree[:] = 0
        heights[:] = 0
        total, agreement, tied_first, place = np.int64(0), 0.0, 0.0, 0
        while place < n:
            stop, tied = place, np.int64(0)
            while stop < n and (stop == place or not starts[stop]):
                item = order[stop]
                weight = np.int64(counts[row, codes[item]])
                if weight > 0:  # against all items with a smaller first value: agreeing less disagreeing pairs
                    below, until = np.int64(0), np.int64(0)
                    node = groups[item]
                    while node > 0:
                        below += tree[node]
                        node -= node & -node
                    until = below + heights[groups[item]]
                    agreement += float(weight) * float(below - (total - until))
                    tied += weight
                stop += 1
            for tie in range(place, stop):
                item = order[tie]
                weight = np.int64(counts[row, codes[item]])
                heights[groups[item]] += weight
                node = groups[item] + 1
                while node <= size:
                    tree[node] += weight
                    node += node & -node
            tied_first += float(tied) * float(tied - 1) / 2
            total += tied
            place = stop
        tied_second = 0.0
        for group in range(size):
            tied_second += float(heights[group]) * float(heights[group] - 1) / 2
        pairs = float(total) * float(total - 1) / 2
        if pairs > tied_first and pairs > tied_second:
            taus[row] = agreement / np.sqrt(pairs - tied_first) / np.sqrt(pairs - tied_second)
