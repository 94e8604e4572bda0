from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import generate
from dialoscope.corpus.write import write


def dialoscope(*words: object, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dialoscope", *map(str, words)], cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a study of its overlap."""
    folder = tmp_path_factory.mktemp("place")
    write(generate(dialogues=90, seed=1), folder / "chats.parquet", to="parquet")
    code, out, err = dialoscope(
        "study", "--corpus", "chats.parquet", "--instruments", "overlap", "--out", "s", cwd=folder
    )
    assert (code, "The report is at s/report.html" in out, "overlap-chats: done" in err) == (0, True, True)
    return folder


def test_a_study_of_flags_is_reused_and_printed_for_machines(place: Path) -> None:
    words = ("study", "--corpus", "chats.parquet", "--instruments", "overlap", "--out", "s", "--json")
    code, out, err = dialoscope(*words, cwd=place)
    steps = json.loads(out)["steps"]
    assert (code, err) == (0, "")
    assert [(one["name"], one["reused"]) for one in steps] == [("corpus-chats", True), ("overlap-chats", True)]


def test_init_writes_a_plan_that_can_be_read_and_never_replaces_one(tmp_path: Path) -> None:
    assert dialoscope("study", "init", cwd=tmp_path)[0] == 0
    code, out, _ = dialoscope("study", "study.toml", "--dry-run", "--json", cwd=tmp_path)
    assert code == 0
    steps = [one["step"] for one in json.loads(out)["steps"]]
    assert steps == ["corpus-chats", "overlap-chats", "distract-chats", "probe-chats"]
    code, _, err = dialoscope("study", "init", cwd=tmp_path)
    assert (code, "this file exists" in err) == (2, True)


def test_a_failed_step_ends_with_one(tmp_path: Path) -> None:
    code, _, err = dialoscope("study", "--corpus", "none.jsonl", "--instruments", "overlap", "-q", cwd=tmp_path)
    assert code == 1
    assert "overlap-none failed: No corpus, file or folder 'none.jsonl'" in err
    assert (tmp_path / "study" / "report.html").is_file()
    assert dialoscope("report", "study", cwd=tmp_path)[0] == 0
    assert "This step failed" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_where_every_step_failed_gates_are_told_and_written(tmp_path: Path) -> None:
    dialoscope("study", "--corpus", "none.jsonl", "--instruments", "overlap", "-q", cwd=tmp_path)
    (tmp_path / "gates.toml").write_text('[[gate]]\ninstrument = "overlap"\nvalue = "mean"\nmax = 1\n')
    code, out, err = dialoscope("gate", "study", "--junit", "gates.xml", cwd=tmp_path)
    assert (code, err) == (1, "")
    assert out.startswith("FAILED: overlap · mean = overlap-none is failed (No corpus, file or folder")
    assert {line.partition(":")[0] for line in out.splitlines()} == {"FAILED"}
    xml = (tmp_path / "gates.xml").read_text(encoding="utf-8")
    assert xml.count("<failure") == len(out.splitlines())


@pytest.mark.parametrize("command", ["report", "gate", "export"])
@pytest.mark.parametrize(
    ("book", "told"),
    [
        (None, "nowhere: no such folder. Give a folder that dialoscope wrote with --out."),
        ("", "nowhere: expected the folder of a study or of a run, found neither study.json nor result.json in it."),
        ('{"steps": []}', "nowhere/study.json: expected the steps of a study, found none. Run the study"),
        (
            '{"project": 1}',
            "nowhere/study.json: expected what dialoscope study writes, found another file. Run the study",
        ),
    ],
)
def test_what_is_no_study_is_told_in_one_line(tmp_path: Path, command: str, book: str | None, told: str) -> None:
    (tmp_path / "gates.toml").write_text('[[gate]]\ninstrument = "overlap"\nvalue = "mean"\nmax = 1\n')
    if book is not None:
        (tmp_path / "nowhere").mkdir()
    if book:
        (tmp_path / "nowhere" / "study.json").write_text(book)
    code, out, err = dialoscope(command, "nowhere", *(("--to", "lm-eval") if command == "export" else ()), cwd=tmp_path)
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
    assert "2 of 2 findings raise a concern: Overlap (before/study); Overlap (after/study)." in page
    assert dialoscope("report", "s", "after/study", "--out", "ends.html", cwd=place)[0] == 0
    assert "Overlap (s)" in (place / "ends.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("study", "--model", "x"), "Give the study's TOML, or --corpus"),
        (("study", "x.toml", "--corpus", "y"), "give it, or the options"),
        (("study", "x.toml"), "Try: dialoscope study init"),
        (("gate", "s"), "gates.toml: expected a TOML of gates"),
        (("compare", "s", "nowhere"), "nowhere: no such folder"),
        (("export", "s", "--to", "csv"), "Unknown form 'csv'"),
        (("export", "s", "--to", "lm-eval", "--model", "ours"), "Unknown model 'ours'"),
        (("export", "s", "--to", "lm-eval", "--uri", "x"), "--uri is for --to mlflow"),
        (("export", "s", "--to", "mlflow", "--out", "x"), "--out for the other forms"),
        (("report", "chats.parquet"), "chats.parquet: expected the folder of a study or of a run, found a file"),
    ],
)
def test_mistakes_are_one_line(place: Path, words: tuple[str, ...], told: str) -> None:
    code, out, err = dialoscope(*words, cwd=place)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


