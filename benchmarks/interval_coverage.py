"""How often do 95 % intervals hold the truth, and 5 % tests err? A grid of statistics and sizes, fixed beforehand.

Every cell of the grid of intervals draws so many samples from a population whose truth is known, makes the interval of
each by every method, and counts how many hold the truth, how many lie below and above it, and how many are missing
because the score says that there is none. `default` is what a score shows. The methods are compared on the first of
these samples, the same and as many for each: `jackknife` is the default there, `percentile` and `bca` can be asked for
(and are measured here below 30 dialogues, too, where the jackknife takes their place in use), the others are candidates
that were not taken. No cell was taken out after its result was seen; differences, dialogues of several items, heavy
tails and rare values were added when a review missed them. Methods were chosen on other seeds than this one's.

    python benchmarks/interval_coverage.py                    # writes benchmarks/interval_coverage.json
    python benchmarks/interval_coverage.py --rounds 200 --sizes 10 20 --cases "pearson 0.6" --out /dev/stdout
    python benchmarks/interval_coverage.py --table coverage   # the committed results as Markdown (or `sides`, …)
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from dialoscope.metrics import TESTS
from dialoscope.metrics.agreement import Alpha, Ceiling
from dialoscope.metrics.bleu import corpus_bleu, count_matches
from dialoscope.metrics.bootstrap import BOOTSTRAPS, DEFAULT, estimate
from dialoscope.metrics.correlation import Correlation
from dialoscope.metrics.distinct import Distinct, distinct_grams
from dialoscope.metrics.jackknife import jackknife
from dialoscope.metrics.paired import difference
from dialoscope.metrics.resample import resample
from dialoscope.metrics.statistic import (
    Clusters,
    FloatArray,
    Interval,
    Resampled,
    Statistic,
    Sums,
    Swappable,
    bounds_of,
    mean_of,
    ratio,
)

SIZES = (10, 20, 30, 40, 60, 100, 200, 400)  # dialogues
LARGEST_TESTED = 200  # dialogues, in the grid of tests
LARGEST_COMPARED = 100  # dialogues, in the comparison of methods; with more, bootstraps take long
LIMITS = (0.93, 0.97)
MISSING = 0.5  # of the samples of a cell; with more it says little of a method
LEVEL = 0.95
RESAMPLES = 600  # of a bootstrap or a test; 10,000 in use
SEED = 20261115  # used once, for the committed results
RESULTS = Path(__file__).with_suffix(".json")
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A statistic of samples from a known population."""

    draw: Callable[[Rng, int], Statistic]  # a sample of n dialogues
    truth: Callable[[], float] | None  # None: the expected value at that n, estimated by the mean over the rounds


def alone(n: int) -> Clusters:
    """Every item a dialogue of its own."""
    return Clusters.of(None, n=n)


def mean(values: FloatArray, clusters: Clusters | None = None, bounds: tuple[float, float] | None = None) -> Sums:
    """The mean as `mean_score` takes it."""
    return mean_of(values, clusters=clusters or alone(len(values)), undefined="", bounds=bounds)


def normal(rng: Rng, n: int) -> Sums:
    """Independent normal values."""
    return mean(rng.normal(size=n))


def dialogues(rng: Rng, n: int) -> Clusters:
    """Dialogues of one to six turns."""
    ids = np.repeat(np.arange(n), rng.integers(1, 7, n))
    return Clusters.of(ids, n=len(ids))


def shared(rng: Rng, clusters: Clusters) -> FloatArray:
    """Normal values of variance 1, half of it shared by the turns of a dialogue."""
    own = rng.normal(size=len(clusters.codes))
    return np.asarray((rng.normal(size=clusters.count)[clusters.codes] + own) / math.sqrt(2))


def in_dialogues(rng: Rng, n: int) -> Sums:
    """Dialogues of one to six turns that share an effect as large as a turn's own."""
    clusters = dialogues(rng, n)
    return mean(shared(rng, clusters), clusters)


