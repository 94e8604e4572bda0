"""The steps of a study in `study.json`, and its folder, in which one study runs at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dialoscope.errors import OutputError, UsageError
from dialoscope.files import MARK
from dialoscope.report.anchor import slug
from dialoscope.report.run import is_whole

BOOK = "study.json"
LOCK = ".dialoscope-lock"  # the file stays; what counts is whether a process holds it
KEY_LETTERS = 12  # of a step's key, in the name of its folder
KEYED = re.compile(rf".+-[0-9a-f]{{{KEY_LETTERS}}}")  # the folder of a step; commands add no key
State = Literal["done", "failed", "skipped", "pending"]


@dataclass(frozen=True)
class Step:
    """How one task of a study ended, or a model that could not be loaded."""

    name: str
    instrument: str  # a question, corpus, compare, or model
    corpus: str
    state: State  # skipped: something is not installed; pending: not yet run
    asked: str = ""  # what the TOML calls the question
    models: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # models that were asked for, and could not be loaded
    key: str = ""
    run: str = ""  # its folder, within the study's
    seconds: float = 0.0
    reason: str = ""  # why it failed or was skipped
    is_reused: bool = field(default=False, compare=False)  # in this call

    def to_dict(self) -> dict[str, Any]:
        """The step as study.json has it."""
        return {key: value for key, value in asdict(self).items() if key != "is_reused"}

    @property
    def shown_name(self) -> str:
        """What people read: the step's name, or what was asked of which corpus where the name holds a digest."""
        is_plain = not self.asked or not self.corpus or self.name == slug(f"{self.asked}-{self.corpus}")
        return self.name if is_plain else f"{self.asked} on {self.corpus}"


@contextmanager
def study_lock(folder: Path) -> Iterator[None]:
    """Keep a study's folder for this process; one that is somebody else's is refused, and one that is in use.

    The lock is the process's own (`lockf`): the system releases it when the process ends, and children that live on
    do not have it. Two threads of one process are not told apart.
    """
    check_own(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with lock:
        if not _is_locked_for_us(lock):
            raise OutputError(f"{folder}: another study is running in this folder. Wait for it, or give another --out.")
        yield


def _is_locked_for_us(file: BinaryIO) -> bool:
    """Lock a file for this process; False where another one has it."""
    try:
        import fcntl
    except ImportError:  # Windows: as if nobody else were there
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a network disk without locks
        return True
    return True


def check_own(folder: Path) -> None:
    """Refuse a folder that holds anything but a study, or what is left of one that was interrupted at once."""
    try:
        is_free = not folder.exists() or (
            folder.is_dir() and all(file.name == LOCK or file.name.startswith(MARK) for file in folder.iterdir())
        )
        # study.json is looked for last: a study that begins in this moment has it before any other file.
        is_own = is_free or is_study(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if not is_own:
        raise OutputError(f"{folder}: expected a new folder or an earlier study, found other files. Give a new folder.")


def is_study(folder: Path) -> bool:
    """Whether a study ran in a folder: study.json says so or, where that is damaged, the result of a step."""
    try:
        read_steps(folder)
    except UsageError:
        return any(KEYED.fullmatch(run.name) and is_whole(run) for run in folder.glob("runs/*"))
    return True


def kept_steps(folder: Path) -> list[Step]:
    """The steps of an earlier call; none where study.json is damaged, for results are found by their keys anyway."""
    try:
        return read_steps(folder)
    except UsageError:
        return []


def read_steps(folder: Path) -> list[Step]:
    """The steps in a study's folder."""
    path = folder / BOOK
    try:
        steps = json.loads(path.read_bytes())["steps"]
        lists = ("models", "left_out")
        return [Step(**{**step, **{key: tuple(step[key]) for key in lists if key in step}}) for step in steps]
    except OSError as error:
        raise UsageError(f"{folder}: expected a study's folder with {BOOK}, found none.") from error
    except (ValueError, KeyError, TypeError) as error:
        found = " ".join(str(error).split())
        raise UsageError(f"{path}: expected the steps of a study, found {type(error).__name__}: {found}.") from error


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder}: this folder cannot be written to ({error.strerror}). Give another folder.")
