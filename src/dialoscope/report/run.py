"""A run on disk: its numbers for machines, its tables for papers, its section for the report.

::

    DIR/result.json      schema_version, instrument, origin with its signature, data
    DIR/section.json     the section, so that runs can be joined into one page without running again
    DIR/report.html      the section alone
    DIR/tables/NAME.csv  and .tex and .parquet, for each table of the section

An instrument may keep files of its own beside these; result.json lists them under `files`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialoscope.errors import OutputError, UsageError
from dialoscope.files import contents, whole_folder
from dialoscope.record import SCHEMA_VERSION, Origin
from dialoscope.report.anchor import free_name
from dialoscope.report.html import render
from dialoscope.report.plain import origin_from, origin_to_dict, plain, to_text
from dialoscope.report.section import Section, Table

RESULT = "result.json"
FILES = (RESULT, "section.json", "report.html")
TABLE_ENDINGS = (".csv", ".tex", ".parquet")
KEYS = ("schema_version", "instrument", "origin")


@dataclass(frozen=True)
class Run:
    """What `write_run` kept."""

    instrument: str
    data: Mapping[str, Any]
    section: Section
    origin: Origin
    files: tuple[str, ...] = ()  # the instrument's own


def write_run(
    out: str | Path,
    *,
    instrument: str,
    data: Mapping[str, Any],
    section: Section,
    origin: Origin,
    overwrite: bool = True,
    fill: Callable[[Path], None] | None = None,
) -> Path:
    """Write a run's folder, whole or not at all; an earlier run of this instrument is replaced, nothing else ever is.

    `fill` puts the instrument's own files into the folder before anything else is there.
    """
    head = {"schema_version": SCHEMA_VERSION, "instrument": instrument, "origin": origin_to_dict(origin)}
    return write_result_folder(
        out, head={**head, "data": plain(data)}, section=section, origin=origin, overwrite=overwrite, fill=fill
    )


def write_result_folder(
    out: str | Path,
    *,
    head: Mapping[str, Any],
    section: Section,
    origin: Origin,
    overwrite: bool,
    fill: Callable[[Path], None] | None = None,
) -> Path:
    """Write a folder with `head` as its result.json, and the section's page and tables."""
    out, instrument = Path(out), str(head["instrument"])
    shown, files = _as_kept(section, origin), dict[str, Any]()
    with whole_folder(out, overwrite=overwrite, check=lambda path: _check_run(path, instrument)) as folder:
        if fill is not None:
            fill(folder)
            files = {"files": sorted(contents(folder))}
        _write_json(folder / RESULT, {**head, **files})
        _write_json(folder / "section.json", {"schema_version": SCHEMA_VERSION, "section": shown.to_dict()})
        _write_tables(folder / "tables", shown.tables)
        page = render(shown.title, [shown], subtitle=origin.corpus)
        (folder / "report.html").write_text(page, encoding="utf-8", newline="\n")
    return out


def read_run(path: str | Path) -> Run:
    """Read a run back from its folder (or from the result.json in it)."""
    folder = Path(path).parent if Path(path).name == RESULT else Path(path)
    result = read_json(folder / RESULT)
    kept = read_json(folder / "section.json")
    missing = [key for key in KEYS if key not in result]
    if missing:
        raise UsageError(f"{folder / RESULT}: expected a Dialoscope result, found no {', '.join(missing)}.")
    try:
        section = Section.from_dict(kept["section"])
        files = tuple(map(str, result.get("files") or ()))
        return Run(result["instrument"], result.get("data", result), section, origin_from(result["origin"]), files)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        found = " ".join(str(error).split())
        raise UsageError(
            f"{folder}: expected a whole Dialoscope run, found {type(error).__name__}: {found}."
        ) from error


def _check_run(out: Path, instrument: str) -> None:
    """Replacing deletes what is in a folder, so it must be a run of this instrument with nothing but a run's files."""
    foreign = sorted(_foreign_files(out) if _is_run(out) else (path.name for path in out.iterdir()))
    if foreign:
        reason = f"found other files ({foreign[0]!r})"
        raise OutputError(f"{out}: expected a new folder or an earlier run, {reason}. Give a new folder.")
    if (found := read_json(out / RESULT)["instrument"]) != instrument:
        raise OutputError(f"{out}: expected an earlier run of {instrument!r}, found {found!r}. Give a new folder.")


def _is_run(out: Path) -> bool:
    try:
        return isinstance(read_json(out / RESULT).get("instrument"), str)
    except UsageError:
        return False


def _foreign_files(out: Path) -> set[str]:
    """Files beside those of a run; a table has three, so that a single one which somebody put there is foreign."""
    found = contents(out).difference(map(str, read_json(out / RESULT).get("files") or ()))
    tables = ({f"tables/{Path(file).stem}{ending}" for ending in TABLE_ENDINGS} for file in found)
    return found.difference(FILES, *(files for files in tables if files <= found))


def _as_kept(section: Section, origin: Origin) -> Section:
    """The section as a reader of section.json will have it, so that a joined page looks like this one."""
    kept = section.to_dict()
    return Section.from_dict({**kept, "origin": kept["origin"] or origin_to_dict(origin)})


def _write_tables(folder: Path, tables: list[Table]) -> None:
    import pyarrow.parquet as pq

    for name, table in zip(_table_names(tables), tables, strict=True):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.csv").write_text(table.to_csv(), encoding="utf-8", newline="\n")
        (folder / f"{name}.tex").write_text(table.to_latex(), encoding="utf-8", newline="\n")
        pq.write_table(table.to_arrow(), folder / f"{name}.parquet")


def table_files(section: Section) -> list[str]:
    """The files of a section's tables, within a run's folder."""
    return [f"tables/{name}{ending}" for name in _table_names(section.tables) for ending in TABLE_ENDINGS]


def _table_names(tables: list[Table]) -> list[str]:
    names: list[str] = []
    for table in tables:
        names.append(free_name(table.name, names))
    return names


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(to_text(value, indent=2) + "\n", encoding="utf-8", newline="\n")


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
