"""Runs by name, from a study's folder, from folders of single runs, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from turnwise.errors import UsageError
from turnwise.report import Run, Section, read_run
from turnwise.report.anchor import free_name
from turnwise.study.book import BOOK, Step, read_steps
from turnwise.study.page import step_sections


@dataclass(frozen=True, eq=False)
class Placed:
    """A run, where it is and what it is called."""

    name: str
    corpus: str
    folder: Path
    run: Run


def read_runs(folders: Sequence[str | Path]) -> list[Placed]:
    """The runs of these folders, in order; those of a study are the steps that were done."""
    found: list[Placed] = []
    for folder in map(Path, folders):
        taken = {one.name for one in found}
        for name, corpus, place in _places(folder):
            run = read_run(place)
            free = free_name(name, taken)
            taken.add(free)
            found.append(Placed(free, corpus or run.origin.corpus.partition("@")[0], place, run))
    if not found:
        raise UsageError(f"{', '.join(map(str, folders))}: expected runs, found none that was done.")
    return found


def missing_steps(folders: Sequence[str | Path]) -> list[Step]:
    """Steps of studies that are not done: they failed, were left out, or are not yet run."""
    studies = [folder for folder in map(Path, folders) if (folder / BOOK).is_file()]
    return [step for folder in studies for step in read_steps(folder).values() if step.state != "done"]


def joined_sections(folders: Sequence[str | Path]) -> list[tuple[Step, Section]]:
    """The sections of runs and of studies, each with its step; among them those that are not done."""
    found: list[tuple[Step, Section]] = []
    for folder in map(Path, dict.fromkeys(folders)):
        if not (folder / BOOK).is_file():
            run = read_run(folder)
            found.append((Step(run.instrument, run.instrument, "", "done"), run.section))
            continue
        steps = list(read_steps(folder).values())
        own = f" ({folder.name})" if len(folders) > 1 else ""
        sections = [replace(one, title=f"{one.title}{own}") for one in step_sections(folder, steps)]
        found += zip(steps, sections, strict=True)
    return found


def _places(folder: Path) -> list[tuple[str, str, Path]]:
    if (folder / BOOK).is_file():
        done = [one for one in read_steps(folder).values() if one.state == "done"]
        return [(one.name, one.corpus, folder / one.run) for one in done]
    return [(read_run(folder).instrument, "", folder)]
