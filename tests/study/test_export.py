from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.record import Score
from dialoscope.study.export import log_to_mlflow, not_measured, to_lm_eval, to_mlflow, to_model_card
from dialoscope.study.gate import Gate, check_gates
from dialoscope.study.results import StoredResult, read_results
from dialoscope.study.run import Study
from dialoscope.study.steps import Step

OVERLAP = {
    "ratio/test/identical_share": Score(0.1, 20, (0.05, 0.15)),
    "ratio/test/share_over_0.8": Score(0.25, 20, (0.2, 0.3)),
}
ATTENTION = {
    "org_ours/original/perplexity": Score(20.0, 43, (18.0, 22.0)),
    "org_ours/original/history_percent": Score(90.0, 40),
    "org_ours/rare-end/das_ratio_of_means": Score(0.9, 38, (0.8, 1.0)),
    "org_ours/rare-end/perplexity": Score.missing("nothing to read"),
    "base/original/perplexity": Score(30.0, 43),
}
PROBE = {"base/A/f1": Score(0.75, 12, (0.7, 0.8)), "bag_of_words/A/f1": Score(0.5, 12, (0.4, 0.6))}
VERDICTS: dict[str, list[dict[str, Any]]] = {
    "overlap": [{"level": "concern", "text": "25 % leak.", "scores": ["ratio/test/share_over_0.8"], "against": None}],
    "attention": [
        {"level": "good", "text": "Ours chooses.", "scores": ["org_ours/rare-end/das_ratio_of_means"], "against": None},
        {"level": "cannot_tell", "text": "Base?", "scores": ["base/original/perplexity"], "against": None},
    ],
    "probe": [
        {"level": "good", "text": "1 task.", "scores": ["base/A/f1"], "against": "bag_of_words/A/f1"},
    ],
}
FLAT = {
    "overlap-chats/ratio/test/identical_share": 0.1,
    "overlap-chats/ratio/test/share_over_0.8": 0.25,
    "attention-chats/org_ours/original/perplexity": 20.0,
    "attention-chats/org_ours/original/history_percent": 90.0,
    "attention-chats/org_ours/rare-end/das_ratio_of_means": 0.9,
    "attention-chats/base/original/perplexity": 30.0,
    "probe-chats/base/A/f1": 0.75,
    "probe-chats/bag_of_words/A/f1": 0.5,
}
OF_BASE = {name: value for name, value in FLAT.items() if "org_ours" not in name and "bag_of" not in name}


def stored(
    folder: Path, instrument: str, scores: dict[str, Score], models: tuple[str, ...] = (), corpus: str = "chats"
) -> StoredResult:
    name = f"{instrument}-chats"
    (folder / name).mkdir(parents=True)
    head = {
        "schema_version": 2, "instrument": instrument, "verdicts": VERDICTS.get(instrument, []),
        "origin": {"corpus": f"{corpus}@1", "settings": {}, "seed": 0, "version": "1"},
        "scores": {path: score.to_dict() for path, score in scores.items()},
    }  # fmt: skip
    (folder / name / "result.json").write_text(json.dumps(head))
    (folder / name / "report.html").write_text("page")
    return StoredResult(Step(name, instrument, corpus, "done", instrument, models), name, folder / name)


@pytest.fixture
def results(tmp_path: Path) -> list[StoredResult]:
    return [
        stored(tmp_path, "overlap", OVERLAP),
        stored(tmp_path, "attention", ATTENTION, ("org/ours", "base")),
        stored(tmp_path, "probe", PROBE, ("base",)),
    ]


def test_mlflow_gets_every_number_and_no_missing_one(results: list[StoredResult]) -> None:
    assert to_mlflow(results) == FLAT
    assert to_mlflow(results, "base") == OF_BASE


