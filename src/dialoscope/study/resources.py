"""Loads each corpus and each model of a study once and shares it between steps; trains models that are not there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import split_evenly
from dialoscope.errors import DialoscopeError, MissingExtraError, UsageError
from dialoscope.fingerprint import content_of
from dialoscope.instruments import QUESTIONS
from dialoscope.model.options import ModelOptions
from dialoscope.progress import Progress
from dialoscope.settings import options_of
from dialoscope.study.plan import IS_PATH, Plan, Task
from dialoscope.study.training import train_for_study, training_folder

Resource = TypeVar("Resource")


class NotTrainedYet(Exception):
    """A model that a run would train first."""


@dataclass(frozen=True)
class Model:
    """A model that is there."""

    path: str
    identity: str  # a fingerprint of its weights
    learnt_from: str | None = None  # the corpus that it was trained on for this study


class Listener(Protocol):
    """What is told about loading and training."""

    def begin(self, name: str) -> Progress | None:
        """Something is loaded; what is returned is told how far it is."""
        ...

    def loaded(self, name: str) -> None:
        """It is there."""
        ...

    def lost(self, name: str, error: Exception, seconds: float) -> None:
        """A model cannot be loaded; the steps go on without it."""
        ...


class Resources:
    """Corpora and models by name. What cannot be loaded is tried once, and its error is raised again."""

    def __init__(
        self, plan: Plan, folder: Path, corpora: Mapping[str, Corpus], listener: Listener, *, trains: bool
    ) -> None:
        self.plan, self.folder, self.listener, self.trains = plan, folder, listener, trains
        self.corpora = dict(corpora)
        self.broken: dict[str, Exception] = {}
        self.was_split = set[str]()  # corpora of one split that were split for models of this study
        self._models: dict[str, Model] = {}

    def corpus(self, name: str) -> Corpus:
        """A corpus as it is read."""
        if name not in self.corpora:
            read = lambda progress: self.plan.load(name, progress=progress)  # noqa: E731
            self.corpora[name] = self._once(f"corpus {name}", read)
        return self.corpora[name]

    def corpus_for(self, task: Task, models: Mapping[str, Model]) -> Corpus:
        """The corpus as a task measures it.

        That is the corpus as it is read; splitting is the question's own. Only where a model was trained for this study
        on the same corpus of one split, the question gets its split, so that nothing is measured that was learnt.
        """
        corpus = self.corpus(task.corpus)
        if len(corpus.splits) > 1 or task.corpus not in [model.learnt_from for model in models.values()]:
            return corpus
        self.was_split.add(task.corpus)
        return split_evenly(corpus, seed=self.plan.seed)

    def models_for(self, task: Task, *, is_opened: bool = False) -> dict[str, Model]:
        """The models of a task that can be loaded; the others are reported once, and left out.

        With `is_opened`, dialogue models are loaded, too: one that is damaged would end the step for all.
        """
        found, missing, untrained = dict[str, Model](), list[MissingExtraError](), list[NotTrainedYet]()
        for name in task.models:
            try:
                found[name] = self._model(name)
                if is_opened and QUESTIONS[task.question].asks_dialogue_models:
                    self._open(name, task)
            except NotTrainedYet as error:
                untrained.append(error)
            except MissingExtraError as error:
                missing.append(error)
                found.pop(name, None)
            except Exception:  # kept in `broken`, and reported
                found.pop(name, None)
        if untrained:
            raise untrained[0]
        if task.models and not found:
            raise missing[0] if missing else UsageError("None of its models can be loaded.")
        return found

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._once(f"model {name}", lambda progress: self._found_or_trained(name, progress))
        return self._models[name]

    def _found_or_trained(self, name: str, progress: Progress | None) -> Model:
        from dialoscope.model.loading import require_torch

        entry = self.plan.models[name]
        if entry.path is not None:
            if entry.is_baseline:
                return Model(entry.path, entry.path)
            check_model_path(self.plan, name)
            return Model(entry.path, identity_of(entry.path))
        assert entry.training is not None
        assert entry.corpus is not None
        require_torch("Training")
        corpus = split_evenly(self.corpus(entry.corpus), seed=self.plan.seed)
        out = training_folder(self.folder / "models", name, corpus, entry.training)
        if not self.trains and not (out / "best").is_dir():
            raise NotTrainedYet
        if self.trains:
            train_for_study(corpus, entry.training, out, progress=progress)
        return Model(str(out / "best"), identity_of(str(out / "best")), entry.corpus)

    def _open(self, name: str, task: Task) -> None:
        """Load a dialogue model with the options of the task; the question takes it from memory then."""
        from dialoscope.model.loading import load

        options = {key: getattr(task.settings, key) for key in options_of(ModelOptions)}
        self._once(f"model {name}", lambda progress: load(self._models[name].path, quiet=True, **options))

    def _once(self, name: str, get: Callable[[Progress | None], Resource]) -> Resource:
        if name in self.broken:
            raise self.broken[name]
        begin = time.monotonic()
        try:
            resource = get(self.listener.begin(name))
        except NotTrainedYet:
            raise
        except Exception as error:
            self.broken[name] = error
            if name.startswith("model "):
                self.listener.lost(name, error, time.monotonic() - begin)
            raise
        self.listener.loaded(name)
        return resource


def foreseen(plan: Plan) -> dict[str, str]:
    """What will fail as far as a glance at the paths shows, before hours of work: name -> problem."""
    problems = {}
    for name, entry in plan.models.items():
        try:
            if entry.path is not None and not entry.is_baseline:
                check_model_path(plan, name)
        except MissingExtraError:  # a step without its extra is left out, and does not fail
            continue
        except DialoscopeError as error:
            problems[f"model {name}"] = str(error)
    for task in plan.tasks:
        for key, path in paths_in(task):
            if is_missing(path):
                problems[task.asked] = f"[{task.question}] {key}: expected a file or folder at '{path}', found nothing."
    if plan.against is not None and not Path(plan.against).is_dir():
        problems["compared"] = f"{plan.against}: no such folder. Give the folder of an earlier study."
    return problems


def paths_in(task: Task) -> list[tuple[str, str]]:
    """The settings of a task that name files, with their option."""
    found = [(key, path) for key, paths in task.files.items() for path in paths]
    for key, limits in options_of(type(task.settings)).items():
        value = getattr(task.settings, key)
        if value and IS_PATH.search(limits.metavar or ""):
            found += [(key, path) for path in ((value,) if isinstance(value, str) else value)]
    return found


def is_missing(path: str) -> bool:
    """Whether a setting can only be a path, and nothing is there; another word may be a name."""
    return path.startswith((".", "/", "~")) or path.endswith("/") if not Path(path).expanduser().exists() else False


def check_model_path(plan: Plan, name: str) -> None:
    """Refuse a path at which no model is, without loading anything; a name on a hub is believed."""
    from dialoscope.model.checkpoint import find_checkpoint
    from dialoscope.model.loading import check_model, require_torch

    path = plan.models[name].path
    assert path is not None
    folder = Path(path)
    if any(QUESTIONS[task.question].asks_dialogue_models for task in plan.tasks if name in task.models):
        require_torch("A dialogue model")
        check_model(path)
        if folder.is_dir() and not ((folder / "config.json").is_file() or any(folder.glob("*.gguf"))):
            find_checkpoint(path)
    elif "/" in path and not folder.exists():
        raise UsageError(f"{path}: expected a model's folder, found nothing there.")


def identity_of(path: str) -> str:
    """A fingerprint of a model's files; a model on a hub says its own."""
    from dialoscope.model.checkpoint import find_checkpoint, is_checkpoint
    from dialoscope.model.loading import load

    place = find_checkpoint(path) if is_checkpoint(path) else Path(path)
    return content_of(place) if place.exists() else load(path, quiet=True).name
