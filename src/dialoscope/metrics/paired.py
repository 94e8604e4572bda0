"""Is one system better than another? Paired tests over the same dialogues, and Holm's correction for a table.

Approximate randomisation lets whole dialogues change sides at random: if the systems are alike, the observed
difference is nothing special among the differences that arise (Noreen 1989; Riezler and Maxwell 2005). The
paired bootstrap draws dialogues and asks how often the difference strays from its own mean as far as the
observed one lies from 0 (Koehn 2004, with the shift of Riezler and Maxwell 2005, as in sacreBLEU).

Randomisation holds its level with any number of dialogues. Resamples of few vary too little, as a variance over n
does, and like a normal variable where Student's t is due, so the bootstrap's p-value is read as that of a t (below).
Where no resample strays as far, it is read from how far they stray, so that a large table can find something, too. With
fewer than 10 dialogues it gives no p-value, and says so. docs/metrics.md shows how often both tests err.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics.bootstrap import DEFAULT, Resampling, score, too_few_defined
from dialoscope.metrics.resample import draw_seed, draw_swaps, in_pieces, resample
from dialoscope.metrics.statistic import (
    Clusters,
    FloatArray,
    Ids,
    IntArray,
    Interval,
    Itemised,
    Resampled,
    Statistic,
    Sums,
    Swappable,
    bounds_of,
    columns,
    error_share,
    fingerprint,
    is_grouped,
    is_recomputed,
    is_stepwise,
    mean_of,
    ratio,
    weighted,
)
from dialoscope.record import Origin, Score

FEWEST_DIALOGUES = 10  # of the bootstrap: fewer have too few different resamples
System = TypeVar("System", bound=Swappable)
Key = TypeVar("Key")


@dataclass(frozen=True)
class Comparison:
    """The difference between two systems (first minus second), and how easily chance would give one as large."""

    difference: Score
    p_value: float | None  # two-sided; None where there is no difference to test
    test: str
    p_holm: float | None = None  # corrected for the other comparisons of the same table
    reason: str | None = None  # why there is no p-value

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON has it; the reason appears only where there is one."""
        tested = {"p_value": self.p_value, "p_holm": self.p_holm, "test": self.test}
        shown = {"difference": self.difference.to_dict(), **tested}
        return shown if self.reason is None else {**shown, "reason": self.reason}


@dataclass(frozen=True)
class Verdict:
    """A p-value, or the reason why there is none."""

    p_value: float | None
    reason: str | None = None


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
    def is_grouped(self) -> bool:
        """Whether dialogues were named."""
        return is_grouped(self.first)

    @property
    def is_stepwise(self) -> bool:
        """Whether the jackknife fails for either."""
        return is_stepwise(self.first) or is_stepwise(self.second)

    @property
    def is_recomputed(self) -> bool:
        """Whether leaving out each dialogue computes either anew."""
        return is_recomputed(self.first) or is_recomputed(self.second)

    @property
    def bounds(self) -> Interval | None:
        """How far two bounded values can lie apart."""
        first, second = bounds_of(self.first), bounds_of(self.second)
        return (first[0] - second[1], first[1] - second[0]) if first and second else None

    @property
    def undefined(self) -> str:
        """Why there is no difference."""
        return self.second.undefined if math.isfinite(self.first.value()) else self.first.undefined

    def value(self) -> float:
        """The difference, or NaN."""
        return self.first.value() - self.second.value()

    @property
    def error_share(self) -> float:
        """What is left of the jackknife's standard error: of two corrections the smaller."""
        return max(error_share(self.first), error_share(self.second))

    def weighted(self, weights: FloatArray) -> FloatArray:
        """The difference with each dialogue weighted, NaN where a side cannot be."""
        return weighted(self.first, weights) - weighted(self.second, weights)

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


def randomisation(first: System, second: System, *, rounds: int, rng: np.random.Generator) -> Verdict:
    """Two-sided p-value of approximate randomisation: (differences as large + 1) / (rounds + 1)."""
    seed, values = draw_seed(rng), (first.value(), second.value())

    def differences(start: int, stop: int) -> FloatArray:
        mine, theirs = first.swapped(second, draw_swaps(seed, start, stop, first.dialogues))
        return np.asarray(mine - theirs)

    found = in_pieces(differences, rounds, first.dialogues)
    return _as_large(found, values[0] - values[1], largest=max(map(abs, values)))


def paired_bootstrap(first: Statistic, second: Statistic, *, rounds: int, rng: np.random.Generator) -> Verdict:
    """Two-sided p-value of the paired bootstrap with shift to the null hypothesis."""
    if not (isinstance(first, Resampled) and isinstance(second, Resampled)):
        raise UsageError("This metric cannot be bootstrapped; compare it by 'randomisation'.")
    if first.dialogues < FEWEST_DIALOGUES:
        return Verdict(None, f"the bootstrap needs at least {FEWEST_DIALOGUES} dialogues, found {first.dialogues}")
    both = ResampledDifference(first, second)
    values = resample(both, resamples=rounds, rng=rng)
    defined = np.isfinite(values)
    shifted = values - values[defined].mean() if defined.any() else values
    found = _as_large(shifted, both.value(), largest=abs(first.value()))
    if found.p_value is None:
        return found
    p = _as_students(found.p_value, first.dialogues)
    if found.p_value == 1 / (defined.sum() + 1):  # none of them
        p = min(p, _out_of_reach(both.value(), float(shifted[defined].std()), first.dialogues))
    return Verdict(max(p, smallest_p_value(first.dialogues)))


