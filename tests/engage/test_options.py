"""Options that every command over data or a model takes; each changes what it says, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engage.samples import ENDINGS, MIDDLES, OPENINGS
from tests.engage.test_commands import heard, rated
from tests.engage.test_scoring import NO_SPARK
from tests.test_cli_model import as_json, dialoscope, refused

from dialoscope.engage import storage
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.predictor import Predictor


def dialogues(found: dict[str, Any]) -> list[str]:
    return [one["dialogue"] for one in found["dialogues"]]


def scores(found: dict[str, Any]) -> list[float]:
    return [turn["score"] for one in found["dialogues"] for turn in one["turns"]]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Texts and precision of every pass through an encoder."""
    seen: list[tuple[int, str]] = []
    forward = Encoder._forward

    def noted(self: Encoder, ids: Any, pooling: str) -> Any:
        seen.append((len(ids), self.dtype))
        return forward(self, ids, pooling)

    monkeypatch.setattr(Encoder, "_forward", noted)
    return seen


# --- score ------------------------------------------------------------------------------------------------------------


def test_only_the_split_that_was_asked_for_is_scored(model: Path, corpus: Path) -> None:
    found = as_json("engage", "score", corpus, "--model", model, "--split", "validation")
    assert {one["split"] for one in found["dialogues"]} == {"validation"}
    assert len(found["dialogues"]) == 10
    missing = refused("engage", "score", corpus, "--model", model, "--split", "dev2")
    assert "has no dev2 split." in missing and "Name another with split (--split)." in missing


def test_a_limit_cuts_the_split_that_is_scored(model: Path, corpus: Path) -> None:
    whole = dialogues(as_json("engage", "score", corpus, "--model", model, "--split", "test"))
    assert (
        dialogues(as_json("engage", "score", corpus, "--model", model, "--split", "test", "--limit", "5")) == whole[:5]
    )


def test_a_batch_size_bounds_a_pass_and_changes_no_score(
    model: Path, corpus: Path, passes: list[tuple[int, str]]
) -> None:
    usual = scores(as_json("engage", "score", corpus, "--model", model, "--limit", "3"))
    assert max(size for size, _ in passes) > 2
    passes.clear()
    small = scores(as_json("engage", "score", corpus, "--model", model, "--limit", "3", "--batch-size", "2"))
    assert max(size for size, _ in passes) == 2
    assert small == pytest.approx(usual, abs=1e-5)


def test_bfloat16_is_computed_in_and_named(model: Path, corpus: Path, passes: list[tuple[int, str]]) -> None:
    exact, rough = (
        as_json("engage", "score", corpus, "--model", model, "--limit", "3", "--dtype", dtype)
        for dtype in ("float32", "bfloat16")
    )
    assert {dtype for _, dtype in passes} == {"float32", "bfloat16"}
    assert exact["model"] != rough["model"]
    assert scores(exact) != scores(rough) == pytest.approx(scores(exact), abs=0.05)
    said = refused("engage", "score", corpus, "--model", model, "--dtype", "bfloat1")
    assert said == "dtype is one of float32, bfloat16; found 'bfloat1'."


def test_a_dry_run_counts_what_is_left_and_writes_nothing(model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.parquet"
    found = as_json("engage", "score", corpus, "--model", model, "--out", out, "--dry-run")
    assert (found["dialogues"], found["portions"], found["portions_kept"]) == (60, 1, 0)
    assert found["texts_to_encode"] == len({*OPENINGS, *MIDDLES, *ENDINGS})  # equal texts of a portion once
    assert not list(tmp_path.iterdir())
    work = tmp_path / ".scores.parquet.work"
    work.mkdir()
    from dialoscope.corpus import load
    from dialoscope.engage.scoring import score_corpus

    list(score_corpus(storage.load(model), load(corpus), work=work))
    again = as_json("engage", "score", corpus, "--model", model, "--out", out, "--dry-run")
    assert (again["portions_kept"], again["texts_to_encode"]) == (1, 0)


def test_dialogues_with_one_id_stay_apart_in_the_json(model: Path) -> None:
    said = json.dumps({"id": "same", "messages": [{"role": "user", "content": "hello there"}]})
    found = json.loads(heard(f"{said}\n{said}\n", "engage", "score", "-", "--model", model, "--json"))
    assert [len(one["turns"]) for one in found["dialogues"]] == [1, 1]


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)
def test_spark_writes_a_folder_with_the_scores_of_one_process(model: Path, corpus: Path, tmp_path: Path) -> None:
    given = ["--split", "train,test", "--device", "cpu"]
    dialoscope("engage", "score", corpus, "--model", model, "--out", tmp_path / "here.parquet", *given)
    spark = ["--engine", "spark", "--master", "local[2]"]
    found = as_json("engage", "score", corpus, "--model", model, "--out", tmp_path / "there", *given, *spark)
    assert found["dialogues"] == 50
    here, there = (
        {(row["split"], row["dialogue"], row["turn"]): row for row in pq.read_table(path).to_pylist()}
        for path in (tmp_path / "here.parquet", tmp_path / "there")
    )
    assert here.keys() == there.keys()
    assert {key: one["score"] for key, one in there.items()} == pytest.approx(
        {key: one["score"] for key, one in here.items()}, abs=1e-5
    )
    assert all(here[key]["text"] == there[key]["text"] for key in here)
    assert {path.suffix for path in (tmp_path / "there").iterdir()} == {".parquet"}
    assert "no dev2 split. Found: test, train, validation. Name another with split (--split)." in refused(
        "engage", "score", corpus, "--model", model, "--out", tmp_path / "no", "--split", "dev2", *spark
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "sparc"], "engine is one of here, spark; found 'sparc'"),
        (["--engine", "spark"], "name it with --out"),
        (["--engine", "spark", "--out", "scores.parquet"], "without an ending"),
        (["--engine", "spark", "--out", "x", "--limit", "3", "--dry-run"], "leave out --limit, --dry-run"),
        (["--engine", "spark", "--out", "x", "--on-error", "skip"], "leave out --on-error"),
    ],
)
def test_what_spark_cannot_do_is_refused(
    model: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused("engage", "score", corpus, "--model", model, *arguments)


def test_spark_asks_for_parquet(model: Path, tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}) + "\n")
    given = [
        "engage",
        "score",
        tmp_path / "chats.jsonl",
        "--model",
        model,
        "--engine",
        "spark",
        "--out",
        tmp_path / "x",
    ]
    assert "reads Parquet in our own columns" in refused(*given)


