"""How fast intervals and tests are: ours against `scipy.stats.bootstrap` and sacreBLEU, in the same run.

Each task is timed with ours and the peers' implementations in turn, several times over, and the medians are
compared; what they found (an interval, or the values of two systems) is kept beside it, so that nobody is fast by
computing something else. scipy gets its fastest form: vectorised statistics where there are any, in batches that
fit in memory.

    python benchmarks/statistics_speed.py                     # writes benchmarks/statistics_speed.json
    python benchmarks/statistics_speed.py --repeats 1 --out /dev/null
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.metrics import Pairs, Resampling, correlate, mean_score, measure, score_pairs

RESAMPLES = 10_000
LIMIT_SECONDS = 2.0  # for 10,000 resamples of a mean of 10,000 items, and of a rank correlation of 375
Interval = tuple[float, float]  # or the values of two systems
Run = Callable[[], Interval]


def our_mean(values: Any, method: str) -> Interval:
    """The mean of independent items."""
    return mean_score(values, resampling=Resampling(RESAMPLES, method=method)).interval or (0.0, 0.0)


def our_correlation(first: Any, second: Any, kind: str) -> Interval:
    """A correlation, ranked anew in every resample."""
    resampling = Resampling(RESAMPLES, method="percentile")
    return correlate(first, second, kind=kind, resampling=resampling).interval or (0.0, 0.0)


def scipys(data: tuple[Any, ...], statistic: Callable[..., Any], *, batch: int | None, method: str) -> Interval:
    """The bootstrap of scipy, vectorised where it has a batch."""
    from scipy.stats import bootstrap

    options = {"paired": len(data) > 1, "vectorized": batch is not None, "batch": batch, "method": method}
    found = bootstrap(data, statistic, n_resamples=RESAMPLES, rng=0, **options).confidence_interval
    return float(found.low), float(found.high)


def ranked_correlation(first: Any, second: Any, axis: int = -1) -> Any:
    """Spearman's correlation over an axis, vectorised as far as scipy goes."""
    from scipy.stats import rankdata

    ranks = [rankdata(side, axis=axis) for side in (first, second)]
    a, b = (side - side.mean(axis=axis, keepdims=True) for side in ranks)
    return (a * b).sum(axis=axis) / np.sqrt((a * a).sum(axis=axis) * (b * b).sum(axis=axis))


