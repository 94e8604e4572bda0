"""How often do 95 % intervals hold the truth, and 5 % tests err? A grid of statistics and sizes, fixed beforehand.

The grid of intervals was written down before any of its results were seen, and no cell was taken out afterwards; the
grid of tests joined it later, with every kind of statistic that had been looked at. Every cell of the first
draws so many samples from a population whose truth is known, makes the interval of each by every method, and counts
how many hold the truth, and how many are missing because the score says that there is none. `jackknife` is the default;
`percentile` and `bca` can be asked for (and are measured here below 30 dialogues, too, where the jackknife takes their
place in use); the others are candidates that were not taken. The method was chosen on other seeds than this one's.

    python benchmarks/interval_coverage.py                    # writes benchmarks/interval_coverage.json
    python benchmarks/interval_coverage.py --rounds 200 --sizes 10 20 --cases "pearson 0.6" --out /dev/stdout
    python benchmarks/interval_coverage.py --table coverage   # the committed results as a Markdown table
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

from turnwise.metrics import TESTS
from turnwise.metrics.agreement import Alpha, Ceiling
from turnwise.metrics.bleu import corpus_bleu, count_matches
from turnwise.metrics.bootstrap import BOOTSTRAPS, DEFAULT, estimate
from turnwise.metrics.correlation import Correlation
from turnwise.metrics.distinct import Distinct, distinct_grams
from turnwise.metrics.jackknife import jackknife
from turnwise.metrics.resample import resample
from turnwise.metrics.statistic import (
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
LIMITS = (0.93, 0.97)
LEVEL = 0.95
RESAMPLES = 600  # of a bootstrap or a test; 10,000 in use
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


def in_dialogues(rng: Rng, n: int) -> Sums:
    """Dialogues of one to six turns that share an effect as large as a turn's own."""
    ids = np.repeat(np.arange(n), rng.integers(1, 7, n))
    return mean(rng.normal(size=n)[ids] + rng.normal(size=len(ids)), Clusters.of(ids, n=len(ids)))


def proportion(rng: Rng, n: int) -> Sums:
    """Yes in three of ten."""
    return mean((rng.random(n) < 0.3).astype(np.float64))


def shares(rng: Rng, n: int) -> Sums:
    """Skewed scores between 0 and 1, as ROUGE gives them."""
    return mean(rng.beta(1, 4, size=n), bounds=(0.0, 1.0))


def exponential(rng: Rng, n: int) -> Sums:
    """Very skewed values (skewness 2)."""
    return mean(rng.exponential(size=n))


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


def rated(rng: Rng, n: int) -> FloatArray:
    """Ratings from 1 to 5 by three annotators, half of whose variance is the item's: (items, annotators)."""
    return np.clip(np.round(3 + rng.normal(size=(n, 1)) + rng.normal(size=(n, 3))), 1, 5)


def alpha(rng: Rng, n: int) -> Alpha:
    """Krippendorff's ordinal alpha."""
    return Alpha.over(rated(rng, n), level="ordinal", clusters=alone(n))


def ceiling(rng: Rng, n: int) -> Ceiling:
    """One annotator against the mean of the rest, by Spearman's correlation."""
    return Ceiling.over(rated(rng, n), kind="spearman", clusters=alone(n))


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
    "ratio of gammas": Case(ratio_of_gammas, lambda: 1.0),
    **{
        f"{kind} {rho:g}": Case(partial(correlated, kind=kind, rho=rho), partial(of_rho, rho))
        for kind, of_rho in TRUTHS.items()
        for rho in (0.0, 0.6, 0.9)
    },
    "partial spearman": Case(partly_correlated, partial_spearman),
    "corpus BLEU-2": Case(bleu, bleu_of_all),
    "distinct-1": Case(partial(zipf, order=1), None),
    "distinct-2": Case(partial(zipf, order=2), None),
    "Krippendorff's alpha": Case(alpha, partial(of_many, alpha)),
    "annotator ceiling": Case(ceiling, partial(of_many, ceiling)),
}


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
    """How many of the intervals that there are hold the truth, how wide they are, how many there are not."""
    ends = np.array([one for one in found if one]).reshape(-1, 2)
    hits = int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())
    width = float(np.mean(ends[:, 1] - ends[:, 0])) if len(ends) else math.nan
    missing = round(1 - len(ends) / len(found), 4)
    return {**share(hits, max(1, len(ends))), "width": float(f"{width:.4g}"), "missing": missing}