def proportion(rng: Rng, n: int) -> Sums:
    """Yes in three of ten."""
    return mean((rng.random(n) < 0.3).astype(np.float64))


def shares(rng: Rng, n: int) -> Sums:
    """Skewed scores between 0 and 1, as ROUGE gives them."""
    return mean(rng.beta(1, 4, size=n), bounds=(0.0, 1.0))


def rare(rng: Rng, n: int) -> Sums:
    """Yes in one of twenty, said to lie between 0 and 1."""
    return mean((rng.random(n) < 0.05).astype(np.float64), bounds=(0.0, 1.0))


def mostly_zero(rng: Rng, n: int) -> Sums:
    """Scores between 0 and 1, nineteen of twenty of which are 0, as BLEU without smoothing gives them."""
    return mean((rng.random(n) < 0.05) * rng.random(n), bounds=(0.0, 1.0))


def mostly_zero_in_dialogues(rng: Rng, n: int) -> Sums:
    """The same in dialogues of one to six turns."""
    clusters = dialogues(rng, n)
    size = len(clusters.codes)
    return mean((rng.random(size) < 0.05) * rng.random(size), clusters, bounds=(0.0, 1.0))


def leaked(rng: Rng, n: int, *, alike: float) -> Sums:
    """Yes in one of twenty, in dialogues of one to six turns, of which some are said yes to far more often than others.

    alike: the spread of a beta distribution, from 0 (all turns of a dialogue are alike) on.
    """
    clusters = dialogues(rng, n)
    by_dialogue = rng.beta(0.05 * alike, 0.95 * alike, size=n)
    hits = rng.random(len(clusters.codes)) < by_dialogue[clusters.codes]
    return mean(hits.astype(np.float64), clusters, bounds=(0.0, 1.0))


def exponential(rng: Rng, n: int) -> Sums:
    """Very skewed values (skewness 2)."""
    return mean(rng.exponential(size=n))


def laplace(rng: Rng, n: int) -> Sums:
    """Symmetric values with heavy tails, as differences of skewed values are."""
    return mean(rng.laplace(size=n))


def ratio_of_gammas(rng: Rng, n: int) -> Sums:
    """A ratio of two skewed sums."""
    below = rng.gamma(4, size=n)
    items = np.stack([below * rng.gamma(4, 1 / 4, size=n), below], axis=1)
    return Sums.over(items, ratio, clusters=alone(n), undefined="")


def correlated(rng: Rng, n: int, *, kind: str, rho: float) -> Correlation:
    """Two normal variables."""
    first = rng.normal(size=n)
    second = rho * first + math.sqrt(1 - rho**2) * rng.normal(size=n)
    return Correlation(np.stack([first, second]), alone(n), kind)


def correlated_in_dialogues(rng: Rng, n: int, *, kind: str, rho: float) -> Correlation:
    """The same two normal variables in dialogues of one to six turns, half of the variance of each shared."""
    clusters = dialogues(rng, n)
    first, other = shared(rng, clusters), shared(rng, clusters)
    return Correlation(np.stack([first, rho * first + math.sqrt(1 - rho**2) * other]), clusters, kind)


def partly_correlated(rng: Rng, n: int) -> Correlation:
    """Two normal variables correlated by 0.6, given a third that correlates with both by 0.5."""
    matrix = np.array([[1, 0.6, 0.5], [0.6, 1, 0.5], [0.5, 0.5, 1]])
    return Correlation(np.linalg.cholesky(matrix) @ rng.normal(size=(3, n)), alone(n), "spearman")


def spearman_of(rho: float) -> float:
    """Spearman's correlation of two normal variables."""
    return 6 / math.pi * math.asin(rho / 2)


def partial_spearman() -> float:
    """The partial rank correlation of `partly_correlated`."""
    between, given = spearman_of(0.6), spearman_of(0.5)
    return (between - given**2) / (1 - given**2)


