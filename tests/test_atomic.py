from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turnwise.atomic import whole_file, whole_folder
from turnwise.errors import OutputError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "deep" / "a.txt") as unfinished:
        unfinished.write_text("whole")
        assert not (tmp_path / "deep" / "a.txt").exists()
    assert (tmp_path / "deep" / "a.txt").read_text() == "whole"


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    with whole_folder(tmp_path / "out") as unfinished:
        (unfinished / "new.txt").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_old_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out") as unfinished:
        (unfinished / "new.txt").write_text("new")
        raise RuntimeError
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["old.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_is_not_empty_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"), whole_folder(tmp_path, overwrite=False):
        pass
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="expected a file to write, found a folder"), whole_file(tmp_path):
        pass


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputError, match="expected a folder to write, found a file"), whole_folder(tmp_path / "a"):
        pass


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputError, match="cannot make its folder"), whole_file(tmp_path / "a" / "b" / "c.txt"):
        pass


def test_results_are_as_readable_as_other_files(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("")
    (tmp_path / "b.txt").write_text("")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


SLOW_WRITER = """
import sys, time
from pathlib import Path
from turnwise.atomic import whole_folder
with whole_folder(sys.argv[1]) as unfinished:
    for n in range(100_000):
        (unfinished / f"{n}.txt").write_text("x")
        if n == 50:
            print("half way", flush=True)
        time.sleep(0.001)
"""


def test_a_killed_writer_leaves_no_half_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half way\n"
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    time.sleep(0.01)
    assert not (tmp_path / "out").exists()
