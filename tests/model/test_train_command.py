"""What `dialoscope train` and `dialoscope presets` make of their options; nothing is trained here."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.cli.console import let_threads_sleep
from dialoscope.cli.train import show
from dialoscope.errors import DialoscopeError
from dialoscope.model.log import Moment
from dialoscope.model.presets import PRESETS
from dialoscope.model.run import TrainingResult
from dialoscope.model.train import TrainedModel

module = import_module("dialoscope.model.train")  # the package's attribute of this name is the function
RESULT = TrainingResult("run", 0, 0, 0, 0, 0.0, ())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What a command gives to the training loop."""
    given: dict[str, Any] = {}

    def run_training(corpus: Any, settings: Any, recipe: Any, **options: Any) -> TrainingResult:
        given.update(options, settings=settings, recipe=recipe, corpus=corpus)
        return RESULT

    monkeypatch.setattr(module, "run_training", run_training)
    monkeypatch.setattr(module, "trained_model", lambda *both, **options: ended(RESULT))

    def ask(*arguments: str) -> dict[str, Any]:
        command = ["train", "concierge", "--limit", "1", "--out", str(tmp_path / "run"), "--device", "cpu", *arguments]
        CliRunner().invoke(app, command, catch_exceptions=False)
        return given

    return ask


def ended(result: TrainingResult) -> TrainedModel:
    """A model whose run ended so; it cannot be asked anything."""
    model = TrainedModel.__new__(TrainedModel)
    model.path, model.training, model.parts, model.used = Path("run"), result, {}, "Training: train."
    return model


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--preset", "lstm"], "bleu-2"),
        (["--preset", "transformer"], "bleu-2"),
        (["--preset", "static-ui"], "perplexity"),
        (["--preset", "overlap-lstm"], "perplexity"),
        (["--preset", "lstm", "--best-by", "perplexity"], "perplexity"),
        (["--preset", "static", "--best-by", "bleu-2"], "bleu-2"),
    ],
)
def test_the_best_is_chosen_as_the_presets_paper_chose_it(arguments: list[str], expected: str, asked: Any) -> None:
    assert asked(*arguments)["best_by"] == expected


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "fp32"), ("bfloat16", "bf16")])
def test_a_dtype_is_a_precision(dtype: str, expected: str, asked: Any) -> None:
    assert asked("--dtype", dtype)["recipe"].precision == expected


