"""Training, perplexity and generation on the command line; in this process, for torch takes seconds to start."""

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
from dialoscope.instruments import load_result

SMALL = ("--preset", "static-ui", "--set", "layers=1 width=16 embedding=16 vocabulary=200", "--context-turns", "2")
CHEAP = (*SMALL, "--set", "learning_rate=0.5", "--batch-size", "32", "--device", "cpu")


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
    write(generate(dialogues=40, seed=1), path, to="parquet")
    return path


@pytest.fixture(scope="module")
def model(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    result = as_json("train", corpus, *CHEAP, "--insert", "0.7", "--epochs", "1", "--out", out)
    assert (result["epochs"], result["best_epoch"], result["out"]) == (1, 1, str(out))
    assert result["history"][1]["perplexity"] < result["history"][0]["perplexity"]
    return out


def test_a_trained_model_is_measured(model: Path, corpus: Path) -> None:
    found = as_json("perplexity", corpus, "--model", f"mine={model}", "--device", "cpu", "--context-turns", "2")
    assert (found["schema_version"], found["instrument"]) == (2, "perplexity")
    score = found["scores"]["mine/test/perplexity"]
    low, high = score["interval"]
    assert low < score["value"] < high
    assert found["origin"]["settings"]["mine"].startswith("model=static-ui@")
    assert score["n"] > found["parts"]["test"] > 1
    shown = dialoscope("perplexity", corpus, "--model", model / "best", "--device", "cpu", "--context-turns", "2")
    assert f"{score['value']:.2f}" in shown
    assert shown.splitlines()[-1].startswith(f"Next: dialoscope generate {corpus} --model {model}/best --out")


def test_a_saved_perplexity_is_joined_compared_and_gated(model: Path, corpus: Path, tmp_path: Path) -> None:
    saved = [tmp_path / name for name in ("p", "q")]
    for out in saved:
        dialoscope("perplexity", corpus, "--model", f"mine={model}", "--device", "cpu", "--out", out)
    head = json.loads((saved[0] / "result.json").read_text())
    assert load_result(saved[0]).to_dict() == {key: value for key, value in head.items() if key != "files"}
    dialoscope("report", saved[0], "--out", tmp_path / "page.html")
    assert "Perplexity" in (tmp_path / "page.html").read_text(encoding="utf-8")
    compared = as_json("compare", *saved)
    assert [name for name in compared["scores"] if "perplexity" in name]
    (tmp_path / "gates.toml").write_text('[[gate]]\nscore = "mine/test/perplexity"\nmin = 1\n')
    assert as_json("gate", saved[0], "--gates", tmp_path / "gates.toml")["passed"]


def test_a_trained_model_answers(model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "said.jsonl"
    asked = ("generate", corpus, "--model", model, "--out", out, "--device", "cpu", "--limit", "1")
    shown = as_json(*asked, "--max-tokens", "5")
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == shown["responses"] > 0
    assert list(records[0]) == ["dialogue", "context", "hypothesis", "reference"]
    assert all(len(record["hypothesis"].split()) <= 5 for record in records)
    scores = as_json("metrics", "measure", out, out, "--metrics", "bleu-2")  # finds the two columns by their names
    assert scores["scores"]["said.jsonl/all/bleu-2"]["n"] == len(records)


def test_a_dry_run_counts_and_writes_nothing(corpus: Path, tmp_path: Path) -> None:
    found = as_json("train", corpus, *CHEAP, "--out", tmp_path / "run", "--dry-run")
    assert found["batches"] == -(-found["samples"] // 32)
    assert found["dialogues"] == 32
    assert not any("seconds" in name for name in found)
    assert not (tmp_path / "run").exists()


def test_presets_stand_beside_the_papers_counts() -> None:
    found = as_json("presets")
    assert len(found) == 12
    assert {name: one["paper_millions"] for name, one in found.items() if one["paper_millions"]} == {
        "lstm": 11, "lstm-attn": 11, "bilstm-attn": 12, "hred": 12, "transformer": 41,
    }  # fmt: skip
    assert "static-ui" in dialoscope("presets")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "statik"], "preset is one of non-hier, static, static-ui, dynamic"),
        (["--set", "layer=2"], "Unknown setting 'layer'. Did you mean 'layers'?"),
        (["--set", "layers"], "set takes KEY=VALUE, such as layers=2, found 'layers'."),
        (["--set", "layers=two"], "layers is 'two'"),
        (["--preset", "lstm", "--insert", "0.5"], "no attention to lower"),
        (
            ["--insert", "0.5", "--attention-reduction", "median"],
            "attention_reduction is one of mean, sum; found",
        ),
        (["--tokens", "letters"], "tokens is one of words, bpe; found 'letters'."),
        (["--device", "gpu"], "Unknown device 'gpu'"),
        (["--device", "meta"], "Device 'meta' cannot be used here"),
        (["--device", "mps"], "Device 'mps' cannot be used here"),
        (["--dtype", "float8"], "dtype is one of float32, bfloat16; found 'float8'."),
        (["--validation-split", "mine"], "has no mine split. Found: train, validation, test."),
        (["--log-metrics", "rouge"], "Unknown metric 'rouge'. Did you mean 'rouge-"),
    ],
)
def test_what_cannot_be_trained_is_one_line(arguments: list[str], message: str, corpus: Path, tmp_path: Path) -> None:
    assert message in refused("train", corpus, "--out", tmp_path / "run", "--device", "cpu", *arguments)
    assert not (tmp_path / "run").exists()


