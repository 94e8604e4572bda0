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

from turnwise.errors import MissingExtraError, UsageError, unknown_name
from turnwise.metrics.bootstrap import DEFAULT, Resampling, score, unstated
from turnwise.metrics.correlation import CORRELATIONS, FEWEST_ITEMS, Correlation
from turnwise.metrics.resample import left_out_by_counts
from turnwise.metrics.statistic import Clusters, FloatArray, Ids, IntArray
from turnwise.record import Origin, Score

Ratings = npt.NDArray[Any] | Sequence[Sequence[float | None]]
LEVELS = ("nominal", "ordinal", "interval", "ratio")  # of measurement; rating scales are ordinal


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

    An annotator counts where at least three items with other ratings vary; the signature says how many did.
    """
    if kind not in CORRELATIONS:
        raise unknown_name("correlation", kind, CORRELATIONS)
    matrix = _matrix(ratings)
    statistic = Ceiling.over(matrix, kind=kind, clusters=Clusters.of(clusters, n=len(matrix)))
    settings = {"ceiling": kind, "annotators": f"{len(statistic.annotators)}/{matrix.shape[1]}"}
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
    """Krippendorff's alpha, by the `krippendorff` package, with a bootstrap interval over dialogues."""
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
    undefined: str = "no annotator shares at least three items of varying ratings with others"

    @classmethod
    def over(cls, matrix: FloatArray, *, kind: str, clusters: Clusters) -> Ceiling:
        """Pair each annotator with the mean of the others, item by item."""
        each = [_own_and_rest(matrix, column, clusters, kind) for column in range(matrix.shape[1])]
        useful = tuple(one for one in each if one.n >= FEWEST_ITEMS and math.isfinite(one.value()))
        shared = int((np.isfinite(matrix).sum(axis=1) >= 2).sum())
        return cls(useful, shared, clusters.count)

    def value(self) -> float:
        """The mean over annotators, or NaN."""
        return float(np.mean([one.value() for one in self.annotators])) if self.annotators else math.nan

    def left_out(self) -> FloatArray:
        """The ceiling without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """The ceiling in each resample, over the annotators whose ratings vary in it."""
        values = np.stack([one.resampled(counts) for one in self.annotators])
        defined = np.isfinite(values)
        total = np.where(defined, values, 0).sum(axis=0)
        means = np.divide(total, defined.sum(axis=0), out=np.full(len(counts), np.nan), where=defined.any(axis=0))
        return np.asarray(means)


@dataclass(frozen=True, eq=False)
class Alpha:
    """Krippendorff's alpha as a statistic: a resample repeats rows of the table of value counts."""

    value_counts: npt.NDArray[np.int64]  # (items, values): how many annotators gave each value
    domain: FloatArray  # (values,)
    level: str
    clusters: Clusters

    @classmethod
    def over(cls, matrix: FloatArray, *, level: str, clusters: Clusters) -> Alpha:
        """Count values item by item; an item with one rating has nothing to agree with."""
        rated = np.isfinite(matrix)
        domain = np.unique(matrix[rated])
        shared = rated.sum(axis=1) >= 2
        counts = (matrix[shared][:, :, None] == domain).sum(axis=1)
        return cls(counts, domain, level, clusters.select(shared))

    @property
    def n(self) -> int:
        """Items with at least two ratings."""
        return len(self.value_counts)

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return self.clusters.count

    @property
    def undefined(self) -> str:
        """Why there is no alpha."""
        if not self.n:
            return "no item has ratings by at least two annotators"
        return "all ratings are the same, and agreement beyond chance is not defined"

    def value(self) -> float:
        """Alpha, or NaN."""
        return self._alpha(self.value_counts)

    def left_out(self) -> FloatArray:
        """Alpha without each dialogue in turn."""
        return left_out_by_counts(self)

    def resampled(self, counts: IntArray) -> FloatArray:
        """Alpha in each resample."""
        weights = counts[:, self.clusters.codes]
        return np.array([self._alpha(np.repeat(self.value_counts, row, axis=0)) for row in weights])

    def _alpha(self, value_counts: npt.NDArray[np.int64]) -> float:
        if np.count_nonzero(value_counts.sum(axis=0)) < 2:
            return math.nan
        return float(
            _package().alpha(
                value_counts=value_counts, value_domain=self.domain, level_of_measurement=self.level, dtype=np.float64
            )
        )


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
    if isinstance(ratings, np.ndarray):
        return np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    width = max((len(row) for row in ratings), default=0)
    padded = [[*row, *[None] * (width - len(row))] for row in ratings]
    return np.array(padded, dtype=np.float64).reshape(len(padded), width)
