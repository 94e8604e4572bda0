from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import SMALL, answer_with, fake_measure, interrupt, of_one_split

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

from dialoscope.corpus import Corpus, generate
from dialoscope.corpus.split import split_evenly
from dialoscope.errors import MissingExtraError, OutputError, UsageError
from dialoscope.files import MARK
from dialoscope.fingerprint import content_of
from dialoscope.instruments import QUESTIONS, Question, load_result
from dialoscope.overlap import OverlapSettings, measure
from dialoscope.probe import ProbeSettings
from dialoscope.progress import Progress
from dialoscope.study.compare import compare
from dialoscope.study.gate import Gate, check_gates
from dialoscope.study.page import overall, sections_of
from dialoscope.study.plan import Task, plan_of, read_plan
from dialoscope.study.resources import Resources
from dialoscope.study.results import missing_steps, read_results
from dialoscope.study.run import Silent, Study, key_of, planned, run
from dialoscope.study.steps import Step, read_steps

NAMES = ["corpus-small", "overlap-small", "attention-small", "probe-small"]
OVERLAP = {"corpora": {"small": "concierge"}, "overlap": {}}
Table = Callable[..., dict[str, Any]]


def copy(study: Study, folder: Path) -> Path:
    shutil.copytree(study.folder, folder)
    return folder


def reused(study: Study) -> dict[str, bool]:
    return {step.name: step.is_reused for step in study.steps}


def states(study: Study) -> dict[str, str]:
    return {step.name: step.state for step in study.steps}


def test_every_question_has_a_result_and_a_section(study: Study) -> None:
    assert states(study) == dict.fromkeys(NAMES, "done")
    page = study.report.read_text(encoding="utf-8")
    assert [title for title in ("Overlap", "Attention", "Probe", "How it was made") if title not in page] == []
    assert list(load_result(study.folder / study.steps[2].run).values) == ["one", "two"]  # type: ignore[attr-defined]
    assert not (study.folder / "unfinished").exists()


def test_a_step_has_the_numbers_of_the_same_call_in_python(study: Study, small: Corpus) -> None:
    assert study.results["overlap-small"]["scores"] == measure(small).to_dict()["scores"]
    models = {"one": "x", "two": "y"}
    assert study.results["attention-small"]["scores"] == fake_measure(small, models=models, limit=6).to_dict()["scores"]


