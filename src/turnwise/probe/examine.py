"""The whole examination in one call: label, encode, learn, and put the numbers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from turnwise.metrics import Resampling
from turnwise.model.protocol import DialogueModel
from turnwise.probe.examples import Examples
from turnwise.probe.measure import Measured, Progress, Settings, measure
from turnwise.probe.pictures import Picture
from turnwise.probe.result import Grouping, ProbeResult, summarise
from turnwise.probe.tasks import TASKS, Task

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
    checkpoints: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Examined:
    """Every model on every task; the first model is the one that the others are compared with.

    checkpoints: where models are checkpoints of runs, called `RUN@CHECKPOINT`, those of each run in order.
    """
    how = settings or Settings()
    measured = measure(
        models, training, held_out, tasks=tasks, settings=how, device=device, cache=cache, progress=progress
    )
    about = {"checkpoints": {run: list(names) for run, names in checkpoints.items()}} if checkpoints else {}
    result = summarise(measured, settings=how, grouping=grouping, resampling=resampling, about=about)
    return Examined(result, measured)
