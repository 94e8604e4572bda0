"""The probe commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.test_cli_model import CHEAP, as_json, dialoscope, refused

from dialoscope.probe.tasks import TASKS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dialoscope.corpus import generate, write

    path = tmp_path_factory.mktemp("corpus") / "small.parquet"
    write(generate(dialogues=60, seed=1), path, to="parquet")
    return path


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    as_json("train", corpus, *CHEAP, "--epochs", "2", "--log-metrics", "distinct-1", "--out", out)
    return out


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def probed(*arguments: object) -> Any:
    return as_json("probe", "measure", *arguments, "--device", "cpu", "--limit", "20")


def test_a_model_is_probed_on_all_tasks_beside_its_controls(run: Path, corpus: Path, tmp_path: Path) -> None:
    found = probed(f"mine={run}", "--corpus", corpus, "--out", tmp_path / "probed")
    one = found["models"]["mine"]
    assert list(one["tasks"]) == list(TASKS)
    assert found["skipped"] == {}
    for task in one["tasks"].values():
        assert 0 <= task["f1"] <= 1
        assert list(task["controls"]) == ["majority", "constant", "bag_of_words", "untrained", "shuffled"]
        assert {"interval", "n", "labels", "selectivity"} <= task.keys()
    assert set(one["groups"]) == {"easy", "medium", "hard"}
    kept = json.loads((tmp_path / "probed" / "result.json").read_text())["data"]
    assert kept["models"] == found["models"]
    assert (tmp_path / "probed" / "report.html").is_file()


def test_checkpoints_become_models_of_their_own(run: Path, corpus: Path) -> None:
    found = probed(
        f"m={run}", "--corpus", corpus, "--tasks", "semantic", "--checkpoints", "untrained,by:distinct-1,last",
        "--no-controls",
    )  # fmt: skip
    assert list(found["models"]) == ["m@untrained", "m@by:distinct-1", "m@last"]
    assert found["checkpoints"] == {"m": ["untrained", "by:distinct-1", "last"]}
    assert found["chosen"].keys() == {"m@by:distinct-1"}
    assert found["chosen"]["m@by:distinct-1"] in ("epoch-001", "epoch-002")
    assert set(found["comparisons"]) == {"m@by:distinct-1", "m@last"}
    assert list(found["models"]["m@last"]["tasks"]) == ["UtteranceLoc", "WordCont"]


def test_the_perceptron_can_be_asked_as_well(run: Path, corpus: Path) -> None:
    found = probed(run, "--corpus", corpus, "--tasks", "IsMultiTopic", "--classifier", "mlp", "--no-controls")
    task = next(iter(found["models"].values()))["tasks"]["IsMultiTopic"]
    assert "classifier:mlp" in task["signature"]
    assert task["f1"] > 0.4  # two classes


def test_a_dry_run_only_counts(run: Path, corpus: Path) -> None:
    found = probed(run, "--corpus", corpus, "--checkpoints", "all", "--dry-run")
    assert [name.partition("@")[2] for name in found["models"]] == ["untrained", "epoch-001", "epoch-002"]
    assert found["training_positions"] > found["held_out_positions"] > 0
    measure = ("probe", "measure", run, "--corpus", corpus, "--dry-run")
    assert "each encoded twice a model, once of them untrained" in dialoscope(*measure)
    assert "each encoded once a model" in dialoscope(*measure, "--no-controls")


def test_tasks_are_listed_with_what_a_corpus_can_carry(corpus: Path, tmp_path: Path) -> None:
    plain = tmp_path / "chat.jsonl"
    messages = [{"role": role, "content": "hello there"} for role in ("user", "assistant") * 2]
    plain.write_text("".join(json.dumps({"messages": messages}) + "\n" for _ in range(5)))
    carried = {one["name"]: one for one in as_json("probe", "tasks", "--corpus", plain)["tasks"]}
    assert carried["UtteranceLoc"]["is_carried"]
    assert carried["RecentSlots"]["reason"] == "needs state annotation, which the corpus lacks"
    assert all(one["is_carried"] for one in as_json("probe", "tasks", "--corpus", corpus)["tasks"])
    assert "RecentTopic" in dialoscope("probe", "tasks")


def test_what_is_wrong_is_said_in_one_line(run: Path, corpus: Path) -> None:
    measure = ("probe", "measure", run, "--corpus", corpus)
    assert "Did you mean 'RecentTopic'" in refused(*measure, "--tasks", "RecentTopics")
    assert "Unknown metric 'blue-2'" in refused("train", corpus, *CHEAP, "--log-metrics", "blue-2", "--out", run / "x")
    assert "Unknown classifier 'svm'" in refused(*measure, "--classifier", "svm")
    assert "no checkpoint 'epoch-100'" in refused(*measure, "--checkpoints", "epoch-100")
    assert "two different splits" in refused(*measure, "--train-split", "validation")
    assert "expects numbers" in refused(*measure, "--layer", "last")
    assert "are for Hugging Face models" in refused(*measure, "--layer", "1")
    assert "there is no such folder" in refused("probe", "measure", "./nowhere", "--corpus", corpus)


def test_ties_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    rows = [f"{item},{person},{choice}" for item in range(20) for person, choice in (("x", "tie"), ("y", "a"))]
    path.write_text("\n".join(["item,annotator,choice", *rows]) + "\n")
    found = as_json("probe", "ties", path, "--size", "10")
    assert found["shares"]["tie"]["value"] == 0.5
    assert found["studies"]["count"] == 50_000
    assert "ties of x" in dialoscope("probe", "ties", path, "--size", "10")


def test_three_models_are_compared_on_one_page(run: Path, corpus: Path, tmp_path: Path) -> None:
    names = [f"{name}={run}/{place}" for name, place in (("a", "untrained"), ("b", "best"), ("c", "last"))]
    found = probed(*names, "--corpus", corpus, "--tasks", "semantic", "--no-controls", "--out", tmp_path / "three")
    assert list(found["comparisons"]) == ["b", "c"]
    assert (tmp_path / "three" / "report.html").is_file()


def test_signatures_say_how_much_of_a_context_was_read(run: Path, corpus: Path) -> None:
    asked = [f"m={run}", "--corpus", corpus, "--tasks", "UtteranceLoc", "--no-controls"]
    for tokens, written in (("20", "20"), ("100", "100"), ("0", "all")):
        found = probed(*asked, "--context-tokens", tokens)["models"]["m"]["tasks"]["UtteranceLoc"]
        assert f"|context_tokens:{written}|" in found["signature"]


def test_shuffled_labels_do_not_depend_on_what_else_is_asked(run: Path, corpus: Path) -> None:
    asked = [f"m={run}", "--corpus", corpus, "--tasks"]
    alone = probed(*asked, "RecentTopic")["models"]["m"]["tasks"]["RecentTopic"]
    beside = probed(*asked, "AllTopics,RecentTopic")["models"]["m"]["tasks"]["RecentTopic"]
    assert alone == beside


def test_scores_of_zero_on_small_numbers_come_with_advice(run: Path, corpus: Path) -> None:
    shown = dialoscope(
        "probe", "measure", f"m={run}", "--corpus", corpus, "--device", "cpu", "--limit", "20", "--no-controls"
    )
    assert "try --scaled" in shown


def test_groups_of_ones_own_need_the_untrained_control(run: Path, corpus: Path) -> None:
    given = ["probe", "measure", f"m={run}", "--corpus", corpus, "--limit", "20", "--groups", "own", "--no-controls"]
    assert "leave --no-controls out" in refused(*given)


def test_a_plan_refuses_what_the_run_would(run: Path, corpus: Path) -> None:
    given = ["probe", "measure", f"m={run}", "--corpus", corpus, "--split", "train", "--dry-run"]
    assert "give two different splits" in refused(*given)


def test_a_damaged_encoding_is_made_anew(run: Path, corpus: Path, tmp_path: Path) -> None:
    asked = [f"m={run}", "--corpus", corpus, "--tasks", "UtteranceLoc", "--no-controls", "--cache", tmp_path]
    whole = probed(*asked)
    damaged = next(tmp_path.rglob("*.npy"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    assert probed(*asked) == whole


def test_of_a_corpus_with_one_split_some_dialogues_are_held_out(run: Path, corpus: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import Corpus, load, write

    whole = Corpus.of([one._replace(split="all") for one in load(corpus)])
    write(whole, tmp_path / "all.parquet", to="parquet")
    asked = [f"m={run}", "--corpus", tmp_path / "all.parquet", "--tasks", "UtteranceLoc", "--no-controls"]
    found = as_json("probe", "measure", *asked, "--device", "cpu")
    held_out = len(whole) // 5
    assert held_out < found["models"]["m"]["tasks"]["UtteranceLoc"]["n"] < held_out * 20


def test_tables_are_no_wider_than_the_terminal(run: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = ["--corpus", corpus, "--device", "cpu", "--limit", "20", "--tasks", "NumRepeatInfo,UtteranceLoc"]
    alone = dialoscope("probe", "measure", f"a-model-with-a-name-of-its-own={run}", *asked)
    assert len([line for line in alone.splitlines() if "NumRepeatInfo" in line]) == 1  # one table
    models = [f"a-model-with-a-long-name-{place}={run}" for place in range(4)]
    many = dialoscope("probe", "measure", *models, *asked, "--no-controls")
    for shown in (alone, many):
        tables = [line for line in shown.splitlines() if line[:1] in "┏┃┡│└"]
        assert tables and max(map(len, tables)) <= 80
    assert "…" not in many and all(f"a-model-with-a-long-name-{place}" in many for place in range(4))


def test_several_runs_are_shown_as_their_mean(run: Path, corpus: Path) -> None:
    asked = ["--corpus", corpus, "--device", "cpu", "--limit", "20", "--tasks", "UtteranceLoc", "--no-controls"]
    models = [f"m#{place}={run}/{name}" for place, name in enumerate(("untrained", "last"))]
    shown = dialoscope("probe", "measure", *models, *asked)
    assert "Micro-F1 over runs" in shown and "±" in shown and "m#0" not in shown
    found = as_json("probe", "measure", *models, *asked)
    assert found["pooled"]["m"]["runs"] == ["m#0", "m#1"]


def test_metrics_of_the_log_are_compared_where_all_epochs_were_probed(run: Path, corpus: Path) -> None:
    found = probed(
        f"m={run}", "--corpus", corpus, "--tasks", "UtteranceLoc", "--checkpoints", "all", "--no-controls"
    )  # fmt: skip
    chosen = found["selection"]["m"]
    assert list(chosen) == ["perplexity", "bleu_2", "distinct-1"]
    for one in chosen.values():
        assert one["tasks"]["UtteranceLoc"] == found["models"][f"m@{one['checkpoint']}"]["tasks"]["UtteranceLoc"]["f1"]


def test_pictures_are_coloured_by_a_task_that_was_asked(run: Path, corpus: Path, tmp_path: Path) -> None:
    asked = ["probe", "measure", run, "--corpus", corpus, "--tasks", "semantic", "--no-controls", "--limit", "20"]
    assert "Did you mean 'WordCont'" in refused(*asked, "--picture-by", "WordCount")
    dialoscope(*asked, "--device", "cpu", "--picture-by", "WordCont", "--out", tmp_path / "out")
    assert "by WordCont" in (tmp_path / "out" / "report.html").read_text()
