"""Which checkpoint a metric of the training log would choose, and what the probes find there (Tables 9 to 11).

A run that was probed at all its epochs answers for every metric in its log at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dialoscope.probe.checkpoints import BY, Choice


@dataclass(frozen=True)
class Selected:
    """The checkpoint that one metric of the training log chooses."""

    choice: Choice
    model: str  # the checkpoint's name among the probed models


def selected(models: Collection[str], choices: Mapping[str, Mapping[str, Choice]]) -> dict[str, dict[str, Selected]]:
    """By run and metric, where the checkpoint that the metric chooses was probed; one metric alone is no comparison."""
    by_run: dict[str, dict[str, Selected]] = {}
    for run, by in choices.items():
        for metric, choice in by.items():
            names = f"{run}@{choice.checkpoint}", f"{run}@{BY}{metric}"
            name = next((each for each in names if each in models), None)
            if name is not None:
                by_run.setdefault(run, {})[metric] = Selected(choice, name)
    return {run: by for run, by in by_run.items() if len(by) > 1}
