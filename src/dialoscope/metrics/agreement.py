"""How far people agree with each other: the ceiling no metric can be blamed for missing.

Ratings are items × annotators. Where annotators differ from item to item, leave a gap (NaN) for those who did
not rate it, or use `ratings_matrix`. A list of unequal lists is read as "first, second, … annotator of the item".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoscope.errors import MissingExtraError, UsageError, unknown_name
from dialoscope.metrics.bootstrap import DEFAULT, Resampling, score, unstated
from dialoscope.metrics.correlation import CORRELATIONS, FEWEST_ITEMS, Correlation
from dialoscope.metrics.kernels import compiled, weighted_sums
from dialoscope.metrics.resample import left_out_by_counts
from dialoscope.metrics.statistic import Clusters, FloatArray, Ids, IntArray, Interval
from dialoscope.record import Origin, Score

Ratings = npt.NDArray[Any] | Sequence[Sequence[float | None]]
LEVELS = ("nominal", "ordinal", "interval", "ratio")  # of measurement; rating scales are ordinal
PACKAGE_CELLS = 2**24  # items × values × values, which the package holds several times over; 128 MB each
RATIO_VALUES = 500  # different values; a resample takes time by their square, and only at this level


def ratings_matrix(ratings: Iterable[tuple[Hashable, Hashable, float]]) -> FloatArray:
    """Make items × annotators from (item, annotator, rating), in order of first appearance, NaN where there is none.

    >>> ratings_matrix([("a", "Ann", 1), ("a", "Bob", 2), ("b", "Bob", 3)]).tolist()
    [[1.0, 2.0], [nan, 3.0]]
    """
    items: dict[Hashable, int] = {}
    annotators: dict[Hashable, int] = {}
    cells: dict[tuple[int, int], float] = {}
    for item, annotator, rating in ratings:
        cell = items.setdefault(item, len(items)), annotators.setdefault(annotator, len(annotators))
        if cell in cells:
            raise UsageError(f"Annotator {annotator!r} rated item {item!r} twice; expected one rating each.")
        cells[cell] = rating
    matrix = np.full((len(items), len(annotators)), np.nan)
    for cell, rating in cells.items():
        matrix[cell] = rating
    return matrix


def annotator_ceiling(
    ratings: Ratings,
    *,
    kind: str = "spearman",
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """The mean, over annotators, of one annotator's correlation with the mean of the rest.

    Annotators weigh as many as the items they share with others (`weights:items` in the signature): where hundreds
    of people rated ten items each, the correlations of ten are as noisy as they are many. An annotator counts where
    at least three items with other ratings vary; the signature says how many did.
    """
    if kind not in CORRELATIONS:
        raise unknown_name("correlation", kind, CORRELATIONS)
    matrix = _matrix(ratings)
    statistic = Ceiling.over(matrix, kind=kind, clusters=Clusters.of(clusters, n=len(matrix)))
    settings = {"ceiling": kind, "annotators": f"{len(statistic.annotators)}/{matrix.shape[1]}", "weights": "items"}
    origin = origin or unstated()
    return score(
        statistic,
        resampling=resampling,
        origin=replace(origin, settings={**settings, **origin.settings}),
        skipped=len(matrix) - statistic.n,
    )


def krippendorff_alpha(
    ratings: Ratings,
    *,
    level: str = "ordinal",
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """Krippendorff's alpha, by the `krippendorff` package, with an interval over dialogues.

    The package needs memory for items × values × values; where that is too much, as for continuous ratings, the value
    comes from the same sums as the resamples, which need no more than the ratings do.
    """
    if level not in LEVELS:
        raise unknown_name("level of measurement", level, LEVELS)
    matrix = _matrix(ratings)
    statistic = Alpha.over(matrix, level=level, clusters=Clusters.of(clusters, n=len(matrix)))
    origin = origin or unstated()
    settings = {"alpha": level, **origin.settings}
    skipped = len(matrix) - statistic.n
    return score(statistic, resampling=resampling, origin=replace(origin, settings=settings), skipped=skipped)


@dataclass(frozen=True, eq=False)
class Ceiling:
    """One annotator against the mean of the rest, averaged over annotators, as a statistic."""

    annotators: tuple[Correlation, ...]
    n: int  # items with at least two ratings
    dialogues: int
    is_grouped: bool = False
    undefined: str = "no annotator shares at least three items of varying ratings with others"
    bounds: Interval = (-1.0, 1.0)

    @classmethod
    def over(cls, matrix: FloatArray, *, kind: str, clusters: Clusters) -> Ceiling:
        """Pair each annotator with the mean of the others, item by item."""
        shared = np.asarray(np.isfinite(matrix).sum(axis=1) >= 2)
        matrix, used = matrix[shared], clusters.select(shared).drawable()
        each = [_own_and_rest(matrix, column, used, kind) for column in range(matrix.shape[1])]
        useful = tuple(one for one in each if one.n >= FEWEST_ITEMS and math.isfinite(one.value()))
        return cls(useful, len(matrix), used.count, used.is_grouped)

    @property
    def is_recomputed(self) -> bool:
        """Whether leaving out each dialogue computes the value anew."""
        return True

    def value(self) -> float:
        """The mean over annotators, weighted by their shared items, or NaN."""
        if not self.annotators:
            return math.nan
        return float(self.resampled(np.ones((1, self.dialogues), dtype=np.int32))[0])

    def left_out(self) -> FloatArray:
        """The ceiling without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The ceiling in each resample, over the annotators whose ratings vary in it."""
        values = np.stack([one.resampled(counts) for one in self.annotators])
        shared = [np.bincount(one.clusters.codes, minlength=self.dialogues) for one in self.annotators]
        weights = weighted_sums(counts, np.stack(shared, axis=1).astype(np.float64)).T  # (annotators, resamples)
        weights = np.where(np.isfinite(values), weights, 0.0)
        total, weight = (weights * np.nan_to_num(values)).sum(axis=0), weights.sum(axis=0)
        return np.asarray(np.divide(total, weight, out=np.full(len(counts), np.nan), where=weight > 0))


@dataclass(frozen=True, eq=False)
class Alpha:
    """Krippendorff's alpha as a statistic: 1 − disagreement within items over disagreement between all ratings.

    Both are sums of squared distances between values. On an interval scale the distance is the difference; on an
    ordinal one it is the difference of the values' mean ranks among all ratings (his sum of the n_g between two
    values, less half of theirs, is just that), which change with every resample. For either, an item's m ratings
    disagree by 2 (m Σx² − (Σx)²) / (m − 1), and no table of value pairs is needed.
    """

    ratings: IntArray  # (ratings,), the place of each in the domain, item by item
    starts: IntArray  # (items + 1,), where the ratings of each item begin
    domain: FloatArray  # (values,), ascending
    level: str
    clusters: Clusters
    bounds: Interval = (-1.0, 1.0)  # at worst all pairs disagree, twice as far as chance would have them

    @classmethod
    def over(cls, matrix: FloatArray, *, level: str, clusters: Clusters) -> Alpha:
        """Number the values; an item with one rating has nothing to agree with."""
        rated = np.isfinite(matrix)
        shared = rated.sum(axis=1) >= 2
        kept = rated[shared]
        domain, ratings = np.unique(matrix[shared][kept], return_inverse=True)
        if level == "ratio" and len(domain) > RATIO_VALUES:
            found = f"{len(domain)} different ratings: at level 'ratio' alpha takes at most {RATIO_VALUES}"
            raise UsageError(f"{found}. Round them, or take level 'interval' or 'ordinal'.")
        starts = np.append(0, np.cumsum(kept.sum(axis=1)))
        used = clusters.select(shared).drawable()
        return cls(ratings.astype(np.int64), starts.astype(np.int64), domain, level, used)

    @property
    def n(self) -> int:
        """Items with at least two ratings."""
        return len(self.starts) - 1

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return self.clusters.count

    @property
    def is_grouped(self) -> bool:
        """Whether dialogues were named."""
        return self.clusters.is_grouped

    @property
    def is_recomputed(self) -> bool:
        """Whether leaving out each dialogue computes the value anew."""
        return True

    @property
    def undefined(self) -> str:
        """Why there is no alpha."""
        if not self.n:
            return "no item has ratings by at least two annotators"
        return "all ratings are the same, and agreement beyond chance is not defined"

    def value(self) -> float:
        """Alpha, or NaN."""
        if len(self.domain) < 2:
            return math.nan
        if self.n * len(self.domain) ** 2 > PACKAGE_CELLS:
            return float(self.resampled(np.ones((1, self.dialogues), dtype=np.int32))[0])
        counts = np.zeros((self.n, len(self.domain)), dtype=np.int64)
        np.add.at(counts, (np.repeat(np.arange(self.n), np.diff(self.starts)), self.ratings), 1)
        options = {"value_domain": self.domain, "level_of_measurement": self.level, "dtype": np.float64}
        return float(_package().alpha(value_counts=counts, **options))

    def left_out(self) -> FloatArray:
        """Alpha without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """Alpha in each resample."""
        codes, drawn = self.clusters.codes.astype(np.int64), np.ascontiguousarray(counts, np.int32)
        found = np.full(len(counts), np.nan)
        if self.level in ("ordinal", "interval"):
            values = self.domain / max(1e-300, float(np.abs(self.domain).max(initial=0.0)))
            is_ordinal = self.level == "ordinal"
            compiled(_squared_alphas)(drawn, codes, self.ratings, self.starts, values, is_ordinal, found)
        else:
            distances = _distances(self.domain, self.level)
            compiled(_fixed_alphas)(drawn, codes, self.ratings, self.starts, distances, found)
        return found


