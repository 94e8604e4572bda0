"""Steps are known by what was asked of which corpus; a folder belongs to one study at a time, and to nobody else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.study.samples import answer_with

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError, UsageError
from dialoscope.overlap import measure
from dialoscope.study.page import sections_of
from dialoscope.study.plan import plan_of
from dialoscope.study.results import missing_steps, read_results, steps_in
from dialoscope.study.run import planned, run

PLAN = {"corpora": {"small": "concierge"}, "overlap": {}}
BROKEN = ["{", "", "[]", '{"project": 1}', '{"steps": [{"name": "a"}]}', '{"steps": 5}', "\xff"]
ALIKE = [("日本語", "中文"), ("a b", "a-b"), ("Chats", "chats"), ("x" * 70 + "1", "x" * 70 + "2"), ("!", "?")]


def names(*corpora: str, **more: Any) -> dict[tuple[str, str], str]:
    """The name of each step, by what is asked of which corpus."""
    plan = plan_of({"corpora": dict.fromkeys(corpora, "concierge"), "overlap": {}, **more})
    return {(task.asked, task.corpus): task.name for task in plan.tasks}


@pytest.mark.parametrize(
    ("corpus", "name"),
    [("small", "overlap-small"), ("a-b", "overlap-a-b"), ("my_chats", "overlap-my-chats"), ("V 2", "overlap-v-2")],
)
def test_a_name_that_a_folder_can_have_is_the_steps(corpus: str, name: str) -> None:
    assert names(corpus)["overlap", corpus] == name


@pytest.mark.parametrize("corpora", ALIKE)
def test_corpora_whose_names_look_alike_in_a_folder_have_steps_of_their_own_in_any_order(
    corpora: tuple[str, str],
) -> None:
    found = names(*corpora)
    assert len(set(found.values())) == len(found) == 4
    assert names(*reversed(corpora)) == found
    assert all(len(name) <= 60 and name.isascii() for name in found.values())


def test_one_that_is_written_as_its_folder_keeps_its_name_beside_another() -> None:
    assert names("a b", "a-b")["overlap", "a-b"] == "overlap-a-b"


def test_the_name_of_a_corpus_in_other_letters_does_not_depend_on_the_others() -> None:
    assert names("日本語")["overlap", "日本語"] == names("中文", "日本語")["overlap", "日本語"]


def test_names_that_fall_together_only_when_joined_are_told_apart_in_any_order() -> None:
    asked = [{"name": "a", "corpora": ["b-c"]}, {"name": "a-b", "corpora": ["c"]}]
    found = names("b-c", "c", overlap=asked)
    assert len(set(found.values())) == len(found) == 4
    assert names("b-c", "c", overlap=asked[::-1]) == found


@pytest.mark.parametrize("name", ["corpus", "compared", "", 5])
def test_a_question_has_a_name_of_its_own(name: Any) -> None:
    with pytest.raises(UsageError, match=r"\[overlap\] name: expected a name of its own"):
        names("small", overlap={"name": name})


# --- study.json -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [*BROKEN, None])
def test_a_study_whose_study_json_is_damaged_or_lost_continues_with_what_is_done(
    small: Corpus, tmp_path: Path, content: str | None
) -> None:
    run(PLAN, tmp_path / "s", corpora={"small": small})
    book = tmp_path / "s" / "study.json"
    book.unlink() if content is None else book.write_text(content, encoding="latin-1")
    assert [row["state"] for row in planned(PLAN, tmp_path / "s", corpora={"small": small})] == ["done", "done"]
    again = run(PLAN, tmp_path / "s", corpora={"small": small})
    assert [(step.state, step.is_reused) for step in again.steps] == [("done", True)] * 2
    assert [each.name for each in read_results([tmp_path / "s"])] == ["corpus-small", "overlap-small"]


@pytest.mark.parametrize("content", BROKEN)
def test_a_folder_with_another_programs_study_json_is_refused_and_left_as_it_is(
    small: Corpus, tmp_path: Path, content: str
) -> None:
    (tmp_path / "runs" / "ours-0123456789ab").mkdir(parents=True)  # of a training, say: no step of a study
    for name in ("study.json", "runs/ours-0123456789ab/result.json", "report.html"):
        (tmp_path / name).write_text(content)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for carry_out in (planned, run):
        with pytest.raises(OutputError, match=r"found other files\. Give a new folder\."):
            carry_out(PLAN, tmp_path, corpora={"small": small})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_is_advised_of_a_damaged_study_json_can_be_done(small: Corpus, tmp_path: Path) -> None:
    run(PLAN, tmp_path / "s", corpora={"small": small})
    (tmp_path / "other").mkdir()
    for name in ("s", "other"):
        (tmp_path / name / "study.json").write_text("{")
    with pytest.raises(UsageError, match="Run the study into this folder again"):
        steps_in(tmp_path / "s")
    with pytest.raises(UsageError, match="Run the study into a new folder"):
        steps_in(tmp_path / "other")
    run(PLAN, tmp_path / "s", corpora={"small": small})
    assert len(sections_of(tmp_path / "s", steps_in(tmp_path / "s"))) == 2


# --- One at a time ----------------------------------------------------------------------------------------------------


def test_a_second_study_in_the_folder_at_the_same_time_is_refused_in_one_line(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[int, str]] = []

    def overlap(corpus: Corpus, **options: Any) -> Any:
        second = [sys.executable, "-m", "dialoscope", "study", "concierge", "--questions", "overlap", "--out"]
        done = subprocess.run([*second, str(tmp_path / "s")], capture_output=True, text=True)
        said.append((done.returncode, done.stderr))
        return measure(corpus, settings=options["settings"])

    plan = plan_of(PLAN)
    answer_with(monkeypatch, "overlap", overlap)
    run(plan, tmp_path / "s", corpora={"small": small})
    ((code, line),) = said
    assert (code, line.count("\n")) == (2, 1)
    assert f"{tmp_path / 's'}: another study is running in this folder" in line


TOGETHER = """
import sys, time
from pathlib import Path
from dialoscope.errors import OutputError
from dialoscope.study.plan import plan_of
from dialoscope.study.run import Session
from dialoscope.study.steps import study_lock

