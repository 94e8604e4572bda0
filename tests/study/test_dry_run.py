"""What a dry run says of a study, and what a study says before it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import break_off

pytest.importorskip("torch", reason="torch is not installed: pip install 'turnwise[models]'")

from turnwise.corpus import Corpus
from turnwise.errors import MissingExtraError, UsageError
from turnwise.study import Study, plan_of, run_study
from turnwise.study.dry_run import foreseen, planned

Table = Callable[..., dict[str, Any]]


def test_a_dry_run_says_what_is_done_and_writes_nothing(
    study: Study, small: Corpus, table: Table, tmp_path: Path
) -> None:
    changed = plan_of(table(overlap={"threshold": 0.7}))
    before = sorted(study.folder.rglob("*"))
    rows = planned(changed, study.folder, given={"small": small})
    assert [row["state"] for row in rows] == ["done", "to do", "done", "done"]
    assert [row["dialogues"] for row in rows] == [120] * 4
    assert sorted(study.folder.rglob("*")) == before
    fresh = planned(changed, tmp_path / "none", given={"small": small})
    assert [row["state"] for row in fresh] == ["to do", "to do", "to do, with training", "to do, with training"]
    assert not (tmp_path / "none").exists()
    assert {(row["seconds"], row["training_seconds"]) for row in fresh} == {(None, None)}


def test_a_dry_run_knows_what_steps_took_last_time(study: Study, small: Corpus, table: Table) -> None:
    took = {step.name: step for step in study.steps}
    changed = plan_of(table(overlap={"threshold": 0.7}, distract={"sets": ["rare-end"], "limit": 3}))
    rows = {row["step"]: row for row in planned(changed, study.folder, given={"small": small})}
    assert rows["overlap-small"]["seconds"] == took["overlap-small"].seconds > 0
    distract = took["distract-small"]  # both models were trained when they were first asked
    assert distract.seconds > distract.training > 0
    assert took["probe-small"].training == 0
    assert rows["distract-small"]["seconds"] == pytest.approx(distract.seconds - distract.training)
    assert rows["probe-small"]["seconds"] is None  # it is done
    models = {name: {**one, "seed": 9} for name, one in table()["models"].items()}
    anew = {row["step"]: row for row in planned(plan_of(table(models=models)), study.folder, given={"small": small})}
    known = (anew["distract-small"]["seconds"], anew["distract-small"]["training_seconds"])
    assert known == (distract.seconds, distract.training)


def test_a_dry_run_sees_all_that_is_not_there(small: Corpus, table: Table, tmp_path: Path) -> None:
    models = {"new": table()["models"]["one"], "gone": str(tmp_path / "none"), "empty": str(tmp_path)}
    told = {"corpora": {"small": "x"}, "models": models, "against": str(tmp_path / "nowhere"), "distract": {}}
    plan = plan_of({**told, "engage": {"human": [str(tmp_path / "nohuman")]}})
    rows = {row["step"]: row["state"] for row in planned(plan, tmp_path / "s", given={"small": small})}
    assert list(rows) == ["corpus-small", "model gone", "model empty", "distract-small", "engage-small", "compared"]
    assert [name for name, state in rows.items() if state.startswith("would fail: ")] == [
        "model gone", "model empty", "engage-small", "compared",
    ]  # fmt: skip
    assert rows["distract-small"] == "to do, with training"
    assert f"[engage] human: expected a file or folder at '{tmp_path / 'nohuman'}'" in rows["engage-small"]
    assert [one.partition(" will fail: ")[0] for one in foreseen(plan)] == [
        "model gone", "model empty", "engage", "compared",
    ]  # fmt: skip


def test_rated_turns_that_are_not_there_are_told_before_any_work(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(monkeypatch, "engage")
    plan = plan_of({"corpora": {"small": "x"}, "engage": {"human": [str(tmp_path / "nohuman")]}})
    found = run_study(plan, tmp_path / "s", given={"small": small})
    assert [one.name for one in found.failed] == ["engage-small"]


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_device_that_is_none_is_told_before_anything_is_written(small: Corpus, tmp_path: Path, is_dry: bool) -> None:
    plan = plan_of({"corpora": {"small": "x"}, "device": "cdua", "overlap": {}})
    with pytest.raises(UsageError, match="Unknown device 'cdua'"):
        (planned if is_dry else run_study)(plan, tmp_path / "s", given={"small": small})
    assert not (tmp_path / "s").exists()


def test_a_dry_run_says_what_would_be_left_out_and_what_is_compared(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*arguments: Any, **options: Any) -> Any:
        raise MissingExtraError("A dialogue model", "models")

    table = {"corpora": {"small": "concierge"}, "models": {"m": "gpt"}, "distract": {}}
    plan = plan_of({**table, "against": str(tmp_path / "none")})
    monkeypatch.setattr("turnwise.study.at_hand.found_source", missing)
    rows = planned(plan, tmp_path / "s", given={"small": small})
    assert [row["step"] for row in rows] == ["corpus-small", "distract-small", "compared"]
    assert rows[1]["state"] == "would be left out: A dialogue model needs an extra: pip install 'turnwise[models]'"
    assert rows[2]["state"].startswith("would fail: ")
    run_study(plan_of(table), tmp_path / "s", given={"small": small})
    again = planned(replace(plan, against=str(tmp_path / "s")), tmp_path / "t", given={"small": small})
    assert again[2]["state"] == "to do"
    done = run_study(plan, tmp_path / "s", given={"small": small})
    assert [(one.name, one.state) for one in done.steps][1:] == [("distract-small", "skipped"), ("compared", "failed")]
