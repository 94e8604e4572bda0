"""How the exact join grows: 10⁴ to 10⁷ short texts on one machine, time by step, processor time and memory.

Texts are DailyDialog's turns, grown as `grown_texts.py` says; pairs are those of distinct bags of words at 0.75, for
copies of "yes" alone make more pairs than anyone can store. Each size runs in a process of its own, after a small run
that loads the compiled code. Processor time is of all threads together: it says what a cluster would have to spend.

    python benchmarks/overlap_scale.py                       # writes benchmarks/overlap_scale.json, some minutes
    python benchmarks/overlap_scale.py --sizes 10000 --out /dev/null
    python benchmarks/overlap_scale.py --table               # prints the table of docs/scale.md from the JSON
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dialoscope.overlap.join import join_distinct
from dialoscope.overlap.tokens import bags_of
from grown_texts import grown_texts
from peak import memory_from_here, peak_memory

THRESHOLD = "0.75"
JSON = Path(__file__).with_suffix(".json")


def timed(name: str, work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds and processor seconds of a step, and what it gave."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return {
        f"{name}_seconds": time.perf_counter() - wall,
        f"{name}_processor_seconds": time.process_time() - processor,
    }, found


def measured(data: str, size: int) -> dict[str, Any]:
    """One size."""
    join_distinct(bags_of(["a b c", "a b d"])[0][0], threshold=THRESHOLD)
    texts = grown_texts(data, "utterance", size)
    before = memory_from_here()
    cutting, (bags, vocabulary) = timed("tokenising", lambda: bags_of(texts))
    joining, found = timed("joining", lambda: join_distinct(bags[0], threshold=THRESHOLD))
    peak = peak_memory()
    counts = {"texts": size, "distinct": int((found.copies > 0).sum()), "words": len(vocabulary)}
    memory = {"bytes_per_text": (peak - before) / size, "peak_gb": peak / (1 << 30)}
    return {**counts, "pairs": len(found.pairs), **cutting, **joining, **memory}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, with the exponent by which joining grew from one size to the next."""
    lines = [
        "| texts | distinct | pairs | tokenising, s | joining, s | processor, s | growth | bytes a text | peak, GB |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    before: dict[str, Any] | None = None
    for row in rows:
        processor = row["tokenising_processor_seconds"] + row["joining_processor_seconds"]
        lines.append(
            f"| {row['texts']:,} | {row['distinct']:,} | {row['pairs']:,} | {row['tokenising_seconds']:.2f} "
            f"| {row['joining_seconds']:.2f} | {processor:.2f} | {_growth(before, row)} "
            f"| {row['bytes_per_text']:.0f} | {row['peak_gb']:.2f} |"
        )
        before = row
    return "\n".join(lines)


def projected(rows: list[dict[str, Any]], *, texts: int = 10**9, cores: int = 1000) -> str:
    """What so many texts would take, by arithmetic: joining grows on as it did between the two largest sizes."""
    small, large = rows[-2:]
    factor = texts / large["texts"]
    grown = large["joining_processor_seconds"] / small["joining_processor_seconds"]
    exponent = math.log(grown) / math.log(large["texts"] / small["texts"])
    joining = large["joining_processor_seconds"] * factor**exponent
    tokenising = large["tokenising_processor_seconds"] * factor
    days, hours = (joining + tokenising) / 86_400, (joining + tokenising) / 3_600 / cores
    return (
        f"{texts:,} texts: tokenising {tokenising / 3_600:,.0f} processor hours, "
        f"joining {joining / 3_600:,.0f} (n^{exponent:.2f}), "
        f"together {days:,.0f} processor days, or {hours:,.1f} hours on {cores:,} cores; "
        f"{large['bytes_per_text'] * texts / 1e12:,.2f} TB of memory over all machines."
    )


def _growth(before: dict[str, Any] | None, row: dict[str, Any]) -> str:
    if before is None:
        return ""
    ratio = row["joining_processor_seconds"] / before["joining_processor_seconds"]
    return f"n^{math.log(ratio) / math.log(row['texts'] / before['texts']):.2f}"


def main() -> None:
    """Measure all sizes, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/dailydialog", help="the folder of DailyDialog")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--out", type=Path, default=JSON)
    parser.add_argument("--table", action="store_true", help="print the committed rows")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(arguments.data, arguments.child)))
        return
    if arguments.table:
        rows = json.loads(JSON.read_text())["rows"]
        print(table(rows), "", projected(rows), sep="\n")
        return
    rows = []
    for size in arguments.sizes:
        command = [sys.executable, __file__, "--data", arguments.data, "--child", str(size)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(json.dumps(rows[-1]), flush=True)
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "threshold": THRESHOLD}
        arguments.out.write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
