"""Results by name, from a study's folder, from folders of single results, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dialoscope.errors import UsageError
from dialoscope.instruments import check_is_result, load_result
from dialoscope.record import Score, Scores
from dialoscope.report.anchor import free_name
from dialoscope.report.plain import origin_from
from dialoscope.report.result import Result
from dialoscope.report.run import RESULT, read_json
from dialoscope.report.verdict import Verdict
from dialoscope.study.steps import BOOK, Step, is_study, read_steps


@dataclass(frozen=True, eq=False)
class StoredResult:
    """A result on disk: what it is called, and what its result.json says."""

    step: Step
    name: str
    folder: Path

    @cached_property
    def head(self) -> dict[str, Any]:
        """The result.json."""
        head = read_json(self.folder / RESULT)
        if missing := [key for key in ("instrument", "origin", "scores", "verdicts") if key not in head]:
            raise UsageError(f"{self.folder / RESULT}: expected a result, found no {', '.join(missing)}.")
        return head

    @property
    def instrument(self) -> str:
        """The question that it answers."""
        return str(self.head["instrument"])

    @property
    def corpus(self) -> str:
        """The corpus as the study calls it, or as it is called itself."""
        return self.step.corpus or str(self.head["origin"]["corpus"]).partition("@")[0]

    @cached_property
    def scores(self) -> Scores:
        """Every number by its path."""
        return {path: Score.from_dict(score) for path, score in self.head["scores"].items()}

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """What was found."""
        return [Verdict(**verdict) for verdict in self.head["verdicts"]]

    @property
    def signature(self) -> str:
        """Where the numbers come from, in one line."""
        return origin_from(self.head["origin"]).signature

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it asked: as the study says or, for a single result, those that its verdicts are about."""
        subjects = (verdict.scores[0].partition("/")[0] for verdict in self.verdicts if verdict.scores)
        return self.step.models or tuple(dict.fromkeys(subjects))

    @cached_property
    def result(self) -> Result:
        """The whole result."""
        return load_any(self.folder)


def load_any(folder: Path) -> Result:
    """A result of a question, a corpus's description, or a comparison."""
    from dialoscope.study.compare import CompareResult

    is_comparison = read_json(folder / RESULT).get("instrument") == CompareResult.instrument
    return CompareResult.load(folder) if is_comparison else load_result(folder)


def read_results(folders: Sequence[str | Path], *, may_be_none: bool = False) -> list[StoredResult]:
    """The results in these folders, in order; those of a study are its steps that are done."""
    found: list[StoredResult] = []
    for folder in map(folder_of, folders):
        taken = {each.name for each in found}
        for step in steps_in(folder):
            if step.state == "done":
                name = free_name(step.name, taken)
                taken.add(name)
                found.append(StoredResult(step, name, folder / step.run))
    if not found and not may_be_none:
        raise UsageError(f"{', '.join(map(str, folders))}: expected results, found none that is done.")
    return found


def missing_steps(folders: Sequence[str | Path]) -> list[Step]:
    """Steps of studies that are not done: they failed, were skipped, or are not yet run."""
    return [step for folder in folders for step in steps_in(folder_of(folder)) if step.state != "done"]


def folder_of(path: str | Path) -> Path:
    """A folder by its own path, or by that of the result.json in it."""
    return Path(path).parent if Path(path).name == RESULT else Path(path)


def steps_in(folder: Path) -> list[Step]:
    """The steps of a study's folder, or the one result of a folder as a step."""
    advice = "Give a folder that dialoscope wrote with --out."
    if (folder / BOOK).is_file():
        again = f"Run the study into {'this folder again' if is_study(folder) else 'a new folder'}, or give another."
        try:
            steps = read_steps(folder)
        except UsageError as error:
            found = "expected what dialoscope study writes, found another file"
            raise UsageError(f"{folder / BOOK}: {found}. {again}") from error
        if not steps:
            raise UsageError(f"{folder / BOOK}: expected the steps of a study, found none. {again}")
        return steps
    if (folder / RESULT).is_file():
        instrument = str(read_json(folder / RESULT).get("instrument"))
        check_is_result(instrument, folder)
        return [Step(instrument, instrument, "", "done", run=".")]
    if not folder.exists():
        raise UsageError(f"{folder}: no such folder. {advice}")
    found = f"neither {BOOK} nor {RESULT} in it" if folder.is_dir() else "a file"
    raise UsageError(f"{folder}: expected the folder of a study or of a result, found {found}. {advice}")