# --- depth and ratings ------------------------------------------------------------------------------------------------


def test_depth_takes_a_seed_a_precision_and_a_batch_size(
    model: Path, corpus: Path, passes: list[tuple[int, str]]
) -> None:
    given = ["engage", "depth", corpus, "--model", f"mine={model}"]
    usual, other = (as_json(*given, *more) for more in ([], ["--seed", "3"]))
    assert usual["scores"]["mine/test/mse"]["value"] == other["scores"]["mine/test/mse"]["value"]
    assert other["origin"]["seed"] == 3
    passes.clear()
    as_json(*given, "--dtype", "bfloat16", "--batch-size", "3")
    assert {dtype for _, dtype in passes} == {"bfloat16"}  # the untrained control as well
    assert max(size for size, _ in passes) == 3


def test_rated_turns_are_limited(model: Path, tmp_path: Path) -> None:
    given = ["engage", "ratings", rated(tmp_path / "people.jsonl"), "--model", f"mine={model}"]
    few = as_json(*given, "--limit", "12")
    assert few["parts"] == {"people": 12}
    assert few["scores"]["mine/people/spearman"]["n"] == 12
    assert "a table has no splits" in refused(*given, "--split", "test")


# --- train ------------------------------------------------------------------------------------------------------------


def test_other_splits_are_learnt_from_and_chosen_by(corpus: Path, bert: Path, tmp_path: Path) -> None:
    given = ["engage", "train", corpus, "--frozen", "--encoder", bert]
    as_json(*given, "--train-split", "validation", "--validation-split", "test", "--out", tmp_path / "a")
    as_json(*given, "--out", tmp_path / "b")
    first, second = (storage.load(tmp_path / name).origin for name in "ab")
    assert first["training"] != second["training"]
    assert first["validation"] != second["validation"]
    missing = refused(*given, "--validation-split", "dev2", "--out", tmp_path / "c")
    assert "talks has no dev2 split. Found: train, validation, test." in missing
    assert "Name another with validation_split (--validation-split)." in missing


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_dry_run_of_training_counts_and_writes_nothing(
    corpus: Path, bert: Path, tmp_path: Path, is_frozen: bool
) -> None:
    given = ["engage", "train", corpus, "--encoder", bert, "--out", tmp_path / "no", "--dry-run"]
    given += ["--frozen"] if is_frozen else ["--steps", "50", "--batch-turns", "32"]
    found = as_json(*given)
    assert (found["dialogues"], found["validation_dialogues"], found["left_out"]) == (40, 10, 0)
    assert found.get("steps") == (None if is_frozen else 50)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("is_frozen", [True, False])
def test_training_computes_in_the_precision_that_was_asked_for(
    corpus: Path, bert: Path, tmp_path: Path, passes: list[tuple[int, str]], is_frozen: bool
) -> None:
    given = ["engage", "train", corpus, "--encoder", bert, "--out", tmp_path / "m", "--dtype", "bfloat16"]
    found = as_json(*given, *(["--frozen", "--batch-size", "4"] if is_frozen else ["--steps", "2"]))
    assert "bfloat16" in {dtype for _, dtype in passes}
    made = storage.load(tmp_path / "m")
    assert isinstance(made, Predictor)
    assert found["model"] == made.name  # what is read from disk computes in float32 again
    if is_frozen:
        assert set(passes) <= {(size, "bfloat16") for size in range(1, 5)}