TRUTHS: Mapping[str, Callable[[float], float]] = {
    "pearson": lambda rho: rho,
    "spearman": spearman_of,
    "kendall": lambda rho: 2 / math.pi * math.asin(rho),
}


@cache
def zipfs_law() -> FloatArray:
    """How often a word of the first so many is said, of 3,000."""
    share = 1 / np.arange(1, 3001)
    return np.cumsum(share / share.sum())


def zipf(rng: Rng, n: int, *, order: int) -> Distinct:
    """Responses of twelve words by Zipf's law, each a dialogue."""
    words = np.searchsorted(zipfs_law(), rng.random((n, 12))).astype(str).tolist()
    return distinct_grams(words, alone(n), order=order)


def zipf_in_dialogues(rng: Rng, n: int, *, order: int) -> Distinct:
    """Dialogues of one to six responses of twelve words, half of them from a topic of their own."""
    clusters = dialogues(rng, n)
    ranks = np.searchsorted(zipfs_law(), rng.random((len(clusters.codes), 12)))
    moved = (ranks + rng.integers(3000, size=n)[clusters.codes][:, None]) % 3000
    words = np.where(rng.random(ranks.shape) < 0.5, moved, ranks).astype(str).tolist()
    return distinct_grams(words, clusters, order=order)


@cache
def matches() -> FloatArray:
    """Matched n-grams of 20,000 pairs of texts that share some of their words: the population of corpus BLEU."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{rank}" for rank in range(300)])
    lengths = rng.integers(3, 16, size=20_000)
    said = [words[rng.zipf(1.4, size=length) % 300].tolist() for length in lengths]
    meant = [[one if rng.random() < 0.5 else "other" for one in response] for response in said]
    return count_matches(said, meant)


def bleu(rng: Rng, n: int) -> Sums:
    """Corpus BLEU-2 of pairs drawn from the population."""
    return corpus_bleu(matches()[rng.integers(len(matches()), size=n)], alone(n), order=2)


def bleu_of_all() -> float:
    """Corpus BLEU-2 of the population."""
    return corpus_bleu(matches(), alone(len(matches())), order=2).value()


@cache
def matches_in_dialogues() -> tuple[FloatArray, Clusters]:
    """Matched n-grams of pairs in 6,000 dialogues, each of which shares more words with its references or fewer."""
    rng = np.random.default_rng(0)
    clusters = dialogues(rng, 6_000)
    words = np.array([f"w{rank}" for rank in range(300)])
    kept = rng.uniform(0.1, 0.9, size=clusters.count)[clusters.codes]
    said = [words[rng.zipf(1.4, size=rng.integers(3, 16)) % 300].tolist() for _ in kept]
    pairs = zip(said, kept, strict=True)
    meant = [[one if rng.random() < share else "other" for one in response] for response, share in pairs]
    return count_matches(said, meant), clusters


def bleu_in_dialogues(rng: Rng, n: int) -> Sums:
    """Corpus BLEU-2 of dialogues drawn from that population."""
    counts, clusters = matches_in_dialogues()
    ends = np.append(0, np.cumsum(np.bincount(clusters.codes)))
    drawn = rng.integers(clusters.count, size=n)
    items = np.concatenate([np.arange(ends[one], ends[one + 1]) for one in drawn])
    ids = np.repeat(np.arange(n), ends[drawn + 1] - ends[drawn])
    return corpus_bleu(counts[items], Clusters.of(ids, n=len(ids)), order=2)


def bleu_of_all_dialogues() -> float:
    """Corpus BLEU-2 of that population."""
    return corpus_bleu(*matches_in_dialogues(), order=2).value()


def rated(rng: Rng, n: int) -> FloatArray:
    """Ratings from 1 to 5 by three annotators, half of whose variance is the item's: (items, annotators)."""
    return np.clip(np.round(3 + rng.normal(size=(n, 1)) + rng.normal(size=(n, 3))), 1, 5)


def alpha(rng: Rng, n: int) -> Alpha:
    """Krippendorff's ordinal alpha."""
    return Alpha.over(rated(rng, n), level="ordinal", clusters=alone(n))


