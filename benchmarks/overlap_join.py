"""How long the exact join takes from texts to pairs, beside the libraries people use for it.

The texts are DailyDialog's turns ("utterance") and whole dialogues ("dialogue"), grown as `grown_texts.py` says.

Every engine gets the same list of strings and must return all pairs with 2|u ∩ v| / (|u| + |v|) at or over the
threshold (words as sets, the paper's tokens). Its time is split into tokenising and joining (index included); of ours,
`kernel` is what the index and its probing take of the joining: finding copies, spelling their pairs out and sorting is
the rest. Each engine runs in a process of its own, warmed on a thousand texts first, so that neither imports nor
compilation count; memory is the peak over what the process held before. Every engine may use every core. Exact engines
must agree with ours pair for pair. Candidates of approximate ones are checked by our compiled loop over our own bags,
whose making is not counted, as `recall` counts pairs and not guesses; of `rensa-flags` only the yes or no for each text
can be had, unchecked, and its `recall` and `precision` count texts.

The exact peers are what Python users can install. Compiled joins by prefix filter (AllPairs, PPJoin) exist as research
code in C++ and are not among them.

    python benchmarks/overlap_join.py                                  # all rows, writes benchmarks/overlap_join.json
    python benchmarks/overlap_join.py --sizes 10000 --engines dialoscope scipy --out /dev/null
    python benchmarks/overlap_join.py --table                          # prints the tables of docs/overlap.md

An engine that outlasts `--limit-seconds`, or that took a twenty-fifth of it on a tenth of the texts, is not tried on
harder rows; its rows say so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.cores import cores
from dialoscope.overlap.copies import Copies
from dialoscope.overlap.index import Index
from dialoscope.overlap.join import exact_threshold, join
from dialoscope.overlap.sample_join import shared_tokens
from dialoscope.overlap.tokens import Bags, bags_of, reference_tokens
from grown_texts import grown_texts
from peak import memory_from_here, peak_memory

MEMORY = 14 << 30  # bytes an engine may map; more is a failure, and the machine stays alive
Keys = np.ndarray[Any, Any]  # first * n + second of each pair, ascending
Outcome = tuple[float, float, Keys]  # seconds of tokenising, seconds of joining, pairs

ENOUGH = 0.95  # recall of an approximate engine that is worth a comparison
GOALS = {
    "times_faster_than_fastest_exact_at_100k_utterances": 25,
    "kernel_seconds_at_100k": 0.15,
    "kernel_seconds_at_1m": 8,
    "bytes_per_short_text": 1024,
}


# --- Engines ----------------------------------------------------------------------------------------------------------


def dialoscope(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """Ours."""
    start = time.perf_counter()
    (bags,), _ = bags_of(texts)
    middle = time.perf_counter()
    found = join(bags, threshold=threshold)
    return middle - start, time.perf_counter() - middle, found.first * len(texts) + found.second


def kernel_seconds(texts: list[str], threshold: float) -> float:
    """What index and probing take of our joining: the rest finds copies, spells their pairs out and sorts them."""
    (bags,), _ = bags_of(texts)
    distinct = Copies(bags).bags
    start = time.perf_counter()
    Index(distinct, exact_threshold(threshold), is_self=True).pairs_with(distinct, is_strict=False)
    return time.perf_counter() - start


def scipy(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """Products of sparse matrices, a thousand rows at a time."""
    start = time.perf_counter()
    matrix = _matrix(texts)
    middle = time.perf_counter()
    sizes = np.asarray(matrix.sum(axis=1)).ravel()
    keys = []
    other = matrix.T.tocsr()
    for low in range(0, len(texts), 1000):
        shared = (matrix[low : low + 1000] @ other).tocoo()
        keys.append(_over(shared.row + low, shared.col, shared.data, sizes, threshold))
    return middle - start, time.perf_counter() - middle, np.concatenate(keys)


def sparse_dot_topn(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """Products that keep what is over a bound: a cosine is never below the overlap ratio, so nothing is lost."""
    from sparse_dot_topn import sp_matmul_topn

    start = time.perf_counter()
    matrix = _matrix(texts)
    middle = time.perf_counter()
    sizes = np.asarray(matrix.sum(axis=1)).ravel()
    unit = matrix.multiply(1 / np.sqrt(np.maximum(sizes, 1))[:, None]).tocsr().astype(np.float64)
    near = sp_matmul_topn(
        unit, unit.T.tocsr(), top_n=int(option), threshold=threshold - 1e-6, density=0.01, n_threads=cores()
    ).tocoo()
    shared = np.rint(near.data * np.sqrt(sizes[near.row] * sizes[near.col]))
    keys = _over(near.row, near.col, shared, sizes, threshold)
    return middle - start, time.perf_counter() - middle, keys


def set_similarity_search(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """All pairs by Jaccard, which orders pairs as the overlap ratio does: J = R / (2 - R)."""
    from SetSimilaritySearch import all_pairs

    start = time.perf_counter()
    sets = _sets(texts)
    middle = time.perf_counter()
    found = all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=threshold / (2 - threshold) - 1e-9)
    keys = _checked(given, np.array([(i, j) for i, j, _ in found], np.int64), threshold)
    return middle - start, time.perf_counter() - middle, keys


def datasketch(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """MinHash signatures in bands; candidates checked against the sets."""
    from datasketch import MinHash, MinHashLSH

    bands, rows = (int(part) for part in option.split("x"))
    start = time.perf_counter()
    sets = _sets(texts)
    middle = time.perf_counter()
    hashes = MinHash.bulk([[word.encode() for word in one] for one in sets], num_perm=bands * rows)
    lsh = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    pairs: list[tuple[int, int]] = []
    for place, one in enumerate(hashes):
        if sets[place]:
            pairs += [(other, place) for other in lsh.query(one)]
            lsh.insert(place, one, check_duplication=False)
    keys = _checked(given, np.array(pairs, np.int64), threshold)
    return middle - start, time.perf_counter() - middle, keys


def rensa(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """MinHash in Rust; candidates checked against the sets."""
    from rensa import RMinHash, RMinHashLSH

    bands, rows = (int(part) for part in option.split("x"))
    start = time.perf_counter()
    sets = _sets(texts)
    middle = time.perf_counter()
    hashes = RMinHash.from_token_sets([list(one) for one in sets], num_perm=bands * rows, seed=42)
    lsh = RMinHashLSH(threshold=threshold / (2 - threshold), num_perm=bands * rows, num_bands=bands)
    lsh.insert_many(hashes)
    near = lsh.query_all(hashes)
    first = np.fromiter(chain.from_iterable(near), np.int64)
    second = np.repeat(np.arange(len(near)), [len(others) for others in near])
    keys = _checked(given, np.stack([first, second], axis=1)[first < second], threshold)
    return middle - start, time.perf_counter() - middle, keys


def rensa_flags(texts: list[str], given: Bags, threshold: float, option: str) -> Outcome:
    """MinHash in Rust, its fastest form: which texts share a band with another. Texts, not pairs, and unchecked."""
    from rensa import RMinHash, RMinHashLSH

    bands, rows = (int(part) for part in option.split("x"))
    start = time.perf_counter()
    sets = _sets(texts)
    middle = time.perf_counter()
    matrix = RMinHash.digest_matrix_from_token_sets([list(one) for one in sets], bands * rows, 42)
    lsh = RMinHashLSH(threshold=threshold / (2 - threshold), num_perm=bands * rows, num_bands=bands)
    flags = lsh.query_duplicate_flags_matrix_one_shot(matrix)
    return middle - start, time.perf_counter() - middle, np.flatnonzero(flags)


# Bands x rows: from fewer candidates and lower recall to more and higher, about 0.95 of the pairs.
BANDS = ["21x6", "23x6", "25x5"]
ENGINES: dict[str, tuple[Callable[[list[str], Bags, float, str], Outcome], str, list[str]]] = {
    "dialoscope": (dialoscope, "exact", [""]),
    "sparse_dot_topn": (sparse_dot_topn, "exact", ["2000"]),
    "scipy": (scipy, "exact", [""]),
    "SetSimilaritySearch": (set_similarity_search, "exact", [""]),
    "rensa": (rensa, "approximate", BANDS),
    "rensa-flags": (rensa_flags, "approximate", BANDS),
    "datasketch": (datasketch, "approximate", BANDS),
}


def _sets(texts: list[str]) -> list[set[str]]:
    return [set(reference_tokens(text)) for text in texts]


def _matrix(texts: list[str]) -> Any:
    from scipy.sparse import csr_matrix

    numbers: dict[str, int] = {}
    sets = _sets(texts)
    columns = np.fromiter((numbers.setdefault(word, len(numbers)) for one in sets for word in one), np.int32)
    ends = np.cumsum([0, *map(len, sets)])
    return csr_matrix((np.ones(len(columns), np.int32), columns, ends), shape=(len(texts), len(numbers)))


def _over(first: Any, second: Any, shared: Any, sizes: Any, threshold: float) -> Keys:
    """Keys of the pairs at or over the threshold; decimals have at most two digits here, so hundredths are exact."""
    hundredths = round(100 * threshold)
    is_over = (first < second) & (shared > 0) & (200 * shared >= hundredths * (sizes[first] + sizes[second]))
    return np.asarray(first[is_over].astype(np.int64) * len(sizes) + second[is_over])


def _checked(given: Bags, pairs: Keys, threshold: float) -> Keys:
    first, second = pairs.reshape(-1, 2).min(axis=1), pairs.reshape(-1, 2).max(axis=1)
    shared = shared_tokens(given.offsets, given.tokens, given.offsets, given.tokens, first, second)
    return _over(first, second, shared, given.sizes, threshold)


# --- One engine in a process of its own -------------------------------------------------------------------------------


def run_engine(name: str, option: str, path: Path, threshold: float, repeats: int, out: Path) -> None:
    """Warm, measure, and write times, memory and pairs."""
    work = ENGINES[name][0]
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    texts = pq.read_table(path)["text"].to_pylist()
    (given,), _ = bags_of(texts)
    (few,), _ = bags_of(texts[:1000])
    work(texts[:1000], few, threshold, option)
    before = memory_from_here()
    times: list[tuple[float, float]] = []
    for _ in range(repeats):
        tokenising, joining, keys = work(texts, given, threshold, option)
        times.append((tokenising, joining))
        if sum(map(sum, times)) > 20:  # long enough to average over
            break
    peak = peak_memory()
    np.save(out / "keys.npy", np.unique(keys))
    found: dict[str, Any] = {"times": times, "bytes_per_text": (peak - before) / len(texts)}
    if name == "dialoscope" and len(times) == repeats:
        found["kernel"] = statistics.median(kernel_seconds(texts, threshold) for _ in range(repeats))
    (out / "times.json").write_text(json.dumps(found))


def measured(
    name: str, option: str, path: Path, threshold: float, repeats: int, limit: float
) -> tuple[dict[str, Any], Keys]:
    """One row, and the engine's pairs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--child", name, option, str(path), str(threshold), str(repeats), folder]
        try:
            subprocess.run(command, check=True, timeout=limit, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            return {"outlasted_seconds": limit}, np.zeros(0, np.int64)
        except subprocess.CalledProcessError as error:
            return {"failed": _why(error)}, np.zeros(0)
        found = json.loads((Path(folder) / "times.json").read_text())
        keys = np.load(Path(folder) / "keys.npy")
    tokenising, joining = (statistics.median(column) for column in zip(*found["times"], strict=True))
    totals = [sum(pair) for pair in found["times"]]
    row = {"seconds": statistics.median(totals), "tokenising": tokenising, "joining": joining, "runs": len(totals)}
    return row | {name: found[name] for name in ("kernel", "bytes_per_text") if name in found}, keys


def _why(error: subprocess.CalledProcessError) -> str:
    """The line that says what went wrong; what a killed process said of memory comes before its last line."""
    lines = (error.stderr or "").strip().splitlines() or [f"ended with code {error.returncode}"]
    return next((line for line in lines if "memory" in line.lower()), lines[-1])


# --- All rows ---------------------------------------------------------------------------------------------------------


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure every engine on every set of texts."""
    for unit in arguments.units:
        too_slow: dict[tuple[str, str], str] = {}
        for size in arguments.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "texts.parquet"
                pq.write_table(pa.table({"text": grown_texts(arguments.data, unit, size)}), path)
                for threshold in arguments.thresholds:
                    yield from _block(arguments, unit, size, threshold, path, too_slow)


def _block(
    arguments: argparse.Namespace,
    unit: str,
    size: int,
    threshold: float,
    path: Path,
    too_slow: dict[tuple[str, str], str],
) -> Iterator[dict[str, Any]]:
    truth: Keys = np.zeros(0, np.int64)
    ours: dict[str, Any] = {}
    for name in arguments.engines:
        _, kind, options = ENGINES[name]
        for option in options:
            row: dict[str, Any] = {"unit": unit, "texts": size, "threshold": threshold, "engine": name, "kind": kind}
            row |= {"option": option} if option else {}
            if (reason := too_slow.get((name, option))) and not reason.startswith(f"took on {size:,}"):
                yield row | {"not_tried": reason}
                continue
            load = os.getloadavg()[0]
            found, keys = measured(name, option, path, threshold, arguments.repeats, arguments.limit_seconds)
            if name == "dialoscope":
                truth, ours = keys, found
            if "seconds" not in found:
                too_slow[name, option] = f"{found} on {size:,} {unit}s at {threshold}"
            elif found["seconds"] > arguments.limit_seconds / 25:
                too_slow[name, option] = f"took on {size:,} {unit}s at {threshold}: {found['seconds']:.0f} s"
            if "seconds" in found:
                found |= _compared(name, kind, keys, truth, size, found, ours)
            yield row | found | {"load_before": load}


def _compared(
    name: str, kind: str, keys: Keys, truth: Keys, size: int, found: dict[str, Any], ours: dict[str, Any]
) -> dict[str, Any]:
    if name == "rensa-flags":
        truth = np.unique(np.concatenate([truth // size, truth % size]))
    common = len(np.intersect1d(keys, truth, assume_unique=True))
    result: dict[str, Any] = {"found": len(keys), "recall": common / max(1, len(truth))}
    result |= {"precision": common / max(1, len(keys))} if kind == "approximate" else {}
    result |= {"agrees": bool(np.array_equal(keys, truth))} if kind == "exact" else {}
    if ours and name != "dialoscope":
        result["times_ours"] = found["seconds"] / ours["seconds"]
        result["joining_times_ours_in_all"] = (
            found["joining"] / ours["seconds"]
        )  # tokenising them by ours would cost less
    return result


def table(found: list[dict[str, Any]]) -> str:
    """Ours, the fastest exact one, and the fastest approximate one that finds 95 % of the pairs."""
    lines = [
        "| texts | at | ours, s | kernel, s | bytes a text | pairs | fastest exact peer | fastest approximate peer |",
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    blocks = dict.fromkeys((row["unit"], row["texts"], row["threshold"]) for row in found)
    for unit, size, threshold in blocks:
        mine = [row for row in found if (row["unit"], row["texts"], row["threshold"]) == (unit, size, threshold)]
        ours = next(row for row in mine if row["engine"] == "dialoscope")
        timed = [row for row in mine if "seconds" in row and row is not ours]
        exact = [row for row in timed if row["kind"] == "exact"]
        near = [row for row in timed if row["kind"] == "approximate" and row["recall"] >= ENOUGH]
        lines.append(
            f"| {size:,} {unit}s | {threshold:g} | {ours['seconds']:.2f} | {_number(ours.get('kernel'))} "
            f"| {ours['bytes_per_text']:,.0f} | {ours['found']:,} | {_fastest(exact)} | {_fastest(near)} |"
        )
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _fastest(some: list[dict[str, Any]]) -> str:
    if not some:
        return "none ended"
    best = min(some, key=lambda row: row["seconds"])
    option = f" {best['option']}" if best["kind"] == "approximate" else ""
    alone = best["joining_times_ours_in_all"]
    recall = f", recall {best['recall']:.3f}" if best["kind"] == "approximate" else ""
    ratios = f"**{best['times_ours']:.1f}×** ours ({alone:.1f}× joining alone)"
    return f"{best['engine']}{option}: {best['seconds']:.1f} s, {ratios}{recall}"


def main() -> None:
    """Run all rows and write them."""
    if sys.argv[1:2] == ["--child"]:
        name, option, path, threshold, repeats, out = sys.argv[2:]
        run_engine(name, option, Path(path), float(threshold), int(repeats), Path(out))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/dailydialog", help="the folder of DailyDialog")
    parser.add_argument("--units", nargs="+", default=["utterance", "dialogue"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--thresholds", nargs="+", type=float, default=[0.8, 0.75], help="easier ones first")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-seconds", type=float, default=400)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--table", action="store_true", help="print the committed rows")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(Path(__file__).with_suffix(".json").read_text())["rows"]), end="")
        return
    found = []
    for row in rows(arguments):
        found.append(row)
        print(json.dumps(row), flush=True)
        arguments.out.write_text(json.dumps(_record(found), indent=1) + "\n")


def _record(found: list[dict[str, Any]]) -> dict[str, Any]:
    packages = ("numpy", "numba", "scipy", "sparse_dot_topn", "SetSimilaritySearch", "datasketch", "rensa")
    machine = {"machine": platform.machine(), "cores": cores()}
    return {"goals": GOALS, **machine, "versions": {name: version(name) for name in packages}, "rows": found}


if __name__ == "__main__":
    main()
