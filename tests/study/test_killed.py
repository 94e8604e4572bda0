"""A study that is killed without warning, at any moment, ends with the numbers of an uninterrupted one."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus
from dialoscope.corpus.write import write
from dialoscope.report.run import read_json

NAMES = ["corpus-small", "overlap-small", "attention-small", "probe-small"]
# One process runs the study once and then forks a child for each further one: importing takes longer than the study.
SERVER = """
import os, sys
import pytest
sys.path.insert(0, sys.argv[1])
import torch
from tests.study.samples import install
from dialoscope.study.run import run

install(pytest.MonkeyPatch())
torch.set_num_threads(1)
run(sys.argv[2], sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(sys.argv[2], line.strip())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_a_study_that_is_killed_ten_times_ends_with_the_numbers_of_an_uninterrupted_one(
    small: Corpus, tmp_path: Path
) -> None:
    """Killed without warning, at moments drawn from the whole time that an uninterrupted one takes."""
    write(small, tmp_path / "small.parquet", to="parquet")
    (tmp_path / "study.toml").write_text(PLAN, encoding="utf-8")
    command = [sys.executable, "-c", SERVER, str(Path(__file__).parents[2]), str(tmp_path / "study.toml")]
    command.append(str(tmp_path / "whole"))
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}  # threads do not live through a fork
    rng = random.Random(0)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        begin = time.monotonic()
        assert run_in(server, tmp_path / "again") == 0
        whole, uninterrupted = time.monotonic() - begin, numbers(tmp_path / "whole")
        assert numbers(tmp_path / "again") == uninterrupted
        assert list(uninterrupted) == NAMES
        kills, in_folder, folder = 0, 0, tmp_path / "killed"
        while kills < 10 or in_folder == 0:  # a folder that is finished without a kill shows nothing
            if run_in(server, folder, kill_after=rng.uniform(0.1, 0.9) * whole) == 0:  # it was done before
                assert numbers(folder) == uninterrupted
                shutil.rmtree(folder)
                in_folder = 0
                continue
            kills, in_folder = kills + 1, in_folder + 1
        assert run_in(server, folder) == 0
        assert numbers(folder) == uninterrupted
        server.communicate()


def run_in(server: subprocess.Popen[str], folder: Path, kill_after: float | None = None) -> int:
    """Let the server run the study into a folder; with a time, kill it then. The child's exit status."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{folder}\n")
    child = int(server.stdout.readline())
    if kill_after is not None:
        time.sleep(kill_after)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return int(server.stdout.readline())


def numbers(folder: Path) -> dict[str, Any]:
    steps = json.loads((folder / "study.json").read_text())["steps"]
    return {step["name"]: read_json(folder / step["run"] / "result.json") for step in steps}


PLAN = """
[corpora]
small = "small.parquet"

[models.one]
preset = "static-ui"
epochs = 1
context_turns = 2
limit = 12
set = { layers = 1, width = 8, embedding = 8, vocabulary = 100, batch_size = 32 }

[overlap]

[attention]
limit = 8

[probe]
limit = 12
"""
