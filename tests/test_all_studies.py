"""The script that runs every study: its commands are ones the studies take, and rows find their tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
import all_studies  # noqa: E402


@pytest.mark.parametrize("name", all_studies.STUDIES)
def test_every_command_is_one_its_study_takes(name: str, tmp_path: Path) -> None:
    for command in all_studies.STUDIES[name]:
        script, *options = command.format(corpora="corpora", encoder="minilm").split()
        told = ["--begin-within", "-1", "--device", "cpu", "--work", str(tmp_path), "--out", str(tmp_path / "rows")]
        done = subprocess.run([sys.executable, str(EXAMPLES / script), *options, *told], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_rows_made_again_take_the_place_of_older_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_studies, "HERE", tmp_path)
    old = [{"corpus": "c", "variant": name, "seed": 0, "value": "old"} for name in ("a", "b")]
    new = [{"corpus": "c", "variant": name, "seed": 0, "value": "new"} for name in ("b", "d")]
    (tmp_path / "leak_study.json").write_text(json.dumps(old))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "leak_study-leak-0.json").write_text(json.dumps(new))
    all_studies.merge(tmp_path / "rows")
    merged = json.loads((tmp_path / "leak_study.json").read_text())
    assert [(row["variant"], row["value"]) for row in merged] == [("a", "old"), ("b", "new"), ("d", "new")]