@pytest.mark.parametrize(("model", "expected"), [("", FLAT), ("base", OF_BASE)])
def test_mlflow_logs_every_number(
    results: list[StoredResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    expected: dict[str, float],
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    number = log_to_mlflow(results, model, uri=(tmp_path / "tracked").as_uri())
    assert mlflow.get_run(number).data.metrics == pytest.approx(expected)


def test_where_mlflow_is_missing_its_package_is_named(
    results: list[StoredResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"^Logging to MLflow needs a package: pip install mlflow-skinny$"):
        log_to_mlflow(results)


def test_names_that_are_too_long_for_mlflow_stay_apart(tmp_path: Path) -> None:
    long = {f"{'m' * 300}{end}/s/spearman": Score(value, 3) for end, value in (("a", 0.1), ("b", 0.2))}
    found = to_mlflow([stored(tmp_path, "ratings", long)])
    assert list(found.values()) == [0.1, 0.2]
    assert {len(name) for name in found} == {250}


def test_lm_eval_has_a_task_for_every_part_with_errors_and_counts(results: list[StoredResult]) -> None:
    found = to_lm_eval(results)
    assert found["results"]["attention-chats_org_ours_rare-end"] == {
        "alias": "attention-chats_org_ours_rare-end",
        "das_ratio_of_means,none": 0.9,
        "das_ratio_of_means_stderr,none": pytest.approx(0.0510213, rel=1e-5),  # (1.0 - 0.8) / 2 / 1.959964
    }
    assert found["results"]["attention-chats_base_original"]["perplexity_stderr,none"] == "N/A"
    assert found["n-samples"]["attention-chats_org_ours_original"] == {"original": 43, "effective": 40}
    assert found["dialoscope"]["attention-chats_org_ours_original"]["perplexity"] == {"n": 43, "interval": [18.0, 22.0]}
    higher = found["higher_is_better"]
    assert higher["attention-chats_org_ours_original"] == {"perplexity": False}  # history_percent is neither
    assert higher["probe-chats_base_A"] == {"f1": True}
    assert higher["overlap-chats_ratio_test"] == {"identical_share": False, "share_over_0.8": False}
    parts = {"results", "configs", "versions", "n-shot", "higher_is_better", "n-samples", "config", "date"}
    assert set(found) >= parts
    assert set(found["results"]) == set(found["versions"]) == set(found["configs"])
    assert json.loads(json.dumps(found)) == found


def test_a_model_card_has_the_verdicts_and_the_numbers_behind_them(results: list[StoredResult]) -> None:
    card = to_model_card(results)
    assert "- Concern: 25 % leak.\n- Good: Ours chooses.\n- Cannot tell: Base?\n- Good: 1 task.\n" in card
    rows = [line for line in card.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "| overlap | chats | ratio | test | share\\_over\\_0.8 | 0.25 | 0.2 to 0.3 | 20 |",
        "| attention | chats | org\\_ours | rare-end | das\\_ratio\\_of\\_means | 0.9 | 0.8 to 1 | 38 |",
        "| attention | chats | base | original | perplexity | 30 |  | 43 |",
        "| probe | chats | base | A | f1 | 0.75 | 0.7 to 0.8 | 12 |",
        "| probe | chats | bag\\_of\\_words | A | f1 | 0.5 | 0.4 to 0.6 | 12 |",
    ]
    entries = json.loads(card.splitlines()[1].removeprefix("model-index: "))
    assert [entry["name"] for entry in entries] == ["org_ours", "base"]
    values = [[metric["metrics"][0]["value"] for metric in entry["results"]] for entry in entries]
    assert values == [[0.25, 0.9], [0.25, 30.0, 0.75]]


def test_the_card_of_one_model_keeps_to_itself_which_others_were_asked(results: list[StoredResult]) -> None:
    card = to_model_card(results, "org/ours")
    assert "base" not in card.lower()
    assert json.loads(card.splitlines()[1].removeprefix("model-index: "))[0]["name"] == "org/ours"


def test_a_model_card_is_one_to_the_hub(results: list[StoredResult]) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = hub.ModelCard(to_model_card(results, "base"))
    found = {(each.dataset_name, each.metric_name): each.metric_value for each in card.data.eval_results}
    assert found["chats", "A f1"] == 0.75
    assert card.data.model_name == "base"


def test_a_card_of_corpora_alone_has_no_entry_for_a_model(results: list[StoredResult]) -> None:
    assert to_model_card(results[:1]).startswith("## Evaluation by Dialoscope")


@pytest.mark.parametrize("name", ["a: b", "'x'", "- y", "日本語", "one\ntwo", "a | b", "<b>", "\x85"])
def test_any_name_gives_a_card_that_can_be_read(tmp_path: Path, name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    card = to_model_card([stored(tmp_path, "x", {}), stored(tmp_path, "probe", PROBE, ("base",), corpus=name)])
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == " ".join(name.split()).replace("\x85", "")
    rows = [line for line in card.splitlines() if line.startswith("| probe")]
    assert len(rows) == 2


MISSING = [
    Step("attention-small", "attention", "small", "failed", "attention", reason="/home/me: no model"),
    Step("deep-small", "probe", "small", "pending", "deep | probe"),
    Step("depth-small", "depth", "small", "skipped", "depth", reason="not installed"),
    Step("model two", "model", "", "failed", reason="gone"),
    Step("compared", "compare", "", "failed", reason="gone"),
]


def test_a_card_says_in_one_line_what_was_not_measured(results: list[StoredResult]) -> None:
    told = "attention on small (failed); deep | probe on small (not yet run); depth on small (skipped)"
    assert not_measured(MISSING) == f"{told}; model two (failed)"
    assert not_measured(MISSING, "base") == told
    (line,) = (line for line in to_model_card(results, "", MISSING).split("\n") if line.startswith("Not measured"))
    assert line == f"Not measured: {told.replace('|', chr(92) + '|')}; model two (failed)."
    assert "/home/me" not in to_model_card(results, "", MISSING)
    assert "Not measured" not in to_model_card(results)


@pytest.mark.parametrize("form", ["model-card", "lm-eval"])
def test_an_export_says_what_is_not_in_it_where_people_look(study: Study, tmp_path: Path, form: str) -> None:
    folder = shutil.copytree(study.folder, tmp_path / "s")
    whole = CliRunner().invoke(app, ["export", str(folder), "--to", form])
    assert (whole.exit_code, whole.stderr) == (0, "")
    book = json.loads((folder / "study.json").read_text())
    book["steps"][2] |= {"state": "failed", "run": "", "reason": "no model"}
    (folder / "study.json").write_text(json.dumps(book))
    done = CliRunner().invoke(app, ["export", str(folder), "--to", form])
    assert done.stderr == "dialoscope: Not measured, and so not exported: attention on small (failed).\n"
    assert (done.exit_code, "Not measured: attention on small" in done.stdout) == (0, form == "model-card")


def test_a_study_is_exported_with_the_numbers_of_its_results(study: Study) -> None:
    results = read_results([study.folder])
    scores = study.results["attention-small"]["scores"]
    found = to_lm_eval(results)["dialoscope"]["attention-small_one_random-0.7"]["das_ratio"]
    kept = scores["one/random-0.7/das_ratio"]
    assert found == {"n": kept["n"], "interval": kept["interval"]}
    assert to_mlflow(results)["attention-small/one/random-0.7/das_ratio"] == kept["value"]
    assert not [name for name in to_mlflow(results) if name.startswith("corpus")]
    high = kept["interval"][1]
    gates = [Gate(score="one/*/das_ratio", instrument="attention", max=limit, bound="high")
             for limit in (high, high - 0.001)]  # fmt: skip
    assert [check.has_passed for check in check_gates(gates, results)] == [True, False]


@pytest.mark.parametrize("export", [to_lm_eval, to_model_card, to_mlflow])
def test_a_model_that_nobody_asked_is_refused(results: list[StoredResult], export: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match=r"Unknown model 'bass'\. Did you mean 'base'\?"):
        export(results, "bass")


def test_two_numbers_of_one_name_are_refused(results: list[StoredResult]) -> None:
    twin = replace(results[1], name="attention_chats")
    other = replace(results[1], name="attention chats")
    with pytest.raises(UsageError, match=r"^Two numbers would be called .*: give the models or steps other names"):
        to_lm_eval([twin, other])
