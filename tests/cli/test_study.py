from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from dialoscope.cli.study import example
from dialoscope.corpus import generate
from dialoscope.corpus.write import write
from dialoscope.study.plan import read_plan


def dialoscope(*words: object, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dialoscope", *map(str, words)], cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


GATE = '[[gate]]\nscore = "ratio/test/mean_ratio"\nmax = {}\n'
OVERLAP = ("--questions", "overlap")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a study of its overlap."""
    folder = tmp_path_factory.mktemp("place")
    write(generate(dialogues=90, seed=1), folder / "chats.parquet", to="parquet")
    code, out, err = dialoscope("study", "chats.parquet", *OVERLAP, "--out", "s", cwd=folder)
    assert (code, "The page is s/report.html." in out, "overlap-chats: done" in err) == (0, True, True)
    assert out.splitlines()[-1] == "Next: dialoscope export s --to model-card"
    return folder


def test_a_study_without_a_toml_is_reused_and_printed_for_machines(place: Path) -> None:
    code, out, err = dialoscope("study", "chats.parquet", *OVERLAP, "--out", "s", "--json", cwd=place)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert [(step["name"], step["reused"]) for step in found["steps"]] == [
        ("corpus-chats", True),
        ("overlap-chats", True),
    ]
    result = json.loads((place / "s" / found["steps"][1]["run"] / "result.json").read_text())
    assert found["results"]["overlap-chats"] == result


def test_the_example_is_a_plan(file: Callable[[str, str], Path]) -> None:
    plan = read_plan(file("study.toml", example()))
    assert [task.question for task in plan.tasks] == ["corpus", "overlap", "attention", "probe"]


def test_the_demonstration_is_a_plan(file: Callable[[str, str], Path]) -> None:
    plan = read_plan(file("demo.toml", (files("dialoscope.study") / "demo.toml").read_text(encoding="utf-8")))
    questions = [task.question for task in plan.tasks]
    assert questions == ["corpus", "corpus", "overlap", "attention", "probe", "depth"]
    training = plan.models["insert 0.7"].training
    assert training is not None
    assert training.insert == 0.7


def test_init_writes_an_example_and_never_replaces_one(tmp_path: Path) -> None:
    code, out, _ = dialoscope("study", "init", cwd=tmp_path)
    assert (code, out) == (0, "Written: study.toml\nNext: dialoscope study study.toml\n")
    assert (tmp_path / "study.toml").read_text() == example()
    code, _, err = dialoscope("study", "init", cwd=tmp_path)
    assert (code, "this file exists" in err) == (2, True)


def test_options_of_the_command_fill_a_toml(place: Path) -> None:
    (place / "o.toml").write_text('title = "a"\n[corpora]\nchats = "chats.parquet"\n[overlap]\n')
    words = ("study", "o.toml", "--seed", "5", "--title", "b", "--out", "o", "--quiet", "--json")
    code, out, _ = dialoscope(*words, cwd=place)
    assert (code, json.loads(out)["results"]["overlap-chats"]["settings"]["seed"]) == (0, 5)
    assert "<title>b" in (place / "o" / "report.html").read_text(encoding="utf-8")


def test_a_failed_step_ends_with_one(tmp_path: Path) -> None:
    code, _, err = dialoscope("study", "none.jsonl", *OVERLAP, "-q", cwd=tmp_path)
    assert code == 1
    assert "corpus-none, overlap-none failed: No corpus, file or folder 'none.jsonl'" in err
    assert err.count("\n") == 1  # one missing corpus is one complaint
    assert f"Looked in {tmp_path.resolve()}." in err
    assert (tmp_path / "study" / "report.html").is_file()
    assert dialoscope("report", "study", cwd=tmp_path)[0] == 0
    assert "This step failed" in (tmp_path / "report.html").read_text(encoding="utf-8")
    (tmp_path / "gates.toml").write_text(GATE.format(1))
    code, out, err = dialoscope("gate", "study", "--junit", "gates.xml", cwd=tmp_path)
    assert (code, err) == (1, "")
    assert out.startswith("FAILED: ratio/test/mean_ratio = overlap-none is failed (No corpus, file or folder")
    lines = out.splitlines()[:-1]
    assert {line.partition(":")[0] for line in lines} == {"FAILED"}
    assert (tmp_path / "gates.xml").read_text(encoding="utf-8").count("<failure") == len(lines)


@pytest.mark.parametrize("command", ["report", "gate", "export"])
@pytest.mark.parametrize(
    ("book", "told"),
    [
        (None, "nowhere: no such folder. Give a folder that dialoscope wrote with --out."),
        ("", "nowhere: expected the folder of a study or of a result, found neither study.json nor result.json in it."),
        ('{"steps": []}', "nowhere/study.json: expected the steps of a study, found none. Run the study"),
        (
            '{"project": 1}',
            "nowhere/study.json: expected what dialoscope study writes, found another file. Run the study",
        ),
    ],
)
def test_what_is_no_study_is_told_in_one_line(tmp_path: Path, command: str, book: str | None, told: str) -> None:
    (tmp_path / "gates.toml").write_text(GATE.format(1))
    if book is not None:
        (tmp_path / "nowhere").mkdir()
    if book:
        (tmp_path / "nowhere" / "study.json").write_text(book)
    code, out, err = dialoscope(command, "nowhere", cwd=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not (tmp_path / "report.html").exists()


def test_sections_of_two_studies_are_told_apart_by_their_paths(place: Path) -> None:
    for name in ("before", "after"):
        shutil.copytree(place / "s", place / name / "study")
    words = ("report", "before/study", "after/study", "after/../after/study", "--out", "two.html")
    assert dialoscope(*words, cwd=place)[0] == 0
    page = (place / "two.html").read_text(encoding="utf-8")
    assert [page.count(f">{title}<") > 0 for title in ("Overlap (before/study)", "Overlap (after/study)")] == [True] * 2
    assert dialoscope("report", "s", "after/study", "--out", "ends.html", cwd=place)[0] == 0
    assert "Overlap (s)" in (place / "ends.html").read_text(encoding="utf-8")


def test_a_single_result_is_joined_gated_and_compared_as_a_study_is(place: Path) -> None:
    run = next((place / "s" / "runs").glob("overlap-*"))
    shutil.copytree(run, place / "leak")
    assert dialoscope("report", "leak", "s", "--out", "leak.html", cwd=place)[0] == 0
    (place / "one.toml").write_text(GATE.format(1))
    assert dialoscope("gate", "leak/result.json", "--gates", "one.toml", cwd=place)[0] == 0
    code, out, _ = dialoscope("compare", "leak", "s", "--json", cwd=place)
    assert (code, json.loads(out)["identical"]) == (0, 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("study", "run", "--model", "x"), "Give the study's TOML, or corpora"),
        (("study", "x.toml", *OVERLAP), "give it, or corpora and options"),
        (("study", "x.toml"), "Try: dialoscope study init"),
        (("study", "chats.parquet", "chats.parquet"), "Two corpora are called 'chats'"),
        (("study", "chats.parquet", "--questions", "overlop"), "Unknown question 'overlop'. Did you mean 'overlap'?"),
        (("gate", "s"), "gates.toml: expected a TOML of gates"),
        (("compare", "s", "nowhere"), "nowhere: no such folder"),
        (("export", "s", "--to", "csv"), "to is one of lm-eval, model-card, mlflow; found 'csv'"),
        (("export", "s", "--to", "lm-eval", "--model", "ours"), "Unknown model 'ours'"),
        (("export", "s", "--to", "lm-eval", "--uri", "x"), "--uri is for --to mlflow"),
        (("export", "s", "--to", "mlflow", "--out", "x"), "--out for the other forms"),
        (("report", "chats.parquet"), "chats.parquet: expected the folder of a study or of a result, found a file"),
        (("study", "chats.parquet", "--seed", "1.5"), "seed takes a whole number"),
    ],
)
def test_mistakes_are_one_line(place: Path, words: tuple[str, ...], told: str) -> None:
    code, out, err = dialoscope(*words, cwd=place)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


@pytest.mark.parametrize("out", ["/proc/x", "mine.txt/s"])
def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path, out: str) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = dialoscope("study", "concierge", *OVERLAP, "--out", out, cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{out}: this folder cannot be written to (" in err


def test_what_will_fail_is_told_at_once_and_a_dry_run_ends_with_one(place: Path) -> None:
    words = ("study", "chats.parquet", *OVERLAP, "--against", "nowhere", "--out", "late")
    code, _, err = dialoscope(*words, cwd=place)
    lines = err.splitlines()
    assert (code, lines[0].startswith("dialoscope: compared will fail: "), "done" in lines[1]) == (1, True, True)
    assert dialoscope(*words, "--dry-run", cwd=place)[0] == 1
    assert dialoscope(*words, "--dry-run", "--json", cwd=place)[0] == 1


def test_records_that_were_skipped_are_counted_on_the_terminal(tmp_path: Path) -> None:
    turns = [{"role": role, "content": f"{role} speaks"} for role in ("user", "assistant")]
    (tmp_path / "chats.jsonl").write_text("\n".join([json.dumps({"messages": turns})] * 4 + ["{"] * 2))
    (tmp_path / "s.toml").write_text('[corpora.chats]\npath = "chats.jsonl"\non_error = "skip"\n[overlap]\n')
    code, out, _ = dialoscope("study", "s.toml", "-q", cwd=tmp_path)
    assert (code, "chats: skipped 2 x expected" in out) == (0, True)


@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_a_name_that_is_not_known_ends_a_study_before_it_begins(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "s.toml").write_text('[corpora]\nchats = "concierge"\n[overlap]\nlaek = 1\n')
    code, out, err = dialoscope("study", "s.toml", "--out", "new", *words, cwd=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Did you mean 'leak'?" in err
    assert not (tmp_path / "new").exists()


def test_a_dry_run_counts_the_steps(place: Path) -> None:
    words = ("study", "chats.parquet", *OVERLAP, "--dry-run", "--out")
    assert dialoscope(*words, "s", cwd=place)[1].endswith("0 of 2 steps are left to run.\n")
    assert dialoscope(*words, "elsewhere", cwd=place)[1].endswith("2 of 2 steps are left to run.\n")
    code, out, _ = dialoscope(*words, "t", "--against", "s", "--json", cwd=place)
    steps = {step["step"]: step["state"] for step in json.loads(out)["steps"]}
    assert (code, steps) == (0, {"corpus-chats": "to do", "overlap-chats": "to do", "compared": "to do"})


@pytest.mark.parametrize(("limit", "code"), [(1.0, 0), (0.0, 1)])
def test_a_gate_ends_with_one_where_it_fails(
    place: Path, file: Callable[[str, str], Path], limit: float, code: int
) -> None:
    gates = file("g.toml", GATE.format(limit))
    found, out, _ = dialoscope("gate", "s", "--gates", gates, "--junit", gates.with_suffix(".xml"), cwd=place)
    assert found == code
    assert out.startswith("passed: " if code == 0 else "FAILED: ")
    assert f'failures="{code}"' in gates.with_suffix(".xml").read_text()
    machine = json.loads(dialoscope("gate", "s", "--gates", gates, "--json", cwd=place)[1])
    assert machine["passed"] is (code == 0)


def test_a_gate_on_a_step_that_is_not_yet_run_fails(place: Path, file: Callable[[str, str], Path]) -> None:
    shutil.copytree(place / "s", place / "interrupted")
    book = place / "interrupted" / "study.json"
    kept = json.loads(book.read_text())
    kept["steps"][1] |= {"state": "pending", "run": ""}
    book.write_text(json.dumps(kept))
    gates = file("g.toml", GATE.format(1.0))
    code, out, _ = dialoscope("gate", "interrupted", "--gates", gates, cwd=place)
    assert (code, out.splitlines()[0]) == (1, "FAILED: ratio/test/mean_ratio = overlap-chats is not yet run, max 1")
    assert dialoscope("report", "interrupted", "--out", "half.html", cwd=place)[0] == 0
    assert "Not yet run: Overlap: chats." in (place / "half.html").read_text(encoding="utf-8")


def test_results_are_joined_compared_and_exported(place: Path) -> None:
    assert dialoscope("report", "s", "--out", "joined.html", cwd=place)[0] == 0
    assert "Overlap" in (place / "joined.html").read_text(encoding="utf-8")
    shutil.copytree(place / "s", place / "later")
    code, out, _ = dialoscope("compare", "s", "later", "--out", "changed", "--json", cwd=place)
    assert (code, {change["difference"]["value"] for change in json.loads(out)["changes"]}) == (0, {0.0})
    assert (place / "changed" / "report.html").is_file()
    assert dialoscope("report", "changed", "--out", "changed.html", cwd=place)[0] == 0
    code, out, _ = dialoscope("export", "s", "--to", "lm-eval", cwd=place)
    assert (code, "overlap-chats_ratio_test" in json.loads(out)["results"]) == (0, True)


def test_the_study_and_the_command_give_the_same_scores(place: Path) -> None:
    study = json.loads(dialoscope("study", "chats.parquet", *OVERLAP, "--out", "s", "--json", cwd=place)[1])
    command = json.loads(dialoscope("overlap", "measure", "chats.parquet", "--json", cwd=place)[1])
    assert study["results"]["overlap-chats"]["scores"] == command["scores"]