def test_a_study_is_run_from_a_file_a_table_or_a_plan(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[corpora]\nsmall = "concierge"\n[overlap]\n')
    plans: list[Any] = [tmp_path / "study.toml", str(tmp_path / "study.toml"), OVERLAP, plan_of(OVERLAP)]
    found = [run(plan, tmp_path / str(number), corpora={"small": small}) for number, plan in enumerate(plans)]
    assert len({json.dumps(each.results["overlap-small"]["scores"]) for each in found}) == 1
    with pytest.raises(UsageError, match="A study takes a TOML file, a table or a Plan, found int"):
        run(3, tmp_path / "x")  # type: ignore[arg-type]


def test_the_page_shows_every_model_in_its_cards_and_counts_them(study: Study) -> None:
    """Every number of a card is that of result.json, and the line above counts the cards below."""
    summary = study.report.read_text(encoding="utf-8").partition('id="summary"')[2].partition("</section>")[0]
    cards = [card.partition("</li>")[0] for card in summary.split("<li>")[1:]]
    scores = study.results["attention-small"]["scores"]
    amounts = dict(re.findall(r'class="name" dir="auto">(.*?)<.*?class="amount">(.*?)<', cards[1], re.DOTALL))
    assert {name: float(amount) for name, amount in amounts.items()} == {
        name.partition("/")[0]: pytest.approx(score["value"], abs=0.001) for name, score in scores.items()
    }
    levels = re.findall(r'class="verdict (\w+)"', summary)
    concerns, judged = levels.count("concern"), sum(level in ("good", "concern") for level in levels)
    line = re.findall(r'class="overall" dir="auto">(.*?)<', summary)[0]
    assert [len(cards), len(levels)] == [3, 3]
    assert [int(count) for count in re.findall(r"(\d) of (\d) finding", line)[0]] == [concerns, judged]


def test_tables_of_several_corpora_are_named_by_them(small: Corpus, tmp_path: Path) -> None:
    table = {"corpora": {"chats": "concierge", "mail": "concierge"}, "overlap": {}}
    found = run(table, tmp_path / "s", corpora={"chats": small, "mail": generate(dialogues=60, seed=5)})
    names = re.findall(r'{"name":"([^"]+)","csv"', found.report.read_text(encoding="utf-8"))
    assert len(names) == len(set(names))
    assert {"corpus-chats-splits", "corpus-mail-splits"} <= set(names)
    assert [name for name in names if "chats" not in name and "mail" not in name] == ["steps"]


# --- What is done again -----------------------------------------------------------------------------------------------


def test_a_second_call_runs_nothing_again(study: Study, small: Corpus, table: Table, tmp_path: Path) -> None:
    again = run(table(), copy(study, tmp_path / "s"), corpora={"small": small})
    assert reused(again) == dict.fromkeys(NAMES, True)
    assert again.results == study.results


@pytest.mark.parametrize(
    ("more", "anew"),
    [
        ({"overlap": {"leak": 0.9}}, {"overlap-small"}),
        ({"seed": 5}, {*NAMES} - {"corpus-small"}),
        ({"probe": {"limit": 11}}, {"probe-small"}),
        ({"attention": {"limit": 6, "batch_size": 7, "device": "cpu"}}, set()),  # these decide no number
    ],
)
def test_what_has_changed_is_done_again_and_nothing_else(
    study: Study, small: Corpus, table: Table, tmp_path: Path, more: dict[str, Any], anew: set[str]
) -> None:
    again = run(table(**more), copy(study, tmp_path / "s"), corpora={"small": small})
    assert {name for name, is_reused in reused(again).items() if not is_reused} == anew


def test_every_setting_counts_but_those_of_speed_and_memory(study: Study) -> None:
    """What a picture is coloured by changes no number, and is part of the result."""

    def key(**settings: Any) -> str:
        (_, task) = plan_of({"corpora": {"small": "concierge"}, "depth": settings}).tasks
        return key_of(task, resources, {})

    resources = Resources(plan_of(OVERLAP), study.folder, {"small": generate(dialogues=5)}, Silent(), trains=False)
    assert key(batch_size=3, device="cpu") == key()
    assert len({key(), key(history=1), key(dtype="bfloat16")}) == 3

    def coloured(picture_by: str | None) -> str:
        task = Task("p", "probe", "probe", "small", ProbeSettings(picture_by=picture_by))
        return key_of(task, resources, {})

    assert len({coloured(None), coloured("RecentTopic"), coloured("ActionSelect")}) == 3


def test_what_was_skipped_of_any_corpus_counts(tmp_path: Path) -> None:
    def key(task: Task, **read: Any) -> str:
        corpora = {"small": generate(dialogues=5), "bench": replace(generate(dialogues=3, seed=1), **read)}
        resources = Resources(plan_of(OVERLAP), tmp_path, corpora, Silent(), trains=False)
        return key_of(task, resources, {})

    for task in (
        Task("o", "overlap", "overlap", "bench", OverlapSettings()),
        Task("o", "overlap", "overlap", "small", OverlapSettings(), against=("bench",)),
    ):
        assert len({key(task), key(task, skipped={"no turns": 1}), key(task, ignored={"extra": 2})}) == 3


def test_the_version_of_a_packaged_encoder_counts(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from dialoscope.engage import packaged

    def key(installed: str, encoder: str) -> str:
        monkeypatch.setattr(packaged, "version", lambda package: f"{package} {installed}")
        (_, task) = plan_of({"corpora": {"small": "concierge"}, "depth": {"encoder": encoder}}).tasks
        return key_of(task, resources, {})

    resources = Resources(plan_of(OVERLAP), study.folder, {"small": generate(dialogues=5)}, Silent(), trains=False)
    for encoder in ("minilm", "mpnet"):
        assert key("1", encoder) == key("1", encoder) != key("2", encoder)
    assert key("1", "org/encoder") == key("2", "org/encoder")


def test_a_file_below_the_home_folder_counts_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = []
    for words in ("one", "two"):
        (tmp_path / "rated.csv").write_text(words)
        found.append(content_of("~/rated.csv"))
    assert found[0] != found[1] == content_of(tmp_path / "rated.csv")


def test_other_weights_are_asked_again(study: Study, small: Corpus, table: Table, tmp_path: Path) -> None:
    best = shutil.copytree(next(study.folder.glob("models/one-*/best")), tmp_path / "m")
    plan = {"corpora": {"small": "x"}, "models": {"m": str(best)}, "attention": {"limit": 3}}
    run(plan, tmp_path / "s", corpora={"small": small})
    assert reused(run(plan, tmp_path / "s", corpora={"small": small}))["attention-small"] is True
    shutil.rmtree(best)
    shutil.copytree(next(study.folder.glob("models/two-*/best")), best)
    assert reused(run(plan, tmp_path / "s", corpora={"small": small}))["attention-small"] is False


def test_other_dialogues_are_measured_again(study: Study, table: Table, tmp_path: Path) -> None:
    folder = copy(study, tmp_path / "s")
    again = run(OVERLAP, folder, corpora={"small": generate(dialogues=90, seed=4)})
    assert reused(again) == {"corpus-small": False, "overlap-small": False}
    assert (study.folder / study.steps[3].run).is_dir()  # what is not asked for is kept
    assert [step.name for step in read_steps(folder)] == NAMES[:2]


def test_a_file_that_a_setting_names_counts_with_its_content(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study
) -> None:
    read: list[str] = []

    def answer(corpus: Corpus, **options: Any) -> Any:
        read.append(Path(options["settings"].ratings).read_text())
        return fake_measure(corpus, **options)

    answer_with(monkeypatch, "attention", answer)
    rated, best = tmp_path / "rated.csv", next(study.folder.glob("models/one-*/best"))
    plan = {"corpora": {"small": "x"}, "models": {"m": str(best)}, "attention": {"ratings": str(rated), "limit": 3}}
    for words in ("one", "one", "two"):
        rated.write_text(words)
        run(plan, tmp_path / "s", corpora={"small": small})
    assert read == ["one", "two"]


@pytest.mark.parametrize(
    "file", ["state.json", "matches.parquet", "report.html", "tables", "tables/closest-matches.csv"]
)
def test_a_result_that_somebody_damaged_is_made_again(
    study: Study, small: Corpus, table: Table, tmp_path: Path, file: str
) -> None:
    folder = copy(study, tmp_path / "s")
    damaged = folder / study.steps[1].run / file
    shutil.rmtree(damaged) if damaged.is_dir() else damaged.unlink()
    again = run(table(), folder, corpora={"small": small})
    assert reused(again) == {**dict.fromkeys(NAMES, True), "overlap-small": False}
    assert again.failed == []
    assert damaged.exists()


@pytest.mark.parametrize(
    "content",
    ["{", "", "{}", '{"schema_version": 2, "instrument": "overlap"}', '{"schema_version": 1, "instrument": "probe"}'],
)
def test_a_result_whose_json_is_damaged_is_made_again(
    study: Study, small: Corpus, table: Table, tmp_path: Path, content: str
) -> None:
    folder = copy(study, tmp_path / "s")
    (folder / study.steps[1].run / "result.json").write_text(content)
    again = run(table(), folder, corpora={"small": small})
    assert reused(again) == {**dict.fromkeys(NAMES, True), "overlap-small": False}
    assert again.failed == []
    assert again.results == study.results


def test_a_comparison_whose_result_is_damaged_is_made_again(small: Corpus, tmp_path: Path) -> None:
    run(OVERLAP, tmp_path / "earlier", corpora={"small": small})
    plan = {**OVERLAP, "against": str(tmp_path / "earlier")}
    run(plan, tmp_path / "s", corpora={"small": small})
    (tmp_path / "s" / "runs" / "compared" / "result.json").write_text("{")
    again = run(plan, tmp_path / "s", corpora={"small": small})
    assert again.failed == []
    assert again.results["compared"]["identical"] == 2


def test_a_study_json_of_another_time_does_not_pass_for_the_result(small: Corpus, tmp_path: Path) -> None:
    """As where a study is interrupted after its result was written and before that was noted."""
    plans = [{**OVERLAP, "overlap": {"leak": leak}} for leak in (0.5, 0.9)]
    run(plans[0], tmp_path / "s", corpora={"small": small})
    book = (tmp_path / "s" / "study.json").read_text()
    run(plans[1], tmp_path / "s", corpora={"small": small})
    (tmp_path / "s" / "study.json").write_text(book)
    again = run(plans[0], tmp_path / "s", corpora={"small": small})
    assert again.results["overlap-small"]["settings"]["leak"] == 0.5


# --- Splits and models ------------------------------------------------------------------------------------------------


def test_a_question_gets_the_corpus_as_it_is_read(small: Corpus, tmp_path: Path) -> None:
    whole = of_one_split(small, 40)
    found = run(OVERLAP, tmp_path / "s", corpora={"small": whole})
    assert found.results["overlap-small"]["parts"] == {"all": 40}
    assert found.results["overlap-small"]["scores"] == measure(whole).to_dict()["scores"]


def test_models_are_not_asked_what_they_learnt_where_a_corpus_has_one_split(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope.model.train import train

    learnt: set[str] = set()

    def watched(corpus: Corpus, **options: Any) -> Any:
        learnt.update(dialogue.id for dialogue in corpus.split("train", "validation"))
        return train(corpus, **options)

    monkeypatch.setattr(sys.modules["dialoscope.model.train"], "train", watched)
    whole = of_one_split(small, 60)
    plan = {"corpora": {"small": "x"}, "models": {"one": SMALL}, "attention": {}, "seed": 4}
    found = run(plan, tmp_path / "s", corpora={"small": whole})
    asked = set(load_result(tmp_path / "s" / found.steps[1].run).ids)  # type: ignore[attr-defined]
    assert asked == {dialogue.id for dialogue in split_evenly(whole, seed=4).split("test")}
    assert learnt
    assert asked & learnt == set()
    assert "small has one split: it was split 80/10/10 by dialogue with seed 4" in found.report.read_text(
        encoding="utf-8"
    )


def test_a_corpus_of_one_split_is_measured_whole_by_models_that_were_there(
    study: Study, small: Corpus, tmp_path: Path
) -> None:
    best = next(study.folder.glob("models/one-*/best"))
    plan = {"corpora": {"small": "x"}, "models": {"m": str(best)}, "attention": {}}
    found = run(plan, tmp_path / "s", corpora={"small": of_one_split(small, 30)})
    assert found.results["attention-small"]["parts"] == {"all": 30}


def test_further_corpora_are_given_by_name(small: Corpus, tmp_path: Path) -> None:
    plan = {"corpora": {"small": "x", "bench": "y"}, "overlap": {"against": ["bench"]}}
    bench = generate(dialogues=20, seed=9)
    found = run(plan, tmp_path / "s", corpora={"small": small, "bench": bench})
    assert states(found) == dict.fromkeys(("corpus-small", "corpus-bench", "overlap-small"), "done")
    expected = measure(small, against={"bench": bench}).to_dict()["scores"]
    assert found.results["overlap-small"]["scores"] == expected
    again = run(plan, tmp_path / "s", corpora={"small": small, "bench": generate(dialogues=20, seed=8)})
    assert reused(again)["overlap-small"] is False


def test_a_failure_is_shown_and_the_others_are_run(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(corpus: Corpus, **options: Any) -> Any:
        raise ZeroDivisionError("<script>alert(1)</script>")

    plan = plan_of({"corpora": {"small": "concierge", "gone": str(tmp_path / "none.jsonl")}, "overlap": {}})
    answer_with(monkeypatch, "overlap", broken)
    found = run(plan, tmp_path / "s", corpora={"small": small})
    assert [(step.name, step.state) for step in found.steps] == [
        ("corpus-small", "done"), ("corpus-gone", "failed"), ("overlap-small", "failed"), ("overlap-gone", "failed"),
    ]  # fmt: skip
    page = found.report.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page
    assert "<script>alert(1)" not in page
    assert "ZeroDivisionError" in (tmp_path / "s" / "failures" / "overlap-small.txt").read_text()
    monkeypatch.undo()
    repaired = run(plan, tmp_path / "s", corpora={"small": small, "gone": small})
    assert {step.name: (step.state, step.is_reused) for step in repaired.steps} == {
        "corpus-small": ("done", True), "corpus-gone": ("done", False),
        "overlap-small": ("done", False), "overlap-gone": ("done", False),
    }  # fmt: skip
    assert list((tmp_path / "s" / "failures").iterdir()) == []


def saved_model(study: Study, folder: Path) -> Path:
    shutil.copytree(next(study.folder.glob("models/one-*/best")), folder)
    return folder


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def damaged(kind: str, study: Study, folder: Path) -> Path:
    """A folder that only looks like a model: none, empty, cut short and so said by its sizes, or known when loaded."""
    if kind == "none":
        return folder
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


@pytest.mark.parametrize("kind", ["none", "empty", "cut short", "another's"])
def test_a_model_that_cannot_be_loaded_is_left_out_and_the_others_are_measured(
    study: Study, small: Corpus, tmp_path: Path, kind: str
) -> None:
    good, bad = saved_model(study, tmp_path / "good"), damaged(kind, study, tmp_path / "bad")
    models = {"bad": str(bad), "good": str(good)}
    table = {"corpora": {"small": "x"}, "models": models, "attention": {"limit": 3}}
    found = run(table, tmp_path / "s", corpora={"small": small})
    assert states(found) == {"corpus-small": "done", "model bad": "failed", "attention-small": "done"}
    assert [name.partition("/")[0] for name in found.results["attention-small"]["scores"]] == ["good"]
    again = run(table, tmp_path / "s", corpora={"small": small})
    assert [step.is_reused for step in again.steps] == [True, False, True]
    gate = Gate(score="*/random-0.7/das_ratio", min=0)
    (check, _) = check_gates([gate], read_results([again.folder]), missing_steps([again.folder]))
    assert (check.has_passed, "was measured without bad: the model is failed" in check.reason) == (False, True)
    repaired = {**table, "models": {**models, "bad": str(good)}}
    assert run(repaired, tmp_path / "s", corpora={"small": small}).failed == []
    assert list((tmp_path / "s" / "failures").iterdir()) == []


def test_a_model_that_something_is_not_installed_for_does_not_cost_the_others(
    study: Study, small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope.model.loading import load

    good, other = (saved_model(study, tmp_path / name) for name in ("good", "other"))

    def loaded(path_or_name: str, **options: Any) -> Any:
        if path_or_name == str(other):
            raise MissingExtraError("This model", "gguf")
        return load(path_or_name, **options)

    monkeypatch.setattr("dialoscope.model.loading.load", loaded)
    table = {"corpora": {"small": "x"}, "models": {"other": str(other), "good": str(good)}}
    attention = {"attention": [{"limit": 3}, {"name": "again", "limit": 4}]}
    found = run({**table, **attention}, tmp_path / "s", corpora={"small": small})
    assert [(step.name, step.state) for step in found.steps] == [
        ("corpus-small", "done"), ("model other", "skipped"), ("attention-small", "done"), ("again-small", "done"),
    ]  # fmt: skip


def test_models_are_loaded_once_for_all_steps(study: Study, small: Corpus, tmp_path: Path) -> None:
    from dialoscope.model import sharing
    from dialoscope.model.loading import load

    best = str(next(study.folder.glob("models/one-*/best")))
    with sharing.shared_models():
        assert load(best, device="cpu", quiet=True) is load(best, device="cpu")
        assert load(best, device="cpu", batch_size=2) is not load(best, device="cpu")
    assert load(best, device="cpu") is not load(best, device="cpu")


def test_what_is_not_installed_is_skipped_and_is_no_failure(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(corpus: Corpus, **options: Any) -> Any:
        raise MissingExtraError("Overlap", "spark")

    answer_with(monkeypatch, "overlap", missing)
    found = run(OVERLAP, tmp_path / "s", corpora={"small": small})
    assert (states(found), found.failed) == ({"corpus-small": "done", "overlap-small": "skipped"}, [])
    assert "pip install &#39;dialoscope[spark]&#39;" in found.report.read_text(encoding="utf-8")


def test_the_plan_is_kept_and_the_page_says_how_models_were_trained(small: Corpus, tmp_path: Path) -> None:
    models = {"<b>one|a</b>": {**SMALL, "seed": 1}}
    plan = {"corpora": {"small": "x"}, "models": models, "seed": 3, "attention": {"limit": 3}, "overlap": {"leak": 0.7}}
    found = run(plan, tmp_path / "s", corpora={"small": small})
    kept = json.loads((tmp_path / "s" / "study.json").read_text())["plan"]
    assert [(task["name"], task["settings"].get("seed")) for task in kept["tasks"]] == [
        ("corpus-small", None), ("overlap-small", 3), (kept["tasks"][2]["name"], 3),
    ]  # fmt: skip
    assert kept["models"]["<b>one|a</b>"]["epochs"] == 1
    page = unescape(found.report.read_text(encoding="utf-8"))
    made = page.partition('id="steps"')[2]
    said = ("preset=static-ui", "epochs=1", "set=['layers=1'", "seed=1")
    assert [words for words in said if words not in made] == []
    assert "<b>one|a</b></td>" not in found.report.read_text(encoding="utf-8")
    assert "leak:0.7" in page


def test_a_study_says_to_a_watcher_what_begins_and_ends(small: Corpus, tmp_path: Path) -> None:
    told: list[str] = []

    class Watcher:
        def begin(self, step: str) -> Progress | None:
            told.append(f"{step} begins")
            return None

        def end(self, step: Step) -> None:
            told.append(f"{step.name} is {step.state}")

    run(OVERLAP, tmp_path / "s", corpora={"small": small}, watcher=Watcher())
    assert told == [
        "corpus-small begins", "corpus-small is done", "overlap-small begins", "overlap-small is done",
    ]  # fmt: skip


# --- Interrupted ------------------------------------------------------------------------------------------------------


def test_what_was_measured_on_other_dialogues_does_not_pass_for_an_interrupted_study(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, folder = plan_of(OVERLAP), tmp_path / "s"
    run(plan, folder, corpora={"small": small})
    later = generate(dialogues=90, seed=4)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt(patch, "overlap")
        run(plan, folder, corpora={"small": later})
    assert [(each.name, sum(each.head["parts"].values())) for each in read_results([folder])] == [("corpus-small", 90)]
    gate = Gate(score="ratio/test/mean_ratio", max=1)
    (check,) = check_gates([gate], read_results([folder]), missing_steps([folder]))
    assert (check.has_passed, check.reason) == (False, "overlap-small is not yet run")
    steps = read_steps(folder)
    sections = sections_of(folder, steps)
    assert (steps[1].state, sections[1].lead) == ("pending", "Not yet run.")
    assert overall(list(zip(steps, sections, strict=True))) == "Not yet run: Overlap: small."
    assert planned(plan, folder, corpora={"small": later})[1]["state"] == "to do"
    assert [step.state for step in run(plan, folder, corpora={"small": later}).steps] == ["done", "done"]


def test_a_comparison_that_was_interrupted_is_not_yet_run(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(OVERLAP, tmp_path / "earlier", corpora={"small": small})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt(patch, "overlap")
        run({**OVERLAP, "against": str(tmp_path / "earlier")}, tmp_path / "s", corpora={"small": small})
    pending = {step.name: step.state for step in missing_steps([tmp_path / "s"])}
    assert pending == dict.fromkeys(("overlap-small", "compared"), "pending")


def test_a_study_that_was_interrupted_in_its_first_moment_continues(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / f"{MARK}0123456789ab-1-x.json").write_text("")
    assert run(OVERLAP, tmp_path, corpora={"small": small}).failed == []


# --- Names ------------------------------------------------------------------------------------------------------------


def test_a_folder_of_somebody_else_is_refused(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="expected a new folder or an earlier study"):
        run(OVERLAP, tmp_path, corpora={"small": small})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("book", ["{", "[]", '{"steps": 3}', '{"steps": [{"name": 1}]}'])
def test_a_study_whose_study_json_is_damaged_is_known_by_its_results(small: Corpus, tmp_path: Path, book: str) -> None:
    run(OVERLAP, tmp_path / "s", corpora={"small": small})
    (tmp_path / "s" / "study.json").write_text(book)
    again = run(OVERLAP, tmp_path / "s", corpora={"small": small})
    assert [step.is_reused for step in again.steps] == [True, True]


@pytest.mark.parametrize("corpora", [("日本語", "中文"), ("a b", "a-b")])
def test_studies_are_paired_by_corpus_and_reused_whatever_the_order(
    small: Corpus, tmp_path: Path, corpora: tuple[str, str]
) -> None:
    given = dict(zip(corpora, (small, generate(dialogues=60, seed=5)), strict=True))
    plans = [{"corpora": dict.fromkeys(order, "x"), "overlap": {}} for order in (corpora, corpora[::-1])]
    for number, plan in enumerate(plans):
        run(plan, tmp_path / f"u{number}", corpora=given)
    found = compare(tmp_path / "u0", tmp_path / "u1")
    assert (len(found.changes), found.identical, found.left_out) == (4, 4, ())
    again = run(plans[1], tmp_path / "u0", corpora=given)
    assert [step.is_reused for step in again.steps] == [True] * 4


def test_a_comparison_says_which_corpus_it_is_of_where_the_steps_name_does_not(small: Corpus, tmp_path: Path) -> None:
    for number in range(2):
        plan = {"corpora": {"日本語": "x", "small": "x"}, "overlap": {}}
        run(plan, tmp_path / f"u{number}", corpora={"日本語": small, "small": small})
    found = compare(tmp_path / "u0", tmp_path / "u1")
    assert list(dict.fromkeys(change.run for change in found.changes)) == ["overlap on 日本語", "overlap-small"]


def test_studies_of_other_corpora_share_no_result_though_their_names_look_alike(small: Corpus, tmp_path: Path) -> None:
    for number, corpus in enumerate(("a b", "a-b")):
        run({"corpora": {corpus: "x"}, "overlap": {}}, tmp_path / f"u{number}", corpora={corpus: small})
    with pytest.raises(UsageError, match=r"share no result: one has .*overlap on a b; the other .*overlap on a-b\."):
        compare(tmp_path / "u0", tmp_path / "u1")


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_device_that_cannot_be_used_is_told_before_anything_is_written(
    small: Corpus, tmp_path: Path, is_dry: bool
) -> None:
    plan = {"corpora": {"small": "x"}, "device": "cdua", "overlap": {}}
    with pytest.raises(UsageError, match="Unknown device 'cdua'"):
        (planned if is_dry else run)(plan, tmp_path / "s", corpora={"small": small})
    assert not (tmp_path / "s").exists()


def test_settings_of_a_toml_reach_the_question(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[corpora]\nsmall = "x"\n[overlap]\nlimit = 5\nunit = "turn"\n')
    plan = read_plan(tmp_path / "study.toml")
    assert plan.tasks[1].settings == OverlapSettings(limit=5, unit="turn")
    found = run(plan, tmp_path / "s", corpora={"small": small})
    assert found.results["overlap-small"]["scores"] == measure(small, limit=5, unit="turn").to_dict()["scores"]


def test_the_metrics_of_a_study_are_those_of_the_call(tmp_path: Path) -> None:
    from dialoscope.metrics import measure as measure_responses

    for name, lines in {"said.txt": ["a cat", "the dog"], "refs.txt": ["a cat", "a dog"]}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "chats.txt").write_text("hello\nhi\n\nbye\nbye\n")
    table = '[corpora]\nchats = "chats.txt"\n[metrics]\nhypotheses = "said.txt"\nreferences = "refs.txt"\n'
    (tmp_path / "study.toml").write_text(table)
    found = run(tmp_path / "study.toml", tmp_path / "s")
    expected = measure_responses(str(tmp_path / "said.txt"), str(tmp_path / "refs.txt")).to_dict()["scores"]
    assert states(found) == {"corpus-chats": "done", "metrics": "done"}
    assert found.results["metrics"]["scores"] == expected
    (tmp_path / "said.txt").write_text("other\nwords\n")
    assert reused(run(tmp_path / "study.toml", tmp_path / "s"))["metrics"] is False


def test_further_hypotheses_are_compared_with_the_first_by_the_names_of_their_files(tmp_path: Path) -> None:
    from dialoscope.metrics import measure as measure_responses

    texts = {"one.txt": ["a cat", "the dog"], "two.txt": ["a cat", "a dog"], "refs.txt": ["a cat", "a dog"]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    one, two, refs = (str(tmp_path / name) for name in texts)
    table = {"corpora": {"small": "x"}, "metrics": {"hypotheses": [one, two], "references": refs}}
    found = run(table, tmp_path / "s", corpora={"small": generate(dialogues=3)}).results["metrics"]
    assert found["scores"] == measure_responses(one, refs, against={"two.txt": two}).to_dict()["scores"]
    assert {path.partition("/")[0] for path in found["scores"]} == {"one.txt", "two.txt"}
    turned = {**table, "metrics": {"hypotheses": [two, one], "references": refs}}
    assert reused(run(turned, tmp_path / "s", corpora={"small": generate(dialogues=3)}))["metrics"] is False


def test_written_sets_are_measured_without_a_corpus(
    study: Study, small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope import distract

    real = Question("?", "distract", "measure", "AttentionSettings", "AttentionResult", True)
    monkeypatch.setitem(QUESTIONS, "attention", real)
    sets = distract.make_sets(small, sets=("random-0.7",), limit=5)
    distract.write_sets(sets, tmp_path / "sets")
    best = str(next(study.folder.glob("models/one-*/best")))
    table = {
        "corpora": {"small": "x"},
        "models": {"m": best},
        "attention": {"sets_dir": str(tmp_path / "sets")},
        "seed": 3,
    }
    found = run(table, tmp_path / "s", corpora={"small": small})
    assert [(step.name, step.state, step.reason) for step in found.steps][1:] == [("attention", "done", "")]
    expected = distract.measure(models={"m": best}, sets_dir=str(tmp_path / "sets"))
    assert found.results["attention"]["scores"] == expected.to_dict()["scores"]
    assert [row["dialogues"] for row in planned(table, tmp_path / "s", corpora={"small": small})] == [120, None]


def test_a_baseline_is_named_as_a_model_of_ratings(tmp_path: Path) -> None:
    from dialoscope.engage import ratings

    rows = [{"context": ["hello"], "response": "w " * (row % 5 + 1), "human": row % 4} for row in range(20)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = {
        "corpora": {"small": "x"}, "models": {"mine": "position"},
        "ratings": {"rated": str(tmp_path / "t.jsonl"), "models": ["word_count", "mine"]},
    }  # fmt: skip
    found = run(table, tmp_path / "s", corpora={"small": generate(dialogues=3)})
    assert [(step.name, step.state, step.reason) for step in found.steps][1:] == [("ratings", "done", "")]
    expected = ratings(str(tmp_path / "t.jsonl"), models={"word_count": "word_count", "mine": "position"})
    assert found.results["ratings"]["scores"] == expected.to_dict()["scores"]
