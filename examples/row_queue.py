"""A queue of study rows on one GPU: every row in a process of its own, none begun that could not end in time.

A row is trained and then measured. Training processes share the GPU, so a row's cost is counted in card seconds: while
n rows train together, each is charged 1/n of the time. Rows that are being measured hardly use the GPU and are not
counted. What finished rows cost decides which row still fits into the time that is left.

Every row is written to a file of its own at the moment it is made. Whatever interrupts the queue costs only the rows
that were under way, and those go on from their last epoch if the folder of checkpoints is still there.
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import side_by_side
from side_by_side import Row

HERE = Path(__file__).parent
ATTEMPTS = 2  # of a row
FAILURES_IN_A_ROW = 4  # of different rows, after which something else is wrong and nothing more is begun
KNOWN_FROM = 0.1  # of a training: from here on its own pace tells what it will cost
MOST = 3.0  # times what was expected: other kinds of rows correct an expectation up or down by no more
RESERVE = 1.1  # times what a row should cost must fit into the time that is left
LIMIT, WORKERS = "limit", "workers"  # files beside the rows: numbers that replace the settings while the queue runs
SUMMARY = "summary.json"
THREADS = {name: "2" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")}
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """A row that is to be made."""

    study: str  # the script, without its ending
    corpus: str  # as rows call it
    variant: str
    seed: int
    options: tuple[str, ...] = ()  # of the script
    kind: str = ""  # rows of one kind cost the same
    epochs: int = 1
    card_seconds: float = 60.0  # expected until rows of this kind have ended
    measuring_seconds: float = 60.0
    needs: tuple[str, ...] = ()  # keys without which an older row does not count
    is_check: bool = False  # made although the row is there, to compare the two

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{Path(self.study).stem}--{self.corpus}--{self.variant}--{self.seed}{'--again' * self.is_check}"

    @property
    def key(self) -> tuple[str, str, int]:
        """Identify a row within its table."""
        return self.corpus, self.variant, self.seed

    def is_made(self, rows: Path, tables: Path) -> bool:
        """Whether its row lies in the folder of new rows or, whole, in the study's table."""
        if (rows / f"{self.name}.json").exists():
            return True
        known = side_by_side.read(tables / f"{Path(self.study).stem}.json")
        made = (row for row in known if (row["corpus"], row["variant"], row["seed"]) == self.key)
        whole = (all(key in row for key in self.needs) and self._is_long_enough(row) for row in made)
        return not self.is_check and any(whole)

    def _is_long_enough(self, row: Row) -> bool:
        """A study of memorising counts epochs; other rows end when they stop getting better."""
        return "epochs" not in self.needs or int(row["epochs"]) >= self.epochs


@dataclass(frozen=True)
class Settings:
    """How a queue runs."""

    rows: Path
    work: Path
    tables: Path = HERE
    limit: float = 1e6
    workers: int = 6
    device: str = "auto"
    share: float = 0.5  # of the card's memory, for captured graphs of all that train: rows being measured need some
    look_every: float = 1.0
    tell_every: float = 60.0
    options: tuple[str, ...] = ()  # added to every command


@dataclass(eq=False)
class Running:
    """A row under way."""

    job: Job
    process: subprocess.Popen[bytes]
    folder: Path
    attempt: int
    is_resumed: bool
    trained_before: float  # the share of its training that an interrupted process had done
    earlier_card_seconds: float  # of an attempt that failed
    card_seconds: float = 0.0
    measured_since: float | None = None  # when training ended

    def notice_phase(self, now: float) -> None:
        """Look whether training has ended."""
        if self.measured_since is None and any(self.folder.rglob(f"*{side_by_side.MEASURING}")):
            self.measured_since = now

    @property
    def trained(self) -> float:
        """The share of its training that is done."""
        return 1.0 if self.measured_since is not None else share_trained(self.folder, self.job.epochs)

    def own_cost(self) -> float | None:
        """Card seconds of the whole training by its own pace; None as long as little of it is done."""
        done = self.trained - self.trained_before
        return self.card_seconds / done if done >= KNOWN_FROM else None