def _distances(domain: FloatArray, level: str) -> FloatArray:
    """Squared distances between values: (values, values), or (0, 0) for nominal ones, all of which are 1."""
    if level == "nominal":
        return np.zeros((0, 0))
    sums = domain[:, None] + domain
    shares = np.divide(domain[:, None] - domain, sums, out=np.zeros_like(sums), where=sums != 0)
    return np.asarray(shares**2)


def _squared_alphas(
    counts: IntArray,
    codes: IntArray,
    ratings: IntArray,
    starts: IntArray,
    domain: FloatArray,
    is_ordinal: bool,
    found: FloatArray,
) -> None:
    values, uses = domain.copy(), np.zeros(len(domain))
    for row in range(len(counts)):
        uses[:] = 0.0
        total = 0.0
        for item in range(len(codes)):
            weight = counts[row, codes[item]]
            for place in range(starts[item], starts[item + 1]):
                uses[ratings[place]] += weight
                total += weight
        if is_ordinal:
            behind = 0.0
            for value in range(len(domain)):
                values[value] = (behind + uses[value] / 2) / max(total, 1.0)
                behind += uses[value]
        mean, used = 0.0, 0
        for value in range(len(domain)):
            mean += uses[value] * values[value] / max(total, 1.0)
            used += uses[value] > 0
        within, between = 0.0, 0.0
        for value in range(len(domain)):
            between += uses[value] * (values[value] - mean) ** 2
        for item in range(len(codes)):
            weight, size, centre = counts[row, codes[item]], starts[item + 1] - starts[item], 0.0
            if weight == 0:
                continue
            for place in range(starts[item], starts[item + 1]):
                centre += values[ratings[place]] / size
            for place in range(starts[item], starts[item + 1]):
                within += weight * size / (size - 1) * (values[ratings[place]] - centre) ** 2
        if used > 1:
            found[row] = 1 - (total - 1) * within / (total * between)


