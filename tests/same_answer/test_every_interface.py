"""One conversation, one question, one answer: command line, Python and a study give the same scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.same_answer.inputs import Input, make_inputs, records, write_jsonl

import dialoscope as ds
from dialoscope.cli import app
from dialoscope.corpus import generate
from dialoscope.instruments import QUESTIONS
from dialoscope.settings import options_of

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
    "probe": Asked(
        ("probe", "measure"), {"tasks": ["UtteranceLoc"], "limit": 3, "train_limit": 20}, needs_validation=True
    ),
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
    return saved_scores(folder, question)


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


def test_metrics_are_the_same_through_every_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "said.txt": ["a cat sat", "a dog ran off", "no", "so it is"],
        "meant.txt": ["a cat sat", "the dog ran"] * 2,
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    options = {"metrics": ["bleu-2", "distinct-1", "length"], "seed": 3}
    python = ds.metrics.measure("said.txt", "meant.txt", **options).to_dict()["scores"]  # type: ignore[arg-type]
    assert python["said.txt/all/length"]["value"] == 11 / 4  # words by hand: 3, 4, 1 and 3
    command = ["metrics", "measure", "said.txt", "meant.txt", *words_of(options)]
    assert command_scores(command, capfdbinary) == python
    (tmp_path / "study.toml").write_text(
        '[metrics]\nhypotheses = "said.txt"\nreferences = "meant.txt"\nseed = 3\n'
        f"metrics = {toml(options['metrics'])}\n[corpora]\nc = {toml(write_chats(tmp_path))}\n"
    )
    assert saved_scores(tmp_path, "metrics") == python


def test_ratings_are_the_same_through_every_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"how are you {number},{'well ' * (number % 5 + 1)}thanks,{number % 4 + 1}" for number in range(20)]
    (tmp_path / "rated.csv").write_text("\n".join(["query,response,score", *rows]) + "\n")
    python = ds.engage.ratings(["rated.csv"], limit=15).to_dict()["scores"]
    assert any(score["value"] is not None for score in python.values())
    assert command_scores(["engage", "ratings", "rated.csv", "--limit", "15"], capfdbinary) == python
    (tmp_path / "study.toml").write_text(
        f'[ratings]\nrated = "rated.csv"\nlimit = 15\n[corpora]\nc = {toml(write_chats(tmp_path))}\n'
    )
    assert saved_scores(tmp_path, "ratings") == python


# Options of a command that say how to read, where to write, or which models and other data there are.
INTERFACE = {
    "corpus", "hypotheses", "references", "rated", "model", "against", "train", "test", "format", "on_error", "column",
    "out", "overwrite", "json", "quiet", "work", "dry_run", "engine", "master",
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_option_exists_through_every_interface(question: str) -> None:
    from typer.main import get_command

    groups = {"overlap": "overlap", "probe": "probe", "metrics": "metrics", "attention": "distract"}
    group = groups.get(question) or ("distract" if question in ("influence", "behave") else "engage")
    name = question if question in ("influence", "behave", "depth", "ratings") else "measure"
    commands = get_command(app).commands  # type: ignore[attr-defined]  # of a group
    options = {each.name for each in commands[group].commands[name].params} - {"help"}
    settings = set(options_of(QUESTIONS[question].settings))
    assert settings - options == set(), "settings that the command lacks"
    assert options - settings <= INTERFACE, "options of the command that are no settings"


def write_chats(folder: Path) -> str:
    """A corpus that a study needs, although the question reads other files."""
    return write_jsonl(folder / "chats.jsonl", records(generate(dialogues=12, seed=5)))


def saved_scores(folder: Path, question: str) -> dict[str, Any]:
    """The scores of a question that a study in this folder saves."""
    app(["study", str(folder / "study.toml"), "--out", str(folder / "study"), "--quiet"], standalone_mode=False)
    results = [json.loads(path.read_bytes()) for path in (folder / "study").glob("runs/*/result.json")]
    (scores,) = [result["scores"] for result in results if result["instrument"] == question]
    answer: dict[str, Any] = scores
    return answer
