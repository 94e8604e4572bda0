"""How much of a test set is in its training set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from turnwise.corpus import Corpus, samples
from turnwise.overlap.best import best_match
from turnwise.overlap.result import OverlapResult
from turnwise.overlap.tokens import bags_of
from turnwise.record import Origin


@dataclass(frozen=True)
class Settings:
    """How samples are made and cut into tokens."""

    context_turns: int = 1
    tokeniser: str = "reference"


@dataclass(frozen=True)
class Match:
    """A test sample and the training sample it overlaps with most, as text."""

    test: str
    train: str
    ratio: float
    context: str
    response: str
    known_context: str
    known_response: str


@dataclass(frozen=True, eq=False)
class Measured:
    """A result and a few of its matches, for people to see."""

    result: OverlapResult
    examples: tuple[Match, ...]


def measure(train: Corpus, test: Corpus, *, settings: Settings | None = None) -> OverlapResult:
    """Overlap of every test sample with the training set: the least over context and response, the most over training.

    >>> corpus = load("dailydialog")                                               # doctest: +SKIP
    >>> measure(corpus.split("train"), corpus.split("test")).identical_share       # doctest: +SKIP
    0.23145400593471812
    """
    return measure_with_examples(train, test, choose=lambda result: [], settings=settings).result


def measure_with_examples(
    train: Corpus, test: Corpus, *, choose: Callable[[OverlapResult], list[int]], settings: Settings | None = None
) -> Measured:
    """The same, with the matches at chosen places spelt out."""
    settings = settings or Settings()
    known, probes = (sample_table(corpus, context_turns=settings.context_turns) for corpus in (train, test))
    result = _measured(known, probes, _origin(train, test, settings), settings)
    return Measured(result, tuple(_match(result, place, known, probes) for place in choose(result)))


def sample_table(corpus: Corpus, *, context_turns: int) -> pa.Table:
    """Samples as the room sees them: a line break between turns of a context, which no token crosses."""
    return samples(corpus, context_turns=context_turns).to_table(separator="\n")


def _measured(known: pa.Table, probes: pa.Table, origin: Origin, settings: Settings) -> OverlapResult:
    columns = [table[name] for table in (known, probes) for name in ("context", "response")]
    (known_contexts, known_responses, contexts, responses), _ = bags_of(*columns, tokeniser=settings.tokeniser)
    best = best_match([(contexts, known_contexts), (responses, known_responses)])
    return OverlapResult(best.ratio, best.match, n_train=len(known), origin=origin)


def _origin(train: Corpus, test: Corpus, settings: Settings) -> Origin:
    known = f"{train.name}@{train.fingerprint}"
    choices = {"train": known, "context": settings.context_turns, "tok": settings.tokeniser}
    return Origin(corpus=f"{test.name}@{test.fingerprint}", settings=choices)


def _match(result: OverlapResult, place: int, known: pa.Table, probes: pa.Table) -> Match:
    one = probes.slice(place, 1).to_pylist()[0]
    other = known.slice(int(result.match[place]), 1).to_pylist()[0]
    texts = (one["context"], one["response"], other["context"], other["response"])
    return Match(one["dialogue"], other["dialogue"], float(result.ratio[place]), *texts)
