"""One conversation, one question, one answer: command line, Python and a study give the same scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.same_answer.inputs import Input, make_inputs

from dialoscope.cli import app
from dialoscope.instruments import QUESTIONS

NAMES = (
    "unsplit messages",
    "train and test files",
    "folder of train and eval",
    "Parquet with splits",
    "records",
    "concierge",
)


@dataclass(frozen=True)
class Asked:
    """A question with settings that keep it small, and how the command is called."""

    command: tuple[str, ...]
    options: Mapping[str, Any]
    needs_validation: bool = False  # unless the split is named


NO_VALIDATION = ("train and test files", "folder of train and eval")
ASKED = {
    "overlap": Asked(("overlap", "measure"), {"limit": 3, "context_turns": 2}),
    "attention": Asked(("distract", "measure"), {"limit": 3, "sets": ["random-0.7"]}),
    "influence": Asked(("distract", "influence"), {"limit": 2, "sets": ["random-0.7"]}),
    "behave": Asked(("distract", "behave"), {"limit": 2, "sets": ["random-0.7"]}),
    "probe": Asked(("probe", "measure"), {"tasks": ["UtteranceLoc"], "limit": 3}, needs_validation=True),
    "depth": Asked(("engage", "depth"), {"limit": 3}),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Input]:
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model of ours, as a folder."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    from tests.model.samples import save_model

    return str(save_model(tmp_path_factory.mktemp("model") / "tiny", "static-ui"))


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny predictor of remaining depth, as a folder."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    from tests.engage.samples import save_predictor

    return str(save_predictor(tmp_path_factory.mktemp("engaged")))


def command_scores(words: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> dict[str, Any]:
    """The scores that a command prints as JSON."""
    app([*words, "--json"], standalone_mode=False)
    scores: dict[str, Any] = json.loads(capfdbinary.readouterr().out)["scores"]
    return scores


def study_scores(folder: Path, question: str, asked: Asked, given: Input, model: str | None) -> dict[str, Any]:
    """The scores that a study of one question saves."""
    lines = ["[corpora]", f"data = {toml(given.study)}"]
    lines += ["[models]", f"m = {toml(model)}"] if model else []
    lines += [f"[{question}]", *(f"{name} = {toml(value)}" for name, value in asked.options.items())]
    lines += ['models = ["m"]'] if model else []
    (folder / "study.toml").write_text("\n".join(lines), encoding="utf-8")
    app(["study", str(folder / "study.toml"), "--out", str(folder / "study"), "--quiet"], standalone_mode=False)
    results = [json.loads(path.read_bytes()) for path in (folder / "study").glob("runs/*/result.json")]
    (answer,) = [result for result in results if result["instrument"] == question]
    scores: dict[str, Any] = answer["scores"]
    return scores


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + " }"
    return json.dumps(value)


def words_of(options: Mapping[str, Any]) -> list[str]:
    """Settings as options of a command."""
    words = []
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", ",".join(value) if isinstance(value, list) else str(value)]
    return words


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("question", ASKED)
def test_command_study_and_python_give_the_same_scores(
    question: str,
    name: str,
    inputs: Mapping[str, Input],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    asked, given = ASKED[question], inputs[name]
    if asked.needs_validation and name in NO_VALIDATION:
        asked = replace(asked, options={**asked.options, "split": "test"})
    monkeypatch.chdir(tmp_path)
    has_models = QUESTIONS[question].has_models
    model = request.getfixturevalue("predictor" if question == "depth" else "model") if has_models else None
    models = {"models": {"m": model}} if has_models else {}
    python = QUESTIONS[question].measure(given.python(), **models, **asked.options).to_dict()["scores"]
    assert any(score["value"] is not None for score in python.values()), "nothing was measured at all"
    command = [*asked.command, *given.command, *words_of(asked.options)]
    command += ["--model", f"m={model}"] if has_models else []
    assert command_scores(command, capfdbinary) == python
    assert study_scores(tmp_path, question, asked, given, model) == python