def ceiling(rng: Rng, n: int) -> Ceiling:
    """One annotator against the mean of the rest, by Spearman's correlation."""
    return Ceiling.over(rated(rng, n), kind="spearman", clusters=alone(n))


def apart(first: Callable[[Rng, int], Any], second: Callable[[Rng, int], Any], rng: Rng, n: int) -> Statistic:
    """The difference of two systems on the same dialogues, as `compare` takes it."""
    return difference(first(rng, n), second(rng, n))


def apart_by_people(rng: Rng, n: int) -> Statistic:
    """The difference of two metrics' correlations with people, as `compare_correlations` takes it."""
    return difference(*systems_by_people(rng, n, kind="spearman"))


@cache
def of_many(draw: Callable[[Rng, int], Statistic]) -> float:
    """The value of a million items, where there is no formula."""
    return draw(np.random.default_rng(0), 1_000_000).value()


CASES: Mapping[str, Case] = {
    "mean of normal values": Case(normal, lambda: 0.0),
    "mean over dialogues": Case(in_dialogues, lambda: 0.0),
    "proportion of 0.3": Case(proportion, lambda: 0.3),
    "mean of shares": Case(shares, lambda: 0.2),
    "mean of exponential values": Case(exponential, lambda: 1.0),
    "mean of Laplace values": Case(laplace, lambda: 0.0),
    "ratio of gammas": Case(ratio_of_gammas, lambda: 1.0),
    **{
        f"{kind} {rho:g}": Case(partial(correlated, kind=kind, rho=rho), partial(of_rho, rho))
        for kind, of_rho in TRUTHS.items()
        for rho in (0.0, 0.6, 0.9)
    },
    **{
        f"{kind} 0.6 over dialogues": Case(partial(correlated_in_dialogues, kind=kind, rho=0.6), partial(of_rho, 0.6))
        for kind, of_rho in TRUTHS.items()
    },
    "partial spearman": Case(partly_correlated, partial_spearman),
    "corpus BLEU-2": Case(bleu, bleu_of_all),
    "corpus BLEU-2 over dialogues": Case(bleu_in_dialogues, bleu_of_all_dialogues),
    "distinct-1": Case(partial(zipf, order=1), None),
    "distinct-2": Case(partial(zipf, order=2), None),
    "distinct-1 over dialogues": Case(partial(zipf_in_dialogues, order=1), None),
    "distinct-2 over dialogues": Case(partial(zipf_in_dialogues, order=2), None),
    "Krippendorff's alpha": Case(alpha, partial(of_many, alpha)),
    "annotator ceiling": Case(ceiling, partial(of_many, ceiling)),
    "difference of normal means": Case(partial(apart, normal, normal), lambda: 0.0),
    "difference of exponential means": Case(partial(apart, exponential, exponential), lambda: 0.0),
    "difference, exponential and normal": Case(partial(apart, exponential, normal), lambda: 1.0),
    "difference of proportions of 0.3": Case(partial(apart, proportion, proportion), lambda: 0.0),
    "difference of corpus BLEU-2": Case(partial(apart, bleu, bleu), lambda: 0.0),
    "difference of spearman 0.7": Case(apart_by_people, lambda: 0.0),
    "proportion of 0.05": Case(rare, lambda: 0.05),
    "mean of shares, 95 % of them 0": Case(mostly_zero, lambda: 0.025),
    "the same over dialogues": Case(mostly_zero_in_dialogues, lambda: 0.025),
    "proportion of 0.05 over dialogues, hardly alike": Case(partial(leaked, alike=5.0), lambda: 0.05),
    "proportion of 0.05 over dialogues, much alike": Case(partial(leaked, alike=0.2), lambda: 0.05),
}
# Shown with their misses by side: what is rare may be missing from a sample, and an interval with it.
RARE = (
    "proportion of 0.3",
    "proportion of 0.05",
    "proportion of 0.05 over dialogues, hardly alike",
    "proportion of 0.05 over dialogues, much alike",
    "mean of shares, 95 % of them 0",
    "the same over dialogues",
)


