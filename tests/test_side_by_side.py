"""The harness that the studies in examples/ share: rows are made once, kept as they come, and a broken study ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

ROOT = Path(__file__).parents[1]
STUDY = """
import argparse, sys
from pathlib import Path
sys.path.insert(0, EXAMPLES)
import side_by_side

side_by_side.PAUSE = 0
ROWS = Path(__file__).with_suffix(".json")

def made(arguments, name, seed):
    folder = side_by_side.folder(arguments, name, seed)
    folder.mkdir(parents=True)
    with (arguments.work / "tried").open("a") as tried:
        print(name, seed, file=tried)
    if name == "broken":
        folder.rmdir()
        sys.exit("no such luck")
    return {"corpus": arguments.name, "variant": name, "seed": seed, "seconds": 1.0}

parser = argparse.ArgumentParser()
side_by_side.add_options(parser, ROWS)
parser.add_argument("--name", default="study")
parser.add_argument("--variants", nargs="+")
arguments = parser.parse_args()
side_by_side.run(arguments, arguments.variants, rows=ROWS, make=made, told=lambda row: "done")
"""


def study(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = folder / "study.py"
    script.write_text(STUDY.replace("EXAMPLES", repr(str(ROOT / "examples"))))
    command = [sys.executable, str(script), "--work", str(folder / "runs"), *options]
    (folder / "runs").mkdir(exist_ok=True)
    return subprocess.run(command, capture_output=True, text=True)


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "study.json").read_text())
    return found


def tried(folder: Path) -> list[str]:
    return (folder / "runs" / "tried").read_text().splitlines()


def test_rows_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    assert study(tmp_path, "--variants", "a", "b").returncode == 0
    assert study(tmp_path, "--variants", "a", "b", "c", "--seeds", "0", "1").returncode == 0
    assert tried(tmp_path) == ["a 0", "b 0", "c 0", "a 1", "b 1", "c 1"]
    assert [(row["variant"], row["seed"]) for row in rows(tmp_path)] == [
        ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("c", 1)
    ]  # fmt: skip
    assert [one.name for one in (tmp_path / "runs").iterdir()] == ["tried"]  # checkpoints are gone


def test_a_run_that_fails_at_every_attempt_ends_the_study(tmp_path: Path) -> None:
    done = study(tmp_path, "--variants", "a", "broken", "b", "c")
    assert done.returncode == 1 and "no such luck" in done.stdout
    assert tried(tmp_path) == ["a 0", "broken 0", "broken 0", "broken 0"]
    assert [row["variant"] for row in rows(tmp_path)] == ["a"]


def test_no_run_is_begun_after_its_time(tmp_path: Path) -> None:
    assert study(tmp_path, "--variants", "a", "--begin-within", "-1").returncode == 0
    assert not (tmp_path / "study.json").exists()


def test_a_trial_has_rows_of_its_own(tmp_path: Path) -> None:
    assert "give --out" in study(tmp_path, "--variants", "a", "--settings", "layers=1").stderr
    assert study(tmp_path, "--variants", "a").returncode == 0
    trial = str(tmp_path / "trial.json")
    assert study(tmp_path, "--variants", "a", "--settings", "layers=1", "--out", trial).returncode == 0
    assert tried(tmp_path) == ["a 0", "a 0"] and len(rows(tmp_path)) == 1
