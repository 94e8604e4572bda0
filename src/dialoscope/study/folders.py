"""Runs by name, from a study's folder, from folders of single runs, or from both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dialoscope.errors import UsageError
from dialoscope.report import Run, Section, read_run
from dialoscope.report.anchor import free_name
from dialoscope.report.run import RESULT
from dialoscope.study.book import BOOK, Step, is_study_folder, read_steps
from dialoscope.study.page import step_sections


@dataclass(frozen=True, eq=False)
class Placed:
    """A run, where it is and what it is called."""

    name: str
    corpus: str
    folder: Path
    run: Run
    asked: str = ""  # what a study's plan calls the instrument


def read_runs(folders: Sequence[str | Path]) -> list[Placed]:
    """The runs of these folders, in order; those of a study are the steps that were done."""
    found = done_runs(folders)
    if not found:
        raise UsageError(f"{', '.join(map(str, folders))}: expected runs, found none that was done.")
    return found


def done_runs(folders: Sequence[str | Path]) -> list[Placed]:
    """The same, of studies in which perhaps nothing was done."""
    found: list[Placed] = []
    for folder in map(Path, folders):
        taken = {one.name for one in found}
        for step, place in _places(folder):
            run = read_run(place)
            free = free_name(step.name, taken)
            taken.add(free)
            corpus = step.corpus or run.origin.corpus.partition("@")[0]
            found.append(Placed(free, corpus, place, run, step.asked))
    return found


def missing_steps(folders: Sequence[str | Path]) -> list[Step]:
    """Steps of studies that are not done: they failed, were left out, or are not yet run."""
    studies = [folder for folder in map(Path, folders) if (folder / BOOK).is_file()]
    return [step for folder in studies for step in _steps(folder) if step.state != "done"]


def joined_sections(folders: Sequence[str | Path]) -> list[tuple[Step, Section]]:
    """The sections of runs and of studies, each with its step; among them those that are not done.

    Where two folders have sections of one title, titles say which folder they are from.
    """
    places = {Path(one).resolve(): Path(one) for one in folders}  # a folder that is given twice is one
    found = [(_own_name(real, places), *one) for real, folder in places.items() for one in _sections(folder)]
    titles = {section.title for _, _, section in found}
    if len(places) == 1 or len(titles) == len(found):
        return [(step, section) for _, step, section in found]
    return [(step, replace(section, title=f"{section.title} ({own})")) for own, step, section in found]


def _sections(folder: Path) -> list[tuple[Step, Section]]:
    if _is_study(folder):
        steps = _steps(folder)
        return list(zip(steps, step_sections(folder, steps), strict=True))
    run = read_run(folder)
    return [(_alone(run), run.section)]


def _own_name(folder: Path, all_folders: Iterable[Path]) -> str:
    """The shortest end of a path that no other one has: `a/study` beside `b/study`."""
    others = [one.parts for one in all_folders if one != folder]
    ends = (folder.parts[-count:] for count in range(1, len(folder.parts)))
    own = (end for end in ends if all(one[-len(end) :] != end for one in others))
    return str(Path(*next(own, folder.parts)))


def _places(folder: Path) -> list[tuple[Step, Path]]:
    """Steps that were done, and where their runs are."""
    if _is_study(folder):
        return [(one, folder / one.run) for one in _steps(folder) if one.state == "done"]
    return [(_alone(read_run(folder)), folder)]


def _alone(run: Run) -> Step:
    """A run of no study, as a step."""
    return Step(run.instrument, run.instrument, "", "done")


def _is_study(folder: Path) -> bool:
    """Whether it is a study's folder, or a run's; what is neither is told."""
    if (folder / BOOK).is_file():
        return True
    if folder.name == RESULT or (folder / RESULT).is_file():
        return False
    advice = "Give a folder that dialoscope wrote with --out."
    if not folder.exists():
        raise UsageError(f"{folder}: no such folder. {advice}")
    found = f"neither {BOOK} nor {RESULT} in it" if folder.is_dir() else "a file"
    raise UsageError(f"{folder}: expected the folder of a study or of a run, found {found}. {advice}")


def _steps(folder: Path) -> list[Step]:
    """The steps of a study, of which there is at least one."""
    place = "this folder again" if is_study_folder(folder) else "a new folder"  # what `check_own` would let it do
    advice = f"Run the study into {place}, or give another one."
    try:
        found = list(read_steps(folder).values())
    except UsageError as error:
        raise UsageError(
            f"{folder / BOOK}: expected what dialoscope study writes, found another file. {advice}"
        ) from error
    if not found:
        raise UsageError(f"{folder / BOOK}: expected the steps of a study, found none. {advice}")
    return found