@dataclass(frozen=True)
class Plain:
    """A statistic that says nothing of its skewness or its error: value ± t · the jackknife's standard error."""

    statistic: Statistic

    @property
    def n(self) -> int:
        """Items behind the value."""
        return self.statistic.n

    @property
    def dialogues(self) -> int:
        """Dialogues that can be left out."""
        return self.statistic.dialogues

    @property
    def undefined(self) -> str:
        """Why there is no value."""
        return self.statistic.undefined

    @property
    def bounds(self) -> Interval | None:
        """The statistic's own."""
        return bounds_of(self.statistic)

    def value(self) -> float:
        """The statistic's own."""
        return self.statistic.value()

    def left_out(self) -> FloatArray:
        """The statistic's own."""
        return self.statistic.left_out()


def expanded(values: FloatArray, statistic: Resampled, level: float) -> Interval:
    """Hesterberg's percentiles (2015), widened for Student's t and the n − 1 of a variance."""
    from scipy.special import ndtr, stdtrit

    m = statistic.dialogues
    edge = float(ndtr(math.sqrt(m / (m - 1)) * stdtrit(m - 1, (1 - level) / 2)))
    low, high = np.quantile(values, [edge, 1 - edge])
    return float(low), float(high)


METHODS = (DEFAULT.method, "plain jackknife", *BOOTSTRAPS, "expanded percentile")


def compared(statistic: Statistic, seed: int) -> dict[str, Interval | None]:
    """The intervals of one sample by the methods that are not the default, at every size."""
    found = {"plain jackknife": jackknife(Plain(statistic), LEVEL).ends}
    if not isinstance(statistic, Resampled):
        return found
    values = resample(statistic, resamples=RESAMPLES, rng=np.random.default_rng(seed))
    values = values[np.isfinite(values)]
    methods = {**BOOTSTRAPS, "expanded percentile": expanded}
    return {**found, **{name: method(values, statistic, LEVEL) for name, method in methods.items()}}


def share(hits: int, n: int) -> dict[str, Any]:
    """A share with Wilson's 95 % interval."""
    z, p = 1.96, hits / n
    middle, reach = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + (z / n) ** 2 / 4)
    ends = [round((middle + side * reach) / (1 + z**2 / n), 4) for side in (-1, 1)]
    return {"share": round(p, 4), "wilson": ends, "n": n}


def cover(found: list[Interval | None], truth: float) -> dict[str, Any]:
    """How many of the intervals that there are hold the truth or miss it, by side, and how many there are not."""
    ends = np.array([one for one in found if one]).reshape(-1, 2)
    below, above = int((ends[:, 1] < truth).sum()), int((truth < ends[:, 0]).sum())
    width = float(f"{np.mean(ends[:, 1] - ends[:, 0]):.4g}") if len(ends) else None
    n, missing = max(1, len(ends)), round(1 - len(ends) / len(found), 4)
    sides = {"below": round(below / n, 4), "above": round(above / n, 4)}
    return {**share(len(ends) - below - above, n), **sides, "width": width, "missing": missing}


def measure_intervals(cell: tuple[str, int], *, rounds: int, others: int, seed: int) -> dict[str, Any]:
    """One cell of the grid: coverage of the default, and of every method on the same first rounds."""
    (name, n), case = cell, CASES[cell[0]]
    rng = np.random.default_rng([seed, n, crc32(name.encode())])
    values, found = np.zeros(rounds), dict[str, list[Interval | None]]()
    for place in range(rounds):
        statistic = case.draw(rng, n)
        values[place] = statistic.value()
        found.setdefault("default", []).append(estimate(statistic).ends)
        for method, ends in compared(statistic, place).items() if place < others else ():
            found.setdefault(method, []).append(ends)
    if others:
        found[DEFAULT.method] = found["default"][:others]
    truth = case.truth() if case.truth else float(values.mean())
    return {method: cover(ends, truth) for method, ends in found.items()}


