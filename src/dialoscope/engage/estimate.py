"""What a long command would cost: counts, and the time of a few turns or steps measured here; nothing is written."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from dialoscope.corpus import Corpus
from dialoscope.corpus.turns import conversation
from dialoscope.engage.examples import Examples
from dialoscope.engage.fitting import Material, halved
from dialoscope.engage.predictor import Predictor, readings
from dialoscope.engage.protocol import Dialogue
from dialoscope.engage.scoring import portion_path, portions, work_beside
from dialoscope.engage.settings import Recipe
from dialoscope.engage.tuning import Plan, Run

MEASURED_DIALOGUES = 32  # from all over the corpus,
MEASURED_TURNS = 8  # the first ones of each
MEASURED_STEPS = 3  # after one that allocates


@dataclass(frozen=True)
class Estimate:
    """How much there is to do, and how many seconds of computing that would be on this device."""

    counts: Mapping[str, int | float]
    device: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**self.counts, "device": self.device, "seconds": self.seconds}


def estimate_scores(predictor: Predictor, corpus: Corpus, *, out: Path | None = None) -> Estimate:
    """Of scoring a corpus; portions that an earlier run kept beside `out` cost nothing."""
    parts = list(portions(corpus))
    work = None if out is None else work_beside(out)
    left = [one for one in parts if work is None or not portion_path(predictor, one, work).is_file()]
    texts = sum(pc.count_distinct(one.turn_column("text")).as_py() for one in left)
    counts = {
        "dialogues": len(corpus),
        "messages": int(corpus.turns_per_dialogue.sum()),
        "portions": len(parts),
        "portions_kept": len(parts) - len(left),
        "texts_to_encode": texts,  # but for instructions, and what one speaker says in several messages
    }
    some = [conversation(corpus[place]).texts[:MEASURED_TURNS] for place in _places(len(corpus))]
    return Estimate(counts, str(predictor.encoder.device), texts / texts_per_second(predictor, some))


def estimate_depth(predictors: Collection[Predictor], held_out: Examples) -> Estimate:
    """Of predicting all turns by every predictor."""
    some = _some(held_out)
    seconds = sum(_different([held_out], one) / texts_per_second(one, some) for one in predictors)
    counts = {**_counts(held_out), "predictors": len(predictors)}
    return Estimate(counts, str(next(iter(predictors)).encoder.device), seconds)


def estimate_head(given: Material, *, start: Predictor) -> Estimate:
    """Of encoding every different text once; the fit itself takes seconds."""
    texts = _different(given.training, start) + _different([given.validation], start)
    counts = {**_material_counts(given), "texts_to_encode": texts}
    seconds = texts / texts_per_second(start, _some(given.training[0]))
    return Estimate(counts, str(start.encoder.device), seconds)


def estimate_all(given: Material, *, start: Predictor, recipe: Recipe, seed: int = 0) -> Estimate:
    """Of tuning: all steps, and an evaluation after every so many."""
    choosing, _ = halved(given.validation, seed=seed)
    plan = Plan(start.settings, recipe, seed, "valloss")
    run = Run(given.training, choosing, plan, start, Path("nowhere"), human=None, is_begun=False)
    turns = sum(len(one.texts) for one in given.training)
    evaluations = 1 + math.ceil(recipe.steps / recipe.evaluate_every)
    each = _different([choosing], start) / texts_per_second(run.predictor, _some(choosing))
    counts = {
        **_material_counts(given),
        "steps": recipe.steps,
        "epochs": recipe.steps * recipe.batch_turns / turns,
        "evaluations": evaluations,
    }
    seconds = recipe.steps * _seconds_per_step(run, plan) + evaluations * each
    return Estimate(counts, str(start.encoder.device), seconds)


def texts_per_second(predictor: Predictor, dialogues: Sequence[Dialogue]) -> float:
    """Measured on different texts, after one that allocates."""
    texts = list(dict.fromkeys(text for one in dialogues for text in readings(one, predictor.settings)))
    predictor.outputs(texts[:1])
    started = time.perf_counter()
    predictor.outputs(texts)
    return len(texts) / (time.perf_counter() - started)


def _different(parts: Sequence[Examples], predictor: Predictor) -> int:
    dialogues = (one for part in parts for one in part.dialogues)
    return len({text for one in dialogues for text in readings(one, predictor.settings)})


def _seconds_per_step(run: Run, plan: Plan) -> float:
    batches = run.data.batches(plan)
    run.step(next(batches)).item()
    started = time.perf_counter()
    for batch in islice(batches, MEASURED_STEPS):
        run.step(batch).item()  # waits for the device
    return (time.perf_counter() - started) / MEASURED_STEPS


def _places(count: int) -> Iterator[int]:
    yield from np.unique(np.linspace(0, count - 1, min(MEASURED_DIALOGUES, count)).astype(int)).tolist()


def _some(given: Examples) -> list[Dialogue]:
    return [one[:MEASURED_TURNS] for one in given.select(list(_places(len(given)))).dialogues]


def _counts(given: Examples) -> dict[str, int]:
    return {"dialogues": len(given), "turns": len(given.texts), "left_out": given.left_out}


def _material_counts(given: Material) -> dict[str, int]:
    return {
        "dialogues": sum(map(len, given.training)),
        "turns": sum(len(one.texts) for one in given.training),
        "validation_dialogues": len(given.validation),
        "validation_turns": len(given.validation.texts),
        "left_out": given.left_out,
    }
