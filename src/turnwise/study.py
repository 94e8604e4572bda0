"""Several instruments over one corpus, one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from turnwise.atomic import whole_file
from turnwise.corpus import Corpus
from turnwise.errors import unknown_name
from turnwise.instruments import INSTRUMENTS, Finding
from turnwise.report import render, write_run


@dataclass(frozen=True)
class Study:
    """Where the report is, and the verdict of every instrument in it."""

    report: Path
    runs: Mapping[str, Path]
    verdicts: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON has it."""
        runs = {name: str(path) for name, path in self.runs.items()}
        return {"report": str(self.report), "runs": runs, "verdicts": dict(self.verdicts)}


def run_study(
    corpus: Corpus,
    out: str | Path,
    *,
    instruments: Sequence[str] = tuple(INSTRUMENTS),
    seed: int | None = None,
) -> Study:
    """Run instruments on a corpus: a folder with a run for each, and one page that joins them."""
    out = Path(out)
    for name in instruments:
        if name not in INSTRUMENTS:
            raise unknown_name("instrument", name, INSTRUMENTS)
    with TemporaryDirectory() as work:
        findings = {name: _seeded(INSTRUMENTS[name].run(corpus, Path(work)), seed) for name in instruments}
    runs = {name: _write(out / name, name, finding) for name, finding in findings.items()}
    splits = ", ".join(f"{count:,} {name}" for name, count in corpus.splits.items())
    page = render(f"Turnwise on {corpus.name}", [finding.section for finding in findings.values()], subtitle=splits)
    with whole_file(out / "report.html") as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    verdicts = {name: _verdict(finding) for name, finding in findings.items()}
    return Study(out / "report.html", runs, verdicts)


def _seeded(finding: Finding, seed: int | None) -> Finding:
    """The finding with the seed of the study in its origin, on the page as in the record."""
    origin = replace(finding.origin, seed=seed)
    return replace(finding, origin=origin, section=replace(finding.section, origin=origin))


def _write(folder: Path, name: str, finding: Finding) -> Path:
    return write_run(folder, instrument=name, data=finding.data, section=finding.section, origin=finding.origin)


def _verdict(finding: Finding) -> str:
    verdict = finding.section.verdict
    return f"{verdict.written.text} {verdict.headline}" if verdict is not None else finding.section.lead