def measure_up_to(largest: int, cell: tuple[str, int], *, rounds: int, others: int, seed: int) -> dict[str, Any]:
    """One cell of the grid, the methods compared up to so many dialogues."""
    return measure_intervals(cell, rounds=rounds, others=others if cell[1] <= largest else 0, seed=seed)


Sides = tuple[Swappable, Swappable]


def systems_of(draw: Callable[[Rng, int], Any], rng: Rng, n: int) -> Sides:
    """Two systems that are alike: two samples of the same kind."""
    return draw(rng, n), draw(rng, n)


def systems_in_dialogues(rng: Rng, n: int) -> Sides:
    """Two systems that are alike, over the same dialogues of one to six turns."""
    clusters = dialogues(rng, n)
    return mean(shared(rng, clusters), clusters), mean(shared(rng, clusters), clusters)


def systems_by_people(rng: Rng, n: int, *, kind: str) -> Any:
    """Two metrics that correlate alike with people, by 0.7."""
    people = rng.normal(size=n)
    first, second = (Correlation(np.stack([people, people + rng.normal(size=n)]), alone(n), kind) for _ in range(2))
    return first, second


# Two systems that are alike, and the tests that can tell them apart.
NULLS: Mapping[str, tuple[Callable[[Rng, int], Any], tuple[str, ...]]] = {
    "mean of normal values": (partial(systems_of, normal), ("randomisation", "bootstrap")),
    "mean over dialogues": (systems_in_dialogues, ("randomisation", "bootstrap")),
    "proportion of 0.3": (partial(systems_of, proportion), ("randomisation", "bootstrap")),
    "mean of exponential values": (partial(systems_of, exponential), ("randomisation", "bootstrap")),
    "ratio of gammas": (partial(systems_of, ratio_of_gammas), ("randomisation", "bootstrap")),
    "corpus BLEU-2": (partial(systems_of, bleu), ("randomisation", "bootstrap")),
    "distinct-2": (partial(systems_of, partial(zipf, order=2)), ("randomisation",)),
    "pearson 0.7": (partial(systems_by_people, kind="pearson"), ("bootstrap",)),
    "spearman 0.7": (partial(systems_by_people, kind="spearman"), ("bootstrap",)),
}


def measure_tests(cell: tuple[str, int], *, rounds: int, seed: int) -> dict[str, Any]:
    """One cell of the grid of tests: how often systems that are alike differ by p ≤ 0.05."""
    (name, n), (draw, tests) = cell, NULLS[cell[0]]
    rng = np.random.default_rng([seed, n, crc32(name.encode())])
    found: dict[str, int] = dict.fromkeys(tests, 0)
    for place in range(rounds):
        sides = draw(rng, n)
        for test in tests:
            p = TESTS[test](*sides, rounds=RESAMPLES, rng=np.random.default_rng(place)).p_value
            found[test] += p is not None and p <= 1 - LEVEL
    return {test: share(hits, rounds) for test, hits in found.items()}


def run(measure: Callable[..., dict[str, Any]], cells: list[tuple[str, int]], workers: int) -> dict[str, Any]:
    """Measure all cells, the largest first, and sort them by name and size."""
    ordered = sorted(cells, key=lambda cell: -cell[1])
    with ProcessPoolExecutor(workers) as pool:
        found = dict(zip(ordered, pool.map(measure, ordered), strict=True))
    by_name: dict[str, Any] = {}
    for name, n in cells:
        by_name.setdefault(name, {})[str(n)] = found[name, n]
    return by_name


def coverage_table(results: dict[str, Any]) -> str:
    """Coverage of the default by statistic and size, in percent; what lies outside the limits is bold."""
    rows = {name: [_cell(at["default"], LIMITS) for at in sizes.values()] for name, sizes in results.items()}
    return _table(["statistic", *next(iter(results.values()))], rows)


