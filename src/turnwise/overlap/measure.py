"""How much of a test set is in its training set."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from turnwise.corpus import Corpus, Samples, samples
from turnwise.overlap.best import best_match
from turnwise.overlap.result import OverlapResult
from turnwise.overlap.tokens import bags_of
from turnwise.record import Origin


@dataclass(frozen=True)
class Settings:
    """How samples are made and cut into tokens."""

    context_turns: int = 1
    tokeniser: str = "reference"


def measure(train: Corpus, test: Corpus, *, settings: Settings | None = None) -> OverlapResult:
    """Overlap of every test sample with the training set: the least over context and response, the most over training.

    >>> corpus = load("dailydialog")                                               # doctest: +SKIP
    >>> measure(corpus.split("train"), corpus.split("test")).identical_share       # doctest: +SKIP
    0.23145400593471812
    """
    settings = settings or Settings()
    known, probes = (samples(corpus, context_turns=settings.context_turns) for corpus in (train, test))
    columns = [*text_columns(known), *text_columns(probes)]
    (known_contexts, known_responses, contexts, responses), _ = bags_of(*columns, tokeniser=settings.tokeniser)
    best = best_match([(contexts, known_contexts), (responses, known_responses)])
    origin = Origin(
        corpus=f"{test.name}@{test.fingerprint}",
        settings={
            "train": f"{train.name}@{train.fingerprint}",
            "context": settings.context_turns,
            "tok": settings.tokeniser,
        },
    )
    return OverlapResult(best.ratio, best.match, n_train=len(known), origin=origin)


def text_columns(found: Samples) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Contexts (their turns joined) and responses of samples, as columns."""
    table = found.to_table(separator="\n")
    return table["context"], table["response"]