def _fixed_alphas(
    counts: IntArray, codes: IntArray, ratings: IntArray, starts: IntArray, distances: FloatArray, found: FloatArray
) -> None:
    size, is_nominal = 1 + ratings.max() if len(ratings) else 0, len(distances) == 0
    uses, apart = np.zeros(size), np.zeros(len(codes))
    for item in range(len(codes)):
        first, stop = starts[item], starts[item + 1]
        for a in range(first, stop):
            for b in range(first, stop):
                if is_nominal:
                    apart[item] += (ratings[a] != ratings[b]) / (stop - first - 1)
                else:
                    apart[item] += distances[ratings[a], ratings[b]] / (stop - first - 1)
    for row in range(len(counts)):
        uses[:] = 0.0
        total, within, between = 0.0, 0.0, 0.0
        for item in range(len(codes)):
            weight = counts[row, codes[item]]
            within += weight * apart[item]
            for place in range(starts[item], starts[item + 1]):
                uses[ratings[place]] += weight
                total += weight
        for a in range(size):
            if is_nominal:
                between += uses[a] * (total - uses[a])
            elif uses[a] > 0:
                for b in range(size):
                    between += uses[a] * uses[b] * distances[a, b]
        if between > 0:
            found[row] = 1 - (total - 1) * within / between


def _package() -> Any:
    try:
        import krippendorff
    except ImportError as error:
        raise MissingExtraError("Krippendorff's alpha", "metrics") from error
    return krippendorff


def _own_and_rest(matrix: FloatArray, column: int, clusters: Clusters, kind: str) -> Correlation:
    rated = np.isfinite(matrix)
    others = np.delete(rated, column, axis=1)
    shared = rated[:, column] & others.any(axis=1)
    rest = np.where(others, np.delete(matrix, column, axis=1), 0)[shared].sum(axis=1) / others[shared].sum(axis=1)
    return Correlation(np.stack([matrix[shared, column], rest]), clusters.select(shared), kind)


def _matrix(ratings: Ratings) -> FloatArray:
    """Items × annotators as numbers, gaps as NaN."""
    try:
        if not isinstance(ratings, np.ndarray):
            width = max((len(row) for row in ratings), default=0)
            padded = [[*row, *[None] * (width - len(row))] for row in ratings]
            return np.array(padded, dtype=np.float64).reshape(len(padded), width)
        matrix = np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"Expected ratings as rows of numbers, one row for each item: {error}.") from error
    if matrix.ndim != 2:
        raise UsageError(f"Ratings of shape {matrix.shape}: expected items × annotators.")
    return matrix
