"""The script that packs, runs and merges every study: its commands are ones the studies take, and rows find tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
import all_studies  # noqa: E402
from row_queue import Job  # noqa: E402

COMMANDS = {(job.study, job.corpus, job.options): job for job in all_studies.QUEUE}


@pytest.mark.parametrize("job", COMMANDS.values(), ids=lambda job: job.name)
def test_every_command_is_one_its_study_takes(job: Job, tmp_path: Path) -> None:
    options = [option.format(corpora="corpora", encoder="minilm") for option in job.options]
    places = ["--begin-within", "-1", "--device", "cpu", "--work", str(tmp_path), "--out", str(tmp_path / "rows")]
    which = ["--name", job.corpus, "--variants", job.variant]
    command = [sys.executable, str(EXAMPLES / f"{job.study}.py"), *options, *places, *which]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_queue_begins_with_a_row_that_is_made_again_and_the_23_variants_of_the_paper() -> None:
    jobs = [*dict.fromkeys(all_studies.QUEUE)]
    assert len({job.name for job in jobs}) == len(jobs)
    assert jobs[0].is_check
    first = {job.variant for job in jobs[1:25]}
    assert first == {*all_studies.VARIANTS["paper"], "dynamic+0.7-noloss"}
    assert len(all_studies.VARIANTS["paper"]) == 23


def row(variant: str, perplexity: float) -> dict[str, object]:
    return {"corpus": "c", "variant": variant, "seed": 0, "perplexity": {"value": perplexity}, "validation": [9.0]}


def test_rows_made_again_take_the_place_of_older_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.json").write_text(json.dumps([row("a", 1.0), row("b", 2.0)]))
    rows = tmp_path / "rows"
    rows.mkdir()
    for variant, perplexity in (("b", 3.0), ("d", 4.0)):
        (rows / f"study--c--{variant}--0.json").write_text(json.dumps(row(variant, perplexity)))
    all_studies.merge(rows, tmp_path, tmp_path / "no-document")
    merged = json.loads((tmp_path / "study.json").read_text())
    assert merged == [row("a", 1.0), row("b", 3.0), row("d", 4.0)]
    assert "c b 0, made again: perplexity 2 -> 3" in capsys.readouterr().out
    all_studies.merge(rows, tmp_path, tmp_path / "no-document")  # equal rows are no pair
    pairs = json.loads((tmp_path / all_studies.AGAIN).read_text())
    assert [(pair["first"], pair["again"]) for pair in pairs] == [({"perplexity": 2.0}, {"perplexity": 3.0})]


def test_a_row_made_as_a_check_is_kept_beside_the_first(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps([row("a", 2.0)]))
    (tmp_path / "study--c--a--0--again.json").write_text(json.dumps(row("a", 2.1)))
    for _ in range(2):
        all_studies.merge(tmp_path, tmp_path, tmp_path / "no-document")
    assert json.loads((tmp_path / "study.json").read_text()) == [row("a", 2.0)]
    pairs = json.loads((tmp_path / all_studies.AGAIN).read_text())
    assert [(pair["first"], pair["again"]) for pair in pairs] == [({"perplexity": 2.0}, {"perplexity": 2.1})]
    assert all_studies.again_table(pairs).splitlines()[2] == "| c | a | 0 | 2.00, 2.10 (+5.0 %) |"


@pytest.mark.parametrize("older", ["", "| old |\n"])
def test_tables_are_written_between_the_marks_of_a_document(
    older: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "print_it.py").write_text(r"print('| new \\1 |')")
    monkeypatch.setattr(all_studies, "HERE", tmp_path)
    monkeypatch.setattr(all_studies, "TABLES", {"das": "print_it.py", "absent": "print_it.py"})
    document = tmp_path / "results.md"
    document.write_text(f"a\n<!-- das -->\n{older}<!-- end -->\nb\n<!-- presets -->\nkept\n<!-- end -->\n")
    all_studies.rebuild(document)
    text = document.read_text()
    assert text == "a\n<!-- das -->\n| new \\1 |\n<!-- end -->\nb\n<!-- presets -->\nkept\n<!-- end -->\n"
