"""A folder belongs to one study at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError
from dialoscope.instruments import INSTRUMENTS
from dialoscope.study import plan_of, run_study
from dialoscope.study.folders import missing_steps


def test_a_second_study_in_the_folder_at_the_same_time_is_told_in_one_line(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("study", "--corpus", "concierge", "--limit", "4", "--instruments", "overlap", "--out")
    told: list[tuple[int, str]] = []

    def overlap(bench: Any, wish: Any) -> Path:
        second = [sys.executable, "-m", "dialoscope", *words, str(tmp_path / "s")]
        done = subprocess.run(second, capture_output=True, text=True)
        told.append((done.returncode, done.stderr))
        return INSTRUMENTS["corpus"].run(bench, None)

    monkeypatch.setitem(INSTRUMENTS, "overlap", replace(INSTRUMENTS["overlap"], run=overlap))
    plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {}})
    run_study(plan, tmp_path / "s", given={"small": small})
    ((code, said),) = told
    assert (code, said.count("\n")) == (2, 1)
    assert f"{tmp_path / 's'}: another study is at work in this folder" in said


TOGETHER = """
import sys, time
from pathlib import Path
from dialoscope.errors import OutputError
from dialoscope.study.book import Book, at_work

for number in range(40):
    folder = Path(sys.argv[1]) / str(number)
    while time.time() < float(sys.argv[2]) + number * 0.05:
        pass
    try:
        with at_work(folder):
            Book.open(folder, "title", [], {})
            (folder / "runs").mkdir(exist_ok=True)
            print("at work")
    except OutputError as error:
        print(error)
"""


def test_studies_that_begin_in_the_same_instant_in_a_new_folder_know_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOGETHER, str(tmp_path), str(time.time() + 3)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for lines in zip(*(one.communicate()[0].splitlines() for one in both), strict=True):
        assert "at work" in lines
        assert all(line == "at work" or "another study is at work" in line for line in lines)
    assert [one.returncode for one in both] == [0, 0]


def test_of_two_studies_that_are_called_together_one_is_done(tmp_path: Path) -> None:
    words = ("study", "--corpus", "concierge", "--limit", "4", "--instruments", "overlap", "--out", str(tmp_path / "s"))
    command = [sys.executable, "-m", "dialoscope", *words]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(one.communicate()[1], one.returncode) for one in both]
    assert 0 in [code for _, code in ends]
    assert all(code == 0 or (code == 2 and "another study is at work" in said) for said, code in ends)
    assert missing_steps([tmp_path / "s"]) == []


def test_a_folder_is_free_again_when_the_study_in_it_is_killed(small: Corpus, tmp_path: Path) -> None:
    code = "import sys; from dialoscope.study.book import at_work\nwith at_work(sys.argv[1]): print(); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {}})
        with pytest.raises(OutputError, match="another study is at work"):
            run_study(plan, tmp_path / "s", given={"small": small})
        other.kill()
        other.wait()
        assert run_study(plan, tmp_path / "s", given={"small": small}).failed == []


def test_a_folder_of_somebody_else_is_refused(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="expected a new folder or an earlier study"):
        run_study(plan_of({"corpora": {"small": "concierge"}, "overlap": {}}), tmp_path, given={"small": small})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "mine"