def measure_intervals(cell: tuple[str, int], *, rounds: int, others: int, seed: int) -> dict[str, Any]:
    """One cell of the grid: coverage by method; all but the default are measured on the first rounds."""
    (name, n), case = cell, CASES[cell[0]]
    rng = np.random.default_rng([seed, n, crc32(name.encode())])
    values, found = np.zeros(rounds), dict[str, list[Interval | None]]()
    for place in range(rounds):
        statistic = case.draw(rng, n)
        values[place] = statistic.value()
        found.setdefault(DEFAULT.method, []).append(estimate(statistic).ends)
        for method, ends in compared(statistic, place).items() if place < others else ():
            found.setdefault(method, []).append(ends)
    truth = case.truth() if case.truth else float(values.mean())
    return {method: cover(ends, truth) for method, ends in found.items()}


Sides = tuple[Swappable, Swappable]


def systems_of(draw: Callable[[Rng, int], Any], rng: Rng, n: int) -> Sides:
    """Two systems that are alike: two samples of the same kind."""
    return draw(rng, n), draw(rng, n)


def systems_in_dialogues(rng: Rng, n: int) -> Sides:
    """Two systems that are alike, over the same dialogues of one to six turns."""
    ids = np.repeat(np.arange(n), rng.integers(1, 7, n))
    clusters = Clusters.of(ids, n=len(ids))
    first, second = (mean(rng.normal(size=n)[ids] + rng.normal(size=len(ids)), clusters) for _ in range(2))
    return first, second


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
    rows = {name: [_cell(at[DEFAULT.method], LIMITS) for at in sizes.values()] for name, sizes in results.items()}
    return _table(["statistic", *next(iter(results.values()))], rows)


def method_table(results: dict[str, Any]) -> str:
    """Every method: how many cells lie within the limits, below and above, and the lowest and highest coverage."""
    rows = {}
    for method in next(iter(results.values()))[str(SIZES[0])]:
        shares = [at[method]["share"] for sizes in results.values() for at in sizes.values() if method in at]
        below, above = sum(one < LIMITS[0] for one in shares), sum(one > LIMITS[1] for one in shares)
        counts = [str(len(shares) - below - above), str(below), str(above)]
        rows[f"`{method}`"] = [*counts, f"{100 * min(shares):.1f}", f"{100 * max(shares):.1f}"]
    return _table(["method", "within", "below", "above", "lowest", "highest"], rows)


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
    "methods": lambda found: method_table(found["intervals"]),
    "sizes": lambda found: size_table(found["tests"]),
}


def main() -> None:
    """Measure and write, or print the tables of what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000, help="samples of each cell")
    parser.add_argument("--others", type=int, default=400, help="of these for the methods that are not the default")
    parser.add_argument("--seed", type=int, default=2026)
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
    covering = partial(measure_intervals, rounds=options.rounds, others=options.others, seed=options.seed)
    testing = partial(measure_tests, rounds=options.rounds, seed=options.seed)
    cells = [(name, n) for name in options.cases for n in options.sizes if name in CASES]
    nulls = [(name, n) for name in options.cases for n in options.sizes if name in NULLS and n <= LARGEST_TESTED]
    found = {"intervals": run(covering, cells, options.workers), "tests": run(testing, nulls, options.workers)}
    text = json.dumps({"about": {**about, "level": LEVEL, "limits": LIMITS}, **found}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
