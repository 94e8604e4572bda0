"""Before a card's time is spent: does it compute the same with and without the steps after a response's end, how fast.

    PYTHONPATH=src:site python examples/check_card.py corpora/clean/corpus

For some presets at the paper's size, in bfloat16: the loss of some batches and the size of its gradients, once with
all padding computed and once without the rows that have ended (recurrence.SKIPS_ENDED_ROWS), and the samples that one
process trains in a second. Ends with an error where the two differ by more than rounding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from dialoscope.corpus import load
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.model import graphs, preset, recurrence
from dialoscope.model.batch import Batch
from dialoscope.model.batching import batches, collate_all
from dialoscope.model.learner import Learner, make_accelerator, seed_step
from dialoscope.model.network import Seq2Seq
from dialoscope.model.run import Data, Plan
from dialoscope.model.structure import Structure

CONTEXT_TOKENS = 192
TOLERANCE = 0.01  # of a loss or of the size of its gradients, relative: bfloat16


def main() -> None:
    """Compare, and print a line for each preset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--presets", nargs="+", default=["static-ui", "dynamic", "non-hier"])
    parser.add_argument("--batches", type=int, default=24)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    graphs.CAPTURES_WITHOUT_GRADIENTS = False
    chosen = preset("static-ui")
    settings = replace(chosen.settings, context_tokens=CONTEXT_TOKENS)
    plan = Plan(settings, chosen.recipe, transform=InsertDistractions(0.7))
    data, device = Data.of(load(arguments.corpus), plan), torch.device(arguments.device)
    rng = np.random.default_rng([0, 1])
    examples = data.epoch(plan, rng)
    rows = batches(examples, batch_size=chosen.recipe.batch_size, rng=rng, context_tokens=CONTEXT_TOKENS)
    made = collate_all(examples, rows[: arguments.batches], device=device, context_tokens=CONTEXT_TOKENS)
    first_batches = [*islice(made, arguments.batches)]
    is_equal = True
    for name in arguments.presets:
        structure = replace(preset(name).settings, context_tokens=CONTEXT_TOKENS, vocabulary=len(data.vocabulary))
        (padded, slow), (skipping, fast) = (
            trained(structure, first_batches, arguments.device, skips=skips) for skips in (False, True)
        )
        difference = np.abs(padded / skipping - 1).max()
        is_equal &= bool(difference < TOLERANCE)
        print(f"{name}: largest difference {difference:.2e}; samples a second {slow:,.0f} padded, {fast:,.0f} skipping")
    if not is_equal:
        sys.exit(1)


def trained(structure: Structure, made: Sequence[Batch], device: str, *, skips: bool) -> tuple[np.ndarray, float]:
    """Losses and sizes of gradients of some batches, and samples a second when they come again twice."""
    recurrence.SKIPS_ENDED_ROWS = skips
    seed_step(0, 0)
    chosen = preset("static-ui")
    recipe = replace(chosen.recipe, precision="bf16" if device.startswith("cuda") else "fp32", learning_rate=1e-12)
    learner = Learner(
        Seq2Seq(structure), recipe, make_accelerator(device, recipe.precision), extra_loss=AttentionLoss()
    )
    learner.objective.train()

    def step(number: int, batch: Batch) -> list[float]:
        seed_step(0, 1, number)
        tokens, samples = sum(batch.steps), len(batch.steps)
        loss, _ = learner.backward(batch, own_tokens=tokens, own_samples=samples, scale=tokens / samples)
        size = torch.nn.utils.clip_grad_norm_(learner.objective.parameters(), 5.0)
        learner.update()
        return [float(loss) / tokens, float(size)]

    numbers = np.array([step(number, batch) for number, batch in enumerate(made)])
    for number, batch in enumerate(made):  # what came before is captured now
        step(number, batch)
    begun = time.monotonic()
    for number, batch in enumerate(made):
        step(number, batch)
    seconds = time.monotonic() - begun
    graphs.clear()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    return numbers, sum(len(batch.steps) for batch in made) / seconds


if __name__ == "__main__":
    main()
