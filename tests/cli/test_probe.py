"""The probe commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.errors import DialoscopeError
from dialoscope.probe import ProbeResult, measure
from dialoscope.probe.tasks import TASKS

SMALL = ("--preset", "static-ui", "--set", "layers=1 width=16 embedding=16 vocabulary=200", "--context-turns", "2")
CHEAP = (*SMALL, "--set", "learning_rate=0.5", "--batch-size", "32", "--device", "cpu")
FEW = ("--limit", "10", "--train-limit", "20", "--device", "cpu")
PLACES = ("--tasks", "UtteranceLoc", "--no-controls")


def dialoscope(*arguments: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def as_json(*arguments: object) -> Any:
    return json.loads(dialoscope(*arguments, "--json"))


def refused(*arguments: object) -> str:
    """Why a command does nothing: `main` prints this line."""
    with pytest.raises(DialoscopeError) as caught:
        dialoscope(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


def probed(corpus: Path, *arguments: object) -> Any:
    return as_json("probe", "measure", corpus, *arguments, *FEW)


def test_a_model_is_probed_on_all_tasks_beside_its_controls(run: Path, corpus: Path, tmp_path: Path) -> None:
    found = probed(corpus, "--model", f"mine={run}", "--out", tmp_path / "probed")
    controls = ["majority", "constant", "bag_of_words", "mine (untrained)", "mine (shuffled)"]
    for subject in ("mine", *controls):
        for task in TASKS:
            score = found["scores"][f"{subject}/{task}/f1"]
            assert score.keys() == {"value", "n", "interval", "reason"}
            assert 0 <= score["value"] <= 1
    assert {f"mine/{group} tasks/f1" for group in ("easy", "medium", "hard", "all")} <= found["scores"].keys()
    assert found["counts"]["tasks_not_probed"] == {}
    assert found["parts"]["validation"] <= 10 and found["parts"]["train"] == 20
    kept = json.loads((tmp_path / "probed" / "result.json").read_text())
    assert {key: kept[key] for key in found} == found
    assert ProbeResult.load(tmp_path / "probed").to_dict() == found
    assert (tmp_path / "probed" / "report.html").is_file()


def test_the_command_and_python_say_the_same(run: Path, corpus: Path) -> None:
    from dialoscope.corpus import load

    found = probed(corpus, "--model", f"m={run}", "--tasks", "semantic,RecentTopic")
    result = measure(
        load(corpus), models={"m": run}, tasks=["semantic", "RecentTopic"], limit=10, train_limit=20, device="cpu"
    )
    assert json.loads(json.dumps(result.to_dict()["scores"])) == found["scores"]
    assert [verdict.to_dict() for verdict in result.verdicts()] == found["verdicts"]


def test_what_is_printed_is_the_finding_the_controls_and_what_to_do_next(run: Path, corpus: Path) -> None:
    shown = dialoscope("probe", "measure", corpus, "--model", f"m={run}", "--tasks", "UtteranceLoc", *FEW)
    assert "the bag-of-words and constant baselines on" in shown.splitlines()[0]
    assert "Measured: validation" in shown
    assert all(word in shown for word in ("UtteranceLoc", "major", "const", "words", "untr.", "shuf."))
    assert shown.splitlines()[-1].startswith("Next: dialoscope probe measure")


def test_checkpoints_become_models_of_their_own(run: Path, corpus: Path) -> None:
    found = probed(
        corpus, "--model", f"m={run}", "--tasks", "semantic", "--checkpoints", "untrained,by:distinct-1,last",
        "--no-controls",
    )  # fmt: skip
    subjects = {name.split("/")[0] for name in found["scores"]}
    assert subjects == {"m@untrained", "m@by:distinct-1", "m@last", "majority", "constant"}
    assert "m@last/WordCont/f1" in found["scores"]


def test_the_checkpoint_that_a_metric_chose_is_named(run: Path, corpus: Path) -> None:
    result = measure(
        _loaded(corpus), models={"m": run}, checkpoints=["by:distinct-1", "last"], tasks=["UtteranceLoc"],
        controls=False, device="cpu",
    )  # fmt: skip
    assert result.checkpoints == {"m": ("by:distinct-1", "last")}
    assert result.chosen["m@by:distinct-1"] in ("epoch-001", "epoch-002")
    assert any(note.startswith("m@by:distinct-1 is epoch-00") for note in result.summary().notes)


def _loaded(corpus: Path) -> Any:
    from dialoscope.corpus import load

    return load(corpus)


def test_metrics_of_the_log_are_compared_where_all_epochs_were_probed(run: Path, corpus: Path) -> None:
    result = measure(
        _loaded(corpus), models={"m": run}, checkpoints=["all"], tasks=["UtteranceLoc"], controls=False, device="cpu"
    )
    assert list(result.models) == ["m@untrained", "m@epoch-001", "m@epoch-002"]
    chosen = result.selection["m"]
    assert list(chosen) == ["perplexity", "bleu_2", "distinct-1"]
    assert all(one.model == f"m@{one.choice.checkpoint}" for one in chosen.values())


def test_the_perceptron_can_be_asked_as_well(run: Path, corpus: Path) -> None:
    found = probed(corpus, "--model", f"m={run}", "--tasks", "IsMultiTopic", "--classifier", "mlp", "--no-controls")
    assert found["origin"]["settings"]["classifier"] == "mlp"
    assert found["scores"]["m/IsMultiTopic/f1"]["value"] > 0.4  # two classes


def test_a_dry_run_only_counts(run: Path, corpus: Path) -> None:
    asked = ("probe", "measure", corpus, "--model", run, "--dry-run")
    found = as_json(*asked, "--checkpoints", "all")
    assert [name.partition("@")[2] for name in found["models"]] == ["untrained", "epoch-001", "epoch-002"]
    positions = found["training_positions"] + found["held_out_positions"]
    assert found["training_positions"] > found["held_out_positions"] > 0
    assert found["contexts_to_encode"] == 3 * 2 * positions
    assert f"{2 * positions:,} contexts to encode" in dialoscope(*asked)
    assert f"{positions:,} contexts to encode" in dialoscope(*asked, "--no-controls")


def test_tasks_are_listed_with_what_a_corpus_can_carry(corpus: Path, tmp_path: Path) -> None:
    plain = tmp_path / "chat.jsonl"
    messages = [{"role": role, "content": "hello there"} for role in ("user", "assistant") * 2]
    plain.write_text("".join(json.dumps({"messages": messages}) + "\n" for _ in range(5)))
    carried = {one["name"]: one for one in as_json("probe", "tasks", plain)["tasks"]}
    assert carried["UtteranceLoc"]["is_carried"]
    assert carried["RecentSlots"]["reason"] == "needs state annotation, which the corpus lacks"
    assert all(one["is_carried"] for one in as_json("probe", "tasks", corpus)["tasks"])
    shown = dialoscope("probe", "tasks")
    assert "RecentTopic" in shown and "Next: dialoscope probe tasks concierge" in shown
    assert "Next: dialoscope probe measure" in dialoscope("probe", "tasks", corpus)


def test_what_is_wrong_is_said_in_one_line(run: Path, corpus: Path) -> None:
    asked = ("probe", "measure", corpus, "--model", run)
    assert "Did you mean 'RecentTopic'" in refused(*asked, "--tasks", "RecentTopics")
    assert "classifier is one of logistic, mlp; found 'svm'" in refused(*asked, "--classifier", "svm")
    assert "no checkpoint 'epoch-100'" in refused(*asked, "--checkpoints", "epoch-100")
    assert "two different splits" in refused(*asked, "--train-split", "validation")
    assert "two different splits" in refused(*asked, "--split", "train", "--dry-run")
    assert "no nowhere split. Found: train, validation, test. Name another with split (--split)" in refused(
        *asked, "--split", "nowhere"
    )
    assert "layer takes a whole number, found 'last'" in refused(*asked, "--layer", "last")
    assert "are for Hugging Face models" in refused(*asked, "--layer", "1")
    assert "leave controls on" in refused(*asked, "--groups", "own", "--no-controls")
    assert "Did you mean 'WordCont'" in refused(*asked, "--tasks", "semantic", "--picture-by", "WordCount")
    assert "there is no such folder" in refused("probe", "measure", corpus, "--model", "./nowhere")
    assert "Give at least one model" in refused("probe", "measure", corpus)
    assert "Give one corpus" in refused("probe", "measure", "--model", run)


def test_ties_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    rows = [f"{item},{person},{choice}" for item in range(20) for person, choice in (("x", "tie"), ("y", "a"))]
    path.write_text("\n".join(["item,annotator,choice", *rows]) + "\n")
    found = as_json("probe", "ties", path, "--size", "10")
    assert found["shares"]["tie"]["value"] == 0.5
    assert found["studies"]["count"] == 50_000
    shown = dialoscope("probe", "ties", path, "--size", "10")
    assert "ties of x" in shown and "Next: dialoscope probe ties" in shown


def test_three_models_are_compared_on_one_page(run: Path, corpus: Path, tmp_path: Path) -> None:
    checkpoints = {"a": "untrained", "b": "best", "c": "last"}
    models = [word for name, place in checkpoints.items() for word in ("--model", f"{name}={run}/{place}")]
    found = probed(corpus, *models, "--tasks", "semantic", "--no-controls", "--out", tmp_path / "three")
    assert {name.split("/")[0] for name in found["scores"]} >= {"a", "b", "c"}
    assert "a compared" in (tmp_path / "three" / "report.html").read_text()


def test_the_origin_says_how_much_of_a_context_was_read(run: Path, corpus: Path) -> None:
    for tokens, written in (("20", 20), ("100", 100), ("0", "all")):
        found = probed(corpus, "--model", f"m={run}", *PLACES, "--context-tokens", tokens)
        assert found["origin"]["settings"]["context_tokens"] == written


def test_shuffled_labels_do_not_depend_on_what_else_is_asked(run: Path, corpus: Path) -> None:
    alone, beside = (
        probed(corpus, "--model", f"m={run}", "--tasks", tasks)["scores"]["m (shuffled)/RecentTopic/f1"]
        for tasks in ("RecentTopic", "AllTopics,RecentTopic")
    )
    assert alone == beside


def test_scores_of_zero_on_small_numbers_come_with_advice(run: Path, corpus: Path) -> None:
    shown = dialoscope("probe", "measure", corpus, "--model", f"m={run}", "--no-controls", *FEW)
    assert "try --scaled" in shown


def test_a_damaged_encoding_is_made_anew(run: Path, corpus: Path, tmp_path: Path) -> None:
    asked = ["--model", f"m={run}", *PLACES, "--work", tmp_path]
    whole = probed(corpus, *asked)
    damaged = next(tmp_path.rglob("*.npy"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    assert probed(corpus, *asked) == whole


def test_a_corpus_of_one_split_is_split_and_the_result_says_so(run: Path, corpus: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import Corpus, load, write

    whole = Corpus.of([one._replace(split="all") for one in load(corpus)])
    write(whole, tmp_path / "all.parquet", to="parquet")
    found = as_json("probe", "measure", tmp_path / "all.parquet", "--model", f"m={run}", *PLACES, "--device", "cpu")
    assert found["parts"] == {"train": 48, "validation": 6}
    assert "split 80/10/10 with seed 0" in found["used"]


def test_tables_are_no_wider_than_the_terminal(run: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = [*FEW, "--tasks", "NumRepeatInfo,UtteranceLoc"]
    alone = dialoscope("probe", "measure", corpus, "--model", f"a-model-with-a-name-of-its-own={run}", *asked)
    assert len([line for line in alone.splitlines() if "│ NumRepeatInfo" in line]) == 1  # one table
    models = [word for place in range(4) for word in ("--model", f"a-model-with-a-long-name-{place}={run}")]
    many = dialoscope("probe", "measure", corpus, *models, *asked, "--no-controls")
    for shown in (alone, many):
        tables = [line for line in shown.splitlines() if line[:1] in "┏┃┡│└"]
        assert tables and max(map(len, tables)) <= 80


def test_several_runs_are_shown_as_their_mean(run: Path, corpus: Path) -> None:
    models = [word for place in range(2) for word in ("--model", f"m#{place}={run}/{('untrained', 'last')[place]}")]
    shown = dialoscope("probe", "measure", corpus, *models, *PLACES, *FEW)
    table = [line for line in shown.splitlines() if line[:1] in "┏┃┡│└"]
    assert any("±" in line for line in table) and not any("m#0" in line for line in table)
    found = probed(corpus, *models, *PLACES)
    assert found["scores"]["m (mean of 2 runs)/UtteranceLoc/f1"]["n"] == 2


def test_pictures_are_coloured_by_a_task_that_was_asked(run: Path, corpus: Path, tmp_path: Path) -> None:
    asked = ["probe", "measure", corpus, "--model", run, "--tasks", "semantic", "--no-controls", *FEW]
    dialoscope(*asked, "--picture-by", "WordCont", "--out", tmp_path / "out")
    assert "by WordCont" in (tmp_path / "out" / "report.html").read_text()


def test_settings_load_nothing_heavy() -> None:
    code = "import sys, dialoscope.probe.settings; print({'numpy', 'pyarrow', 'torch'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_tasks_of_a_missing_split_name_the_option_that_helps() -> None:
    missing = refused("probe", "tasks", "concierge", "--train-split", "mine")
    assert "has no mine split." in missing and "Name another with train_split (--train-split)." in missing
