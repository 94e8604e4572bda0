"""How long `import dialoscope` and `dialoscope --help` take, beside an earlier version of this project.

    git worktree add ../before 4e6a245
    python benchmarks/start_up.py --before ../before       # writes benchmarks/start_up.json

Both versions run in turn, in new processes of the same Python, and medians are compared. The time of a Python that does
nothing is measured beside them and taken off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
TASKS = {"import": "import {package}", "help": "from {package}.cli import main; main()"}


def seconds(code: str, source: Path) -> float:
    """Time one new process."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, "--help"], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def package_in(checkout: Path) -> str:
    """The package's name: the project was renamed."""
    return next(path.parent.name for path in (checkout / "src").glob("*/__init__.py"))


def main() -> None:
    """Measure both versions in turn and write the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    checkouts = {"before": arguments.before.resolve(), "now": HERE}
    times: dict[str, dict[str, list[float]]] = {task: {name: [] for name in (*checkouts, "python")} for task in TASKS}
    for _ in range(arguments.repeats):
        for task, code in TASKS.items():
            for name, checkout in checkouts.items():
                times[task][name].append(seconds(code.format(package=package_in(checkout)), checkout / "src"))
            times[task]["python"].append(seconds("pass", HERE))
    rows = {}
    for task, by_name in times.items():
        bare = statistics.median(by_name["python"])
        before, now = (statistics.median(by_name[name]) - bare for name in checkouts)
        rows[task] = {"before_seconds": round(before, 4), "now_seconds": round(now, 4), "ratio": round(now / before, 3)}
        print(f"{task}: {before:.3f} s before, {now:.3f} s now, {now / before:.2f} of before")
    report = {"repeats": arguments.repeats, "python_seconds": round(bare, 4), "tasks": rows}
    arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
