"""Models that know exactly one thing, and the dialogues that they are probed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.model.protocol import Attention, Context, Decoding, Floats, Likelihood
from dialoscope.probe import ProbeResult, measure
from dialoscope.probe.examples import Examples, examples


class Counting:
    """A model that encodes how many turns a context has, as one of eight directions, and how often it was asked."""

    def __init__(self, name: str = "counting@0") -> None:
        self.name, self.asked = name, 0

    def encode(self, contexts: Sequence[Context]) -> Floats:
        self.asked += len(contexts)
        lengths = np.array([min(len(context), 8) - 1 for context in contexts])
        return np.asarray(10 * np.eye(8)[lengths], dtype=np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        raise NotImplementedError

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        raise NotImplementedError

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        raise NotImplementedError


class Blind(Counting):
    """A model that encodes everything alike."""

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.ones((len(contexts), 4), dtype=np.float32)


class Broken(Counting):
    """A model that encodes nothing."""

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.full((len(contexts), 2), np.nan, dtype=np.float32)


def chat(count: int, split: str) -> list[Dialogue]:
    """Dialogues of equal contexts; the last response, which is in none of them, tells them apart."""
    turns = [Turn("AB"[place % 2], f"word{place} and") for place in range(8)]
    names = [f"{split}{number}" for number in range(count)]
    return [Dialogue((*turns, Turn("A", name)), name, split) for name in names]


CHAT = Corpus.of([*chat(30, "train"), *chat(12, "validation")], name="chat")


def splits(corpus: Corpus) -> tuple[Examples, Examples]:
    return examples(corpus, split="train"), examples(corpus, split="validation")


def probed(models: Mapping[str, Any], corpus: Corpus = CHAT, **options: Any) -> ProbeResult:
    """What is measured on the places of contexts, if no other tasks are named."""
    return measure(corpus, models=models, **{"tasks": ("UtteranceLoc",), "device": "cpu", **options})
