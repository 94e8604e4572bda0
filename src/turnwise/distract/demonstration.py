"""Two models small enough to be trained while one waits: one as usual, one with distractions and the attention loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from turnwise.corpus import Corpus
from turnwise.distract.distractions import InsertDistractions
from turnwise.model.protocol import DialogueModel

TRAINED_ON, VALIDATED_ON, MEASURED_ON = 200, 20, 40  # dialogues
INSERT = 0.7
WEIGHT = 10.0  # of the attention loss, summed over places: the paper's mean is too small for so few steps


def small_models(corpus: Corpus, work: Path, *, seed: int = 0) -> dict[str, DialogueModel]:
    """`baseline` and `insert 0.7`, trained on a part of a corpus with training and validation splits."""
    from turnwise.distract.attention_loss import AttentionLoss
    from turnwise.model import Recipe, load_model, preset, train

    part = corpus.select(_places(corpus, "train", TRAINED_ON) + _places(corpus, "validation", VALIDATED_ON))
    paper = preset("static-ui").settings
    settings = replace(paper, layers=1, width=64, embedding=64, vocabulary=2000, dropout=0.0, words_within=0.1)
    recipe = Recipe("adam", 3e-3, epochs=3, batch_size=64, clip=5.0)
    found: dict[str, DialogueModel] = {}
    for name, probability in (("baseline", 0.0), (f"insert {INSERT}", INSERT)):
        out = work / name.replace(" ", "-")
        train(
            part,
            settings,
            recipe,
            out=out,
            seed=seed,
            device="cpu",
            preset="static-ui",
            context_turns=5,
            bleu_samples=0,
            resume=True,  # another instrument may have trained them already
            transform=InsertDistractions(probability) if probability else None,
            extra_loss=AttentionLoss(WEIGHT, "sum") if probability else None,
        )
        found[name] = load_model(out / "best", device="cpu")
    return found


def _places(corpus: Corpus, split: str, most: int) -> list[int]:
    splits = corpus.table["split"].to_pylist()
    return [place for place, name in enumerate(splits) if name == split][:most]
