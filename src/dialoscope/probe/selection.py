"""Which checkpoint a metric of the training log would choose, and what the probes find there (Tables 9 to 11).

A run that was probed at all its epochs answers for every metric in its log at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialoscope.probe.checkpoints import BY, Choice
from dialoscope.record import Score

if TYPE_CHECKING:
    from dialoscope.probe.result import ModelResult

Choices = Mapping[str, Mapping[str, Choice]]  # run -> metric -> what it chooses


@dataclass(frozen=True, eq=False)
class Selected:
    """What the probes find at the epoch that one metric chooses."""

    choice: Choice
    model: str  # as it was probed
    tasks: Mapping[str, Score]
    groups: Mapping[str, Score]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "checkpoint": self.choice.checkpoint,
            "model": self.model,
            "best": self.choice.value,
            "tasks": {name: score.value for name, score in self.tasks.items()},
            "groups": {name: score.value for name, score in self.groups.items()},
        }


def selected(models: Mapping[str, ModelResult], choices: Choices) -> dict[str, dict[str, Selected]]:
    """By run and metric, where the checkpoint that the metric chooses was probed; one metric alone is no comparison."""
    found: dict[str, dict[str, Selected]] = {}
    for run, by in choices.items():
        for metric, choice in by.items():
            names = f"{run}@{choice.checkpoint}", f"{run}@{BY}{metric}"
            name = next((one for one in names if one in models), None)
            if name is not None:
                tasks = {task: one.f1 for task, one in models[name].tasks.items()}
                found.setdefault(run, {})[metric] = Selected(choice, name, tasks, models[name].groups)
    return {run: by for run, by in found.items() if len(by) > 1}
