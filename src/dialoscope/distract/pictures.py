"""One context to look at, with the attention that each model gives to each of its turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from dialoscope.distract.portions import Portion, resumable
from dialoscope.distract.result import Picture
from dialoscope.distract.scores import chosen_scores
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.distract.settings import AttentionSettings
from dialoscope.model.protocol import DialogueModel, TooLong

LONGEST = 12  # turns of a context that is shown
CANDIDATES = 200  # contexts of which one is shown


def pictures_of(
    models: Mapping[str, DialogueModel],
    sets: Sequence[DistractingSet],
    settings: AttentionSettings,
    *,
    work: Path | None = None,
) -> Iterator[Picture]:
    """Ask every model about one context; a model that it does not fit into has no picture."""
    chosen = next((each for each in sets if each.name.startswith("random")), sets[0])
    case = picture_case(chosen.cases)
    if case is None:
        return
    how = {"normalisation": settings.normalisation, "layer": settings.layer, "head": settings.head, "what": "picture"}
    for name, model in models.items():
        table = resumable(work, model, Portion([case], how), partial(_turn_scores, settings=settings))
        scores = tuple(table["score"].to_pylist())
        if scores:
            turns = tuple(map(str, case.context))
            yield Picture(name, case.dialogue, turns, case.distractions, str(case.response), scores)


def _turn_scores(model: DialogueModel, cases: Sequence[Case], settings: AttentionSettings) -> pa.Table:
    """The score of each turn of a context, null where it is not read; no rows where the context is too long."""
    shares: list[float | None] = []
    for case in cases:
        try:
            attention = model.attend([case.context], [case.response])[0]
        except TooLong:
            continue
        scores = np.exp(chosen_scores(attention, settings.normalisation, settings.layer, settings.head))
        shares += [float(score) if np.isfinite(score) else None for score in scores]
    return pa.table({"score": pa.array(shares, pa.float64())})


def picture_case(cases: Sequence[Case]) -> Case | None:
    """The first context of a middling length with all its distractions and at least two turns of History."""
    most = max((len(case.distractions) for case in cases), default=0)
    good = [
        case for case in cases if most and len(case.distractions) == most and 2 <= len(case.history) <= LONGEST - most
    ]
    return max(good[:CANDIDATES], key=lambda case: min(len(case.history), 4), default=None)
