"""How much of a test set is in its training set, or of a corpus in the rest of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from dialoscope.overlap.best import best_match
from dialoscope.overlap.result import OverlapResult
from dialoscope.overlap.sides import Data, Side, check_same_form, side_of
from dialoscope.overlap.tokens import bags_of
from dialoscope.record import Origin


@dataclass(frozen=True)
class Settings:
    """How samples are made and cut into tokens."""

    context_turns: int = 1
    tokeniser: str = "reference"


@dataclass(frozen=True)
class Match:
    """A unit and the one it overlaps with most, as text: one part, or context and response."""

    id: str
    partner: str
    ratio: float
    texts: tuple[str, ...]
    partner_texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """A result and a few of its matches, for people to see."""

    result: OverlapResult
    examples: tuple[Match, ...] = ()
    tokeniser: str = "reference"


def measure(
    train: Data,
    test: Data | None = None,
    *,
    unit: str | None = None,
    column: str | None = None,
    settings: Settings | None = None,
) -> OverlapResult:
    """Overlap of every test unit with the training set: the least over context and response, the most over training.

    Without a test set, each unit of the one corpus is held against the rest of it. Units are samples, or dialogues
    within one corpus, unless `unit` says dialogue, turn or sample. Lists of strings, lists of (context, response)
    tuples and a text `column` of a data set are compared as what they are.

    >>> corpus = load("dailydialog")                                               # doctest: +SKIP
    >>> measure(corpus.split("train"), corpus.split("test")).identical_share       # doctest: +SKIP
    0.23145400593471812
    >>> measure(["a b c d"], ["a b c e"]).ratio.tolist()
    [0.75]
    """
    return measure_with_examples(
        train, test, choose=lambda result: [], unit=unit, column=column, settings=settings
    ).result


def measure_with_examples(
    train: Data,
    test: Data | None = None,
    *,
    choose: Callable[[OverlapResult], list[int]],
    unit: str | None = None,
    column: str | None = None,
    settings: Settings | None = None,
) -> Measured:
    """The same, with the matches at chosen places spelt out."""
    settings = settings or Settings()
    chosen = unit or ("dialogue" if test is None else "sample")
    known, probes = (
        None if data is None else side_of(data, unit=chosen, column=column, context_turns=settings.context_turns)
        for data in (train, test)
    )
    assert known is not None
    result = compared(known, probes, settings)
    examples = tuple(match_at(result, place, known, probes or known) for place in choose(result))
    return Measured(result, examples, settings.tokeniser)


def compared(known: Side, probes: Side | None, settings: Settings) -> OverlapResult:
    """The best match of each probe among the known units; without probes, of each known unit among the others."""
    if probes is not None:
        check_same_form(known.unit, len(known.texts), probes.unit, len(probes.texts))
    columns = [*known.texts, *(probes.texts if probes is not None else ())]
    bags, _ = bags_of(*columns, tokeniser=settings.tokeniser)
    width = len(known.texts)
    mine = bags[width:] or bags
    best = best_match(list(zip(mine, bags[:width], strict=True)), is_self=probes is None)
    side = known if probes is None else probes
    partners = known.ids.take(pa.array(best.match, mask=best.match < 0))
    return OverlapResult(
        best.ratio,
        best.match,
        n_train=len(known),
        origin=origin_of(known, probes, settings),
        unit=side.unit,
        is_within=probes is None,
        ids=side.ids,
        partners=partners,
    )


def origin_of(known: Side, probes: Side | None, settings: Settings) -> Origin:
    """What has to be repeated to get the same ratios."""
    side = known if probes is None else probes
    choices = {
        "train": None if probes is None else known.name,
        "unit": side.unit,
        "context": settings.context_turns if len(side.texts) > 1 else None,
        "tok": settings.tokeniser,
    }
    return Origin(corpus=side.name, settings={key: value for key, value in choices.items() if value is not None})


def match_at(result: OverlapResult, place: int, known: Side, probes: Side) -> Match:
    """The match of one probe, spelt out."""
    other = int(result.match[place])
    texts, partner_texts = (
        tuple(column[spot].as_py() for column in side.texts) for side, spot in ((probes, place), (known, other))
    )
    return Match(probes.ids[place].as_py(), known.ids[other].as_py(), float(result.ratio[place]), texts, partner_texts)
