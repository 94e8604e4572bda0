"""Where units are compared: `Here` is this process; `spark` has another engine. All give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.overlap.best import Best, best_match
from dialoscope.overlap.join import join_distinct
from dialoscope.overlap.passes import Dropped, drop_copies, unit_bags
from dialoscope.overlap.sample_join import join_parts, ratios_of
from dialoscope.overlap.scan import Flags
from dialoscope.overlap.settings import PairsSettings
from dialoscope.overlap.sides import Side, side_of
from dialoscope.overlap.tokens import Bags, bags_of

Floats = np.ndarray[Any, np.dtype[np.float64]]
Choose = Callable[[Floats], list[int]]  # ratios -> the rows whose matches are spelt out


@dataclass(frozen=True)
class Match:
    """A unit and the one it overlaps with most, as text: one text each, or context and response."""

    id: str
    partner: str
    ratio: float
    texts: tuple[str, ...]
    partner_texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Matches:
    """The best match of every measured unit."""

    ids: pa.ChunkedArray
    ratio: Floats
    match: np.ndarray[Any, np.dtype[np.int64]]  # the row of the match, -1 for none
    partners: pa.ChunkedArray  # the id of the match, null for none
    without_words: int  # measured units that have a part without words
    n_reference: int  # units that they were compared with
    n_reference_without_words: int
    examples: tuple[Match, ...] = ()


@dataclass(frozen=True, eq=False)
class PairsFound:
    """Pairs of units at or over a threshold, by id, and how many units were compared."""

    table: pa.Table  # first, second, ratio
    total: int  # pairs; the table of an engine that writes them elsewhere has the first of them only
    units: int
    other_units: int | None = None
    distinct: int | None = None


class Engine(Protocol):
    """Where units are compared."""

    def is_of_single_turns(self, data: Any) -> bool:
        """Whether every dialogue has one turn, as plain texts have."""
        ...

    def side(self, data: Any, *, unit: str, context_turns: int) -> Any:
        """The units of data, as the methods below take them; with a `name` and a `unit`."""
        ...

    def best_matches(self, measured: Any, reference: Any, *, words: str, is_same: bool, choose: Choose) -> Matches:
        """The best match of every measured unit; with `is_same`, they are the first units of `reference`."""
        ...

    def pairs(
        self, first: Any, second: Any | None, settings: PairsSettings, *, folder: Path | None, overwrite: bool
    ) -> PairsFound:
        """All pairs at or over the threshold, within one side or between two."""
        ...

    def drop_copies(self, corpus: Corpus, *, threshold: float, words: str) -> Dropped:
        """Drop near-copies until no two dialogues that are left overlap over the threshold."""
        ...


class Here:
    """Compares units in this process, on all cores."""

    def is_of_single_turns(self, data: Corpus) -> bool:
        """Whether every dialogue has one turn, as plain texts have."""
        return bool((data.turns_per_dialogue == 1).all())

    def side(self, data: Corpus, *, unit: str, context_turns: int) -> Side:
        """The units of a corpus."""
        return side_of(data, unit=unit, context_turns=context_turns)

    def best_matches(self, measured: Side, reference: Side, *, words: str, is_same: bool, choose: Choose) -> Matches:
        """Find the best match of every measured unit; a unit never matches itself."""
        count, width = len(measured), len(reference.texts)
        if is_same:
            reference_bags = bags_of(*reference.texts, tokeniser=words)[0]
            measured_bags = (
                [bags.take(np.arange(count)) for bags in reference_bags] if count < len(reference) else reference_bags
            )
            best = best_match([(bags, bags) for bags in reference_bags], is_self=True)
            best = Best(best.ratio[:count], best.match[:count])
        else:
            bags = bags_of(*reference.texts, *measured.texts, tokeniser=words)[0]
            reference_bags, measured_bags = bags[:width], bags[width:]
            best = best_match(list(zip(measured_bags, reference_bags, strict=True)))
        ids = reference.ids.slice(0, count) if is_same else measured.ids
        return Matches(
            ids,
            best.ratio,
            best.match,
            reference.ids.take(pa.array(best.match, mask=best.match < 0)),
            int(_lacks_words(measured_bags).sum()),
            len(reference),
            int(_lacks_words(reference_bags).sum()),
            tuple(_match_at(best, row, ids, measured, reference) for row in choose(best.ratio)),
        )

    def pairs(
        self,
        first: Side,
        second: Side | None,
        settings: PairsSettings,
        *,
        folder: Path | None = None,
        overwrite: bool = False,
    ) -> PairsFound:
        """Find all pairs at or over the threshold; `folder` is for engines that write pairs themselves."""
        sides = [first] if second is None else [first, second]
        bags, _ = bags_of(*(texts for side in sides for texts in side.texts), tokeniser=settings.words)
        other_units, last = None if second is None else len(second), sides[-1]
        if not settings.distinct:
            width = len(first.texts)
            joined, ratios = join_parts(bags[:width], bags[width:] or None, settings.threshold)
            names = {"first": first.ids.take(pa.array(joined.first)), "second": last.ids.take(pa.array(joined.second))}
            return PairsFound(pa.table({**names, "ratio": ratios}), len(joined), len(first), other_units)
        distinct = join_distinct(*bags, threshold=settings.threshold)
        rows, others = distinct.pairs.first, distinct.pairs.second
        columns = {
            "first": first.ids.take(pa.array(rows)),
            "second": last.ids.take(pa.array(others)),
            "ratio": ratios_of(bags[0], bags[-1], distinct.pairs),
            "first_copies": distinct.copies[rows],
            "second_copies": distinct.other_copies[others],
        }
        different = int((distinct.copies > 0).sum())
        return PairsFound(pa.table(columns), len(rows), len(first), other_units, different)

    def drop_copies(self, corpus: Corpus, *, threshold: float, words: str) -> Dropped:
        """Drop near-copies until no two dialogues that are left overlap over the threshold."""
        return drop_copies(corpus, unit_bags(corpus, tokeniser=words), threshold)


def _lacks_words(parts: list[Bags]) -> Flags:
    """Units that have a part without words; they overlap with nothing."""
    return np.asarray(np.any([bags.sizes == 0 for bags in parts], axis=0))


def _match_at(best: Best, row: int, ids: pa.ChunkedArray, measured: Side, reference: Side) -> Match:
    """The match of one unit, as text."""
    other = int(best.match[row])
    texts = tuple(column[row].as_py() for column in measured.texts)
    partner_texts = tuple(column[other].as_py() for column in reference.texts)
    return Match(ids[row].as_py(), reference.ids[other].as_py(), float(best.ratio[row]), texts, partner_texts)
