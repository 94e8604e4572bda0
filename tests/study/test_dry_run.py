"""What a dry run says of a study, and what a study says before it begins."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import SMALL, interrupt, of_one_split

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus
from dialoscope.errors import MissingExtraError
from dialoscope.study.plan import plan_of
from dialoscope.study.resources import foreseen
from dialoscope.study.run import Study, planned, run

Table = Callable[..., dict[str, Any]]


def test_a_dry_run_says_what_is_done_and_writes_nothing(
    study: Study, small: Corpus, table: Table, tmp_path: Path
) -> None:
    changed = plan_of(table(overlap={"leak": 0.7}))
    before = sorted(study.folder.rglob("*"))
    rows = planned(changed, study.folder, corpora={"small": small})
    assert [row["state"] for row in rows] == ["done", "to do", "done", "done"]
    assert [row["dialogues"] for row in rows] == [120] * 4
    assert sorted(study.folder.rglob("*")) == before
    fresh = planned(changed, tmp_path / "none", corpora={"small": small})
    assert [row["state"] for row in fresh] == ["to do", "to do", "to do, with training", "to do, with training"]
    assert not (tmp_path / "none").exists()


def test_a_dry_run_sees_everything_that_is_not_there(small: Corpus, tmp_path: Path) -> None:
    models = {"new": SMALL, "gone": str(tmp_path / "none"), "empty": str(tmp_path)}
    table = {"corpora": {"small": "x"}, "models": models, "against": str(tmp_path / "nowhere"), "attention": {}}
    plan = plan_of({**table, "probe": {"ratings": str(tmp_path / "nohuman")}})
    rows = {row["step"]: row["state"] for row in planned(plan, tmp_path / "s", corpora={"small": small})}
    assert [name for name, state in rows.items() if state.startswith("would fail: ")] == [
        "probe-small", "model gone", "model empty", "compared",
    ]  # fmt: skip
    assert rows["attention-small"] == "to do, with training"
    assert f"[probe] ratings: expected a file or folder at '{tmp_path / 'nohuman'}'" in rows["probe-small"]
    assert list(foreseen(plan)) == ["model gone", "model empty", "probe", "compared"]


def test_a_file_that_is_not_there_is_told_before_any_work(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of({"corpora": {"small": "x"}, "overlap": {"hypotheses": str(tmp_path / "none.txt")}})
    interrupt(monkeypatch, "overlap")
    told: list[str] = []
    found = run(plan, tmp_path / "s", corpora={"small": small}, on_problem=told.append)
    assert [step.name for step in found.failed] == ["overlap-small"]
    assert told == [f"overlap will fail: {found.failed[0].reason}"]


def test_a_dry_run_says_what_would_be_skipped_and_what_is_compared(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(purpose: str) -> None:
        raise MissingExtraError(purpose, "hf")

    table = {"corpora": {"small": "concierge"}, "models": {"m": "gpt"}, "attention": {}}
    plan = plan_of({**table, "against": str(tmp_path / "none")})
    monkeypatch.setattr("dialoscope.model.loading.require_torch", missing)
    rows = {row["step"]: row["state"] for row in planned(plan, tmp_path / "s", corpora={"small": small})}
    assert list(rows) == ["corpus-small", "attention-small", "model m", "compared"]
    needed = "would be skipped: A dialogue model needs an extra: pip install 'dialoscope[hf]'"
    assert (rows["attention-small"], rows["model m"]) == (needed, needed)
    assert rows["compared"].startswith("would fail: ")
    done = run(plan, tmp_path / "s", corpora={"small": small})
    assert [(step.name, step.state) for step in done.steps][1:] == [
        ("model m", "skipped"), ("attention-small", "skipped"), ("compared", "failed"),
    ]  # fmt: skip


@pytest.mark.parametrize("option", ["split", "train_split"])
def test_a_split_that_a_corpus_lacks_is_told_in_the_words_of_the_question(
    small: Corpus, tmp_path: Path, option: str
) -> None:
    plan = {"corpora": {"small": "x"}, "overlap": {option: "tset"}}
    (failed,) = run(plan, tmp_path / "s", corpora={"small": small}).failed
    assert f"{small.name} has no tset split. Found: train, validation, test." in failed.reason


def test_a_corpus_that_is_too_small_to_be_split_is_told(small: Corpus, tmp_path: Path) -> None:
    plan = {"corpora": {"small": "x"}, "models": {"one": SMALL}, "attention": {}}
    found = run(plan, tmp_path / "s", corpora={"small": of_one_split(small, 4)})
    assert found.failed[0].name == "model one"
    assert "80/10/10 takes at least 10" in found.failed[0].reason


def test_models_that_are_there_are_not_opened_by_a_dry_run(study: Study, small: Corpus, tmp_path: Path) -> None:
    best = shutil.copytree(next(study.folder.glob("models/one-*/best")), tmp_path / "m")
    weights = best / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    plan = {"corpora": {"small": "x"}, "models": {"m": str(best)}, "attention": {"limit": 3}}
    assert [row["state"] for row in planned(plan, tmp_path / "s", corpora={"small": small})] == ["done", "to do"][
        1:
    ] * 2