@dataclass
class Costs:
    """Estimate what rows cost, from those that have ended."""

    ended: list[tuple[Job, float, float]] = field(default_factory=list)  # card seconds, measuring seconds

    def training(self, job: Job, running: Iterable[Running] = ()) -> float:
        """Card seconds of a row: as its kind costs, or else by how much others cost more or less than expected."""
        known = [(ended, seconds) for ended, seconds, _ in self.ended]
        known += [(row.job, cost) for row in running if (cost := row.own_cost()) is not None]
        same = [seconds for other, seconds in known if other.kind == job.kind]
        if same:
            return statistics.mean(same)
        ratios = [seconds / other.card_seconds for other, seconds in known]
        return job.card_seconds * min(MOST, max(1 / MOST, statistics.median(ratios))) if ratios else job.card_seconds

    def measuring(self, job: Job) -> float:
        """Seconds from the end of training to the row, as the slowest of its kind or else of all had it."""
        same = [seconds for ended, _, seconds in self.ended if ended.kind == job.kind]
        if same:
            return max(same)
        ratios = [seconds / ended.measuring_seconds for ended, _, seconds in self.ended]
        return job.measuring_seconds * max([1 / MOST, *ratios]) if ratios else job.measuring_seconds


def sharing_ends(work: Sequence[float]) -> list[float]:
    """When each of some trainings ends that share a card equally, from their card seconds.

    >>> sharing_ends([10, 30])
    [20.0, 40.0]
    """
    ends, before, now = dict[int, float](), 0.0, 0.0
    shortest_first = sorted(range(len(work)), key=lambda row: work[row])
    for ended, row in enumerate(shortest_first):
        now += (work[row] - before) * (len(work) - ended)
        before, ends[row] = work[row], now
    return [float(ends[row]) for row in range(len(work))]


def fits(work: Sequence[tuple[float, float]], left: float) -> bool:
    """Whether trainings (card seconds, measuring seconds) that share a card all end in their rows in time."""
    ends = sharing_ends([RESERVE * training for training, _ in work])
    return all(end + RESERVE * measuring <= left for end, (_, measuring) in zip(ends, work, strict=True))


