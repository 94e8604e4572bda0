from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dialoscope.cores import cores, in_ranges


@pytest.mark.parametrize(("count", "ranges"), [(0, None), (1, None), (5000, None), (5000, 7), (5000, 9000), (4097, 64)])
def test_ranges_cover_everything_once_and_in_order(count: int, ranges: int | None) -> None:
    found = in_ranges(count, lambda low, high: range(low, high), ranges=ranges)
    covered = [place for one in found for place in one]
    assert covered == list(range(count))


def test_few_items_are_one_range() -> None:
    assert in_ranges(100, lambda low, high: (low, high), ranges=8) == [(0, 100)]
    assert len(in_ranges(100, lambda low, high: (low, high), ranges=8, few=10)) == 8


def test_there_is_a_core() -> None:
    assert cores() >= 1


CLOSED = """
import os, sys
can = os.access
closed = tuple(sys.argv[1].split(","))
os.access = lambda path, mode, **more: not str(path).startswith(closed) and can(path, mode, **more)
import dialoscope
print("numba" in sys.modules, os.environ.get("NUMBA_CACHE_DIR"))
"""
PACKAGE = str(Path(sys.modules["dialoscope"].__file__ or "").parent)


def cache_found(tmp_path: Path, *closed: object, **more: object) -> str:
    """Where a new process keeps compiled code when these folders are closed; tests may run as root, who may all."""
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "tmp").mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    variables = {
        **kept,
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        **{k: str(v) for k, v in more.items()},
    }
    command = [sys.executable, "-c", CLOSED, ",".join(map(str, closed)) or "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    is_imported, found = done.stdout.split()
    assert is_imported == "False"
    return found


def test_where_package_and_home_are_closed_compiled_code_has_a_private_folder(tmp_path: Path) -> None:
    found = Path(cache_found(tmp_path, PACKAGE, tmp_path / "home"))
    assert found == tmp_path / "tmp" / f"dialoscope-numba-{os.getuid()}"
    assert found.stat().st_mode & 0o777 == 0o700
    assert cache_found(tmp_path, PACKAGE, tmp_path / "home") == str(found)  # again, and no second one


def test_a_cache_that_the_user_named_or_that_can_be_written_is_left_alone(tmp_path: Path) -> None:
    assert cache_found(tmp_path, PACKAGE) == "None"
    assert cache_found(tmp_path, tmp_path / "home") == "None"
    assert cache_found(tmp_path, PACKAGE, tmp_path / "home", XDG_CACHE_HOME=tmp_path / "mine") == "None"
    assert cache_found(tmp_path, PACKAGE, tmp_path / "home", NUMBA_CACHE_DIR="/named") == "/named"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    taken = tmp_path / "tmp" / f"dialoscope-numba-{os.getuid()}"
    taken.mkdir(parents=True)
    taken.chmod(0o777)
    found = Path(cache_found(tmp_path, PACKAGE, tmp_path / "home"))
    assert (found.parent, found.stat().st_mode & 0o777) == (taken.parent, 0o700)
    assert found != taken
