"""Studies that are broken off at any moment, and go on."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import break_off

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus, generate
from dialoscope.corpus.write import write
from dialoscope.files import MARK
from dialoscope.report import read_run
from dialoscope.study import Gate, Study, pass_gates, plan_of, read_runs, run_study
from dialoscope.study.dry_run import planned
from dialoscope.study.folders import joined_sections, missing_steps
from dialoscope.study.page import overall

NAMES = ["corpus-small", "overlap-small", "distract-small", "probe-small"]


def test_what_was_measured_on_other_dialogues_does_not_pass_for_a_study_that_was_broken_off(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, folder = plan_of({"corpora": {"small": "concierge"}, "overlap": {}}), tmp_path / "s"
    run_study(plan, folder, given={"small": small})
    later = generate(dialogues=90, seed=4)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        break_off(patch, "overlap")
        run_study(plan, folder, given={"small": later})
    assert [(one.name, one.run.data["dialogues"]) for one in read_runs([folder])] == [("corpus-small", 90)]
    (shut,) = pass_gates([Gate("overlap", "mean", max=1)], read_runs([folder]), missing_steps([folder]))
    assert (shut.is_open, shut.reason) == (False, "overlap-small is not yet run")
    (_, shown) = joined_sections([folder])
    assert (shown[0].state, shown[1].lead) == ("pending", "Not yet run.")
    assert overall([shown]) == "Not yet run: Overlap: small."
    (_, row) = planned(plan, folder, given={"small": later})
    assert row["state"] == "to do"
    assert [one.state for one in run_study(plan, folder, given={"small": later}).steps] == ["done", "done"]


def test_a_comparison_that_was_broken_off_is_not_yet_run(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"corpora": {"small": "concierge"}, "overlap": {}}
    run_study(plan_of(table), tmp_path / "earlier", given={"small": small})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        break_off(patch, "corpus")
        run_study(plan_of({**table, "against": str(tmp_path / "earlier")}), tmp_path / "s", given={"small": small})
    assert {one.name: one.state for one in missing_steps([tmp_path / "s"])} == dict.fromkeys(
        ("corpus-small", "overlap-small", "compared"), "pending"
    )


def test_a_study_that_was_killed_in_its_first_moment_goes_on(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / f"{MARK}0123456789ab-1-x.json").write_text("")
    found = run_study(plan_of({"corpora": {"small": "concierge"}, "overlap": {}}), tmp_path, given={"small": small})
    assert found.failed == []


def test_a_study_that_is_killed_ten_times_ends_with_the_numbers_of_an_unbroken_one(
    small: Corpus, study: Study, tmp_path: Path
) -> None:
    """Killed without warning, at moments drawn from the whole time that an unbroken one takes."""
    write(small, tmp_path / "small.parquet", to="parquet")
    plan = tmp_path / "study.toml"
    plan.write_text(PLAN, encoding="utf-8")
    command = [sys.executable, "-m", "dialoscope", "study", str(plan), "--quiet", "--out"]
    begin = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    whole, rng = time.monotonic() - begin, random.Random(0)
    unbroken = numbers(tmp_path / "whole")
    assert list(unbroken) == NAMES
    kills, in_folder, folder = 0, 0, tmp_path / "killed"
    while kills < 10 or in_folder == 0:  # a folder that is finished without a kill shows nothing
        process = subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 0.9) * whole)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:  # it had come to its end before: compare, and begin anew
            assert numbers(folder) == unbroken
            shutil.rmtree(folder)
            in_folder = 0
            continue
        assert process.returncode == -signal.SIGKILL
        kills, in_folder = kills + 1, in_folder + 1
    subprocess.run([*command, str(folder)], check=True, capture_output=True)
    assert numbers(folder) == unbroken


def numbers(folder: Path) -> dict[str, Any]:
    steps = json.loads((folder / "study.json").read_text())["steps"]
    return {one["name"]: read_run(folder / one["run"]).data for one in steps}


PLAN = """
[corpora]
small = "small.parquet"

[models.one]
preset = "static-ui"
insert = 0.7
context_turns = 4
train_limit = 40
validation_limit = 5
bleu_samples = 0
set = { layers = 1, width = 8, embedding = 8, vocabulary = 200, epochs = 2, batch_size = 32 }

[overlap]

[distract]
sets = ["random-0.5", "rare-end"]
limit = 8

[probe]
tasks = ["UtteranceLoc", "RecentTopic"]
train_limit = 30
limit = 12
"""
