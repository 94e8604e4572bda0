from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnwise.errors import UsageError
from turnwise.report import read_run
from turnwise.study import Study, read_runs
from turnwise.study.interop import log_to_mlflow, to_evaluate, to_lm_eval, to_model_card


def run_of(study: Study, instrument: str) -> Path:
    return next(study.folder / one.run for one in study.steps if one.instrument == instrument)


def test_an_evaluate_dict_is_flat_and_holds_the_numbers_of_the_runs(study: Study) -> None:
    found = to_evaluate(read_runs([study.folder]))
    data = read_run(run_of(study, "distract")).data
    expected = data["models"]["one"]["sets"]["rare-end"]["das_ratio"]
    assert found["distract-small/one/sets/rare-end/das_ratio"] == expected
    assert {type(value) for value in found.values()} == {float}
    assert not [key for key in found if key.startswith("corpus")]


def test_lm_eval_results_have_its_parts_and_its_names(study: Study) -> None:
    found = to_lm_eval(read_runs([study.folder]))
    task = found["results"]["probe-small_two_tasks_UtteranceLoc"]
    row = read_run(run_of(study, "probe")).data["models"]["two"]["tasks"]["UtteranceLoc"]
    assert task["f1,none"] == row["f1"]
    low, high = row["interval"]
    assert task["f1_stderr,none"] == pytest.approx((high - low) / 3.919928)
    assert set(found) >= {"results", "configs", "versions", "n-shot", "higher_is_better", "n-samples", "config", "date"}
    assert set(found["results"]) == set(found["versions"]) == set(found["configs"])
    directions = found["higher_is_better"]["distract-small_one_sets_rare-end"]
    assert {key: directions[key] for key in ("das_ratio", "das_ratio_of_means", "perplexity")} == {
        "das_ratio": False, "das_ratio_of_means": False, "perplexity": False,
    }  # fmt: skip
    assert "samples" not in directions
    assert found["higher_is_better"]["overlap-small_share_over"]["0.8"] is False
    assert found["higher_is_better"]["probe-small_two_tasks_UtteranceLoc"]["f1"] is True
    assert json.loads(json.dumps(found)) == found


def test_a_model_card_is_one_to_the_hub(study: Study) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = hub.ModelCard(to_model_card(read_runs([study.folder]), "one"))
    results = {(one.dataset_name, one.metric_name): one.metric_value for one in card.data.eval_results}
    data = read_run(run_of(study, "distract")).data["models"]["one"]
    assert results["small", "rare-end das_ratio_of_means"] == data["sets"]["rare-end"]["das_ratio_of_means"]
    assert card.data.model_name == "one"
    assert "two" not in card.text
    assert card.text.count("models:one=static-ui@") == 2  # of distract and of probe
    assert card.text.count("\n| probe |") == 2 + 2  # tasks and their groups


def test_a_card_of_all_models_tells_them_apart(study: Study) -> None:
    head = to_model_card(read_runs([study.folder])).split("\n")[1]
    entries = json.loads(head.removeprefix("model-index: "))
    assert [one["name"] for one in entries] == ["one", "two"]
    values = [
        next(
            one["metrics"][0]["value"] for one in entry["results"] if one["metrics"][0]["name"] == "original perplexity"
        )
        for entry in entries
    ]
    models = read_run(run_of(study, "distract")).data["models"]
    assert values == [models[name]["original"]["perplexity"] for name in ("one", "two")]


def test_a_card_of_a_model_that_nobody_asked_is_refused(study: Study) -> None:
    with pytest.raises(UsageError, match="Unknown model 'three'"):
        to_model_card(read_runs([study.folder]), "three")


def test_mlflow_gets_every_number(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    runs = read_runs([study.folder])
    number = log_to_mlflow(runs, uri=(tmp_path / "tracked").as_uri())
    kept = mlflow.get_run(number).data.metrics
    assert kept == pytest.approx(to_evaluate(runs))
