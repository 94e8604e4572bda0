"""What an examination would do, counted before it is begun: portions of work, and how many of them are done already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialoscope.distract.examine import Wish, all_portions
from dialoscope.distract.portions import Portion, portion_path
from dialoscope.distract.sets import DistractingSet
from dialoscope.model.protocol import DialogueModel


@dataclass(frozen=True)
class Planned:
    """One model on one set."""

    model: str
    set: str
    contexts: int
    portions: int  # of attention, and of influence and responses where they are wished for
    done: int  # of those, by an earlier run that did not end

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def plan(
    models: Mapping[str, DialogueModel | None],
    sets: Sequence[DistractingSet],
    *,
    wish: Wish | None = None,
    work: Path | None = None,
) -> list[Planned]:
    """Every model on every set; one that is None is not asked what is done, for that depends on its weights."""
    return [
        _planned(label, model, one, list(all_portions(one, wish or Wish())), work)
        for label, model in models.items()
        for one in sets
    ]


def _planned(
    label: str, model: DialogueModel | None, one: DistractingSet, portions: Sequence[Portion], work: Path | None
) -> Planned:
    paths = [] if model is None or work is None else [portion_path(work, model, portion) for portion in portions]
    return Planned(label, one.name, len(one), len(portions), sum(path.is_file() for path in paths))