def smallest_p_value(dialogues: int) -> float:
    """The least that the bootstrap can say of so many dialogues, where all of them differ by the same.

    It never goes below 2 of the 2ⁿ ways to let dialogues change sides, which is the least of randomisation.
    """
    return max(_out_of_reach(1.0, 0.0, dialogues), 2.0 ** (1 - dialogues))


def _as_students(p: float, dialogues: int) -> float:
    """The p-value of Student's t where p is that of a normal variable whose variance was taken over n, not n − 1.

    Hesterberg (*What teachers should know about the bootstrap*, 2015) widens percentile intervals by the same amount.
    """
    from scipy.special import ndtri, stdtr

    away = ndtri(p / 2) * math.sqrt((dialogues - 1) / dialogues)
    return float(2 * stdtr(dialogues - 1, away))


def _out_of_reach(observed: float, spread: float, dialogues: int) -> float:
    """The p-value of a difference that no resample reaches: of a normal variable with the variance under no difference.

    Resamples spread as dialogues do around the observed difference d; around none their variance is larger by d²/n.
    This is what swaps of whole dialogues tend to, z = Σdᵢ / √Σdᵢ², and holds its level where differences are symmetric,
    as those between systems that are alike are. Student's t does not where all are about as large.
    """
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(observed) / math.hypot(spread, observed / math.sqrt(dialogues))))


# Tests between two systems on the same dialogues.
TESTS: Mapping[str, Callable[..., Verdict]] = {"randomisation": randomisation, "bootstrap": paired_bootstrap}


def compare(
    first: Swappable,
    second: Swappable,
    *,
    test: str = "randomisation",
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
    systems: Sequence[str] = (),
) -> Comparison:
    """Difference, interval and p-value between two systems' statistics over the items that both could score.

    `systems` are the fingerprints of both systems' responses, for the signature.
    """
    if test not in TESTS:
        raise unknown_name("test", test, TESTS)
    ours, theirs, skipped = _on_shared_items(first, second)
    both = difference(ours, theirs)
    return score_difference(
        both, test=test, resampling=resampling, origin=origin, skipped=skipped, systems="/".join(systems) or None
    )


def score_difference(
    both: Difference, *, test: str, resampling: Resampling, origin: Origin | None, skipped: int, **settings: Any
) -> Comparison:
    """Score a difference and test it; the signature says how both were done."""
    rounds = resampling.resamples or DEFAULT.resamples
    tested = Verdict(None, both.undefined)
    if math.isfinite(both.value()):
        tested = TESTS[test](both.first, both.second, rounds=rounds, rng=resampling.rng)
    made = None if tested.p_value is None else rounds
    scored = score(both, resampling=resampling, origin=origin, skipped=skipped, **settings, test=test, rounds=made)
    return Comparison(scored, tested.p_value, test, reason=tested.reason)


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
    values = columns(first, second)
    groups = Clusters.of(clusters, n=values.shape[1])
    sides = [mean_of(side, clusters=groups, undefined="there are no values to compare") for side in values]
    systems = [fingerprint(side) for side in values]
    return compare(*sides, test=test, resampling=resampling, origin=origin, systems=systems)


def compare_ratios(
    first: tuple[npt.ArrayLike, npt.ArrayLike],
    second: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    clusters: Ids | None = None,
    test: str = "randomisation",
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Comparison:
    """Compare two systems by a ratio of means, each given as numerators and denominators of the same items.

    >>> compare_ratios(([1.0, 3.0], [2.0, 2.0]), ([1.0, 1.0], [2.0, 2.0])).difference.value
    0.5
    """
    sides = [columns(*side).T for side in (first, second)]
    groups = Clusters.of(clusters, n=len(sides[0]))
    statistics = [Sums.over(side, ratio, clusters=groups, undefined="the denominators sum to 0") for side in sides]
    systems = [fingerprint(side) for side in sides]
    return compare(*statistics, test=test, resampling=resampling, origin=origin, systems=systems)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979); what was not tested (None or NaN) is None and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    for p in p_values:
        if p is not None and not math.isnan(p) and not 0 <= p <= 1:
            raise UsageError(f"p-value {p:g}: expected a number from 0 to 1, or None for what was not tested.")
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None and not math.isnan(p))
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))  # never below that of a smaller p
        corrected[place] = largest
    return corrected


def correct(comparisons: Mapping[Key, Comparison]) -> dict[Key, Comparison]:
    """Write Holm's corrected p-values into a table of comparisons."""
    corrected = holm([one.p_value for one in comparisons.values()])
    return {name: replace(one, p_holm=p) for (name, one), p in zip(comparisons.items(), corrected, strict=True)}


def _on_shared_items(first: Swappable, second: Swappable) -> tuple[Swappable, Swappable, int]:
    """Both statistics over the items that both could score, and how many had to be left out."""
    if not (isinstance(first, Itemised) and isinstance(second, Itemised)) or first.dialogues != second.dialogues:
        return first, second, 0
    if len(first.scored) != len(second.scored):
        counts = f"{len(first.scored)} and {len(second.scored)}"
        raise UsageError(f"{counts} items: a paired comparison needs both systems on the same items.")
    kept = first.scored & second.scored
    return first.only(kept), second.only(kept), int((~kept).sum())


def _as_large(values: FloatArray, observed: float, *, largest: float) -> Verdict:
    """Share of chance values at least as large, the observed one counted in; those without a value are left out."""
    found = np.abs(values[np.isfinite(values)])
    if reason := too_few_defined(len(found), len(values)):
        return Verdict(None, reason)
    # Sums in another order may differ in their last digits: those of the difference, and those it was taken from.
    dust = max(1e-12 * max(abs(observed), float(found.max(initial=0.0))), 1e-15 * largest)
    return Verdict(float(((found >= abs(observed) - dust).sum() + 1) / (len(found) + 1)))
