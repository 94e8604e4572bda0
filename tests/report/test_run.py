from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dialoscope.errors import OutputError, UsageError
from dialoscope.record import Origin, Score
from dialoscope.report import Section, Table, run
from dialoscope.report.plain import origin_to_dict, plain
from dialoscope.report.run import is_whole, read_json, write_result_folder

ORIGIN = Origin("demo@00", {"threshold": 0.75}, 7, "0.1.0")


def write_run(
    out: Path, *, instrument: str, data: Any, section: Section, origin: Origin, overwrite: bool = True, fill: Any = None
) -> Path:
    """A folder with this data in its result.json."""
    head = {"schema_version": 2, "instrument": instrument, "origin": origin_to_dict(origin), "data": plain(data)}
    return write_result_folder(out, head=head, section=section, origin=origin, overwrite=overwrite, fill=fill)


@pytest.fixture
def written(tmp_path: Path, section: Section) -> Path:
    data = {"identical": Score(0.2315, 6740, (0.22, 0.24)), "over": {0.75: 3}}
    return write_run(tmp_path / "run", instrument="overlap", data=data, section=section, origin=ORIGIN)


def test_a_run_has_numbers_tables_section_and_page(written: Path) -> None:
    files = sorted(str(path.relative_to(written)) for path in written.rglob("*") if path.is_file())
    tables = [f"tables/scores.{end}" for end in ("csv", "parquet", "tex")]
    assert files == ["report.html", "result.json", *tables]
    assert json.loads((written / "result.json").read_text())["files"] == ["report.html", *tables]


def test_result_json_has_schema_instrument_origin_and_data(written: Path) -> None:
    assert json.loads((written / "result.json").read_bytes()) == {
        "schema_version": 2,
        "instrument": "overlap",
        "origin": {
            "corpus": "demo@00",
            "settings": {"threshold": 0.75},
            "seed": 7,
            "version": "0.1.0",
            "signature": "corpus:demo@00|seed:7|threshold:0.75|v:0.1.0",
        },
        "data": {
            "identical": {"value": 0.2315, "n": 6740, "interval": [0.22, 0.24], "reason": None},
            "over": {"0.75": 3},
        },
        "files": ["report.html", "tables/scores.csv", "tables/scores.parquet", "tables/scores.tex"],
    }


def test_tables_are_written_in_three_forms_that_agree(written: Path, section: Section) -> None:
    table = section.tables[0]
    assert (written / "tables" / "scores.csv").read_text(encoding="utf-8") == table.to_csv()
    assert (written / "tables" / "scores.tex").read_text(encoding="utf-8") == table.to_latex()
    assert pq.read_table(written / "tables" / "scores.parquet").equals(table.to_arrow())


def test_tables_of_one_name_get_files_of_their_own(tmp_path: Path) -> None:
    twins = Section("T", "t", "", [Table(["a"], [[1]], "Twin"), Table(["a"], [[2]], "Twin")])
    out = write_run(tmp_path / "run", instrument="x", data={}, section=twins, origin=ORIGIN)
    assert [(out / "tables" / f"{name}.csv").read_text() for name in ("twin", "twin-2")] == ["a\n1\n", "a\n2\n"]