def method_table(results: dict[str, Any]) -> str:
    """Every method on the same samples: cells within the limits, below and above, and how often there is none."""
    rows = {}
    for method in METHODS:
        for low, high in ((0, 30), (30, LARGEST_COMPARED + 1)):
            cells = [
                at[method]
                for sizes in results.values()
                for n, at in sizes.items()
                if method in at and at[method]["missing"] < MISSING and low <= int(n) < high
            ]
            shares = [one["share"] for one in cells]
            below, above = sum(one < LIMITS[0] for one in shares), sum(one > LIMITS[1] for one in shares)
            counts = [str(len(shares) - below - above), str(below), str(above)]
            missing = sum(one["missing"] for one in cells) / len(cells)
            percents = [f"{100 * one:.1f}" for one in (min(shares), max(shares), missing)]
            rows[f"`{method}`, {'below 30' if high == 30 else '30 to 100'} dialogues"] = [*counts, *percents]
    return _table(["method", "within", "below", "above", "lowest %", "highest %", "none %"], rows)


def side_table(results: dict[str, Any]) -> str:
    """Of rare values: coverage, and intervals that lie below and above the truth, in percent."""
    rows = {name: [_sided(at["default"]) for at in results[name].values()] for name in RARE if name in results}
    return _table(["statistic", *next(iter(results.values()))], rows)


def _sided(one: dict[str, Any]) -> str:
    missing = f", {one['missing']:.0%} none" if one["missing"] >= 0.005 else ""
    return f"{100 * one['share']:.1f} ({100 * one['below']:.1f}, {100 * one['above']:.1f}){missing}"


def size_table(results: dict[str, Any]) -> str:
    """How often each test finds a difference where there is none, in percent."""
    tests = {(name, test): None for name, sizes in results.items() for test in next(iter(sizes.values()))}
    limits = 1 - LIMITS[1], 1 - LIMITS[0]
    rows = {f"{name}, {test}": [_cell(at[test], limits) for at in results[name].values()] for name, test in tests}
    return _table(["statistic and test", *next(iter(results.values()))], rows)


def _cell(one: dict[str, Any], limits: tuple[float, float]) -> str:
    shown = f"{100 * one['share']:.1f}"
    shown = shown if limits[0] <= one["share"] <= limits[1] else f"**{shown}**"
    return f"{shown} ({one['missing']:.0%} none)" if one.get("missing", 0) >= 0.005 else shown


def _table(heading: Iterable[str], rows: dict[str, list[str]]) -> str:
    cells = [list(heading), *([name, *row] for name, row in rows.items())]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|---|" + "--:|" * (len(cells[0]) - 1), *lines[1:]])


TABLES: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "coverage": lambda found: coverage_table(found["intervals"]),
    "sides": lambda found: side_table(found["intervals"]),
    "methods": lambda found: method_table(found["intervals"]),
    "sizes": lambda found: size_table(found["tests"]),
}


def main() -> None:
    """Measure and write, or print the tables of what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1200, help="samples of each cell")
    parser.add_argument("--others", type=int, default=400, help="of these, on which the methods are compared")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cases", nargs="+", default=[*CASES, *NULLS])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", choices=TABLES, help="print a table of the committed results")
    options = parser.parse_args()
    if options.table:
        print(TABLES[options.table](json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    about = {"rounds": options.rounds, "others": options.others, "seed": options.seed, "resamples": RESAMPLES}
    covering = partial(measure_up_to, LARGEST_COMPARED, rounds=options.rounds, others=options.others, seed=options.seed)
    testing = partial(measure_tests, rounds=options.rounds, seed=options.seed)
    cells = [(name, n) for name in options.cases for n in options.sizes if name in CASES]
    nulls = [(name, n) for name in options.cases for n in options.sizes if name in NULLS and n <= LARGEST_TESTED]
    found = {"intervals": run(covering, cells, options.workers), "tests": run(testing, nulls, options.workers)}
    text = json.dumps({"about": {**about, "level": LEVEL, "limits": LIMITS}, **found}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