@pytest.mark.parametrize(
    ("arguments", "transform", "loss"),
    [
        ([], None, None),
        (["--insert", "0"], None, None),
        (["--insert", "0", "--attention-weight", "3"], None, None),  # a sweep over probabilities begins with none
        (["--insert", "0.5"], "InsertDistractions(probability=0.5", "AttentionLoss(weight=1.0, reduction='mean')"),
        (["--insert", "0.5", "--no-attention-loss"], "InsertDistractions(probability=0.5", None),
        (
            ["--insert", "1", "--attention-weight", "3", "--attention-reduction", "sum"],
            "InsertDistractions(probability=1",
            "AttentionLoss(weight=3.0, reduction='sum')",
        ),
    ],
)
def test_distractions_and_their_loss(arguments: list[str], transform: str | None, loss: str | None, asked: Any) -> None:
    given = asked(*arguments)
    assert repr(given.get("extra_loss")) == str(loss)
    assert repr(given.get("transform")).startswith(str(transform))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dtype", "float16"], "dtype is one of float32, bfloat16; found 'float16'."),
        (["--attention-weight", "2"], "give insert as well"),
        (["--attention-reduction", "sum"], "give insert as well"),
        (["--no-attention-loss"], "give insert as well"),
        (["--attention-loss"], "give insert as well"),
        (
            ["--insert", "0.5", "--no-attention-loss", "--attention-weight", "2"],
            "Without attention_loss there is no attention_weight",
        ),
        (["--set", "heads=4"], "set heads=4 changes nothing in a model with encoder lstm and attention static"),
        (["--set", "norm=pre"], "set norm=pre changes nothing"),
        (["--preset", "lstm", "--set", "scoring=dot"], "set scoring=dot changes nothing"),
        (["--preset", "transformer", "--set", "words_within=0.1"], "set words_within=0.1 changes nothing"),
    ],
)
def test_options_that_would_change_nothing_are_refused_in_one_line(
    arguments: list[str], message: str, asked: Any
) -> None:
    with pytest.raises(DialoscopeError) as caught:
        asked(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_resume_that_finds_nothing_says_so_and_begins(asked: Any, tmp_path: Path) -> None:
    command = ["train", "concierge", "--limit", "1", "--out", str(tmp_path / "mistyped"), "--device", "cpu"]
    done = CliRunner().invoke(app, [*command, "--resume", "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0
    said = f"dialoscope: {tmp_path / 'mistyped'}: there is no run to resume; a new one begins.\n"
    assert done.stderr == said
    assert asked()["resume"] is False  # whoever asks for nothing is told nothing
    for more in ([], ["--resume", "--dry-run"]):
        assert CliRunner().invoke(app, [*command, *more], catch_exceptions=False).stderr == ""


def test_a_folder_that_is_taken_is_refused_before_the_corpus_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DialoscopeError, match=r"expected an empty folder, found notes\.txt"):
        CliRunner().invoke(app, ["train", "no-corpus", "--out", str(tmp_path)], catch_exceptions=False)


def test_small_rates_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    moments = [Moment(epoch, 1, 1, 1, 2.5, rate, 1.0, 1.0, 3.0, 4.0) for epoch, rate in ((1, 4e-3), (2, 5e-5))]
    show(ended(TrainingResult("run", 2, 2, 2, 10, 1.0, tuple(moments))), "bleu-2")
    shown = capsys.readouterr().out
    assert "best by bleu-2 after epoch 2" in shown and "0.004" in shown
    assert "5e-05" in shown


def test_a_run_that_had_ended_says_that_nothing_was_left(capsys: pytest.CaptureFixture[str]) -> None:
    show(ended(TrainingResult("run", 2, 2, 2, 10, 1.0, ())), "perplexity")
    assert capsys.readouterr().out == "The run had ended, so nothing was trained. Its models are in run.\n"


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "best").write_text("mine")
    for out, match in ((tmp_path / "file", "expected a folder, found a file"), (tmp_path, "empty folder, found best")):
        with pytest.raises(DialoscopeError, match=match):
            CliRunner().invoke(app, ["train", "no-corpus", "--out", str(out)], catch_exceptions=False)


def test_presets_fit_into_80_columns_and_say_what_is_counted() -> None:
    shown = CliRunner().invoke(app, ["presets"], env={"COLUMNS": "80"}, catch_exceptions=False).stdout
    table, notes = shown.splitlines()[:-3], shown.splitlines()[-3:]
    assert max(map(len, table)) <= 80
    assert [line.split("│")[1].strip() for line in table if line.startswith("│")] == list(PRESETS)
    assert "with 16,000 words for lstm, lstm-attn, bilstm-attn, hred, transformer; with 25,000 for" in notes[0]
    assert notes[1].startswith("Table 3 of the probe paper, for corpora of 13k and 16k words: lstm 11, lstm-attn 11,")


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP, which says what it was told")
def test_threads_that_wait_for_each_other_sleep() -> None:
    environment = {**os.environ, "OMP_DISPLAY_ENV": "VERBOSE"}
    environment.pop("OMP_WAIT_POLICY", None)
    command = [sys.executable, "-m", "dialoscope", "train", "concierge", "--out", "nowhere", "--device", "gpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("this PyTorch has another OpenMP")
    assert "GOMP_SPINCOUNT = '0'" in done.stderr


def test_whoever_says_how_threads_wait_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    let_threads_sleep()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
