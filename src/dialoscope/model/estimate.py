"""What a training run would cost, from its counts and a few measured steps; nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.model.batch import Batch
from dialoscope.model.batching import batches, collate_all
from dialoscope.model.run import Plan
from dialoscope.model.training import Loop

MEASURED = 5  # steps, after one that compiles and allocates


@dataclass(frozen=True)
class Estimate:
    """Counts of a run, and how long an epoch of it would take, without validation."""

    dialogues: int
    samples: int
    cut_contexts: int  # longer than context_tokens, so that their oldest tokens are not read
    validation_samples: int
    vocabulary: int
    parameters: int
    batches: int
    device: str
    seconds_per_epoch: float
    epochs: int  # at most

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return asdict(self)


def estimate(corpus: Corpus, plan: Plan, *, device: str = "auto") -> Estimate:
    """Count, and time some batches of all lengths."""
    loop = Loop(corpus, plan, Path("nowhere"), device=device)
    examples, limit = loop.data.epoch(plan, np.random.default_rng(plan.seed)), plan.settings.context_tokens
    rows = batches(examples, batch_size=plan.recipe.batch_size, context_tokens=limit)
    some = [rows[place] for place in np.linspace(0, len(rows) - 1, min(MEASURED, len(rows))).astype(int)]
    with loop.explained():
        seconds = _seconds_per_batch(
            loop, collate_all(examples, [some[-1], *some], device=loop.device, context_tokens=limit)
        )
    return Estimate(
        dialogues=len(corpus.split(plan.train_split)),
        samples=len(examples),
        cut_contexts=loop.data.cut,
        validation_samples=len(loop.data.validation),
        vocabulary=len(loop.data.vocabulary),
        parameters=sum(weight.numel() for weight in loop.network.parameters()),
        batches=len(rows),
        device=str(loop.device),
        seconds_per_epoch=seconds * len(rows),
        epochs=plan.recipe.epochs,
    )


def _seconds_per_batch(loop: Loop, made: Iterable[Batch]) -> float:
    """Of all but the first, which compiles and allocates."""
    loop.learner.objective.train()
    started, count = 0.0, -1
    for count, batch in enumerate(made):
        started = time.perf_counter() if count == 1 else started
        own = {"own_tokens": int(batch.response_length.sum()), "own_samples": len(batch.response_length)}
        loop.learner.backward(batch, **own)[0].item()
        loop.learner.update()
    return (time.perf_counter() - started) / count
