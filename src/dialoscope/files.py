"""Write files and folders so that they are complete or absent: write beside the target, then rename.

An interrupted run never leaves half a file or half a folder. Where an older result is replaced, either the old one or
the new one is there. Some systems cannot swap two folders in one step: there, a writer that is interrupted in between
leaves the old folder under another name, and `restore` puts it back. Unfinished files of an interrupted writer stay
hidden beside the target, and the next writer there deletes them. A full disk, a quota or a missing permission is
reported in one line.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dialoscope.errors import OutputError

MARK = ".dialoscope-partial-"  # names of unfinished outputs start so, and may be deleted at any time
REPLACED = ".dialoscope-replaced-"  # an older folder for the moment of its replacement; see `restore`
TRIES = 100  # to take a place that other writers want at the same moment
# What a disk says to whoever writes. Other errors inside a block are bugs of that block, and keep their traceback.
REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}
TAKEN = {errno.EEXIST, errno.ENOTEMPTY}
CANNOT_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}

Check = Callable[[Path], None]  # raises an OutputError where this folder must not be replaced


def user_cache(name: str) -> Path:
    """A folder of ours in the user's cache, for what can be made again."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "dialoscope" / name


def check_free(out: Path | None, *, overwrite: bool) -> None:
    """Say before a long run that its folder or file is taken, not after it."""
    if out is None or overwrite:
        return
    if out.is_dir() and any(out.iterdir()):
        raise OutputError(f"{out}: this folder is not empty. Give a new one, or --overwrite to replace it.")
    if out.is_file():
        raise OutputError(f"{out}: this file exists. Give a new name, or --overwrite to replace it.")


def check_apart(out: Path | None, inputs: Sequence[str | Path | None]) -> None:
    """A result never replaces what it is made of, nor lies in it, where the next run would read it."""
    if out is None:
        return
    place = out.expanduser().resolve()
    for given in inputs:
        path = Path(given or "").expanduser()
        if given is None or not path.exists():  # a built-in corpus, a hub's name; what is missing is told on reading
            continue
        source = path.resolve()
        if place == source or place in source.parents or source in place.parents:
            how = "is" if place == source else "contains" if place in source.parents else "lies in"
            raise OutputError(f"--out {out} {how} the input {given}. Give a place outside of what is read.")


# --- A file -----------------------------------------------------------------------------------------------------------


@contextmanager
def whole_file(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `path` when the block ends without an error.

    >>> with whole_file("scores.json") as unfinished:   # doctest: +SKIP
    ...     unfinished.write_bytes(b"{}")
    """
    path = Path(path)
    with _in_one_line(path):
        _check_file(path, overwrite=overwrite)
        place = _place(path)
        _sweep(place.parent)
        unfinished = _new_file(place)
    try:
        with _in_one_line(path, only=REFUSALS):
            yield unfinished
        with _in_one_line(path):
            _check_file(path, overwrite=overwrite)
            _put_file(unfinished, place)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_file(path: Path, *, overwrite: bool) -> None:
    found = _kind(path)
    if found not in ("a file", None):
        raise OutputError(f"{path}: expected a file to write, found {found}. Give a file name.")
    if found and not overwrite:
        raise OutputError(f"{path}: this file exists. Give a new name, or --overwrite to replace it.")


def _new_file(place: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=_mark(), suffix=place.suffix, dir=place.parent)
    os.close(handle)
    return Path(name)


def _put_file(unfinished: Path, place: Path) -> None:
    """Rename after the bytes are on the disk: the other way round, a power cut leaves an empty file."""
    _make_ordinary(unfinished)  # mkstemp makes private files
    _sync(unfinished)
    unfinished.replace(place)
    _sync_folder(place.parent)


# --- A folder ---------------------------------------------------------------------------------------------------------


def _anything_may_go(path: Path) -> None:
    """The check of writers who own every folder they are given."""


@contextmanager
def whole_folder(path: str | Path, *, overwrite: bool = True, check: Check = _anything_may_go) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of `path` when the block ends without an error.

    Replacing deletes what was there, so `check` looks at a folder that is not empty, before the block and again at
    the end of it, and raises an `OutputError` where it holds anything that the caller did not write.
    """
    path = Path(path)
    with _in_one_line(path):
        with suppress(FileNotFoundError):  # another writer is replacing it; the check at the end counts
            _check_folder(path, overwrite=overwrite, check=check)
        place = _place(path)
        _sweep(place.parent)
        unfinished = Path(tempfile.mkdtemp(prefix=_mark(), dir=place.parent))
    try:
        with _in_one_line(path, only=REFUSALS):
            yield unfinished
        with _in_one_line(path):
            _put_folder(unfinished, place, lambda: _check_folder(path, overwrite=overwrite, check=check))
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)  # by now the older folder, where there was one


def restore(path: str | Path) -> None:
    """Put back an older folder that an interrupted writer had renamed. Where `path` exists, delete the renamed one.

    A writer that is still at work finds its target taken, and tries again.
    """
    path = Path(path)
    with _in_one_line(path):
        _kind(path)  # links in a circle end here
        place = path.resolve()
        aside = sorted(place.parent.glob(f"{_aside(place)}*"), key=_time, reverse=True)  # the newest first
        for old in aside:
            with suppress(FileNotFoundError):  # another process restores it
                if _kind(place) or not _move(old, place):
                    shutil.rmtree(old, ignore_errors=True)


def _aside(place: Path) -> str:
    """How names begin under which a folder is set aside: by a hash of its own name, which may be a long one."""
    return f"{REPLACED}{hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]}-"


