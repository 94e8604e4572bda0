"""How much work a long command would be: counts, for a dry run. Nothing is computed or written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from dialoscope.corpus import Corpus
from dialoscope.engage.examples import Examples
from dialoscope.engage.fitting import Material, recipe_of
from dialoscope.engage.predictor import Predictor, readings
from dialoscope.engage.scoring import portion_path, portions, work_beside
from dialoscope.engage.settings import PredictorSettings
from dialoscope.engage.shape import Shape

Counts = dict[str, int | float]


def planned_scores(predictor: Predictor, corpus: Corpus, *, out: Path | None = None) -> Counts:
    """Count what scoring a corpus takes; portions that an earlier run kept beside `out` cost nothing."""
    parts = list(portions(corpus))
    work = None if out is None else work_beside(out)
    left = [part for part in parts if work is None or not portion_path(predictor, part, work).is_file()]
    return {
        "dialogues": len(corpus),
        "messages": int(corpus.turns_per_dialogue.sum()),
        "portions": len(parts),
        "portions_kept": len(parts) - len(left),
        # Besides instructions, and what one speaker says in several messages.
        "texts_to_encode": sum(pc.count_distinct(part.turn_column("text")).as_py() for part in left),
    }


def planned_training(material: Material, shape: Shape, settings: PredictorSettings) -> Counts:
    """Count what training a predictor takes: texts that are encoded once, or steps and evaluations."""
    turns = sum(len(part.texts) for part in material.training)
    counts: Counts = {
        "dialogues": sum(map(len, material.training)),
        "turns": turns,
        "validation_dialogues": len(material.validation),
        "validation_turns": len(material.validation.texts),
        "left_out": material.left_out,
    }
    if settings.frozen:
        texts = _different_texts(material.training, shape) + _different_texts([material.validation], shape)
        return {**counts, "texts_to_encode": texts}
    recipe = recipe_of(settings)
    evaluations = 1 + math.ceil(recipe.steps / recipe.evaluate_every)
    epochs = recipe.steps * recipe.batch_turns / turns
    return {**counts, "steps": recipe.steps, "epochs": epochs, "evaluations": evaluations}


def _different_texts(parts: Sequence[Examples], shape: Shape) -> int:
    dialogues = (dialogue for part in parts for dialogue in part.dialogues)
    return len({text for dialogue in dialogues for text in readings(dialogue, shape)})
