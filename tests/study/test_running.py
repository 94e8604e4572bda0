from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus, generate
from dialoscope.errors import MissingExtraError
from dialoscope.instruments import INSTRUMENTS, Progress
from dialoscope.model import load, train
from dialoscope.report import read_run, render
from dialoscope.study import Step, Study, compare, plan_of, run_study
from dialoscope.study.folders import joined_sections
from dialoscope.study.keys import fingerprint
from dialoscope.study.plan import read_plan

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
    """Tasks on which a model is above its bag of words and the best constant answer for sure."""
    found = [one["against_bag_and_constant"] for one in tasks.values()]
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


@pytest.mark.parametrize(
    "content",
    ["{", "", "{}", '{"schema_version": 1, "instrument": "overlap"}', '{"schema_version": 1, "instrument": "probe"}'],
)
def test_a_run_whose_result_is_damaged_is_made_again(
    study: Study, small: Corpus, table: Table, tmp_path: Path, content: str
) -> None:
    folder = copy(study, tmp_path / "s")
    (folder / study.steps[1].run / "result.json").write_text(content)
    again = run_study(plan_of(table()), folder, given={"small": small})
    assert reused(again) == {**dict.fromkeys(NAMES, True), "overlap-small": False}
    assert again.failed == []
    run = study.steps[1].run
    assert read_run(folder / run).data["share_over"] == read_run(study.folder / run).data["share_over"]


def test_a_comparison_whose_result_is_damaged_is_made_again(small: Corpus, tmp_path: Path) -> None:
    table = {"corpora": {"small": "concierge"}, "overlap": {}}
    run_study(plan_of(table), tmp_path / "earlier", given={"small": small})
    plan = plan_of({**table, "against": str(tmp_path / "earlier")})
    run_study(plan, tmp_path / "s", given={"small": small})
    (tmp_path / "s" / "runs" / "compared" / "result.json").write_text("{")
    assert run_study(plan, tmp_path / "s", given={"small": small}).failed == []
    assert read_run(tmp_path / "s" / "runs" / "compared").data["identical"] == 2


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

    monkeypatch.setattr("dialoscope.model.train", watched)
    distract = {"sets": ["rare-end"]}
    plan = plan_of({"corpora": {"small": "x"}, "models": {"one": table()["models"]["one"]}, "distract": distract})
    found = run_study(plan, tmp_path / "s", given={"small": whole})
    import pyarrow.parquet as pq

    asked = set(pq.read_table(tmp_path / "s" / found.steps[1].run / "cases.parquet")["dialogue"].to_pylist())
    assert asked
    assert learnt
    assert asked & learnt == set()
    assert "small has one split" in found.report.read_text(encoding="utf-8")


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

    monkeypatch.setattr("dialoscope.model.load", loaded)
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
    assert "pip install &#39;dialoscope[demo]&#39;" in found.report.read_text(encoding="utf-8")


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
