"""Two runs, or two studies: what has changed, on the items that both have, and whether chance would do as much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from turnwise.errors import UsageError
from turnwise.metrics import Comparison, Resampling, compare_correlations, compare_ratios, correct
from turnwise.record import Origin
from turnwise.report import Column, Prose, Section, Table, Verdict
from turnwise.report.section import Level
from turnwise.study.folders import Placed, read_runs
from turnwise.study.items import READERS, Items, items_of

SURE = 0.05  # of p-values corrected over the whole table


@dataclass(frozen=True)
class Change:
    """One number in both runs; the difference is the second minus the first."""

    run: str
    model: str
    what: str
    first: float | None
    second: float | None
    items: int  # that both have
    only: tuple[int, int]  # that only the first or only the second has
    comparison: Comparison
    best: str

    @property
    def is_better(self) -> bool | None:
        """Whether it is better for sure, worse for sure, or neither (None)."""
        p, value = self.comparison.p_holm, self.comparison.difference.value
        if p is None or value is None or p >= SURE or value == 0:
            return None
        return (value > 0) == (self.best == "high")

    @property
    def said(self) -> str:
        """The same in a word, or none."""
        return {True: "better", False: "worse", None: ""}[self.is_better]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        named = {"run": self.run, "model": self.model, "what": self.what, "first": self.first, "second": self.second}
        counts = {"items": self.items, "only_first": self.only[0], "only_second": self.only[1]}
        return {**named, **counts, **self.comparison.to_dict(), "better": self.is_better}


@dataclass(frozen=True)
class Compared:
    """All numbers that both have, and what could not be compared."""

    first: str
    second: str
    changes: Sequence[Change]
    left_out: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        changes = [one.to_dict() for one in self.changes]
        return {"first": self.first, "second": self.second, "changes": changes, "left_out": list(self.left_out)}


def compare(first: str | Path, second: str | Path, *, resampling: Resampling | None = None) -> Compared:
    """Compare two folders of runs or studies by paired tests, corrected over all numbers together."""
    if Path(first).resolve() == Path(second).resolve():
        raise UsageError(f"{first} and {second} are one folder: give an earlier one and a later one.")
    sides = [{one.name: one for one in read_runs([folder])} for folder in (first, second)]
    shared = _shared(*sides)
    if not shared:
        names = [", ".join(side) for side in sides]
        raise UsageError(f"{first} and {second} share no run: one has {names[0]}; the other {names[1]}.")
    how, changes, left_out = resampling or Resampling(), {}, []
    for before, after in shared:
        if before.run.instrument not in READERS:  # corpora, and earlier comparisons
            continue
        pairs, unpaired = _pairs(items_of(before.folder, before.run), items_of(after.folder, after.run))
        left_out += [f"{before.name}: {one}" for one in unpaired]
        read = [one.run.origin.corpus for one in (before, after)]
        if read[0] != read[1]:
            left_out.append(f"{before.name}: other dialogues ({', then '.join(read)}), paired by their ids alone")
        left_out += [f"{before.name}: {one}" for one in _told_otherwise(before, after)]
        for (model, what), (old, new) in pairs.items():
            changes[before.name, model, what] = _changed(before.name, model, what, old, new, how)
    corrected = correct({key: one.comparison for key, one in changes.items()})
    found = [Change(**{**vars(one), "comparison": corrected[key]}) for key, one in changes.items()]
    return Compared(str(first), str(second), found, left_out)


def _told_otherwise(before: Placed, after: Placed) -> list[str]:
    """Settings that differ, such as the training side of an overlap: then numbers differ for other reasons too.

    Other weights are no such reason: they are what is compared.
    """
    old, new = before.run.origin.settings, after.run.origin.settings
    names = [name for name in {**old, **new} if old.get(name) != new.get(name) and name != "models"]
    return [f"{name} was {old.get(name)}, and is {new.get(name)}" for name in names]


def _shared(first: Mapping[str, Placed], second: Mapping[str, Placed]) -> list[tuple[Placed, Placed]]:
    """Runs of one name; single runs of one instrument, whatever their folders are called."""
    both = [(one, second[name]) for name, one in first.items() if name in second]
    return [(one, other) for one, other in both if one.run.instrument == other.run.instrument]


def _pairs(
    first: Mapping[tuple[str, str], Items], second: Mapping[tuple[str, str], Items]
) -> tuple[dict[tuple[str, str], tuple[Items, Items]], list[str]]:
    """Numbers of one name; where each side has a single model, it is that one against that one."""
    models = [list(dict.fromkeys(model for model, _ in side)) for side in (first, second)]
    renamed: dict[str, str] = {}
    if len(models[0]) == len(models[1]) == 1:
        renamed = {models[1][0]: models[0][0]}
    new = {(renamed.get(model, model), what): items for (model, what), items in second.items()}
    arrow = {models[0][0]: f"{models[0][0]} → {models[1][0]}"} if renamed and models[0] != models[1] else {}
    pairs = {(arrow.get(key[0], key[0]), key[1]): (items, new[key]) for key, items in first.items() if key in new}
    known = [{model for model, _ in side} for side in (first, new)]
    lonely = sorted({*first} ^ {*new})
    alone = dict.fromkeys(
        f"{model}, {what}" if model in known[0] & known[1] and model else model or what for model, what in lonely
    )
    return pairs, [f"{one}: in one of both only" for one in alone]


def _changed(run: str, model: str, what: str, old: Items, new: Items, how: Resampling) -> Change:
    """One number on the items that both have a number for."""
    is_old, is_new = old.is_scored, new.is_scored
    places = {key: place for place, key in enumerate(new.keys) if is_new[place]}
    both = [(place, places[key]) for place, key in enumerate(old.keys) if is_old[place] and key in places]
    before, after = (side.at([pair[number] for pair in both]) for number, side in enumerate((old, new)))
    only = (int(is_old.sum()) - len(both), int(is_new.sum()) - len(both))
    origin = Origin(settings={"compared": what, **({"model": model} if model else {})})
    comparison = _compared(after, before, how, origin)
    values = [_value(one) if both else None for one in (before, after)]
    return Change(run, model, what, values[0], values[1], len(both), only, comparison, old.best)


def _compared(first: Items, second: Items, how: Resampling, origin: Origin) -> Comparison:
    if first.people is not None and second.people is not None:
        if not np.array_equal(first.people, second.people, equal_nan=True):
            raise UsageError("The rated turns of both have other ratings: hold both against the same ones.")
        return compare_correlations(
            first.people, first.above, second.above, clusters=first.dialogues, resampling=how, origin=origin
        )
    return compare_ratios(
        (first.above, first.below),
        (second.above, second.below),
        clusters=first.dialogues,
        test="bootstrap",
        resampling=how,
        origin=origin,
    )


def _value(items: Items) -> float | None:
    """The number itself, over these items."""
    from turnwise.metrics import Resampling, correlate, ratio_score

    once = Resampling(resamples=0)
    if items.people is not None:
        return correlate(items.above, items.people, resampling=once).value
    return ratio_score(items.above, items.below, resampling=once).value


def section_of(compared: Compared) -> Section:
    """The comparison as a section of a report."""
    changes = compared.changes
    better, worse = (sum(one.is_better is wanted for one in changes) for wanted in (True, False))
    columns = [
        Column("run"), Column("model"), Column("number"), Column("before", ".4g"), Column("after", ".4g"),
        Column("difference", ".4g"), Column("p (Holm)", ".3g"), Column("items", ",d"), Column("for sure"),
    ]  # fmt: skip
    rows = [
        [one.run, one.model, one.what, one.first, one.second, one.comparison.difference, one.comparison.p_holm,
         one.items, one.said]
        for one in changes
    ]  # fmt: skip
    notes = [
        f"Before: {compared.first}. After: {compared.second}. Differences are after minus before on the items of both, "
        "with an interval over dialogues; p-values are of paired tests, corrected over this table.",
        *compared.left_out,
    ]
    untested = sum(one.comparison.p_value is None for one in changes)
    told = (
        f"{len(changes)} numbers of both: {better} better for sure, {worse} worse, {untested} that could not be tested."
    )
    partly = sum(one.only != (0, 0) for one in changes)
    blocks = [Prose(f"{partly} of them share only a part of their items.")] if partly else []
    return Section(
        "Compared",
        "compared",
        "What has changed?",
        [*blocks, Table(columns, rows, "Before and after", notes=notes, name="compared")],
        lead=told,
        verdict=Verdict(f"of {len(changes)} numbers worse for sure than before", worse, _level(compared, worse), "d"),
        origin=Origin(settings={"before": compared.first, "after": compared.second}),
    )


def _level(compared: Compared, worse: int) -> Level:
    """Good is only what was tested on the same dialogues."""
    if worse:
        return "bad"
    is_tested = bool(compared.changes) and all(one.comparison.p_value is not None for one in compared.changes)
    return "good" if is_tested and not compared.left_out else "info"