def library_correlation(kind: str, first: Any, second: Any) -> float:
    """One correlation by scipy."""
    from scipy import stats

    return float({"spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind](first, second)[0])


def our_bleu(pairs: Pairs) -> Interval:
    """Corpus BLEU with 1,000 resamples, texts included."""
    resampling = Resampling(1000, method="percentile")
    found = score_pairs(pairs, metrics=["bleu-4"], resampling=resampling).scores["bleu-4"]
    return found.interval or (0.0, 0.0)


def sacrebleus(pairs: Pairs) -> Interval:
    """The same by sacreBLEU's own bootstrap, which reports a mean and half a width."""
    from sacrebleu.metrics.bleu import BLEU

    found: Any = BLEU().corpus_score(list(pairs.hypotheses), [list(pairs.references)], n_bootstrap=1000)
    return found._mean - found._ci, found._mean + found._ci


def our_comparison(pairs: Pairs, other: Pairs, name: str) -> Interval:
    """Two systems by approximate randomisation, texts included; gives both values."""
    found = measure(pairs, against={"other": other}, metrics=[name], resamples=RESAMPLES, name="first").scores()
    return found[f"first/all/{name}"].value or 0.0, found[f"other/all/{name}"].value or 0.0


def sacrebleus_comparison(pairs: Pairs, other: Pairs) -> Interval:
    """The same by sacreBLEU's own paired randomisation test; gives both values."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    systems: list[Any] = [("first", list(pairs.hypotheses)), ("second", list(other.hypotheses))]
    references = [list(pairs.references)]
    test = PairedTest(systems, {"BLEU": BLEU()}, references, test_type="ar", n_samples=RESAMPLES)
    found: Any = test()[1]["BLEU"]
    return float(found[0].score), float(found[1].score)


def tasks(rng: np.random.Generator) -> dict[str, dict[str, Run]]:
    """What is timed: by task, ours and the peers'."""
    values = rng.exponential(size=10_000)
    words = rng.poisson(8, size=375).astype(float)  # as many turns as FED has, with ties
    people = np.round(np.clip(words / 6 + rng.normal(size=375), 0, 4)) / 2
    both = (words, people)
    pairs, other = _texts(rng, 7_000), _texts(rng, 7_000)
    other = Pairs(other.hypotheses, pairs.references)
    mean = partial(scipys, (values,), np.mean, batch=100)
    return {
        "mean of 10,000, percentile": {
            "dialoscope": lambda: our_mean(values, "percentile"),
            "scipy": lambda: mean(method="percentile"),
        },
        "mean of 10,000, BCa": {"dialoscope": lambda: our_mean(values, "bca"), "scipy": lambda: mean(method="BCa")},
        "spearman of 375": {
            "dialoscope": lambda: our_correlation(*both, "spearman"),
            "scipy": lambda: scipys(both, partial(library_correlation, "spearman"), batch=None, method="percentile"),
            "scipy, ranks vectorised": lambda: scipys(both, ranked_correlation, batch=1000, method="percentile"),
        },
        "kendall of 375": {
            "dialoscope": lambda: our_correlation(*both, "kendall"),
            "scipy": lambda: scipys(both, partial(library_correlation, "kendall"), batch=None, method="percentile"),
        },
        "corpus BLEU-4 of 7,000 pairs, 1,000 resamples": {
            "dialoscope": lambda: our_bleu(pairs),
            "sacrebleu": lambda: sacrebleus(pairs),
        },
        "two systems by BLEU-4, 7,000 pairs, 10,000 exchanges": {
            "dialoscope": lambda: our_comparison(pairs, other, "bleu-4"),
            "sacrebleu": lambda: sacrebleus_comparison(pairs, other),
        },
        "two systems by distinct-1, 7,000 pairs, 10,000 exchanges": {
            "dialoscope": lambda: our_comparison(pairs, other, "distinct-1")
        },
        "two systems by distinct-2, 7,000 pairs, 10,000 exchanges": {
            "dialoscope": lambda: our_comparison(pairs, other, "distinct-2")
        },
    }


def _texts(rng: np.random.Generator, count: int) -> Pairs:
    words = np.array([f"w{rank}" for rank in range(500)])
    targets = [" ".join(words[rng.zipf(1.5, size=length) % 500]) for length in rng.integers(3, 20, count)]
    said = [one if rng.random() < 0.2 else targets[rng.integers(count)] for one in targets]
    return Pairs(said, targets)


def timed(runs: dict[str, Run], repeats: int) -> dict[str, Any]:
    """Time the implementations in turn; the first call of each is not counted, but shown with what it found."""
    first = {name: _timed(run) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            seconds[name].append(_timed(run)[0])
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        name: {
            "seconds": round(medians[name], 4),
            "first_call_seconds": round(first[name][0], 4),
            "found": [round(end, 4) for end in first[name][1]],
            "times_dialoscope": round(medians[name] / medians["dialoscope"], 1),
        }
        for name in runs
    }


def _timed(run: Run) -> tuple[float, Interval]:
    start = time.perf_counter()
    interval = run()
    return time.perf_counter() - start, interval


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    found = {name: timed(runs, options.repeats) for name, runs in tasks(np.random.default_rng(0)).items()}
    libraries = {name: version(name) for name in ("dialoscope", "numpy", "scipy", "numba", "sacrebleu")}
    about = {"resamples": RESAMPLES, "repeats": options.repeats, "limit_seconds": LIMIT_SECONDS}
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version(), **libraries}
    text = json.dumps({"about": about, "machine": machine, "tasks": found}, indent=2)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