def test_a_run_is_resumed_on_the_command_line(model: Path, corpus: Path) -> None:
    assert "Give --resume" in refused("train", corpus, *CHEAP, "--insert", "0.7", "--epochs", "1", "--out", model)
    result = as_json("train", corpus, *CHEAP, "--insert", "0.7", "--epochs", "2", "--out", model, "--resume")
    assert result["epochs"] == 2


@pytest.mark.parametrize("device", ["meta", "mps"])
@pytest.mark.parametrize("command", ["perplexity", "generate"])
def test_a_device_that_cannot_be_used_is_one_line(
    command: str, device: str, model: Path, corpus: Path, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "said.jsonl") if command == "generate" else ()
    why = refused(command, corpus, "--model", model, *out, "--device", device)
    assert why.startswith(f"Device '{device}' cannot be used here (") and why.endswith("Give --device auto or cpu.")


@pytest.mark.parametrize("arguments", [("--window", "10"), ("--joining", "plain"), ("--separator", "eos")])
def test_what_only_hugging_face_models_have_is_refused_for_ours(
    arguments: tuple[str, str], model: Path, corpus: Path
) -> None:
    why = refused("perplexity", corpus, "--model", model, "--device", "cpu", *arguments)
    assert why == f"window, joining and separator are for Hugging Face models; {model} is ours."


def test_a_model_is_asked_with_as_much_context_as_it_was_trained_with(model: Path, corpus: Path) -> None:
    asked = ("perplexity", corpus, "--model", f"mine={model}", "--device", "cpu")
    usual, same, less = (as_json(*asked, *more) for more in ((), ("--context-turns", 2), ("--context-turns", 1)))
    assert "context-turns=2" in usual["origin"]["settings"]["mine"]  # of SMALL
    assert usual["scores"] == same["scores"]
    assert "context-turns=1" in less["origin"]["settings"]["mine"]


def test_what_the_family_did_not_read_is_told(model: Path, corpus: Path) -> None:
    shown = dialoscope("perplexity", corpus, "--model", f"mine={model}", "--device", "cpu")
    assert "of the words are unknown to the model." in shown  # of a vocabulary of 200


def test_only_the_responses_of_one_speaker_are_measured(model: Path, corpus: Path) -> None:
    asked = ("perplexity", corpus, "--model", f"mine={model}", "--device", "cpu", "--responses")
    whole, part = (as_json(*asked, who) for who in ("all", "system"))
    left_out = whole["scores"]["mine/test/perplexity"]["n"] - part["scores"]["mine/test/perplexity"]["n"]
    assert part["counts"] == {"skipped": {"not said by system": left_out}}
    assert left_out > 0 and whole["counts"] == {"skipped": {}}
    assert "responses=system" in part["origin"]["settings"]["mine"]


def test_a_folder_that_is_no_model_is_one_line_and_exit_code_2(corpus: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "dialoscope",
        "perplexity",
        str(corpus),
        "--model",
        str(tmp_path),
        "--device",
        "cpu",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dialoscope: {tmp_path}: expected a folder written by dialoscope train")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["perplexity", "generate"])
def test_a_model_that_is_not_there_is_refused_before_the_corpus_is_read(command: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "said.jsonl") if command == "generate" else ()
    missing = tmp_path / "runs" / "mistyped"
    why = f"No checkpoint at '{missing}': there is no such folder or file."
    assert refused(command, "no-such-corpus", "--model", missing, *out) == why


@pytest.mark.parametrize("command", ["perplexity", "generate"])
def test_a_model_is_needed(command: str) -> None:
    assert refused(command, "concierge") == "Give a model with --model PATH."


def test_a_corpus_of_one_split_is_split_by_the_seed(tmp_path: Path) -> None:
    lines = [
        json.dumps({"messages": [{"role": "user", "content": f"hi {n}"}, {"role": "assistant", "content": "hello"}]})
        for n in range(30)
    ]
    chats = tmp_path / "mine" / "chats.jsonl"
    chats.parent.mkdir()
    chats.write_text("\n".join(lines))
    found = as_json("train", chats, *CHEAP, "--out", tmp_path / "run", "--dry-run", "--limit", 5)
    assert (found["dialogues"], found["validation_samples"]) == (5, 3)
    assert "its dialogues were split 80/10/10 with seed 0." in found["used"]
    chats.write_text("\n".join(lines[:3]))
    assert "takes at least 10" in refused("train", chats, "--out", tmp_path / "run", "--device", "cpu")


def test_responses_that_are_there_are_not_replaced_unasked(model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "said.jsonl"
    out.write_text("mine")
    given = ("generate", corpus, "--model", model, "--out", out, "--device", "cpu", "--limit", "1", "--max-tokens", "2")
    assert "--overwrite" in refused(*given)
    assert out.read_text() == "mine"
    dialoscope(*given, "--overwrite")
    assert out.read_text() != "mine"