class Queue:
    """Rows that are missing, in their order, and those under way."""

    def __init__(self, jobs: Sequence[Job], settings: Settings, say: Callable[[str], None]) -> None:
        self.settings, self.say = settings, say
        settings.rows.mkdir(parents=True, exist_ok=True)
        self.waiting = [job for job in jobs if not job.is_made(settings.rows, settings.tables)]
        self.running: list[Running] = []
        self.costs = Costs()
        self.attempts: dict[str, int] = {}
        self.spent: dict[str, float] = {}  # card seconds of attempts that failed
        self.made = 0
        self.failed: list[str] = []
        self.failures_in_a_row: list[str] = []
        self.card_seconds_in_rows = 0.0
        self.start = self.looked = time.monotonic()

    # --- Time ---------------------------------------------------------------------------------------------------------

    @property
    def elapsed(self) -> float:
        """Seconds since the queue began."""
        return time.monotonic() - self.start

    @property
    def left(self) -> float:
        """Seconds until the limit, which a file beside the rows can change."""
        return self._replaced(LIMIT, self.settings.limit) - self.elapsed

    def _replaced(self, name: str, usual: float) -> float:
        with suppress(OSError, ValueError):
            return float((self.settings.rows / name).read_text())
        return usual

    # --- The loop -----------------------------------------------------------------------------------------------------

    def run(self) -> bool:
        """Make rows until none is left or fits; whether every row that was tried was made."""
        last_told = -self.settings.tell_every
        try:
            while self._look():
                if self.elapsed - last_told >= self.settings.tell_every:
                    last_told = self.elapsed
                    self._tell()
                time.sleep(max(0.0, min(self.settings.look_every, self.left)))
        finally:
            for row in self.running:
                _end(row.process)
            lost = [f"{row.job.name} ({row.card_seconds:.0f} card s)" for row in self.running]
            self._tell()
            self.say(f"ended; lost: {', '.join(lost) or 'nothing'}; failed: {', '.join(self.failed) or 'none'}")
        return not self.failed

    def _look(self) -> bool:
        """Charge the time since the last look, take what has ended, begin what fits; whether anything goes on."""
        now = time.monotonic()
        training = [row for row in self.running if row.measured_since is None]
        for row in training:
            row.card_seconds += (now - self.looked) / len(training)
            row.notice_phase(now)
        self.looked = now
        for row in [row for row in self.running if row.process.poll() is not None]:
            self.running.remove(row)
            self._take(row)
        if self.left <= 0:
            return False
        while (job := self._next()) is not None:
            self._begin(job)
        return bool(self.running)

    def _next(self) -> Job | None:
        """Choose the row to begin now."""
        training = sum(row.measured_since is None for row in self.running)
        workers = self._replaced(WORKERS, self.settings.workers)
        return self._first_that_fits() if training < workers else None

    def _first_that_fits(self) -> Job | None:
        """The first waiting row that fits into the time that is left beside those under way."""
        if len(self.failures_in_a_row) >= FAILURES_IN_A_ROW:
            return None
        training = [row for row in self.running if row.measured_since is None]
        under_way = [(self._still_costs(row), self.costs.measuring(row.job)) for row in training]
        for job in self.waiting:
            expected = self.costs.training(job, training), self.costs.measuring(job)
            if fits([*under_way, expected], self.left):
                return job
        return None

    def _still_costs(self, row: Running) -> float:
        cost = row.own_cost() or self.costs.training(row.job)
        return cost * (1 - row.trained)

    # --- One row ------------------------------------------------------------------------------------------------------

    def _begin(self, job: Job) -> None:
        """Start the process that makes a row; it ends with the queue, whatever ends that."""
        self.waiting.remove(job)
        folder = self.settings.work / job.name
        folder.mkdir(parents=True, exist_ok=True)
        for mark in folder.rglob(f"*{side_by_side.MEASURING}"):
            mark.unlink()
        with (folder / "out").open("wb") as out, (folder / "errors").open("wb") as errors:
            process = subprocess.Popen(
                command(job, self.settings, folder),
                stdout=out,
                stderr=errors,
                env={**os.environ, **THREADS},
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self.attempts[job.name] = attempt = self.attempts.get(job.name, 0) + 1
        is_resumed = any(folder.rglob("last"))
        before = share_trained(folder, job.epochs) if is_resumed else 0.0
        earlier = self.spent.get(job.name, 0.0)
        self.running.append(Running(job, process, folder, attempt, is_resumed, before, earlier))

    def _take(self, row: Running) -> None:
        """Keep the row that a process has made, or note that it failed."""
        try:
            if row.process.returncode:
                raise ValueError(f"exit code {row.process.returncode}")
            made = json.loads((row.folder / "out").read_text().splitlines()[-1])
        except (ValueError, IndexError) as error:
            self._note_failure(row, str(error))
            return
        seconds = time.monotonic() - (row.measured_since or time.monotonic())
        made["card_seconds"] = round(row.card_seconds + row.earlier_card_seconds, 1)
        made.setdefault("measuring_seconds", seconds)
        if row.is_resumed:
            made["resumed"] = True
        side_by_side.keep(made, self.settings.rows / f"{row.job.name}.json")
        notes = (row.folder / "errors").read_text(errors="replace").splitlines()[-2:]
        shutil.rmtree(row.folder, ignore_errors=True)
        if not row.is_resumed:
            self.costs.ended.append((row.job, row.card_seconds, seconds))
        self.made += 1
        self.card_seconds_in_rows += made["card_seconds"]
        self.failures_in_a_row = []
        cost = f"{made['card_seconds']:.0f} card s, measured in {seconds:.0f} s"
        self.say(f"{self.elapsed:.0f} s: made {row.job.name}, {cost}; {'; '.join(notes)}")

    def _note_failure(self, row: Running, error: str) -> None:
        """Try it once more; then leave it out."""
        errors = (row.folder / "errors").read_text(errors="replace").strip()[-600:]
        self.say(f"{self.elapsed:.0f} s: failed {row.job.name}, attempt {row.attempt}: {error}\n{errors}")
        if row.job.name not in self.failures_in_a_row:
            self.failures_in_a_row.append(row.job.name)
        if row.attempt < ATTEMPTS:
            self.spent[row.job.name] = row.earlier_card_seconds + row.card_seconds
            self.waiting.insert(0, row.job)
        else:
            self.failed.append(row.job.name)

    # --- Telling ------------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """One line, and the same as a file."""
        following = self._first_that_fits()
        under_way = [f"{row.job.variant}/{row.job.seed} {_pace(row)}" for row in self.running]
        share = self.card_seconds_in_rows / max(1e-9, self.elapsed)
        self.say(
            f"{self.elapsed:.0f} s: {self.made} rows made, {100 * share:.0f} % of the time in them; under way: "
            f"{'; '.join(under_way) or 'none'}; next: {following.name if following else 'none that fits'} "
            f"of {len(self.waiting)}; {self.left:.0f} s left"
        )
        summary = {
            "seconds": round(self.elapsed, 1),
            "rows": self.made,
            "card_seconds_in_rows": round(self.card_seconds_in_rows, 1),
            "card_seconds_by_kind": _by_kind(self.costs.ended),
            "missing": [
                {"row": job.name, "card_seconds": round(self.costs.training(job, self.running), 1)}
                for job in (*(row.job for row in self.running), *self.waiting)
            ],
            "failed": self.failed,
        }
        side_by_side.keep(summary, self.settings.rows / SUMMARY)


def _by_kind(ended: Sequence[tuple[Job, float, float]]) -> Mapping[str, dict[str, float]]:
    kinds: dict[str, list[tuple[float, float]]] = {}
    for job, training, measuring in ended:
        kinds.setdefault(job.kind, []).append((training, measuring))
    return {
        kind: {
            "rows": len(costs),
            "card_seconds": round(statistics.mean(training for training, _ in costs), 1),
            "measuring_seconds": round(statistics.mean(measuring for _, measuring in costs), 1),
        }
        for kind, costs in kinds.items()
    }


def command(job: Job, settings: Settings, folder: Path) -> list[str]:
    """Build the command that makes a row and prints it."""
    script = str(HERE / f"{job.study}.py")
    places = ["--device", settings.device, "--work", str(folder)]
    memory = ["--workers", "1", "--share", f"{settings.share / settings.workers:.4f}"]
    which = ["--name", job.corpus, "--one", job.variant, str(job.seed)]
    return [sys.executable, script, *job.options, *settings.options, *places, *memory, *which]


def log_rows(folder: Path) -> list[dict[str, str]]:
    """The lines of a training's log, without one that is just being written."""
    for log in folder.rglob("log.csv"):
        with suppress(OSError), log.open(newline="") as lines:
            return [row for row in csv.DictReader(lines) if None not in row.values() and row.get("step", "").isdigit()]
    return []


def share_trained(folder: Path, epochs: int) -> float:
    """How much of a training is done; 0 until its first epoch has ended."""
    rows = log_rows(folder)
    ended = [row for row in rows if row.get("perplexity") and row["epoch"] != "0"]
    return min(1.0, int(rows[-1]["step"]) / (int(ended[0]["step"]) * epochs)) if ended else 0.0


def _pace(row: Running) -> str:
    if row.measured_since is not None:
        return "measured"
    rows = log_rows(row.folder)
    return f"epoch {rows[-1]['epoch']}, {float(rows[-1]['samples_per_second'] or 0):,.0f}/s" if rows else "begun"


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_with_parent() -> None:
    """In a new process: let Linux end it when the queue ends, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
