"""What a dry run says of a study, and what a study says before it begins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import break_off

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus
from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.instruments import INSTRUMENTS, Bench
from dialoscope.study import Study, plan_of, run_study
from dialoscope.study.dry_run import foreseen, planned

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
        raise MissingExtraError("A dialogue model", "hf")

    table = {"corpora": {"small": "concierge"}, "models": {"m": "gpt"}, "distract": {}}
    plan = plan_of({**table, "against": str(tmp_path / "none")})
    monkeypatch.setattr("dialoscope.study.at_hand.found_source", missing)
    rows = planned(plan, tmp_path / "s", given={"small": small})
    assert [row["step"] for row in rows] == ["corpus-small", "distract-small", "compared"]
    assert rows[1]["state"] == "would be left out: A dialogue model needs an extra: pip install 'dialoscope[hf]'"
    assert rows[2]["state"].startswith("would fail: ")
    run_study(plan_of(table), tmp_path / "s", given={"small": small})
    again = planned(replace(plan, against=str(tmp_path / "s")), tmp_path / "t", given={"small": small})
    assert again[2]["state"] == "to do"
    done = run_study(plan, tmp_path / "s", given={"small": small})
    assert [(one.name, one.state) for one in done.steps][1:] == [("distract-small", "skipped"), ("compared", "failed")]


# --- Splits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instrument", "option"),
    [
        ("overlap", "split"), ("overlap", "train_split"), ("distract", "split"), ("probe", "split"),
        ("probe", "train_split"), ("engage", "split"),
    ],
)  # fmt: skip
def test_a_split_that_a_corpus_lacks_is_told_by_a_dry_run_and_before_anything_is_trained(
    small: Corpus, table: Table, tmp_path: Path, instrument: str, option: str
) -> None:
    given = {"small": small}
    models = {"models": {"one": table()["models"]["one"]}} if INSTRUMENTS[instrument].has_models else {}
    plan = plan_of({"corpora": {"small": "x"}, **models, instrument: {option: "tset"}})
    told = f"[{instrument}] {option}: expected a split 'tset' in {small.name}, found train, validation, test."
    (_, row) = planned(plan, tmp_path / "s", given=given)
    assert row["state"] == f"would fail: {told}"
    (failed,) = run_study(plan, tmp_path / "s", given=given).failed
    assert (failed.name, failed.reason) == (f"{instrument}-small", told)
    assert not (tmp_path / "s" / "models").exists()
    with pytest.raises(UsageError, match="No split 'tset'"):  # the instrument reads it indeed
        INSTRUMENTS[instrument].run(Bench(small, tmp_path / "run", tmp_path / "work"), plan.asks[0].wish)


def of_one_split(small: Corpus, dialogues: int) -> Corpus:
    return Corpus.of([one._replace(split="all") for one in small[:dialogues]], name="small")


@pytest.mark.parametrize(("dialogues", "split"), [(9, "tset"), (40, "tset")])
def test_a_split_that_is_not_read_need_not_be_there(small: Corpus, tmp_path: Path, dialogues: int, split: str) -> None:
    """A corpus of one split is held against itself."""
    plan = plan_of({"corpora": {"small": "x"}, "overlap": {"split": split}})
    given = {"small": of_one_split(small, dialogues)}
    assert [row["state"] for row in planned(plan, tmp_path / "s", given=given)] == ["to do", "to do"]
    assert run_study(plan, tmp_path / "s", given=given).failed == []


def test_a_corpus_that_is_too_small_to_be_dealt_is_told_in_the_words_of_a_plan(
    small: Corpus, table: Table, tmp_path: Path
) -> None:
    plan = plan_of({"corpora": {"small": "x"}, "models": {"one": table()["models"]["one"]}, "engage": {}, "probe": {}})
    rows = {row["step"]: row["state"] for row in planned(plan, tmp_path / "s", given={"small": of_one_split(small, 9)})}
    dealt = "A corpus of one split is dealt to training, validation and test from 10 dialogues on; this one has 9."
    assert rows["engage-small"] == f"would fail: [engage]: expected a split 'train' in small, found all. {dealt}"
    assert rows["probe-small"].startswith("would fail: [probe] train_split: expected a split 'train' in small, found")
    whole = plan_of({"corpora": {"small": "x"}, "models": {"one": table()["models"]["one"]}, "distract": {}})
    found = run_study(whole, tmp_path / "s", given={"small": of_one_split(small, 9)})
    assert found.failed[0].reason == f"[models.one]: expected a split 'train' in small, found all. {dealt}"


# --- Turns of context -------------------------------------------------------------------------------------------------


def saved(study: Study, folder: Path, turns: int | None) -> str:
    """A model that says that it learnt from so many turns of context."""
    shutil.copytree(next(study.folder.glob("models/one-*/best")), folder)
    about = json.loads((folder / "model.json").read_text())
    about["origin"]["context_turns"] = turns
    (folder / "model.json").write_text(json.dumps(about))
    return str(folder)


TURNS = "[distract] context_turns: the models were trained with different turns of context ({}). Give the number"


@pytest.mark.parametrize("kinds", ["presets", "folders", "both"])
def test_models_of_different_turns_of_context_are_told_before_any_is_trained(
    study: Study, small: Corpus, table: Table, tmp_path: Path, kinds: str
) -> None:
    one, given = table()["models"]["one"], {"small": small}
    models = {
        "presets": {"a": one, "b": {**one, "context_turns": 3}},
        "folders": {"a": saved(study, tmp_path / "a", 4), "b": saved(study, tmp_path / "b", 3)},
        "both": {"a": one, "b": saved(study, tmp_path / "c", 3)},
    }[kinds]
    told = {"corpora": {"small": "x"}, "models": models, "distract": {"sets": ["rare-end"], "limit": 3}}
    plan, expected = plan_of(told), TURNS.format("a 4, b 3")
    (row,) = (row for row in planned(plan, tmp_path / "s", given=given) if row["step"] == "distract-small")
    assert row["state"].startswith(f"would fail: {expected}")
    assert [one.partition(" will fail: ")[0] for one in foreseen(plan)] == ["distract"]
    assert expected in foreseen(plan)[0]
    (failed,) = run_study(plan, tmp_path / "s", given=given).failed
    assert (failed.name, failed.reason.startswith(expected)) == ("distract-small", True)
    assert not (tmp_path / "s" / "models").exists()
    mended = plan_of({**told, "distract": {**told["distract"], "context_turns": 3}})
    assert foreseen(mended) == []
    assert planned(mended, tmp_path / "s", given=given)[-1]["state"].startswith("to do")


def test_all_turns_of_context_are_another_number_than_some(table: Table) -> None:
    one = table()["models"]["one"]
    models = {"a": one, "b": {key: value for key, value in one.items() if key != "context_turns"}}
    (told,) = foreseen(plan_of({"corpora": {"small": "x"}, "models": models, "distract": {}, "probe": {}}))
    assert TURNS.format("a 4, b all") in told


def test_a_model_that_cannot_be_loaded_has_no_say_in_turns_of_context(
    study: Study, small: Corpus, tmp_path: Path
) -> None:
    models = {"good": saved(study, tmp_path / "good", 4), "bad": saved(study, tmp_path / "bad", 3)}
    weights = tmp_path / "bad" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    table = {"corpora": {"small": "x"}, "models": models, "distract": {"sets": ["rare-end"], "limit": 3}}
    rows = {row["step"]: row["state"] for row in planned(plan_of(table), tmp_path / "s", given={"small": small})}
    assert (rows["model bad"].startswith("would fail: "), rows["distract-small"]) == (True, "to do")
