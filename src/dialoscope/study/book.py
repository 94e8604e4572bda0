"""What a study has done so far, kept in `study.json`: written anew after every step, whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dialoscope.errors import OutputError, UsageError
from dialoscope.files import MARK, whole_file
from dialoscope.record import SCHEMA_VERSION, version

BOOK = "study.json"
LOCK = ".dialoscope-lock"  # stays; what counts is whether a process holds it
KEYED = re.compile(r".+-[0-9a-f]{12}")  # the folder of a step's run; single commands have no key in theirs
State = Literal["done", "failed", "skipped", "pending"]


@dataclass(frozen=True)
class Step:
    """One instrument on one corpus, or a model that had to be had first; pending is one that is planned, not yet run.

    Of a pending step, key and seconds are those of the last time it was done.
    """

    name: str
    instrument: str
    corpus: str
    state: State
    key: str = ""  # of all that its numbers depend on
    run: str = ""  # its folder, within the study's
    seconds: float = 0.0
    reason: str = ""  # why it failed or was left out
    asked: str = ""  # what the plan calls the instrument
    is_reused: bool = False  # in this call

    def to_dict(self) -> dict[str, Any]:
        """As study.json has it."""
        kept = asdict(self)
        del kept["is_reused"]
        return kept


class Book:
    """The steps of a study by name."""

    def __init__(self, folder: Path, steps: Mapping[str, Step], title: str, plan: Mapping[str, Any]) -> None:
        self.folder, self.steps, self.title, self.plan = folder, dict(steps), title, plan

    @classmethod
    def open(cls, folder: Path, title: str, planned: Sequence[Step], plan: Mapping[str, Any]) -> Book:
        """A book in which all that is planned is pending; what was planned in this folder before is told no more.

        `plan` is kept beside the steps as it is: numbers that cannot be repeated are worth little.
        """
        book = cls(folder, cls.look(folder, title).steps, title, plan)
        book.steps = {one.name: _pending(one, book.steps.get(one.name)) for one in planned}
        book._save()  # before anything else, so that a study that is killed at once is known for one
        return book

    @classmethod
    def look(cls, folder: Path, title: str) -> Book:
        """What was done in this folder, if anything was; nothing is written.

        Of a book that is damaged nothing is known; the runs are found by their keys all the same.
        """
        steps: Mapping[str, Step] = {}
        with suppress(UsageError):
            steps = read_steps(folder)
        return cls(folder, steps, title, {})

    def write(self, step: Step) -> None:
        """Note a step that has come to its end."""
        self.steps[step.name] = step
        self._save()

    def keep(self, names: list[str]) -> None:
        """Only these, in this order: a plan may have lost some since."""
        self.steps = {name: self.steps[name] for name in names if name in self.steps}
        self._save()

    def _save(self) -> None:
        about = {"schema_version": SCHEMA_VERSION, "title": self.title, "version": version(), "plan": self.plan}
        steps = [one.to_dict() for one in self.steps.values()]
        with whole_file(self.folder / BOOK, overwrite=True) as unfinished:
            unfinished.write_text(json.dumps({**about, "steps": steps}, indent=2) + "\n", encoding="utf-8")


def _pending(step: Step, last: Step | None) -> Step:
    """A step that is not yet run. A run that is found again by its key takes the seconds of the last time."""
    waiting = replace(step, state="pending", run="")
    if last is None or last.state not in ("done", "pending"):
        return waiting
    return replace(waiting, key=last.key, seconds=last.seconds)


@contextmanager
def at_work(folder: str | Path) -> Iterator[None]:
    """Keep a study's folder for this process; one that is somebody else's is refused, and one that is in use.

    The lock is the process's own (`lockf`): at its death the system lets go of it, and children that outlive it have
    none. Two threads of one process are not told apart.
    """
    folder = Path(folder)
    check_own(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with lock:
        if not _lock(lock):
            raise OutputError(f"{folder}: another study is at work in this folder. Wait for it, or give another --out.")
        yield


def _lock(file: BinaryIO) -> bool:
    """Lock a file for this process; False where another one has it."""
    try:
        import fcntl
    except ImportError:  # on Windows: as if nobody else were there
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk of another machine that knows no locks
        return True
    return True


def check_own(folder: Path) -> None:
    """Complain of a folder that holds anything but a study, or what one leaves that was killed at once."""
    try:
        is_free = not folder.exists() or (folder.is_dir() and all(map(_is_ours, folder.iterdir())))
        # The book is looked for last: a study that begins in this moment has it before any other file.
        is_own = is_free or is_study_folder(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if not is_own:
        raise OutputError(f"{folder}: expected a new folder or an earlier study, found other files. Give a new folder.")


def is_study_folder(folder: Path) -> bool:
    """Whether a study was at work in a folder: its book says so or, where that is lost or damaged, a step's run."""
    try:
        read_steps(folder)
    except UsageError:
        return any(KEYED.fullmatch(file.parent.name) for file in folder.glob("runs/*/section.json"))
    return True


def _is_ours(file: Path) -> bool:
    return file.name == LOCK or file.name.startswith(MARK)


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder}: this folder cannot be written to ({error.strerror}). Give another place.")


def kept_plan(folder: Path) -> dict[str, Any]:
    """The plan that a study's folder was made by, as `Plan.to_dict` wrote it; of an earlier version, nothing."""
    plan = json.loads((folder / BOOK).read_bytes()).get("plan")
    return plan if isinstance(plan, dict) else {}


def read_steps(folder: Path) -> dict[str, Step]:
    """The steps that a study's folder tells of."""
    path = folder / BOOK
    try:
        kept = json.loads(path.read_bytes())
        return {one["name"]: Step(**one) for one in kept["steps"]}
    except OSError as error:
        raise UsageError(f"{folder}: expected a study's folder with {BOOK}, found none.") from error
    except (ValueError, KeyError, TypeError) as error:
        found = " ".join(str(error).split())
        raise UsageError(f"{path}: expected the book of a study, found {type(error).__name__}: {found}.") from error
