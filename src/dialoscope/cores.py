"""Compiled loops on all cores this process may use.

Threads of our own over loops that release the interpreter's lock, and not Numba's parallel loops: those end the whole
process where two threads start them at once and no thread-safe layer (OpenMP, TBB) is installed.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
CACHE = "NUMBA_CACHE_DIR"  # the variable in which Numba is told where to keep compiled code
FEW = 4096  # items that one thread does in less time than another takes to start


def cores() -> int:
    """Cores this process may use; the variable NUMBA_NUM_THREADS allows fewer."""
    from numba import config

    return int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # set when Numba reads its environment


def in_ranges(count: int, work: Callable[[int, int], T], *, ranges: int | None = None, few: int = FEW) -> list[T]:
    """Call `work(low, high)` on ranges that cover 0 … count, in threads; what it gave, in order.

    As many ranges as cores, or more where items differ much in cost; a single one where there are few items.

    >>> in_ranges(5, lambda low, high: high - low)
    [5]
    """
    from concurrent.futures import ThreadPoolExecutor

    ranges = 1 if count <= few else min(count, ranges or cores())
    edges = [count * place // ranges for place in range(ranges + 1)]
    if ranges == 1:
        return [work(0, count)]
    with ThreadPoolExecutor(cores()) as threads:
        return list(threads.map(work, edges[:-1], edges[1:]))


# --- Where compiled code is kept --------------------------------------------------------------------------------------


def find_cache() -> None:
    """Where Numba could keep compiled code nowhere, and would refuse to work, give it a private temporary folder.

    It tries a variable, the folder of the module and the user's cache; all are closed where a package is installed
    for many and the user has no home.
    """
    if os.name != "posix" or CACHE in os.environ or any(map(_can_write, _usual_caches())):
        return
    with suppress(OSError):  # no temporary folder either: Numba says so
        os.environ[CACHE] = str(_private_folder())
        if "numba" in sys.modules:  # it has read its environment
            sys.modules["numba"].config.CACHE_DIR = os.environ[CACHE]


def _usual_caches() -> tuple[Path, Path]:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home raises where there is none
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    named = "" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME", "")
    return Path(__file__).parent / "__pycache__", Path(named or caches) / "numba"


def _can_write(folder: Path) -> bool:
    """Whether a folder can be written to, or made."""
    there = next((path for path in (folder, *folder.absolute().parents) if os.path.lexists(path)), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _private_folder() -> Path:
    """One per user and kept, so that code is compiled once; a new one where its name is taken by somebody else.

    Compiled code is run as it is read, so a folder that others can write to will not do.
    """
    import tempfile

    folder = Path(tempfile.gettempdir()) / f"dialoscope-numba-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if is_private else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