def test_the_page_of_a_section_without_an_origin_has_the_runs(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run", instrument="x", data={}, section=Section("T", "t", "", []), origin=ORIGIN)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "demo@00" in page.partition('id="records"')[2]


@pytest.mark.parametrize("file", ["result.json", "report.html", "tables/scores.csv"])
def test_a_run_is_whole_only_with_all_of_its_files(written: Path, file: str) -> None:
    assert is_whole(written)
    (written / file).unlink()
    assert not is_whole(written)


def test_a_failure_in_the_middle_leaves_nothing(
    tmp_path: Path, section: Section, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(run, "render", fail)
    with pytest.raises(RuntimeError, match="full"):
        write_run(tmp_path / "run", instrument="x", data={}, section=section, origin=ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_earlier_run_as_it_was(written: Path, section: Section) -> None:
    before = (written / "result.json").read_bytes()
    with pytest.raises(ValueError, match=r"data\.f1: expected a finite number"):
        write_run(written, instrument="overlap", data={"f1": float("nan")}, section=section, origin=ORIGIN)
    assert (written / "result.json").read_bytes() == before


def test_an_earlier_run_is_replaced(written: Path, section: Section) -> None:
    write_run(written, instrument="overlap", data={"n": 1}, section=section, origin=ORIGIN)
    assert read_json(written / "result.json")["data"] == {"n": 1}


def test_a_run_of_another_instrument_is_never_replaced(written: Path, section: Section) -> None:
    before = (written / "result.json").read_bytes()
    with pytest.raises(OutputError) as caught:
        write_run(written, instrument="probe", data={}, section=section, origin=ORIGIN)
    found = "expected an earlier run of 'probe', found 'overlap'. Give a new folder."
    assert str(caught.value) == f"{written}: {found}"
    assert (written / "result.json").read_bytes() == before


def test_an_earlier_run_is_kept_where_that_is_asked_for(written: Path, section: Section) -> None:
    with pytest.raises(OutputError, match="not empty"):
        write_run(written, instrument="x", data={}, section=section, origin=ORIGIN, overwrite=False)


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path, section: Section) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="found other files"):
        write_run(tmp_path, instrument="x", data={}, section=section, origin=ORIGIN)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("name", ["notes.md", "tables/mine.csv", "tables/old/scores.csv", ".git/config", "kept/a.txt"])
def test_a_run_with_a_file_of_somebody_else_is_never_replaced(written: Path, section: Section, name: str) -> None:
    (written / name).parent.mkdir(exist_ok=True)
    (written / name).write_text("years of work")
    with pytest.raises(OutputError, match=rf"found other files \('{re.escape(name)}'\)"):
        write_run(written, instrument="x", data={}, section=section, origin=ORIGIN)
    assert (written / name).read_text() == "years of work"


@pytest.mark.parametrize(
    "content", ["{}", "[1]", "not json", '{"score": 3}', '{"schema_version": 2}', '{"schema_version": 9}', ""]
)
def test_a_folder_with_another_programs_result_is_never_replaced(
    tmp_path: Path, section: Section, content: str
) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(
        OutputError, match=r"expected a new folder or an earlier run, found other files \('result\.json'\)"
    ):
        write_run(tmp_path, instrument="x", data={}, section=section, origin=ORIGIN)
    assert (tmp_path / "result.json").read_text() == content


def test_a_run_with_tables_of_one_long_name_is_replaced(tmp_path: Path) -> None:
    twins = Section("T", "t", "", [Table(["a"], [[1]], "x" * 80), Table(["a"], [[2]], "x" * 80)])
    for _ in range(2):
        write_run(tmp_path / "run", instrument="x", data={}, section=twins, origin=ORIGIN)
    assert len(list((tmp_path / "run" / "tables").glob("*.csv"))) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{not json", "expected JSON, found Expecting property name"),
        ("\xff", "expected JSON, found"),
        ("[1, 2]", "expected a Dialoscope file with a schema_version, found something else"),
        ('{"model": "x"}', "expected a Dialoscope file with a schema_version, found something else"),
        ('{"schema_version": 3}', "expected schema_version 2, found 3. Update Dialoscope."),
        ('{"schema_version": 1}', "expected schema_version 2, found 1. Measure again."),
    ],
)
def test_a_broken_foreign_newer_or_older_file_is_named_in_one_line(written: Path, content: str, message: str) -> None:
    path = written / "result.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        read_json(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"result\.json: expected a file of a Dialoscope run, found none"):
        read_json(tmp_path / "result.json")


def test_an_instruments_own_files_are_listed_and_replaced_with_the_run(tmp_path: Path, section: Section) -> None:
    def fill(folder: Path) -> None:
        (folder / "more").mkdir()
        (folder / "more" / "matches.txt").write_text("own")

    kept = {"instrument": "overlap", "data": {}, "section": section, "origin": ORIGIN}
    out = write_run(tmp_path / "run", **kept, fill=fill)  # type: ignore[arg-type]
    assert "more/matches.txt" in json.loads((out / "result.json").read_text())["files"]
    write_run(out, **kept)  # type: ignore[arg-type]
    assert not (out / "more").exists()


def test_a_file_that_no_run_listed_is_still_never_replaced(tmp_path: Path, section: Section) -> None:
    kept = {"instrument": "overlap", "data": {}, "section": section, "origin": ORIGIN}
    out = write_run(tmp_path / "run", **kept, fill=lambda folder: (folder / "own.txt").touch())  # type: ignore[arg-type]
    (out / "mine.txt").touch()
    with pytest.raises(OutputError, match=r"found other files \('mine\.txt'\)"):
        write_run(out, **kept)  # type: ignore[arg-type]
