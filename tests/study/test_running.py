from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'turnwise[models]'")

from turnwise.atomic import MARK
from turnwise.corpus import Corpus, generate
from turnwise.corpus.write import write
from turnwise.errors import MissingExtraError, OutputError, UsageError
from turnwise.instruments import INSTRUMENTS, Progress
from turnwise.model import load, train
from turnwise.report import read_run, render
from turnwise.study import Gate, Step, Study, compare, pass_gates, plan_of, read_runs, run_study
from turnwise.study.dry_run import foreseen, planned
from turnwise.study.folders import joined_sections, missing_steps
from turnwise.study.keys import fingerprint
from turnwise.study.page import overall
from turnwise.study.plan import read_plan

NAMES = ["corpus-small", "overlap-small", "distract-small", "probe-small"]
Table = Callable[..., dict[str, Any]]


def copy(study: Study, folder: Path) -> Path:
    shutil.copytree(study.folder, folder)
    return folder


def reused(study: Study) -> dict[str, bool]:
    return {step.name: step.is_reused for step in study.steps}


def test_every_instrument_has_a_run_and_a_section(study: Study) -> None:
    assert [(step.name, step.state) for step in study.steps] == [(name, "done") for name in NAMES]
    page = study.report.read_text(encoding="utf-8")
    assert [title for title in ("Overlap", "Distraction", "Probes", "How it was made") if title not in page] == []
    models = read_run(study.folder / study.steps[2].run).data["models"]
    assert list(models) == ["one", "two"]
    assert not (study.folder / "unfinished").exists()


def test_the_page_shows_every_model_in_its_cards_and_what_they_come_to(study: Study) -> None:
    """Every number of a card is that of result.json, and the line above counts the cards below."""
    summary = study.report.read_text(encoding="utf-8").partition('id="summary"')[2].partition("</section>")[0]
    overlap, distract, probe = (read_run(study.folder / step.run).data for step in study.steps[1:])
    cards = [card.partition("</li>")[0] for card in summary.split("<li>")[1:]]
    assert re.findall(r'class="figure">(.*?)<', cards[0]) == [f"{overlap['share_over']['0.8']:.1%}"]
    sets = {name: one["sets"]["random-0.5"] for name, one in distract["models"].items()}
    ratios = {name: f"{one['das_ratio_of_means']:.2f}" for name, one in sets.items()}
    ends = [one["intervals"]["das_ratio_of_means"] for one in sets.values()]
    assert amounts(cards[1]) == ratios
    assert re.findall(r'class="aside">(.*?)<', cards[1]) == [f"[{low:.2f}, {high:.2f}]" for low, high in ends]
    assert amounts(cards[2]) == {name: str(known(one["tasks"])) for name, one in probe["models"].items()}
    levels = re.findall(r'class="verdict (\w+)"', summary)
    concerns, judged = sum(one in ("warn", "bad") for one in levels), sum(one != "info" for one in levels)
    line = re.findall(r'class="overall" dir="auto">(.*?)<', summary)[0]
    assert [len(cards), len(levels)] == [3, 3]
    assert [int(one) for one in re.findall(r"(\d) of (\d) finding", line)[0]] == [concerns, judged]


def amounts(card: str) -> dict[str, str]:
    """What a card says of each model."""
    return dict(re.findall(r'class="name" dir="auto">(.*?)<.*?class="amount">(.*?)<', card, re.DOTALL))


def known(tasks: dict[str, Any]) -> int:
    """Tasks on which a model is above its bag of words for sure."""
    found = [one["against_bag_of_words"] for one in tasks.values()]
    return sum(one["difference"]["value"] > 0 and one["p_holm"] < 0.05 for one in found)


def test_the_verdict_on_a_model_is_its_own_number(study: Study) -> None:
    run = read_run(study.folder / study.steps[2].run)
    assert run.section.verdict is not None
    for part in run.section.verdict.parts:
        assert part.number.value == run.data["models"][part.name]["sets"]["random-0.5"]["das_ratio_of_means"]  # type: ignore[union-attr]


