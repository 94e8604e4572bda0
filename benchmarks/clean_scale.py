"""`dialoscope overlap clean` on millions of turns: how long it takes, and the most memory it holds.

DailyDialog's dialogues are grown by replacing words as `grown_texts.py` says, written as `messages` JSONL, and cleaned
by the command itself at 0.75 in a process of its own; its peak is what the system counts for it.

    python benchmarks/clean_scale.py                         # 10 million turns; writes benchmarks/clean_scale.json
    python benchmarks/clean_scale.py --turns 1000000 --out /dev/null
    python benchmarks/clean_scale.py --line                  # prints the line of docs/scale.md from the JSON
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dialoscope.cores import cores
from dialoscope.corpus import load
from grown_texts import grown_texts


def write_grown(data: str, turns: int, path: Path) -> int:
    """So many turns, as dialogues of the real lengths; how many dialogues."""
    sizes = load(data).turns_per_dialogue
    texts = grown_texts(data, "utterance", turns)
    sizes = np.tile(sizes, -(-turns // int(sizes.sum())))
    ends = np.cumsum(sizes)
    ends = ends[ends <= turns]
    with path.open("wb") as file:
        begin = 0
        for number, end in enumerate(ends.tolist()):
            said = texts.slice(begin, end - begin).to_pylist()
            messages = [{"role": ("user", "assistant")[k % 2], "content": text} for k, text in enumerate(said)]
            file.write(orjson.dumps({"id": f"d{number}", "messages": messages}) + b"\n")
            begin = end
    return len(ends)


def line(row: dict[str, Any]) -> str:
    """The numbers in words."""
    return (
        f"{row['turns']:,} turns, {row['dialogues']:,} dialogues: {row['kept']:,} kept after {row['passes']} passes, "
        f"{row['processor_seconds']:,.0f} processor seconds, {row['peak_gib']:.1f} GiB at the peak."
    )


def main() -> None:
    """Grow, clean, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/dailydialog", help="the folder of DailyDialog")
    parser.add_argument("--turns", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--line", action="store_true", help="print the committed numbers")
    arguments = parser.parse_args()
    if arguments.line:
        print(line(json.loads(Path(__file__).with_suffix(".json").read_text())))
        return
    with tempfile.TemporaryDirectory() as folder:
        path, cleaned = Path(folder) / "grown.jsonl", Path(folder) / "clean"
        dialogues = write_grown(arguments.data, arguments.turns, path)
        command = [sys.executable, "-m", "dialoscope", "overlap", "clean", str(path), "--threshold", "0.75"]
        command += ["--test-size", "1000", "--validation-size", "1000", "--seed", "0", "--out", str(cleaned), "--json"]
        load_before, start = os.getloadavg()[0], time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(done.stdout)
        kept = sum(1 for file in (cleaned / "corpus").glob("*.jsonl") for _ in file.open("rb"))
    row: dict[str, Any] = {
        "turns": arguments.turns,
        "dialogues": dialogues,
        "kept": kept,
        "passes": found["counts"]["passes"],
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_gib": used.ru_maxrss / 2**20,
        "cores": cores(),
        "load_before": load_before,
    }
    print(json.dumps(row))
    arguments.out.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
