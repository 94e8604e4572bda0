"""The whole examination in one call: label, encode, learn, and put the numbers together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialoscope.metrics import Resampling
from dialoscope.model.protocol import DialogueModel
from dialoscope.probe.examples import Examples
from dialoscope.probe.measure import Measured, Progress, Settings, measure
from dialoscope.probe.pictures import Picture
from dialoscope.probe.result import Grouping, ProbeResult, summarise
from dialoscope.probe.selection import Choices
from dialoscope.probe.tasks import TASKS, Task

PICTURES = 6  # models that get one


@dataclass(frozen=True, eq=False)
class Examined:
    """The result, the answers behind it, and encodings to look at."""

    result: ProbeResult
    measured: Measured

    @property
    def pictures(self) -> list[Picture]:
        """Of all models, or of the first and the last where they are many."""
        found = [one.picture for one in self.measured.models]
        return found if len(found) <= PICTURES else [found[0], found[-1]]


def examine(
    models: Mapping[str, DialogueModel],
    training: Examples,
    held_out: Examples,
    *,
    tasks: Mapping[str, Task] = TASKS,
    settings: Settings | None = None,
    grouping: Grouping = "paper",
    resampling: Resampling | None = None,
    checkpoints: Mapping[str, Mapping[str, str]] | None = None,
    choices: Choices | None = None,
    picture_by: str | None = None,
    device: str = "cpu",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Examined:
    """Every model on every task; the first model is the one that the others are compared with.

    checkpoints: where models are checkpoints of runs, called `RUN@CHECKPOINT`, those of each run in order, with the
        folder that each is.
    choices: what each metric of a run's log chooses (`checkpoints.choices`).
    picture_by: the task whose labels colour the pictures of encodings.
    """
    how = settings or Settings()
    measured = measure(
        models,
        training,
        held_out,
        tasks=tasks,
        settings=how,
        picture_by=picture_by,
        device=device,
        cache=cache,
        progress=progress,
    )
    about = _about(checkpoints) if checkpoints else {}
    result = summarise(measured, settings=how, grouping=grouping, resampling=resampling, about=about, choices=choices)
    return Examined(result, measured)


def _about(checkpoints: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Which checkpoints of each run are there, and which epoch a metric chose."""
    names = {run: list(by) for run, by in checkpoints.items()}
    chosen = {f"{run}@{one}": folder for run, by in checkpoints.items() for one, folder in by.items() if one != folder}
    return {"checkpoints": names, **({"chosen": chosen} if chosen else {})}
