"""Is one system better than another? Paired tests over the same dialogues, and Holm's correction for a table.

Approximate randomisation lets whole dialogues change sides at random: if the systems are alike, the observed
difference is nothing special among the differences that arise (Noreen 1989; Riezler and Maxwell 2005). The
paired bootstrap draws dialogues and asks how often the difference strays from its own mean as far as the
observed one lies from 0 (Koehn 2004, with the shift of Riezler and Maxwell 2005, as in sacreBLEU).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from turnwise.errors import UsageError, unknown_name
from turnwise.metrics.bootstrap import DEFAULT, Resampling, interval, sign
from turnwise.metrics.resample import draw_seed, draw_swaps, in_pieces, resample
from turnwise.metrics.statistic import Clusters, FloatArray, Ids, IntArray, Resampled, Statistic, Swappable, mean_of
from turnwise.record import Origin, Score


@dataclass(frozen=True)
class Comparison:
    """The difference between two systems (first minus second), and how easily chance would give one as large."""

    difference: Score
    p_value: float | None  # two-sided; None where there is no difference to test
    test: str
    p_holm: float | None = None  # corrected for the other comparisons of the same table

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON has it."""
        tested = {"p_value": self.p_value, "p_holm": self.p_holm, "test": self.test}
        return {"difference": self.difference.to_dict(), **tested}


@dataclass(frozen=True, eq=False)
class Difference:
    """First statistic minus second, over the same dialogues."""

    first: Statistic
    second: Statistic

    def __post_init__(self) -> None:
        if self.first.dialogues != self.second.dialogues:
            counts = f"{self.first.dialogues} and {self.second.dialogues}"
            raise UsageError(f"{counts} dialogues: a paired comparison needs both systems on the same dialogues.")

    @property
    def n(self) -> int:
        """Items behind both."""
        return min(self.first.n, self.second.n)

    @property
    def dialogues(self) -> int:
        """Dialogues that can be drawn."""
        return self.first.dialogues

    @property
    def undefined(self) -> str:
        """Why there is no difference."""
        return self.second.undefined if math.isfinite(self.first.value()) else self.first.undefined

    def value(self) -> float:
        """The difference, or NaN."""
        return self.first.value() - self.second.value()

    def left_out(self) -> FloatArray:
        """The difference without each dialogue in turn."""
        return self.first.left_out() - self.second.left_out()


@dataclass(frozen=True, eq=False)
class ResampledDifference(Difference):
    """A difference that can be bootstrapped: both sides see the same draws."""

    first: Resampled
    second: Resampled

    def resampled(self, counts: IntArray) -> FloatArray:
        """The difference in each resample."""
        return self.first.resampled(counts) - self.second.resampled(counts)


def difference(first: Statistic, second: Statistic) -> Difference:
    """First minus second, as something that has an interval."""
    if isinstance(first, Resampled) and isinstance(second, Resampled):
        return ResampledDifference(first, second)
    return Difference(first, second)


def randomisation(first: Any, second: Any, *, rounds: int, rng: np.random.Generator) -> float:
    """Two-sided p-value of approximate randomisation: (differences as large + 1) / (rounds + 1)."""
    observed, seed = abs(first.value() - second.value()), draw_seed(rng)

    def differences(start: int, stop: int) -> FloatArray:
        mine, theirs = first.swapped(second, draw_swaps(seed, start, stop, first.dialogues))
        return np.asarray(np.abs(mine - theirs))

    return _share_as_large(in_pieces(differences, rounds, first.dialogues), observed)


def paired_bootstrap(first: Any, second: Any, *, rounds: int, rng: np.random.Generator) -> float:
    """Two-sided p-value of the paired bootstrap with shift to the null hypothesis."""
    if not isinstance(first, Resampled):
        raise UsageError("This metric cannot be bootstrapped; compare it by 'randomisation'.")
    values = resample(ResampledDifference(first, second), resamples=rounds, rng=rng)
    values = values[np.isfinite(values)]
    return _share_as_large(np.abs(values - values.mean()), abs(first.value() - second.value()))


# Tests between two systems on the same dialogues.
TESTS: Mapping[str, Callable[..., float]] = {"randomisation": randomisation, "bootstrap": paired_bootstrap}


def compare(
    first: Swappable,
    second: Swappable,
    *,
    test: str = "randomisation",
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Comparison:
    """Difference, interval and p-value between two systems' statistics over the same dialogues."""
    if test not in TESTS:
        raise unknown_name("test", test, TESTS)
    both = difference(first, second)
    signature = sign(both, resampling=resampling, origin=origin, test=test)
    if not math.isfinite(both.value()):
        return Comparison(Score.missing(both.undefined, n=both.n, signature=signature), None, test)
    rounds = resampling.resamples or DEFAULT.resamples
    p_value = TESTS[test](first, second, rounds=rounds, rng=resampling.rng)
    made = Score(both.value(), both.n, interval(both, resampling=resampling), signature)
    return Comparison(made, p_value, test)


def compare_means(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    test: str = "randomisation",
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Comparison:
    """Compare two systems by one value for each item; items that either could not score are left out of both.

    >>> compare_means([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).p_value
    1.0
    """
    values = np.array([first, second], dtype=np.float64)
    kept = np.asarray(np.isfinite(values).all(axis=0))
    dialogues = None if clusters is None else [one for one, is_kept in zip(clusters, kept, strict=True) if is_kept]
    groups = Clusters.of(dialogues, n=int(kept.sum()))
    sides = [mean_of(side[kept], clusters=groups, undefined="there are no values to compare") for side in values]
    return compare(*sides, test=test, resampling=resampling, origin=origin)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979); what was not tested (None) stays so and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))  # never below that of a smaller p
        corrected[place] = largest
    return corrected


def correct(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """Write Holm's corrected p-values into a table of comparisons."""
    corrected = holm([one.p_value for one in comparisons.values()])
    return {name: replace(one, p_holm=p) for (name, one), p in zip(comparisons.items(), corrected, strict=True)}


def _share_as_large(values: FloatArray, observed: float) -> float:
    """Share of chance values at least as large, the observed one counted in."""
    # Sums in another order may differ in their last digits.
    dust = 1e-12 * max(1.0, observed)
    return float(((values >= observed - dust).sum() + 1) / (len(values) + 1))
