"""A study's book that is lost or damaged: what was done is found again, and nobody else's folder is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError, UsageError
from dialoscope.study import plan_of, read_runs, run_study
from dialoscope.study.dry_run import planned
from dialoscope.study.folders import joined_sections

PLAN = plan_of({"corpora": {"small": "concierge"}, "overlap": {}})
BROKEN = ["{", "", "[]", '{"project": 1}', '{"steps": [{"name": "a"}]}', '{"steps": 5}', "\xff"]


@pytest.mark.parametrize("content", [*BROKEN, None])
def test_a_study_whose_book_is_damaged_or_lost_goes_on_with_what_is_done(
    small: Corpus, tmp_path: Path, content: str | None
) -> None:
    run_study(PLAN, tmp_path / "s", given={"small": small})
    book = tmp_path / "s" / "study.json"
    book.unlink() if content is None else book.write_text(content, encoding="latin-1")
    assert [row["state"] for row in planned(PLAN, tmp_path / "s", given={"small": small})] == ["done", "done"]
    again = run_study(PLAN, tmp_path / "s", given={"small": small})
    assert [(one.state, one.is_reused) for one in again.steps] == [("done", True)] * 2
    assert [one.name for one in read_runs([tmp_path / "s"])] == ["corpus-small", "overlap-small"]


@pytest.mark.parametrize("content", BROKEN)
def test_a_folder_with_another_programs_book_is_refused_and_left_as_it_is(
    small: Corpus, tmp_path: Path, content: str
) -> None:
    (tmp_path / "runs" / "ours-0123456789ab").mkdir(parents=True)  # of a training, say: no run of a step
    for name in ("study.json", "runs/ours-0123456789ab/result.json", "report.html"):
        (tmp_path / name).write_text(content)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for carry_out in (planned, run_study):
        with pytest.raises(OutputError, match=r"found other files\. Give a new folder\."):
            carry_out(PLAN, tmp_path, given={"small": small})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_is_advised_of_a_damaged_book_can_be_done(small: Corpus, tmp_path: Path) -> None:
    run_study(PLAN, tmp_path / "s", given={"small": small})
    (tmp_path / "other").mkdir()
    for name in ("s", "other"):
        (tmp_path / name / "study.json").write_text("{")
    with pytest.raises(UsageError, match="Run the study into this folder again"):
        joined_sections([tmp_path / "s"])
    with pytest.raises(UsageError, match="Run the study into a new folder"):
        joined_sections([tmp_path / "other"])
    run_study(PLAN, tmp_path / "s", given={"small": small})
    assert len(joined_sections([tmp_path / "s"])) == 2