plan = plan_of({"corpora": {"a": "concierge"}, "overlap": {}})
for number in range(40):
    folder = Path(sys.argv[1]) / str(number)
    while time.time() < float(sys.argv[2]) + number * 0.05:
        pass
    try:
        with study_lock(folder):
            Session(plan, folder, {}, None)
            (folder / "runs").mkdir(exist_ok=True)
            print("running")
    except OutputError as error:
        print(error)
"""


def test_studies_that_begin_in_the_same_instant_in_a_new_folder_know_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOGETHER, str(tmp_path), str(time.time() + 4)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for lines in zip(*(process.communicate()[0].splitlines() for process in both), strict=True):
        assert "running" in lines
        assert all(line == "running" or "another study is running" in line for line in lines)
    assert [process.returncode for process in both] == [0, 0]


def test_of_two_studies_that_are_called_together_one_is_done(tmp_path: Path) -> None:
    (tmp_path / "chats.txt").write_text("hello\nhi\n\nbye\nbye\n")
    words = ("study", str(tmp_path / "chats.txt"), "--questions", "overlap", "--out", str(tmp_path / "s"))
    command = [sys.executable, "-m", "dialoscope", *words]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(process.communicate()[1], process.returncode) for process in both]
    assert 0 in [code for _, code in ends]
    assert all(code == 0 or (code == 2 and "another study is running" in said) for said, code in ends)
    assert missing_steps([tmp_path / "s"]) == []


def test_a_folder_is_free_again_when_the_study_in_it_is_killed(small: Corpus, tmp_path: Path) -> None:
    code = "import sys, pathlib\nfrom dialoscope.study.steps import study_lock\n"
    code += "with study_lock(pathlib.Path(sys.argv[1])): print(); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(OutputError, match="another study is running"):
            run(PLAN, tmp_path / "s", corpora={"small": small})
        other.kill()
        other.wait()
        assert run(PLAN, tmp_path / "s", corpora={"small": small}).failed == []
