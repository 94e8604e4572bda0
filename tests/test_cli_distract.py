"""The distract commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.test_cli_model import CHEAP, as_json, refused, turnwise

from turnwise.distract.sets import NINE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from turnwise.corpus import generate, write

    path = tmp_path_factory.mktemp("corpus") / "small.parquet"
    write(generate(dialogues=40, seed=1), path, to="parquet")
    return path


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    as_json("train", corpus, *CHEAP, "--epochs", "1", "--out", out)
    return out


def measured(*arguments: object) -> Any:
    return as_json("distract", "measure", *arguments, "--device", "cpu", "--limit", "2", "--context-turns", "4")


def test_models_are_measured_on_all_nine_sets(run: Path, corpus: Path, tmp_path: Path) -> None:
    found = measured(f"old={run / 'untrained'}", f"new={run}", "--corpus", corpus, "--out", tmp_path / "looked")
    assert list(found["models"]) == ["old", "new"]
    for one in found["models"].values():
        assert one["original"]["perplexity"] > 1
        assert list(one["sets"]) == list(NINE)
        for values in one["sets"].values():
            assert values["das_ratio"] > 0
            assert {"interval", "das_ratio_of_means", "distraction_percent", "history_percent"} <= values.keys()
            assert values["samples"] + values["without_distraction"] + values["without_history"] > 0
    assert set(found["comparisons"]["new"]) == set(NINE)
    kept = json.loads((tmp_path / "looked" / "result.json").read_text())["data"]
    assert kept["models"] == found["models"]
    assert (tmp_path / "looked" / "report.html").is_file()
    assert not (tmp_path / ".looked.work").exists()


def test_written_sets_give_the_same_numbers(run: Path, corpus: Path, tmp_path: Path) -> None:
    names = ("--sets", "random-0.7,rare-end")
    taken = ("--limit", "2", "--context-turns", "4", "--seed", "3")
    turnwise("distract", "sets", "--corpus", corpus, "--out", tmp_path / "sets", *names, *taken)
    mine = as_json("distract", "measure", run, "--sets-dir", tmp_path / "sets", "--device", "cpu")
    made = measured(run, "--corpus", corpus, *names, "--seed", "3")
    assert mine["models"] == made["models"]
    assert mine["sets"] == made["sets"]


def test_people_see_a_table(run: Path, corpus: Path) -> None:
    given = ("distract", "measure", run, "--corpus", corpus, "--limit", "2", "--sets", "given-end", "--device", "cpu")
    shown = turnwise(*given, "--sentence", "my cat is blue", "--sentence", "so is mine")
    assert "given-end" in shown
    assert "History % (original)" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RUN"], "--corpus"),
        (["RUN", "--corpus", "CORPUS", "--sets-dir", "x"], "not both"),
        (["RUN", "--corpus", "CORPUS", "--sets", "loud"], "random-0.7"),
        (["RUN", "--corpus", "CORPUS", "--sets", "given-end"], "--sentence"),
        (["RUN", "--corpus", "CORPUS", "--normalisation", "none"], "per_token"),
        (["RUN", "RUN", "--corpus", "CORPUS"], "Two models"),
        (["RUN", "--sets-dir", "nowhere"], "distract sets"),
        (["RUN", "--corpus", "CORPUS", "--layer", "3"], "1 layers"),
        (["nowhere/at/all", "--corpus", "CORPUS"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: list[str], words: str, run: Path, corpus: Path) -> None:
    names = {"RUN": run, "CORPUS": corpus}
    said = refused(
        "distract", "measure", *(names.get(one, one) for one in arguments), "--device", "cpu", "--limit", "1"
    )
    assert words in said


def test_a_model_without_attention_says_so(corpus: Path, tmp_path: Path) -> None:
    small = ("--set", "layers=1 width=8 embedding=8 vocabulary=50", "--batch-size", "64", "--epochs", "1")
    as_json("train", corpus, "--preset", "lstm", *small, "--device", "cpu", "--out", tmp_path / "run", "--limit", "3")
    said = refused("distract", "measure", tmp_path / "run", "--corpus", corpus, "--limit", "1", "--device", "cpu")
    assert "no attention" in said


def test_a_full_folder_is_refused_before_the_work(run: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "--overwrite" in refused("distract", "measure", run, "--corpus", corpus, "--out", tmp_path)
