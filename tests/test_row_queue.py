"""The queue of rows: what it begins, what it loses when it is interrupted, and what it does about failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
import row_queue  # noqa: E402
from row_queue import Job, Queue, Settings  # noqa: E402

STUDY = """
import argparse, json, os, sys, time
from pathlib import Path

parser = argparse.ArgumentParser()
for option in ("--device", "--work", "--workers", "--share", "--name"):
    parser.add_argument(option)
parser.add_argument("--one", nargs=2)
arguments = parser.parse_args()
variant, seed = arguments.one
here = Path(__file__).parent
with (here / "tried").open("a") as tried:
    print(variant, file=tried)
if variant.startswith("broken"):
    sys.exit("no such luck")
if variant.startswith("slow"):  # goes on from `last`, once it may
    (Path(arguments.work) / "last").mkdir(exist_ok=True)
    (here / "process").write_text(str(os.getpid()))
    while not (here / "go").exists():
        time.sleep(0.01)
print("a line before the row")
print(json.dumps({"corpus": arguments.name, "variant": variant, "seed": int(seed)}))
"""
QUEUE = """
import sys
from pathlib import Path
sys.path.insert(0, EXAMPLES)
from row_queue import Job, Queue, Settings
here = Path(FOLDER)
jobs = [Job(str(here / "study"), "c", variant, 0) for variant in ("quick", "slow")]
Queue(jobs, Settings(here / "rows", here / "work", tables=here, device="cpu", look_every=0.02), print).run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.py").write_text(STUDY)
    return tmp_path


def job(folder: Path, variant: str, card_seconds: float = 1.0, **options: Any) -> Job:
    return Job(str(folder / "study"), "c", variant, 0, card_seconds=card_seconds, **options)


def queue(folder: Path, *jobs: Job, **options: object) -> tuple[bool, str]:
    lines: list[str] = []
    chosen = {"tables": folder, "device": "cpu", "look_every": 0.02, **options}
    settings = Settings(folder / "rows", folder / "work", **chosen)  # type: ignore[arg-type]
    return Queue(jobs, settings, lines.append).run(), "\n".join(lines)


def tried(folder: Path) -> list[str]:
    file = folder / "tried"
    return file.read_text().split() if file.exists() else []


def made(folder: Path) -> list[str]:
    return sorted(json.loads(file.read_text())["variant"] for file in (folder / "rows").glob("study--*.json"))


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.01)


def test_rows_are_made_once_and_their_checkpoints_deleted(folder: Path) -> None:
    both = job(folder, "a"), job(folder, "b")
    assert queue(folder, *both)[0] and queue(folder, *both)[0]
    assert made(folder) == ["a", "b"] and sorted(tried(folder)) == ["a", "b"]
    assert list((folder / "work").iterdir()) == []


def test_a_row_of_the_table_is_made_again_only_as_a_check_or_where_it_lacks_something(folder: Path) -> None:
    whole = {"corpus": "c", "variant": "whole", "seed": 0, "dialogues": {}}
    (folder / "study.json").write_text(json.dumps([whole, {**whole, "variant": "check"}, {
        "corpus": "c", "variant": "partial", "seed": 0}]))  # fmt: skip
    needs: dict[str, Any] = {"needs": ("dialogues",)}
    jobs = job(folder, "whole", **needs), job(folder, "partial", **needs), job(folder, "check", is_check=True, **needs)
    assert queue(folder, *jobs)[0]
    assert made(folder) == ["check", "partial"]
    assert (folder / "rows" / "study--c--check--0--again.json").exists()


def test_a_broken_row_is_tried_twice_and_does_not_stop_the_others(folder: Path) -> None:
    is_whole, lines = queue(folder, job(folder, "broken"), job(folder, "a"), job(folder, "b"), workers=1)
    assert not is_whole and "no such luck" in lines and "failed: study--c--broken--0" in lines
    assert tried(folder) == ["broken", "broken", "a", "b"] and made(folder) == ["a", "b"]


def test_several_broken_rows_in_a_row_end_the_queue(folder: Path) -> None:
    jobs = [job(folder, f"broken{number}") for number in range(6)]
    assert not queue(folder, *jobs, job(folder, "a"), workers=1)[0]
    assert sorted(set(tried(folder))) == [f"broken{number}" for number in range(row_queue.FAILURES_IN_A_ROW)]


