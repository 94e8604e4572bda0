"""Small random samples and models for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from hypothesis import strategies as st

from dialoscope.corpus import generate
from dialoscope.model.batch import Batch
from dialoscope.model.batching import collate
from dialoscope.model.checkpoint import Checkpoint
from dialoscope.model.checkpoint import save_model as save_checkpoint
from dialoscope.model.network import Seq2Seq
from dialoscope.model.presets import PRESETS
from dialoscope.model.structure import Structure
from dialoscope.model.vocabulary import Vocabulary

WORDS = 14  # with the five marks
Sample = tuple[list[list[int]], list[int]]  # turns and response, without marks

words = st.integers(5, WORDS - 1)
turns = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4)
samples = st.tuples(turns, st.lists(words, max_size=4))


def tiny(name: str) -> Structure:
    """A preset's structure, a few units wide."""
    settings = PRESETS[name].settings
    layers = min(settings.layers, 2)
    return replace(settings, layers=layers, width=8, embedding=8, heads=min(settings.heads, 2), vocabulary=WORDS)


def network(settings: Structure, *, seed: int = 0, scale: float = 3.0) -> Seq2Seq:
    """A network at rest whose weights are large enough for its parts to matter."""
    torch.manual_seed(seed)
    made = Seq2Seq(settings)
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.mul_(scale)
    return made.eval()


def batch_of(*given: Sample) -> Batch:
    """These samples as one batch."""
    return collate([turns for turns, _ in given], [response for _, response in given])


def save_model(folder: Path, name: str) -> Path:
    """A tiny untrained model of a preset, as `dialoscope train` saves it; it knows words of the concierge."""
    texts = [turn.text for dialogue in generate(dialogues=20, seed=5) for turn in dialogue.turns]
    vocabulary = Vocabulary.of(texts, size=200)
    structure = replace(tiny(name), vocabulary=len(vocabulary))
    save_checkpoint(folder, Checkpoint(network(structure), vocabulary, structure, preset=name))
    return folder