def _time(folder: Path) -> int:
    with suppress(FileNotFoundError):
        return folder.stat().st_mtime_ns
    return 0


def contents(folder: Path) -> set[str]:
    """Files, links and empty folders, named from the folder: all that is lost when it is replaced."""
    kept = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir() or not any(path.iterdir()))
    return {path.relative_to(folder).as_posix() for path in kept}


def _check_folder(path: Path, *, overwrite: bool, check: Check) -> None:
    found = _kind(path)
    if found not in ("a folder", None):
        raise OutputError(f"{path}: expected a folder to write, found {found}. Give a folder name.")
    _check_movable(path)
    if not found or not any(path.iterdir()):
        return
    if not overwrite:
        raise OutputError(f"{path}: this folder is not empty. Give a new one, or --overwrite to replace it.")
    check(path)


def _check_movable(path: Path) -> None:
    """Where we stand, or where a disk is mounted, another folder cannot take the place."""
    place, here = path.resolve(), Path.cwd()
    if place == here or place in here.parents:
        raise OutputError(f"{path}: expected a folder to write, found the one we are in. Give the name of a new one.")
    if place.is_mount():
        raise OutputError(f"{path}: expected a folder to write, found a mounted disk. Give the name of one on it.")


def _put_folder(unfinished: Path, place: Path, check: Callable[[], None]) -> None:
    """Put everything on the disk, then the folder in its place; again where another writer comes in between."""
    _make_ordinary(*unfinished.rglob("*"), unfinished)  # mkdtemp makes private folders, safetensors private files
    _sync_all(unfinished)
    for _ in range(TRIES):
        if _move(unfinished, place):
            break
        with suppress(FileNotFoundError):
            check()
            if _exchange(unfinished, place) or _replace(unfinished, place):
                break
    else:
        raise OutputError(f"{place}: other programs are writing this folder. Give another folder.")
    _sync_folder(place.parent)


def _move(folder: Path, place: Path) -> bool:
    """Rename a folder; False where the place is taken by one that is not empty."""
    try:
        folder.rename(place)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True


def _exchange(new: Path, place: Path) -> bool:
    """Swap two folders in one step, so that `place` is never empty; False where the system cannot.

    Linux has it as `renameat2` with RENAME_EXCHANGE; see `man 2 rename`.
    """
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if rename(here, os.fsencode(new), here, os.fsencode(place), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(place))


def _replace(new: Path, place: Path) -> bool:
    """Swap in two steps where one is impossible; False where another writer took the place between them."""
    old = place.with_name(_aside(place) + secrets.token_hex(8))
    is_done = False
    try:
        place.rename(old)
        is_done = _move(new, place)
    finally:
        if not is_done and old.exists():
            _move(old, place)  # back; where that fails, the old folder stays under its other name
        shutil.rmtree(old, ignore_errors=True)
    return is_done


# --- Unfinished files of interrupted writers --------------------------------------------------------------------------


def _mark() -> str:
    """How names of this process's unfinished outputs begin: `.dialoscope-partial-HOST-PROCESS-`."""
    return f"{MARK}{_host()}-{os.getpid()}-"


def _host() -> str:
    """A hash of the machine's name and of the container, where there is one: process ids mean something within both."""
    container = Path()
    with suppress(OSError):
        container = Path("/proc/self/ns/pid").readlink()
    return hashlib.sha256(f"{socket.gethostname()} {container}".encode()).hexdigest()[:12]


def _sweep(folder: Path) -> None:
    """Delete unfinished outputs whose process is gone; never those of a living one, or of another machine."""
    name = re.compile(rf"{re.escape(MARK)}{_host()}-(\d+)-.*", re.DOTALL)
    with suppress(OSError):  # a folder that can be written to but not listed
        for left in list(folder.glob(f"{MARK}*")):
            found = name.fullmatch(left.name)
            if found and _is_gone(int(found[1])):
                _delete(left)


def _is_gone(process: int) -> bool:
    if os.name != "posix":  # elsewhere, a signal 0 ends the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's, or no process id at all
        return False
    return False


def _delete(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left, ignore_errors=True)
    else:
        with suppress(OSError):  # another writer was first
            left.unlink()


# --- Places, disks and what they say ----------------------------------------------------------------------------------


@contextmanager
def _in_one_line(path: Path, *, only: Collection[int] | None = None) -> Iterator[None]:
    """Turn what the system says about writing into one line; with `only`, leave other errors as they are."""
    try:
        yield
    except OSError as error:
        if only is not None and error.errno not in only:
            raise
        reason = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
        raise OutputError(f"{path}: cannot be written: {reason}. Make room for it or give another path.") from error


def _place(path: Path) -> Path:
    """The path with links followed, so that a link to a result stays one; its folder is made."""
    place = path.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot make its folder: {error.strerror}.") from error
    if not os.access(place.parent, os.W_OK):
        raise OutputError(f"{path}: its folder cannot be written to. Give another path.")
    return place


def _kind(path: Path) -> str | None:
    """What is at a path, in one look, since another writer may change it between two; None where nothing is."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "a device, pipe or socket"


def _sync_all(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync_folder(path) if path.is_dir() else _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot; its files are on the disk in any case
        _sync(folder)


def _make_ordinary(*paths: Path) -> None:
    """Let others read as far as the user's mask allows: results are no secrets. What a link leads to is not ours."""
    allowed = ~_umask()
    for path in paths:
        if not path.is_symlink():
            path.chmod((0o777 if path.is_dir() else 0o666) & allowed)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