def test_records_say_which_weights_were_asked(study: Study) -> None:
    sources = sorted(study.folder.glob("models/*/best"))
    names = {path.parent.name.partition("-")[0]: load(str(path), device="cpu", quiet=True).name for path in sources}
    for step in study.steps[2:]:
        kept = read_run(study.folder / step.run)
        assert kept.data["weights"] == names
        assert kept.origin.settings["models"] == f"one={names['one']},two={names['two']}"
    assert names["one"] != names["two"]
    records = study.report.read_text(encoding="utf-8").partition('id="records"')[2]
    assert records.count(names["one"]) == 2


def test_other_weights_are_no_reason_to_doubt_a_comparison(
    study: Study, table: Table, small: Corpus, tmp_path: Path
) -> None:
    models = {**table()["models"], "two": {**table()["models"]["one"], "seed": 2}}
    plan = plan_of({key: one for key, one in table(models=models).items() if key not in ("overlap", "probe")})
    later = run_study(plan, tmp_path / "s", given={"small": small})
    assert compare(study.folder, later.folder).left_out == []


def test_tables_of_several_corpora_are_named_by_them(small: Corpus, tmp_path: Path) -> None:
    plan = plan_of({"corpora": {"chats": "concierge", "mail": "concierge"}, "overlap": {}})
    found = run_study(plan, tmp_path / "s", given={"chats": small, "mail": generate(dialogues=60, seed=5)})
    names = re.findall(r'{"name":"([^"]+)","csv"', found.report.read_text(encoding="utf-8"))
    assert len(names) == len(set(names))
    assert {"corpus-chats-splits", "corpus-mail-splits"} <= set(names)
    assert [one for one in names if "chats" not in one and "mail" not in one] == ["steps"]


def test_a_second_call_does_nothing_again(study: Study, small: Corpus, table: Table, tmp_path: Path) -> None:
    again = run_study(plan_of(table()), copy(study, tmp_path / "s"), given={"small": small})
    assert reused(again) == dict.fromkeys(NAMES, True)
    assert again.verdicts == study.verdicts


@pytest.mark.parametrize(
    ("more", "anew"),
    [
        ({"overlap": {"threshold": 0.9}}, {"overlap-small"}),
        ({"seed": 5}, set(NAMES)),
        ({"probe": {"tasks": ["UtteranceLoc"], "train_limit": 30, "limit": 12}}, {"probe-small"}),
    ],
)
def test_what_has_changed_is_done_again_and_nothing_else(
    study: Study, small: Corpus, table: Table, tmp_path: Path, more: dict[str, Any], anew: set[str]
) -> None:
    again = run_study(plan_of(table(**more)), copy(study, tmp_path / "s"), given={"small": small})
    assert {name for name, is_reused in reused(again).items() if not is_reused} == anew


def test_other_dialogues_are_measured_anew(study: Study, table: Table, tmp_path: Path) -> None:
    plan = plan_of({key: value for key, value in table().items() if key in ("corpora", "overlap")})
    folder = copy(study, tmp_path / "s")
    again = run_study(plan, folder, given={"small": generate(dialogues=90, seed=4)})
    assert reused(again) == {"corpus-small": False, "overlap-small": False}
    assert (study.folder / study.steps[3].run).is_dir()  # what is not asked for is kept
    assert [one["name"] for one in json.loads((folder / "study.json").read_text())["steps"]] == NAMES[:2]


