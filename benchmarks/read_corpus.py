"""How fast `messages` JSONL is read, and how much memory that takes beyond the corpus itself.

Measures, in one run on the same file, interleaved and repeated: a bare loop of `orjson.loads` over the lines (the least
any reader in Python has to do), `pyarrow.json` (an Arrow table of nested messages, neither checked nor named), and
`dialoscope.load` (checked, with ids and splits). Each runs in its own process, so that peaks of memory are its own.

    python benchmarks/read_corpus.py                       # a million dialogues, writes benchmarks/read_corpus.json
    python benchmarks/read_corpus.py --dialogues 10000 --out /dev/null
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

LIMITS = {"ratio_to_orjson_loop": 2.0, "memory_above_result_mb": 300}


def write_dialogues(path: Path, count: int, *, is_labelled: bool, seed: int = 7) -> None:
    """Dialogues of real length: those of the built-in corpus, drawn again and again, each with a number of its own.

    Plain records hold messages and nothing else; labelled ones have one more key, which the reader must keep.
    """
    import orjson

    from dialoscope.corpus import generate

    rng = np.random.default_rng(seed)
    texts = [dialogue.texts for dialogue in generate(dialogues=2000, seed=seed)]
    roles = ("user", "assistant")
    with path.open("wb") as file:
        for number, place in enumerate(rng.integers(len(texts), size=count)):
            messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts[place])]
            messages[0]["content"] = f"{number}: {messages[0]['content']}"
            extra = {"source": "forum"} if is_labelled else {}
            file.write(orjson.dumps({"messages": messages, **extra}) + b"\n")


def orjson_loop(path: Path) -> int:
    """The bare loop."""
    import orjson

    turns = 0
    with path.open("rb") as file:
        for line in file:
            turns += len(orjson.loads(line)["messages"])
    return turns


def pyarrow_json(path: Path) -> tuple[int, int]:
    """Arrow's own reader of JSON."""
    import pyarrow.compute as pc
    import pyarrow.json as pj

    table = pj.read_json(path)
    return pc.sum(pc.list_value_length(table["messages"])).as_py(), table.nbytes


def dialoscope(path: Path) -> tuple[int, int]:
    """Ours."""
    from dialoscope.corpus import load

    corpus = load(path)
    return int(corpus.turns_per_dialogue.sum()), corpus.table.nbytes


READERS: dict[str, Callable[[Path], int | tuple[int, int]]] = {
    "orjson_loop": orjson_loop,
    "pyarrow_json": pyarrow_json,
    "dialoscope": dialoscope,
}


def measure_here(reader: str, path: Path) -> dict[str, float]:
    """Run one reader in this process: seconds, turns, and the peak of memory beyond the start and the result."""
    import orjson  # noqa: F401  # imports are not what is measured
    import pyarrow.json  # noqa: F401

    import dialoscope.corpus  # noqa: F401

    before = peak_mb()
    start = time.perf_counter()
    found = READERS[reader](path)
    seconds = time.perf_counter() - start
    turns, nbytes = found if isinstance(found, tuple) else (found, 0)
    above = peak_mb() - before - nbytes / 2**20
    return {"seconds": seconds, "turns": turns, "result_mb": nbytes / 2**20, "memory_above_result_mb": above}


def peak_mb() -> float:
    """Most memory this process ever held; unlike `ru_maxrss` it leaves out what the parent held at the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(reader: str, path: Path) -> dict[str, float]:
    """Run one reader in a new process."""
    command = [sys.executable, __file__, "--reader", reader, "--file", str(path)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def benchmark(count: int, repeats: int, *, is_labelled: bool = False) -> dict[str, object]:
    """All readers on one file of so many dialogues, taking turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.jsonl"
        write_dialogues(path, count, is_labelled=is_labelled)
        size = path.stat().st_size
        orjson_loop(path)  # the file is in the page cache for everybody
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in READERS}
        for _ in range(repeats):
            for name in READERS:
                runs[name].append(measure(name, path))
    turns = {run["turns"] for found in runs.values() for run in found}
    if len(turns) != 1:
        raise SystemExit(f"the readers do not agree on the number of turns: {turns}")
    about = {"dialogues": count, "is_labelled": is_labelled, "turns": turns.pop(), "file_mb": round(size / 2**20, 1)}
    return {**about, "readers": summary(runs)}


def summary(runs: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Medians, and ratios to the bare loop taken run by run."""
    loop = [run["seconds"] for run in runs["orjson_loop"]]
    return {
        name: {
            "seconds": round(statistics.median(run["seconds"] for run in found), 3),
            "ratio_to_orjson_loop": round(
                statistics.median(run["seconds"] / base for run, base in zip(found, loop, strict=True)), 3
            ),
            "result_mb": round(found[0]["result_mb"], 1),
            "memory_above_result_mb": round(max(run["memory_above_result_mb"] for run in found), 1),
        }
        for name, found in runs.items()
    }


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        print(json.dumps(measure_here(given.reader, given.file)))
        return
    result = {
        "limits": LIMITS,
        "python": platform.python_version(),
        "repeats": given.repeats,
        "sizes": [
            *(benchmark(count, given.repeats) for count in given.dialogues),
            benchmark(given.dialogues[0], given.repeats, is_labelled=True),
        ],
    }
    print(json.dumps(result, indent=2))
    given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
