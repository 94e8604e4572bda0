"""Outputs appear whole or not at all: write beside the target, then rename.

A reader, or a run that is killed at any moment, never sees half a file or half a folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnwise.errors import OutputError

MARK = ".turnwise-partial-"  # names of unfinished outputs start so, and may be deleted at any time


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `path` when the block ends without an error.

    >>> with whole_file("scores.json") as unfinished:   # doctest: +SKIP
    ...     unfinished.write_bytes(b"{}")
    """
    path = Path(path)
    if path.is_dir():
        raise OutputError(f"{path}: expected a file to write, found a folder. Give a file name.")
    _make_parent(path)
    handle, name = tempfile.mkstemp(prefix=MARK, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(0o666 & ~_umask())  # mkstemp makes private files; results are ordinary ones
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of `path` when the block ends without an error."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: expected a folder to write, found a file. Give a folder name.")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise OutputError(f"{path}: this folder is not empty. Give a new one, or --overwrite to replace it.")
    _make_parent(path)
    unfinished = Path(tempfile.mkdtemp(prefix=MARK, dir=path.parent))
    try:
        yield unfinished
        unfinished.chmod(0o777 & ~_umask())
        _take_place(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _take_place(new: Path, path: Path) -> None:
    """Rename `new` to `path`; an older folder steps aside first and goes last."""
    if not path.exists():
        new.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=MARK, dir=path.parent))
    path.rename(old / path.name)
    new.rename(path)
    shutil.rmtree(old)


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot make its folder: {error.strerror}.") from error
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: its folder cannot be written to. Give another place.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
