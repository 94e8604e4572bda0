"""A result's folder: numbers for machines, tables for papers, a page for people.

::

    DIR/result.json      schema_version, instrument, origin, … and the names of all other files
    DIR/report.html      the section as a page
    DIR/tables/NAME.csv  and .tex and .parquet, for each table of the section
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from dialoscope.errors import OutputError, UsageError
from dialoscope.files import contents, whole_folder
from dialoscope.record import SCHEMA_VERSION, Origin, Score
from dialoscope.report.anchor import free_name
from dialoscope.report.html import render
from dialoscope.report.plain import origin_to_dict, plain, to_text
from dialoscope.report.section import Section, Table
from dialoscope.settings import BaseSettings

RESULT = "result.json"


def write_result_folder(
    out: str | Path,
    *,
    head: Mapping[str, Any],
    section: Section,
    origin: Origin,
    overwrite: bool,
    fill: Callable[[Path], None] | None = None,
) -> Path:
    """Write a folder with `head` as its result.json, and the section's page and tables, whole or not at all.

    `fill` writes further files first. An earlier result of this instrument is replaced, and nothing else ever is.
    """
    out, instrument = Path(out), str(head["instrument"])
    shown = section if section.origin is not None else replace(section, origin=origin)
    with whole_folder(out, overwrite=overwrite, check=lambda path: _check_replaced(path, instrument)) as folder:
        if fill is not None:
            fill(folder)
        _write_tables(folder / "tables", shown.tables)
        page = render(shown.title, [shown], subtitle=origin.corpus)
        (folder / "report.html").write_text(page, encoding="utf-8", newline="\n")
        text = to_text({**head, "files": sorted(contents(folder))}, indent=2)
        (folder / RESULT).write_text(text + "\n", encoding="utf-8", newline="\n")
    return out


def is_whole(folder: Path) -> bool:
    """Whether a result is there with all of its files."""
    try:
        head = read_json(folder / RESULT)
    except UsageError:
        return False
    files = head.get("files")
    return isinstance(files, list) and all((folder / str(name)).is_file() for name in files)


def _check_replaced(out: Path, instrument: str) -> None:
    """Replacing deletes what is in a folder, so it must be a result of this instrument with nothing but its files."""
    try:
        head = read_json(out / RESULT)
    except UsageError:
        head = {}
    listed = head["files"] if isinstance(head.get("instrument"), str) and isinstance(head.get("files"), list) else None
    if foreign := sorted(contents(out) - ({RESULT, *map(str, listed)} if listed is not None else set())):
        reason = f"found other files ({foreign[0]!r})"
        raise OutputError(f"{out}: expected a new folder or an earlier run, {reason}. Give a new folder.")
    if head["instrument"] != instrument:
        found = head["instrument"]
        raise OutputError(f"{out}: expected an earlier run of {instrument!r}, found {found!r}. Give a new folder.")


def _write_tables(folder: Path, tables: list[Table]) -> None:
    import pyarrow.parquet as pq

    names: list[str] = []
    for table in tables:
        folder.mkdir(exist_ok=True)
        names.append(name := free_name(table.name, names))
        (folder / f"{name}.csv").write_text(table.to_csv(), encoding="utf-8", newline="\n")
        (folder / f"{name}.tex").write_text(table.to_latex(), encoding="utf-8", newline="\n")
        pq.write_table(table.to_arrow(), folder / f"{name}.parquet")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object whose schema we know."""
    if not path.is_file():
        raise UsageError(f"{path}: expected a file of a Dialoscope run, found none. Runs are made with --out DIR.")
    try:
        value: Any = json.loads(path.read_bytes())
    except ValueError as error:  # broken JSON, or bytes that are no UTF-8
        raise UsageError(f"{path}: expected JSON, found {' '.join(str(error).split())}.") from error
    if not isinstance(value, dict) or not isinstance(value.get("schema_version"), int):
        raise UsageError(f"{path}: expected a Dialoscope file with a schema_version, found something else.")
    if (found := value["schema_version"]) > SCHEMA_VERSION:
        raise UsageError(f"{path}: expected schema_version {SCHEMA_VERSION}, found {found}. Update Dialoscope.")
    if found < SCHEMA_VERSION:
        raise UsageError(f"{path}: expected schema_version {SCHEMA_VERSION}, found {found}. Measure again.")
    return value


class Recorded(Protocol):
    """What everything that is measured or made tells of itself."""

    @property
    def settings(self) -> BaseSettings:
        """What was asked."""
        ...

    @property
    def parts(self) -> Mapping[str, int]:
        """Dialogues by the part that they played."""
        ...

    @property
    def used(self) -> str:
        """Which dialogues were used for what."""
        ...

    @property
    def counts(self) -> Mapping[str, Any]:
        """What was not measured, by reason, and other counts."""
        ...

    @property
    def origin(self) -> Origin:
        """What has to be repeated to get the same."""
        ...


def record_of(recorded: Recorded, instrument: str, scores: Mapping[str, Score]) -> dict[str, Any]:
    """The part of `result.json` that results and data made from a corpus share."""
    return {
        "schema_version": SCHEMA_VERSION,
        "instrument": instrument,
        "origin": origin_to_dict(recorded.origin),
        "settings": recorded.settings.to_dict(),
        "parts": dict(recorded.parts),
        "used": recorded.used,
        "counts": plain(recorded.counts, "counts"),
        "scores": {name: score.to_dict() for name, score in scores.items()},
    }