def test_rated_turns_that_have_changed_are_read_anew(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def engage(bench: Any, wish: Any) -> Path:
        told.append(Path(wish.human[0]).read_text())
        return INSTRUMENTS["corpus"].run(bench, None)

    monkeypatch.setitem(INSTRUMENTS, "engage", replace(INSTRUMENTS["engage"], run=engage))
    rated = tmp_path / "rated.csv"
    plan = plan_of({"corpora": {"small": "concierge"}, "engage": {"human": str(rated)}})
    for words in ("one", "one", "two"):
        rated.write_text(words)
        run_study(plan, tmp_path / "s", given={"small": small})
    assert told == ["one", "two"]


@pytest.mark.parametrize(
    "file", ["section.json", "matches.parquet", "report.html", "tables", "tables/closest-matches.csv"]
)
def test_a_run_that_somebody_damaged_is_made_again(
    study: Study, small: Corpus, table: Table, tmp_path: Path, file: str
) -> None:
    folder = copy(study, tmp_path / "s")
    damaged = folder / study.steps[1].run / file
    shutil.rmtree(damaged) if damaged.is_dir() else damaged.unlink()
    again = run_study(plan_of(table()), folder, given={"small": small})
    assert reused(again) == {**dict.fromkeys(NAMES, True), "overlap-small": False}
    assert again.failed == []
    assert damaged.exists()


def test_a_book_of_another_time_does_not_pass_for_the_run(small: Corpus, tmp_path: Path) -> None:
    """As where a study is killed after its run was written and before that was noted."""
    plans = [plan_of({"corpora": {"small": "concierge"}, "overlap": {"threshold": one}}) for one in (0.5, 0.9)]
    run_study(plans[0], tmp_path / "s", given={"small": small})
    book = (tmp_path / "s" / "study.json").read_text()
    run_study(plans[1], tmp_path / "s", given={"small": small})
    (tmp_path / "s" / "study.json").write_text(book)
    again = run_study(plans[0], tmp_path / "s", given={"small": small})
    assert read_run(tmp_path / "s" / again.steps[1].run).data["threshold"] == 0.5


def test_models_are_not_asked_what_they_learnt_where_a_corpus_has_one_split(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Corpus.of([one._replace(split="all") for one in generate(dialogues=60, seed=3)], name="small")
    learnt: set[str] = set()

    def watched(corpus: Corpus, *arguments: Any, **options: Any) -> Any:
        learnt.update(one.id for one in corpus)
        return train(corpus, *arguments, **options)

    monkeypatch.setattr("turnwise.model.train", watched)
    distract = {"sets": ["rare-end"]}
    plan = plan_of({"corpora": {"small": "x"}, "models": {"one": table()["models"]["one"]}, "distract": distract})
    found = run_study(plan, tmp_path / "s", given={"small": whole})
    import pyarrow.parquet as pq

    asked = set(pq.read_table(tmp_path / "s" / found.steps[1].run / "cases.parquet")["dialogue"].to_pylist())
    assert asked
    assert learnt
    assert asked & learnt == set()
    assert "small has one split" in found.report.read_text(encoding="utf-8")


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


def test_a_failure_is_shown_and_the_others_go_on(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(bench: Any, wish: Any) -> Path:
        raise ZeroDivisionError("<script>alert(1)</script>")

    monkeypatch.setitem(INSTRUMENTS, "overlap", replace(INSTRUMENTS["overlap"], run=broken))
    plan = plan_of({"corpora": {"small": "concierge", "gone": str(tmp_path / "none.jsonl")}, "overlap": {}})
    found = run_study(plan, tmp_path / "s", given={"small": small})
    assert [(one.name, one.state) for one in found.steps] == [
        ("corpus-small", "done"), ("corpus-gone", "failed"), ("overlap-small", "failed"), ("overlap-gone", "failed"),
    ]  # fmt: skip
    page = found.report.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page
    assert "<script>alert(1)" not in page
    assert "ZeroDivisionError" in (tmp_path / "s" / "failures" / "overlap-small.txt").read_text()
    monkeypatch.undo()
    mended = run_study(plan, tmp_path / "s", given={"small": small, "gone": small})
    assert {one.name: (one.state, one.is_reused) for one in mended.steps} == {
        "corpus-small": ("done", True), "corpus-gone": ("done", False),
        "overlap-small": ("done", False), "overlap-gone": ("done", False),
    }  # fmt: skip
    assert list((tmp_path / "s" / "failures").iterdir()) == []


def test_a_model_that_cannot_be_had_is_left_out_and_told(small: Corpus, table: Table, tmp_path: Path) -> None:
    models = {"good": table()["models"]["one"], "gone": str(tmp_path / "none")}
    plan = plan_of(
        {"corpora": {"small": "concierge"}, "models": models, "distract": {"sets": ["rare-end"], "limit": 3}}
    )
    found = run_study(plan, tmp_path / "s", given={"small": small})
    states = {one.name: one.state for one in found.steps}
    assert states == {"corpus-small": "done", "model gone": "failed", "distract-small": "done"}
    assert list(read_run(tmp_path / "s" / found.steps[-1].run).data["models"]) == ["good"]


def saved_model(study: Study, folder: Path) -> Path:
    shutil.copytree(next(study.folder.glob("models/one-*/best")), folder)
    return folder


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def damaged(kind: str, study: Study, folder: Path) -> Path:
    """A folder that only looks like a model: empty, cut short and so said by its sizes, or known only when loaded."""
    if kind == "empty":
        folder.mkdir()
        return folder
    saved_model(study, folder)
    if kind == "cut short":
        cut(folder / "weights.safetensors")
    if kind == "another's":
        (folder / "model.json").unlink()
        (folder / "config.json").write_text('{"model_type": "gpt2"}')
        cut(folder / "weights.safetensors")
    return folder


@pytest.mark.parametrize("kind", ["empty", "cut short", "another's"])
def test_a_model_that_cannot_be_loaded_is_left_out_and_the_others_are_measured(
    study: Study, small: Corpus, tmp_path: Path, kind: str
) -> None:
    good, bad = saved_model(study, tmp_path / "good"), damaged(kind, study, tmp_path / "bad")
    models = {"bad": str(bad), "good": str(good)}
    table = {"corpora": {"small": "x"}, "models": models, "distract": {"sets": ["rare-end"], "limit": 3}}
    found = run_study(plan_of(table), tmp_path / "s", given={"small": small})
    states = {one.name: one.state for one in found.steps}
    assert states == {"corpus-small": "done", "model bad": "failed", "distract-small": "done"}
    assert list(read_run(tmp_path / "s" / found.steps[-1].run).data["models"]) == ["good"]
    again = run_study(plan_of(table), tmp_path / "s", given={"small": small})
    assert [one.is_reused for one in again.steps] == [True, False, True]
    shutil.rmtree(bad)
    mended = run_study(
        plan_of({**table, "models": {**models, "bad": str(good)}}), tmp_path / "s", given={"small": small}
    )
    assert (mended.failed, list((tmp_path / "s" / "failures").iterdir())) == ([], [])


def test_a_model_that_something_is_not_installed_for_does_not_cost_the_others(
    study: Study, small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, other = (saved_model(study, tmp_path / name) for name in ("good", "other"))

    def loaded(path: str, **options: Any) -> Any:
        if path == str(other):
            raise MissingExtraError("This model", "gguf")
        return load(path, **options)

    monkeypatch.setattr("turnwise.model.load", loaded)
    table = {"corpora": {"small": "x"}, "models": {"other": str(other), "good": str(good)}}
    distract = {"distract": [{"sets": ["rare-end"], "limit": 3}, {"name": "again", "sets": ["rare-begin"], "limit": 3}]}
    found = run_study(plan_of({**table, **distract}), tmp_path / "s", given={"small": small})
    assert [(one.name, one.state) for one in found.steps] == [
        ("corpus-small", "done"), ("model other", "skipped"), ("distract-small", "done"), ("again-small", "done"),
    ]  # fmt: skip


def test_the_plan_is_kept_and_the_page_says_how_models_were_trained(
    small: Corpus, table: Table, tmp_path: Path
) -> None:
    one = table()["models"]["one"]
    models = {"<b>one|a</b>": one, "two": {**one, "insert": 0.7, "seed": 1, "attention_reduction": "sum"}}
    told = {"corpora": {"small": {"path": "concierge", "limit": 50}}, "models": models, "seed": 3}
    plan = plan_of({**told, "distract": {"sets": ["rare-end"], "limit": 3}, "overlap": {"threshold": 0.7}})
    found = run_study(plan, tmp_path / "s", given={"small": small})
    kept = json.loads((tmp_path / "s" / "study.json").read_text())["plan"]
    assert (kept["seed"], kept["corpora"]["small"]["path"], kept["corpora"]["small"]["limit"]) == (3, ["concierge"], 50)
    assert (kept["models"]["two"]["insert"], kept["models"]["two"]["set"]["epochs"]) == (0.7, 1)
    assert [(one["name"], one["options"]["limit"]) for one in kept["instruments"] if one["name"] == "distract"] == [
        ("distract", 3)
    ]
    for page in (found.report, tmp_path / "joined.html"):
        if page != found.report:
            sections = [section for _, section in joined_sections([tmp_path / "s"])]
            page.write_text(render("Joined", sections), encoding="utf-8")
        text = page.read_text(encoding="utf-8")
        records = text.partition('id="records"')[2]
        assert "<b>one" not in text
        parts = {unescape(part) for part in re.findall(r"<span>(.*?)</span>", records)}
        assert {"reading:limit=50", "options:threshold=0.7", 'options:sets=["rare-end"],limit=3'} <= parts
        usual = "context_turns=4,train_limit=20,validation_limit=5,bleu_samples=0"
        changed = "epochs=1,layers=1,width=8,embedding=8,vocabulary=200,batch_size=32"
        assert f"model_<b>one/a</b>:preset=static-ui,insert=0.0,attention_loss=none,{usual},seed=0,{changed}" in parts
        assert f"model_two:preset=static-ui,insert=0.7,attention_loss=1*sum,{usual},seed=1,{changed}" in parts


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


def test_a_corpus_that_is_not_there_is_told_with_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[corpora]\nchats = "none.jsonl"\n[overlap]\n')
    found = run_study(read_plan(tmp_path / "study.toml"), tmp_path / "s")
    assert {one.reason.partition(" Looked in ")[2] for one in found.failed} == {f"{tmp_path} and in {Path.cwd()}."}
    page = found.report.read_text(encoding="utf-8")
    assert ("the others went on" in page, "no other was done" in page) == (False, True)


def test_a_bad_record_is_told_with_how_it_is_left_out_and_then_counted(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    turns = [{"role": role, "content": f"{role} speaks"} for role in ("user", "assistant")]
    chats.write_text("\n".join([json.dumps({"messages": turns})] * 4 + ["{"]))
    failed = run_study(plan_of({"corpora": {"chats": str(chats)}, "overlap": {}}), tmp_path / "s").failed
    assert 'on_error = "skip" under [corpora.chats]' in failed[0].reason
    skipping = plan_of({"corpora": {"chats": {"path": str(chats), "on_error": "skip"}}, "overlap": {}})
    for _ in range(2):  # the second call reads it too
        found = run_study(skipping, tmp_path / "s")
        assert [sum(reasons.values()) for reasons in found.left_out.values()] == [1]
    assert found.to_dict()["left_out"] == found.left_out


def test_an_earlier_study_is_compared_with_on_the_page_and_one_that_is_not_there_is_a_failure(
    study: Study, small: Corpus, table: Table, tmp_path: Path
) -> None:
    folder = copy(study, tmp_path / "s")
    found = run_study(plan_of(table(against=str(study.folder))), folder, given={"small": small})
    assert [one.name for one in found.steps] == [*NAMES, "compared"]
    assert found.failed == []
    assert "What has changed?" in found.report.read_text(encoding="utf-8")
    again = run_study(plan_of(table(against=str(folder))), copy(found, tmp_path / "t"), given={"small": small})
    assert again.failed == []  # an earlier study may have looked back itself
    broken = run_study(plan_of(table(against=str(tmp_path / "nowhere"))), folder, given={"small": small})
    assert [one.name for one in broken.failed] == ["compared"]
    assert reused(broken) == {**dict.fromkeys(NAMES, True), "compared": False}


def test_what_is_not_installed_is_left_out_without_a_failure(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(bench: Any, wish: Any) -> Path:
        raise MissingExtraError("Engagement", "demo")

    monkeypatch.setitem(INSTRUMENTS, "engage", replace(INSTRUMENTS["engage"], run=missing))
    plan = plan_of({"corpora": {"small": "concierge"}, "engage": {}})
    found = run_study(plan, tmp_path / "s", given={"small": small})
    assert ([one.state for one in found.steps], found.failed) == (["done", "skipped"], [])
    assert "pip install &#39;turnwise[demo]&#39;" in found.report.read_text(encoding="utf-8")


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


def break_off(monkeypatch: pytest.MonkeyPatch, instrument: str) -> None:
    def broken_off(bench: Any, wish: Any) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setitem(INSTRUMENTS, instrument, replace(INSTRUMENTS[instrument], run=broken_off))


def test_what_was_measured_on_other_dialogues_does_not_pass_for_a_study_that_was_broken_off(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, folder = plan_of({"corpora": {"small": "concierge"}, "overlap": {}}), tmp_path / "s"
    before = run_study(plan, folder, given={"small": small})
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
    assert (row["state"], row["seconds"]) == ("to do", before.steps[1].seconds)
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


def test_records_that_were_left_out_since_are_told(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    turns = [{"role": role, "content": f"{role} speaks"} for role in ("user", "assistant")]
    lines = [json.dumps({"messages": turns})] * 4
    plan = plan_of({"corpora": {"chats": {"path": str(chats), "on_error": "skip"}}, "overlap": {}})
    for bad in (0, 7):
        chats.write_text("\n".join([*lines, *["{"] * bad]))
        found = run_study(plan, tmp_path / "s")
        assert sum(read_run(tmp_path / "s" / found.steps[0].run).data["skipped"].values()) == bad
    assert reused(found) == {"corpus-chats": False, "overlap-chats": True}  # the same dialogues


def test_an_encoder_of_another_version_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for number in ("1", "1", "2"):
        monkeypatch.setattr("importlib.metadata.version", lambda package, number=number: number)
        keys.append(fingerprint("minilm"))
    assert (keys[0] == keys[1], keys[1] == keys[2]) == (True, False)
    assert fingerprint("org/encoder") == "org/encoder"


def test_a_second_study_in_the_folder_at_the_same_time_is_told_in_one_line(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("study", "--corpus", "concierge", "--limit", "4", "--instruments", "overlap", "--out")
    told: list[tuple[int, str]] = []

    def overlap(bench: Any, wish: Any) -> Path:
        second = [sys.executable, "-m", "turnwise", *words, str(tmp_path / "s")]
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
from turnwise.errors import OutputError
from turnwise.study.book import Book, at_work

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
    command = [sys.executable, "-m", "turnwise", *words]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(one.communicate()[1], one.returncode) for one in both]
    assert 0 in [code for _, code in ends]
    assert all(code == 0 or (code == 2 and "another study is at work" in said) for said, code in ends)
    assert missing_steps([tmp_path / "s"]) == []


def test_a_folder_is_free_again_when_the_study_in_it_is_killed(small: Corpus, tmp_path: Path) -> None:
    code = "import sys; from turnwise.study.book import at_work\nwith at_work(sys.argv[1]): print(); sys.stdin.read()"
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


def test_a_watcher_is_told_of_every_step(small: Corpus, tmp_path: Path) -> None:
    told: list[str] = []

    class Watcher:
        def begin(self, step: str) -> Progress | None:
            told.append(f"{step} begins")
            return None

        def end(self, step: Step) -> None:
            told.append(f"{step.name} is {step.state}")

    plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {}})
    run_study(plan, tmp_path / "s", given={"small": small}, watcher=Watcher())
    assert told == [
        "corpus-small begins", "corpus-small is done", "overlap-small begins", "overlap-small is done",
    ]  # fmt: skip


def test_a_study_that_is_killed_ten_times_ends_with_the_numbers_of_an_unbroken_one(
    small: Corpus, study: Study, tmp_path: Path
) -> None:
    """Killed without warning, at moments drawn from the whole time that an unbroken one takes."""
    write(small, tmp_path / "small.parquet", to="parquet")
    plan = tmp_path / "study.toml"
    plan.write_text(PLAN, encoding="utf-8")
    command = [sys.executable, "-m", "turnwise", "study", str(plan), "--quiet", "--out"]
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
