"""What a study has done so far, kept in `study.json`: written anew after every step, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from turnwise.atomic import whole_file
from turnwise.errors import OutputError, UsageError
from turnwise.record import SCHEMA_VERSION, version

BOOK = "study.json"
State = Literal["done", "failed", "skipped"]


@dataclass(frozen=True)
class Step:
    """One instrument on one corpus, or a model that had to be had first."""

    name: str
    instrument: str
    corpus: str
    state: State
    key: str = ""  # of all that its numbers depend on
    run: str = ""  # its folder, within the study's
    seconds: float = 0.0
    training: float = 0.0  # seconds of these in which models were trained
    reason: str = ""  # why it failed or was left out
    asked: str = ""  # what the plan calls the instrument
    is_reused: bool = False  # in this call

    def to_dict(self) -> dict[str, Any]:
        """As study.json has it."""
        kept = asdict(self)
        del kept["is_reused"]
        return kept


class Book:
    """The steps of a study by name."""

    def __init__(self, folder: Path, steps: Mapping[str, Step], title: str) -> None:
        self.folder, self.steps, self.title = folder, dict(steps), title

    @classmethod
    def open(cls, folder: Path, title: str) -> Book:
        """What was done in this folder; a folder that is somebody else's is refused."""
        path = folder / BOOK
        if not path.is_file():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise OutputError(f"{folder}: expected a new folder or an earlier study, found other files.")
            folder.mkdir(parents=True, exist_ok=True)
        book = cls.look(folder, title)
        book._save()  # before anything else, so that a study that is killed at once is known for one
        return book

    @classmethod
    def look(cls, folder: Path, title: str) -> Book:
        """What was done in this folder, if anything was; nothing is written."""
        return cls(folder, read_steps(folder) if (folder / BOOK).is_file() else {}, title)

    def write(self, step: Step) -> None:
        """Note a step that has come to its end."""
        self.steps[step.name] = step
        self._save()

    def keep(self, names: list[str]) -> None:
        """Only these, in this order: a plan may have lost some since."""
        self.steps = {name: self.steps[name] for name in names if name in self.steps}
        self._save()

    def _save(self) -> None:
        about = {"schema_version": SCHEMA_VERSION, "title": self.title, "version": version()}
        steps = [one.to_dict() for one in self.steps.values()]
        with whole_file(self.folder / BOOK, overwrite=True) as unfinished:
            unfinished.write_text(json.dumps({**about, "steps": steps}, indent=2) + "\n", encoding="utf-8")


def read_steps(folder: Path) -> dict[str, Step]:
    """The steps that a study's folder tells of."""
    path = folder / BOOK
    try:
        kept = json.loads(path.read_bytes())
        return {one["name"]: Step(**one) for one in kept["steps"]}
    except OSError as error:
        raise UsageError(f"{folder}: expected a study's folder with {BOOK}, found none.") from error
    except (ValueError, KeyError, TypeError) as error:
        found = " ".join(str(error).split())
        raise UsageError(f"{path}: expected the book of a study, found {type(error).__name__}: {found}.") from error