def test_what_could_not_end_before_the_limit_is_not_begun(folder: Path) -> None:
    long = job(folder, "long", 1000.0, kind="long")
    unmeasured = job(folder, "unmeasured", kind="unmeasured", measuring_seconds=1000.0)
    assert queue(folder, long, unmeasured, job(folder, "short", 10.0), limit=300.0)[0]
    assert made(folder) == ["short"] and tried(folder) == ["short"]


def test_an_interrupted_queue_loses_only_what_was_under_way(folder: Path) -> None:
    code = QUEUE.replace("EXAMPLES", repr(str(EXAMPLES))).replace("FOLDER", repr(str(folder)))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    wait_for(lambda: (folder / "process").exists() and made(folder) == ["quick"])
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not _is_alive(int((folder / "process").read_text())))
    (folder / "go").touch()
    assert queue(folder, job(folder, "quick"), job(folder, "slow"))[0]
    assert tried(folder).count("quick") == 1 and tried(folder).count("slow") == 2
    row = json.loads((folder / "rows" / "study--c--slow--0.json").read_text())
    assert row["resumed"]


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def test_a_limit_written_beside_the_rows_ends_what_runs(folder: Path) -> None:
    lines: list[str] = []
    settings = Settings(folder / "rows", folder / "work", tables=folder, device="cpu", look_every=0.02)
    running = Queue([job(folder, "slow"), job(folder, "b")], settings, lines.append)
    (folder / "rows" / row_queue.LIMIT).write_text("-1")
    assert running.run()
    assert tried(folder) == [] and "lost: nothing" in lines[-1]


def test_a_number_of_workers_written_beside_the_rows_counts(folder: Path) -> None:
    (folder / "rows").mkdir()
    (folder / "rows" / row_queue.WORKERS).write_text("0")
    assert queue(folder, job(folder, "a"))[0] and tried(folder) == []
    (folder / "rows" / row_queue.WORKERS).write_text("1")
    assert queue(folder, job(folder, "a"))[0] and made(folder) == ["a"]


def test_the_limit_ends_a_row_under_way(folder: Path) -> None:
    def say(line: str) -> None:
        lines.append(line)
        if (folder / "process").exists():
            (folder / "rows" / row_queue.LIMIT).write_text("0")

    lines: list[str] = []
    settings = Settings(folder / "rows", folder / "work", tables=folder, device="cpu", look_every=0.02, tell_every=0.05)
    assert Queue([job(folder, "slow")], settings, say).run()
    assert "lost: study--c--slow--0" in lines[-1] and made(folder) == []
    wait_for(lambda: not _is_alive(int((folder / "process").read_text())))


@pytest.mark.parametrize(
    ("work", "ends"),
    [([], []), ([10], [10]), ([10, 10], [20, 20]), ([10, 30], [20, 40]), ([30, 10, 20], [60, 30, 50])],
)
def test_trainings_share_a_card_equally(work: list[float], ends: list[float]) -> None:
    assert row_queue.sharing_ends(work) == ends


@pytest.mark.parametrize(("left", "is_enough"), [(43.9, False), (44.1, True)])
def test_every_training_beside_a_new_one_must_end_in_time(left: float, is_enough: bool) -> None:
    """Two of 10 card seconds end after 20; measuring takes 20 more; a tenth of both is kept in reserve."""
    assert row_queue.fits([(10, 20), (10, 20)], left) == is_enough


def test_costs_are_learnt_from_rows_that_have_ended() -> None:
    static = Job("study", "c", "a", 0, kind="static", card_seconds=40, measuring_seconds=50)
    dynamic = Job("study", "c", "b", 0, kind="dynamic", card_seconds=90, measuring_seconds=50)
    costs = row_queue.Costs()
    assert (costs.training(dynamic), costs.measuring(dynamic)) == (90, 50)
    costs.ended.append((static, 60, 100))
    assert (costs.training(static), costs.training(dynamic), costs.measuring(dynamic)) == (60, 135, 100)


def test_the_share_of_a_training_that_is_done_is_read_from_its_log(tmp_path: Path) -> None:
    assert row_queue.share_trained(tmp_path, epochs=4) == 0
    lines = ["epoch,step,loss,perplexity", "0,0,,900", "1,50,6,", "1,100,5,80", "2,150,4,", "2,1"]
    (tmp_path / "log.csv").write_text("\n".join(lines[:3]))
    assert row_queue.share_trained(tmp_path, epochs=4) == 0
    (tmp_path / "log.csv").write_text("\n".join(lines))
    assert row_queue.share_trained(tmp_path, epochs=4) == 150 / 400