@pytest.mark.parametrize("out", ["/proc/x", "mine.txt/s"])
def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path: Path, out: str) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = dialoscope("study", "--corpus", "concierge", "--instruments", "overlap", "--out", out, cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{out}: this folder cannot be written to (" in err


def test_one_missing_corpus_is_one_complaint(tmp_path: Path) -> None:
    _, _, err = dialoscope("study", "--corpus", "none.jsonl", "--instruments", "overlap", "-q", cwd=tmp_path)
    assert err.count("\n") == 1
    assert "corpus-none, overlap-none failed: No corpus" in err
    assert f"Looked in {tmp_path.resolve()}." in err


def test_what_cannot_be_had_is_told_at_once_and_a_dry_run_ends_with_one(place: Path) -> None:
    words = ("study", "--corpus", "chats.parquet", "--instruments", "overlap", "--against", "nowhere", "--out", "late")
    code, _, err = dialoscope(*words, cwd=place)
    lines = err.splitlines()
    assert (code, lines[0].startswith("dialoscope: compared will fail: "), "done" in lines[1]) == (1, True, True)
    assert dialoscope(*words, "--dry-run", cwd=place)[0] == 1
    assert dialoscope(*words, "--dry-run", "--json", cwd=place)[0] == 1


def test_records_that_were_left_out_are_counted_on_the_terminal(tmp_path: Path) -> None:
    turns = [{"role": role, "content": f"{role} speaks"} for role in ("user", "assistant")]
    (tmp_path / "chats.jsonl").write_text("\n".join([json.dumps({"messages": turns})] * 4 + ["{"] * 2))
    (tmp_path / "s.toml").write_text('[corpora.chats]\npath = "chats.jsonl"\non_error = "skip"\n[overlap]\n')
    code, out, _ = dialoscope("study", "s.toml", "-q", cwd=tmp_path)
    assert (code, "chats: 2 records were left out on reading (expected" in out) == (0, True)


@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_a_name_that_is_not_known_ends_a_study_before_it_begins(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "s.toml").write_text('[corpora]\nchats = "concierge"\n[models.a]\npreset = "static-iu"\n[probe]\n')
    code, out, err = dialoscope("study", "s.toml", "--out", "new", *words, cwd=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Did you mean 'static-ui'?" in err
    assert not (tmp_path / "new").exists()


def test_a_dry_run_counts_the_steps_that_are_left(place: Path) -> None:
    words = ("study", "--corpus", "chats.parquet", "--instruments", "overlap", "--dry-run", "--out")
    assert dialoscope(*words, "s", cwd=place)[1].endswith("0 of 2 steps are left to run.\n")
    assert dialoscope(*words, "elsewhere", cwd=place)[1].endswith("2 of 2 steps are left to run.\n")
    assert list(json.loads(dialoscope(*words, "s", "--json", cwd=place)[1])) == ["steps"]


@pytest.mark.parametrize(("limit", "code"), [(1.0, 0), (0.0, 1)])
def test_a_gate_ends_with_one_where_it_is_shut(
    place: Path, file: Callable[[str, str], Path], limit: float, code: int
) -> None:
    gates = file("g.toml", f'[[gate]]\ninstrument = "overlap"\nvalue = "mean"\nmax = {limit}\n')
    found, out, _ = dialoscope("gate", "s", "--gates", gates, "--junit", gates.with_suffix(".xml"), cwd=place)
    assert found == code
    assert out.startswith("passed: " if code == 0 else "FAILED: ")
    assert f'failures="{code}"' in gates.with_suffix(".xml").read_text()


def test_a_gate_on_a_step_that_is_not_yet_run_is_shut(place: Path, file: Callable[[str, str], Path]) -> None:
    shutil.copytree(place / "s", place / "broken-off")
    book = place / "broken-off" / "study.json"
    kept = json.loads(book.read_text())
    kept["steps"][1] |= {"state": "pending", "run": ""}
    book.write_text(json.dumps(kept))
    gates = file("g.toml", '[[gate]]\ninstrument = "overlap"\nvalue = "mean"\nmax = 1.0\n')
    code, out, _ = dialoscope("gate", "broken-off", "--gates", gates, cwd=place)
    assert (code, out) == (1, "FAILED: overlap · mean = overlap-chats is not yet run, max 1\n")
    assert dialoscope("report", "broken-off", "--out", "half.html", cwd=place)[0] == 0
    assert "Not yet run: Overlap: chats." in (place / "half.html").read_text(encoding="utf-8")


def test_a_dry_run_tells_of_the_comparison(place: Path) -> None:
    words = ("study", "--corpus", "chats.parquet", "--instruments", "overlap", "--against", "s", "--out", "t")
    code, out, _ = dialoscope(*words, "--dry-run", "--json", cwd=place)
    steps = {one["step"]: one["state"] for one in json.loads(out)["steps"]}
    assert (code, steps) == (0, {"corpus-chats": "to do", "overlap-chats": "to do", "compared": "to do"})


def test_runs_are_joined_compared_and_exported(place: Path) -> None:
    assert dialoscope("report", "s", "--out", "joined.html", cwd=place)[0] == 0
    assert "Overlap" in (place / "joined.html").read_text(encoding="utf-8")
    shutil.copytree(place / "s", place / "later")
    code, out, _ = dialoscope("compare", "s", "later", "--out", "changed", "--json", cwd=place)
    assert (code, {one["difference"]["value"] for one in json.loads(out)["changes"]}) == (0, {0.0})
    assert (place / "changed" / "report.html").is_file()
    code, out, _ = dialoscope("export", "s", "--to", "lm-eval", cwd=place)
    assert (code, "mean,none" in json.loads(out)["results"]["overlap-chats"]) == (0, True)
