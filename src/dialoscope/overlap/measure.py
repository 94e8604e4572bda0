"""How much of a test set stands in its training set, or of a corpus in the rest of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import split_for
from dialoscope.errors import UsageError
from dialoscope.overlap.best import best_match
from dialoscope.overlap.responses import read_answers
from dialoscope.overlap.result import Match, Matches, OverlapResult, matches_table
from dialoscope.overlap.settings import OverlapSettings
from dialoscope.overlap.sides import Side, check_same_form, side_of
from dialoscope.overlap.tokens import bags_of
from dialoscope.progress import Progress
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

NO_RESPONSE = "no dialogue of the measured split has a response; unit = turn compares every turn"
SHOWN = 20  # examples of matches
NOTHING = "there is nothing to compare with: no dialogue of the other side has a response"


class Engine(Protocol):
    """Where units are compared: in this process, or on Apache Spark."""

    def best_matches(self, measured: Side, reference: Side, *, words: str, is_same: bool) -> Matches:
        """The best match of every measured unit; with `is_same`, they are the first units of `reference`."""
        ...


class Here:
    """This process, on all cores."""

    def best_matches(self, measured: Side, reference: Side, *, words: str, is_same: bool) -> Matches:
        """Find the best match of every measured unit; a unit never matches itself."""
        if is_same:
            bags, _ = bags_of(*reference.texts, tokeniser=words)
            best = best_match([(bag, bag) for bag in bags], is_self=True)
            ratio, match = best.ratio[: len(measured)], best.match[: len(measured)]
        else:
            check_same_form(reference.unit, len(reference.texts), measured.unit, len(measured.texts))
            bags, _ = bags_of(*reference.texts, *measured.texts, tokeniser=words)
            width = len(reference.texts)
            best = best_match(list(zip(bags[width:], bags[:width], strict=True)))
            ratio, match = best.ratio, best.match
        return Matches(ratio, match, reference.ids.take(pa.array(match, mask=match < 0)))


def measure(
    corpus: Corpus,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: OverlapSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OverlapResult:
    """Find, for every test unit, the training unit that it overlaps with most.

    The ratio of two texts is 2 |u and v| / (|u| + |v|) over their sets of words; a sample (context, response) takes the
    smaller ratio of its two parts. Wen et al., section 3. A corpus of one split is compared with itself. With `against`,
    benchmarks by name are measured in place of the test split, each against the training split.

    >>> measure(Corpus.of_texts(["a b c d"], ["a b c e"]), unit="turn").ratio.tolist()
    [0.75]
    """
    settings = with_options(settings, OverlapSettings, options)
    check_corpora(corpus, against, models)
    sides = sides_of(corpus, against, settings)
    answers = None if settings.hypotheses is None else read_answers(sides.first, settings)
    reason = why_not_measurable(sides)
    tables, examples = [], list[Match]()
    for name, side in sides.measured.items() if reason is None else ():
        best = (engine or Here()).best_matches(side, sides.reference, words=settings.words, is_same=sides.is_same)
        tables.append(matches_table(name, side, best))
        examples += examples_of(best, side, sides.reference, settings.leak)
    result = OverlapResult(
        settings=settings,
        parts=sides.sizes,
        used=sides.used,
        counts=skipped(*(each.skipped for each in (corpus, *(against or {}).values()))),
        origin=origin_of(corpus, settings, sides),
        matches=pa.concat_tables(tables) if tables else matches_table("", None, None),
        measured=tuple(sides.measured),
        unit=sides.first.unit,
        is_within=sides.is_same,
        n_reference=len(sides.reference),
        examples=tuple(examples),
        reason=reason,
    )
    return result if answers is None else result.with_responses(answers)


@dataclass(frozen=True, eq=False)
class Sides:
    """The units that are measured, by part, and those that they are compared with."""

    measured: Mapping[str, Side]
    reference: Side
    sizes: Mapping[str, int]
    used: str
    is_same: bool

    @property
    def first(self) -> Side:
        """The first part that is measured."""
        return next(iter(self.measured.values()))


def sides_of(corpus: Corpus, against: Mapping[str, Corpus] | None, settings: OverlapSettings) -> Sides:
    """Units of the test split and the training split, of one split twice, or of benchmarks and the training split."""
    if against:
        reference = corpus.split("train") if len(corpus.splits) > 1 and "train" in corpus.splits else corpus
        unit = settings.unit or _usual_unit([reference, *against.values()], is_within=False)
        measured = {name: _units(each, unit, settings) for name, each in against.items()}
        sizes = {"train": len(reference), **{name: len(each) for name, each in against.items()}}
        used = f"Measured: {', '.join(against)}. Compared with: {reference.name}, {len(reference):,} dialogues."
        return Sides(measured, _units(reference, unit, settings), sizes, used, is_same=False)
    parts = split_for(
        corpus, alone="itself", split=settings.split, train_split=settings.train_split, limit=settings.limit
    )
    unit = settings.unit or _usual_unit([parts.measured, parts.reference], is_within=parts.is_same)
    name = next(reversed(parts.sizes))
    measured = {name: _units(parts.measured, unit, settings)}
    return Sides(measured, _units(parts.reference, unit, settings), parts.sizes, parts.used, parts.is_same)


def _usual_unit(corpora: Sequence[Corpus], *, is_within: bool) -> str:
    """Dialogues within one split, samples between two; plain texts, which have one turn each, are compared as turns."""
    if all((each.turns_per_dialogue == 1).all() for each in corpora):
        return "turn"
    return "dialogue" if is_within else "sample"


def _units(corpus: Corpus, unit: str, settings: OverlapSettings) -> Side:
    return side_of(corpus, unit=unit, context_turns=settings.context_turns)


def check_corpora(corpus: object, against: Mapping[str, Any] | None, models: Mapping[str, Any] | None) -> None:
    """Refuse what this question cannot use, in one line."""
    for each in (corpus, *(against or {}).values()):
        if not isinstance(each, Corpus):
            hint = "Load it with dialoscope.load, or make one of texts with Corpus.of_texts."
            raise UsageError(f"overlap measures a Corpus, found {type(each).__name__}. {hint}")
    if models:
        raise UsageError("overlap asks no models: leave them out.")


def why_not_measurable(sides: Sides) -> str | None:
    """Why there is nothing to measure, or None."""
    if not any(map(len, sides.measured.values())):
        return NO_RESPONSE
    return None if len(sides.reference) else NOTHING


def origin_of(corpus: Corpus, settings: OverlapSettings, sides: Sides) -> Origin:
    """What has to be repeated to get the same ratios."""
    changed = {key: value for key, value in settings.changed().items() if key != "seed"}
    measured = {"measured": ",".join(side.name for side in sides.measured.values())}
    return Origin(
        f"{corpus.name}@{corpus.fingerprint}", {**changed, "unit": sides.first.unit, **measured}, settings.seed
    )


def examples_of(best: Matches, measured: Side, reference: Side, leak: float) -> list[Match]:
    """Matches worth showing, as text: the closest that are not identical, and one that is."""
    near = np.flatnonzero((best.ratio > leak) & (best.ratio < 1))
    near = near[np.argsort(-best.ratio[near], kind="stable")][: SHOWN - 1]
    places = [*near.tolist(), *np.flatnonzero(best.ratio == 1)[:1].tolist()]
    return [match_at(best, place, measured, reference) for place in places]


def match_at(best: Matches, place: int, measured: Side, reference: Side) -> Match:
    """The match of one unit, as text."""
    other = int(best.match[place])
    texts, partner_texts = (
        tuple(column[row].as_py() for column in side.texts) for side, row in ((measured, place), (reference, other))
    )
    return Match(
        measured.ids[place].as_py(), reference.ids[other].as_py(), float(best.ratio[place]), texts, partner_texts
    )
