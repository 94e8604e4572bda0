"""Many training runs side by side, each in a process of its own; a row for each is kept as it ends.

Shared by the studies in this folder. Rows that are there are not made again; a run that was killed goes on from its
last epoch where `--work` still holds it; its checkpoints are deleted once its row is kept. On one GPU several runs
share its time well only under NVIDIA's MPS (`nvidia-cuda-mps-control -d`).
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

Row = dict[str, Any]  # with the keys corpus, variant and seed
MEASURING = ".measuring"  # ends the name of the file that says so
ATTEMPTS, PAUSE = 3, 5.0  # a card that many runs share can refuse one


def add_options(parser: argparse.ArgumentParser, rows: Path) -> None:
    """The options that all studies of runs have."""
    parser.add_argument("corpus", type=Path, nargs="?", help="a corpus with training, validation and test splits")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, default=40, help="at most; a preset may have fewer")
    parser.add_argument(
        "--settings", default={}, type=_settings, help="changed settings, for a trial with its own --out: layers=1"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--share", type=float, default=0.6, help="of a card's memory, for captured graphs of all workers"
    )
    parser.add_argument("--padded", action="store_true", help="compute the steps after a response's end, too")
    parser.add_argument("--begin-within", type=float, default=1e9, help="seconds after which no run is begun")
    parser.add_argument("--work", type=Path, default=Path("out/runs"), help="where checkpoints go")
    parser.add_argument("--out", type=Path, default=rows)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)


def run(
    arguments: argparse.Namespace,
    names: Iterable[str],
    *,
    rows: Path,
    make: Callable[[argparse.Namespace, str, int], Row],
    told: Callable[[Row], str],
) -> None:
    """Make the rows that are missing, so many at a time; begin none after the given time, or once a run gave up."""
    if arguments.one:
        from dialoscope.model import graphs, recurrence

        graphs.SHARE_OF_MEMORY = arguments.share / arguments.workers  # each keeps to its part of the card
        graphs.CAPTURES_WITHOUT_GRADIENTS = False
        recurrence.SKIPS_ENDED_ROWS = not arguments.padded
        print(json.dumps(make(arguments, arguments.one[0], int(arguments.one[1]))))
        print(f"{graphs.captured} runs captured, {graphs.dropped} dropped for want of memory", file=sys.stderr)
        return
    if arguments.settings and arguments.out == rows:
        sys.exit("Changed settings are a trial: give --out, so that its rows do not pass for the study's.")
    start, lock, has_failed = time.monotonic(), Lock(), Event()

    def work(one: tuple[str, int]) -> bool:
        if time.monotonic() - start > arguments.begin_within or has_failed.is_set():
            return True
        row = _made(one)
        if row is None:
            has_failed.set()  # what ends one at every attempt most likely ends all
            return False
        with lock:
            keep([*read(arguments.out), row], arguments.out)
        training = folder(arguments, *one)
        shutil.rmtree(training)
        training.with_name(f"{training.name}{MEASURING}").unlink(missing_ok=True)
        print(*one, told(row), round(row["seconds"]), flush=True)
        return True

    with ThreadPoolExecutor(arguments.workers) as pool:
        if not all(list(pool.map(work, _missing(arguments, names, rows)))):
            sys.exit(1)


def folder(arguments: argparse.Namespace, name: str, seed: int) -> Path:
    """Where a run keeps its checkpoints."""
    return Path(arguments.work / f"{arguments.name}-{name}-{seed}")


def begin_measuring(arguments: argparse.Namespace, name: str, seed: int) -> float:
    """Say that a run's training has ended, for whoever waits for the card; the time is given back."""
    training = folder(arguments, name, seed)
    training.with_name(f"{training.name}{MEASURING}").touch()
    return time.monotonic()


def note_parts(began: float, marks: dict[str, float]) -> None:
    """Say what measuring spent its time on, from the times at which its parts ended."""
    starts = [began, *marks.values()]
    seconds = (f"{name} {end - start:.0f} s" for (name, end), start in zip(marks.items(), starts, strict=False))
    print(f"measuring: {', '.join(seconds)}", file=sys.stderr)


def read(rows: Path) -> list[Row]:
    """The rows that are there."""
    return json.loads(rows.read_text()) if rows.exists() else []


def read_row(path: Path) -> Row:
    """The one row that a file holds."""
    row: Row = json.loads(path.read_text())
    return row


def keep(rows: Any, path: Path) -> None:
    """Write rows, all of them or none: a kill must not cost those that were there."""
    from dialoscope.files import whole_file

    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(rows, indent=1) + "\n")


def logged(log: Path, column: str) -> list[float]:
    """A column of a training log by epoch, from the first on; the log outlives a killed run."""
    with log.open(newline="") as lines:
        ended = [line for line in csv.DictReader(lines) if line["perplexity"] and line["epoch"] != "0"]
    return [round(float(line[column]), 4) for line in ended]


def _made(one: tuple[str, int]) -> Row | None:
    command = [sys.executable, *sys.argv, "--one", one[0], str(one[1])]
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, capture_output=True, text=True)
        if not done.returncode:
            row: Row = json.loads(done.stdout.splitlines()[-1])
            return row
        print(*one, "failed:", done.stderr.strip()[-300:], flush=True)
        time.sleep(PAUSE)
    return None


def _missing(arguments: argparse.Namespace, names: Iterable[str], rows: Path) -> Iterator[tuple[str, int]]:
    """Runs that have no row yet, a seed after the other, so that an early end leaves whole seeds.

    A trial's rows are its own: it does not take the study's for them.
    """
    known = read(arguments.out) if arguments.settings else [*read(rows), *read(arguments.out)]
    made = {(row["corpus"], row["variant"], row["seed"]) for row in known}
    wanted = list(dict.fromkeys(names))
    runs = ((name, seed) for seed in arguments.seeds for name in wanted)
    return (one for one in runs if (arguments.name, *one) not in made)


def _settings(words: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words.split(",") if word)
