"""The models that are probed: every checkpoint of a run, and every layer and pooling, is a model of its own.

They are opened one at a time, for a run can have dozens of checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dialoscope.errors import UsageError
from dialoscope.model.checkpoint import is_checkpoint
from dialoscope.probe.checkpoints import Choice, checkpoints, choices
from dialoscope.probe.settings import ProbeSettings

if TYPE_CHECKING:
    from dialoscope.model.protocol import DialogueModel

CONTROLS = ("majority", "constant", "bag_of_words")  # subjects of scores, besides models
LAST, AUTO = -1, "auto"  # how a Hugging Face model is usually read


class Source(NamedTuple):
    """A model (a path, a name, a loaded model, or a pair of model and tokenizer), and which states of it are read."""

    model: Any
    layer: int = LAST
    pooling: str = AUTO


@dataclass(frozen=True, eq=False)
class Probes:
    """The models to probe by name, each opened when it is asked for."""

    sources: Mapping[str, Source]
    settings: ProbeSettings
    is_quiet: bool = True
    runs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # run -> checkpoint as named -> its folder
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)  # run -> metric of its log

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def open(self, name: str) -> DialogueModel:
        """Load a model."""
        from dialoscope.model.loading import open_model

        source = self.sources[name]
        is_usual = source.layer == LAST and source.pooling == AUTO
        reading = {} if is_usual else {"layer": source.layer, "pooling": source.pooling}
        return open_model(source.model, self.settings, name=name, quiet=self.is_quiet, **reading)

    def check_names(self) -> None:
        """Open every model that is not a path here, so that a wrong one is refused before anything is computed."""
        hub_names = set()
        for name, source in self.sources.items():
            is_path = isinstance(source.model, str | Path)
            if is_path and (Path(source.model).exists() or source.model in hub_names):
                continue  # paths were checked before
            if is_path:
                hub_names.add(source.model)
            self.open(name)


def models_to_probe(models: Mapping[str, Any] | None, settings: ProbeSettings, *, is_quiet: bool = True) -> Probes:
    """The models to probe: those that were given, or their checkpoints, each with every layer and pooling.

    A checkpoint is called RUN@CHECKPOINT; a layer of several `NAME, layer 6, mean`.
    """
    if not isinstance(models, Mapping) or not models:
        raise UsageError('Give models by name: models={"mine": "runs/mine"}.')
    sources, runs, chosen = dict(models), dict[str, dict[str, str]](), dict[str, dict[str, Choice]]()
    if settings.checkpoints:
        sources, runs = _expanded(models, settings.checkpoints)
        chosen = {run: choices(Path(models[run])) for run in runs}
    for source in sources.values():
        _check(source)
    named = _read_in_every_way(sources, settings)
    _check_names(list(named))
    return Probes(named, settings, is_quiet, runs, chosen)


def _expanded(
    models: Mapping[str, Any], wanted: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:  # fmt: skip
    """Every wanted checkpoint as a model; and the folder in its run that each one is."""
    for name, model in models.items():
        if not isinstance(model, str | Path):
            raise UsageError(f"checkpoints needs paths of runs, found {type(model).__name__} for '{name}'.")
    folders = {run: checkpoints(Path(path), wanted) for run, path in models.items()}
    each = {f"{run}@{name}": path for run, by in folders.items() for name, path in by.items()}
    return each, {run: {name: path.name for name, path in by.items()} for run, by in folders.items()}


def _check(source: Any) -> None:
    """Refuse a path that leads to no model."""
    from dialoscope.model.loading import check_model

    if isinstance(source, str | Path):
        check_model(source)


def _check_names(names: list[str]) -> None:
    """Refuse names under which scores could be taken for others."""
    subjects = [name.replace("/", "_") for name in names]
    for name, subject in zip(names, subjects, strict=True):
        if subject in CONTROLS:
            raise UsageError(f"A control is called '{name}': give the model another name.")
        if subjects.count(subject) > 1:
            raise UsageError(f"Two models would be called '{subject}' in scores: give them other names.")


def _read_in_every_way(models: Mapping[str, Any], settings: ProbeSettings) -> dict[str, Source]:
    """Every model with every layer and pooling; our own models are read in one way only."""
    ways = [(layer, pooling) for layer in settings.layer for pooling in settings.pooling]
    is_readable = {name: _is_hugging_face(model) for name, model in models.items()}
    if ways != [(LAST, AUTO)] and not any(is_readable.values()):
        raise UsageError("layer and pooling are for Hugging Face models that are given by path, by name or as a pair.")
    sources: dict[str, Source] = {}
    for name, model in models.items():
        for layer, pooling in ways if is_readable[name] else [(LAST, AUTO)]:
            label = f"{name}, layer {layer}, {pooling}" if is_readable[name] and len(ways) > 1 else name
            sources[label] = Source(model, layer, pooling)
    return sources


def _is_hugging_face(model: Any) -> bool:
    is_path = isinstance(model, str | Path) and not is_checkpoint(model)
    return is_path or (isinstance(model, tuple) and len(model) == 2)
