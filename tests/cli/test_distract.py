"""The distract commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.test_cli_model import CHEAP, as_json, dialoscope, refused

from dialoscope.distract.sets import NINE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dialoscope.corpus import generate, write

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


def contexts_of(corpus: Path) -> int:
    """Every turn of the two measured dialogues but the first has a context."""
    from dialoscope.corpus import load

    return sum(len(dialogue.turns) - 1 for dialogue in load(corpus).split("test")[:2])


def test_models_are_measured_on_all_nine_sets(run: Path, corpus: Path, tmp_path: Path) -> None:
    found = measured(f"old={run / 'untrained'}", f"new={run}", "--corpus", corpus, "--out", tmp_path / "looked")
    assert list(found["models"]) == ["old", "new"]
    contexts = contexts_of(corpus)
    old, new = (found["models"][model]["original"]["perplexity"] for model in ("old", "new"))
    assert old == pytest.approx(200, rel=0.1) and 1 < new < old  # an untrained model guesses among 200 words
    for one in found["models"].values():
        assert (one["original"]["samples"], one["original"]["without_history"]) == (contexts - 2, 2)
        assert list(one["sets"]) == list(NINE)
        for name, values in one["sets"].items():
            counts = [values[key] for key in ("samples", "without_distraction", "without_history", "cut")]
            assert sum(counts) == contexts
            assert counts[2:] == [2, 0]  # the first response of each dialogue has no History
            assert (counts[1] == 0) == (name not in ("random-0.5", "random-0.7"))
            ratio = values["distraction_percent"] / values["history_percent"]
            assert values["das_ratio_of_means"] == pytest.approx(ratio)
            assert values["interval"] is None  # of two dialogues there is none
    for name, compared in found["comparisons"]["new"].items():
        old, new = (found["models"][model]["sets"][name]["das_ratio_of_means"] for model in ("old", "new"))
        assert compared["difference"]["value"] == pytest.approx(old - new)
    assert list(found["comparisons"]["new"]) == list(NINE)
    kept = json.loads((tmp_path / "looked" / "result.json").read_text())["data"]
    assert kept["models"] == found["models"]
    assert (tmp_path / "looked" / "report.html").is_file()
    assert not (tmp_path / ".looked.work").exists()


def test_written_sets_give_the_same_numbers(run: Path, corpus: Path, tmp_path: Path) -> None:
    names = ("--sets", "random-0.7,rare-end")
    taken = ("--limit", "2", "--context-turns", "4", "--seed", "3")
    dialoscope("distract", "sets", "--corpus", corpus, "--out", tmp_path / "sets", *names, *taken)
    mine = as_json("distract", "measure", run, "--sets-dir", tmp_path / "sets", "--device", "cpu")
    made = measured(run, "--corpus", corpus, *names, "--seed", "3")
    assert mine["models"] == made["models"]
    assert mine["sets"] == made["sets"]


def test_people_see_a_table(run: Path, corpus: Path) -> None:
    given = ("distract", "measure", run, "--corpus", corpus, "--limit", "2", "--sets", "given-end", "--device", "cpu")
    shown = dialoscope(*given, "--sentence", "my cat is blue", "--sentence", "so is mine")
    assert "given-end" in shown
    assert "History % (original)" in shown


def test_models_are_measured_on_as_much_context_as_they_were_trained_with(run: Path, corpus: Path) -> None:
    given = ("distract", "measure", run, "--corpus", corpus, "--limit", "2", "--sets", "rare-end", "--device", "cpu")
    found = as_json(*given)
    assert found["sets"]["rare-end"]["context_turns"] == 2  # of SMALL
    assert found == as_json(*given, "--context-turns", "2")
    other = as_json(*given, "--context-turns", "4")
    assert other["sets"]["rare-end"]["context_turns"] == 4
    assert other["models"] != found["models"]


def test_models_trained_with_different_contexts_need_to_be_told_which(run: Path, corpus: Path, tmp_path: Path) -> None:
    more = Path(shutil.copytree(run / "best", tmp_path / "more"))
    described = json.loads((more / "model.json").read_text())
    described["origin"]["context_turns"] = None
    (more / "model.json").write_text(json.dumps(described))
    given = ("distract", "measure", f"few={run}", f"more={more}", "--corpus", corpus, "--limit", "1", "--device", "cpu")
    said = "The models were trained with different turns of context (few 2, more all): give --context-turns."
    assert refused(*given) == said
    as_json(*given, "--context-turns", "3", "--sets", "rare-end")


def test_a_dry_run_says_what_would_be_measured_and_what_is_done(run: Path, corpus: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import load as load_corpus
    from dialoscope.distract import make_sets, measure
    from dialoscope.distract.output import work_folder
    from dialoscope.model import load

    chosen = ("--corpus", corpus, "--limit", "2", "--sets", "rare-end", "--device", "cpu")
    given = ("distract", "measure", f"mine={run}", *chosen, "--out", tmp_path / "looked", "--dry-run")
    contexts = contexts_of(corpus)
    planned = [
        {"model": "mine", "set": name, "contexts": contexts, "portions": 1, "done": 0}
        for name in ("original", "rare-end")
    ]
    assert as_json(*given) == {"planned": planned, "work": None}
    assert list(tmp_path.iterdir()) == []
    sets = make_sets(load_corpus(corpus), names=["rare-end"], limit=2, context_turns=2)
    work = work_folder(tmp_path / "looked")
    measure({"m": load(run, device="cpu")}, sets[1:], work=work)
    planned[1]["done"] = 1
    assert as_json(*given) == {"planned": planned, "work": str(work)}
    shown = dialoscope(*given, "--behaviour")  # responses to both sets, and attention as before
    assert [line.split("│")[2:6] for line in shown.splitlines() if "mine" in line] == [
        [f" {name} ", f" {contexts:>8} ", f" {2:>8} ", f" {done:>4} "]
        for name, done in (("original", 0), ("rare-end", 1))
    ]
    assert [path.name for path in tmp_path.iterdir()] == [".looked.work"]


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
