"""Two runs, or two studies: what has changed, on the items that both have, and whether chance would do as much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.metrics import (
    Comparison,
    Resampling,
    compare_correlations,
    compare_ratios,
    correct,
    correlate,
    ratio_score,
)
from dialoscope.metrics.paired import smallest_p_value
from dialoscope.record import Origin
from dialoscope.report import Column, Prose, Run, Section, Table, Verdict
from dialoscope.report.cell import p_cell
from dialoscope.study.folders import Placed, read_runs
from dialoscope.study.items import READERS, Items, items_of
from dialoscope.study.steps import shown_name

SURE = 0.05  # of p-values corrected over the whole table
SAME = "both have the same values, item by item"
NONE_SHARED = "no item is in both"
MODELS = ("models", "raters")  # settings that name what is compared


@dataclass(frozen=True)
class Change:
    """One number in both runs; the difference is the second minus the first."""

    run: str
    model: str
    what: str
    first: float | None
    second: float | None
    items: int  # that both have
    dialogues: int  # of these items
    only: tuple[int, int]  # that only the first or only the second has
    own: tuple[float | None, float | None]  # over all items of each run, as its own page has it
    comparison: Comparison
    best: str
    is_identical: bool = False  # then there is nothing to test

    @property
    def is_better(self) -> bool | None:
        """Whether it is better for sure, worse for sure, or neither (None)."""
        p, value = self.comparison.p_holm, self.comparison.difference.value
        if p is None or value is None or p >= SURE or value == 0:
            return None
        return (value > 0) == (self.best == "high")

    @property
    def is_partly_shared(self) -> bool:
        """Whether a run has items that the other lacks: then its own value is another one."""
        return self.only != (0, 0)

    @property
    def of(self) -> tuple[int, int]:
        """All items of each run."""
        return self.items + self.only[0], self.items + self.only[1]

    @property
    def said(self) -> str:
        """The same in a word, or none."""
        return {True: "better", False: "worse", None: ""}[self.is_better]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        named = {"run": self.run, "model": self.model, "what": self.what, "first": self.first, "second": self.second}
        counts = {"items": self.items, "dialogues": self.dialogues}
        only = {"only_first": self.only[0], "only_second": self.only[1]}
        own = {"own_first": self.own[0], "own_second": self.own[1]}
        facts = {"better": self.is_better, "identical": self.is_identical}
        return {**named, **counts, **only, **own, **self.comparison.to_dict(), **facts}


@dataclass(frozen=True)
class Compared:
    """All numbers that both have, and what could not be compared."""

    first: str
    second: str
    changes: Sequence[Change]
    left_out: Sequence[str] = ()

    @property
    def better(self) -> int:
        """Numbers that are better for sure."""
        return sum(one.is_better is True for one in self.changes)

    @property
    def worse(self) -> int:
        """Numbers that are worse for sure."""
        return sum(one.is_better is False for one in self.changes)

    @property
    def identical(self) -> int:
        """Numbers that are the same item by item."""
        return sum(one.is_identical for one in self.changes)

    @property
    def tested(self) -> Sequence[Change]:
        """The family that is corrected together."""
        return [one for one in self.changes if one.comparison.p_value is not None]

    @property
    def untested(self) -> int:
        """Numbers that could not be tested."""
        return len(self.changes) - len(self.tested) - self.identical

    @property
    def partly(self) -> Sequence[Change]:
        """Numbers of which a run has items that the other lacks."""
        return [one for one in self.changes if one.is_partly_shared]

    @property
    def out_of_reach(self) -> Sequence[Change]:
        """Tested numbers of which no change, however large, could have been called sure in a table of this size."""
        family = len(self.tested) - self.better - self.worse  # what Holm's correction has found sure counts no more
        return [
            one for one in self.tested if one.is_better is None and smallest_p_value(one.dialogues) * family >= SURE
        ]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        counts = {name: getattr(self, name) for name in ("better", "worse", "identical", "untested")}
        counts["out_of_reach"] = len(self.out_of_reach)
        changes = [one.to_dict() for one in self.changes]
        sides = {"first": self.first, "second": self.second}
        return {**sides, **counts, "changes": changes, "left_out": list(self.left_out)}


def compare(first: str | Path, second: str | Path, *, resampling: Resampling | None = None) -> Compared:
    """Compare two folders of runs or studies by paired tests, corrected over all numbers together."""
    if Path(first).resolve() == Path(second).resolve():
        raise UsageError(f"{first} and {second} are one folder: give an earlier one and a later one.")
    sides = [read_runs([folder]) for folder in (first, second)]
    shared = _shared(*sides)
    if not shared:
        names = [", ".join(map(_asked, side)) for side in sides]
        raise UsageError(f"{first} and {second} share no run: one has {names[0]}; the other {names[1]}.")
    how, left_out = resampling or Resampling(), list[str]()
    changes: dict[tuple[str, str, str], Change] = {}
    for before, after in shared:
        if before.run.instrument not in READERS:  # corpora, and earlier comparisons
            continue
        name = shown_name(before.name, before.asked, before.corpus)
        pairs, unpaired = _pairs(items_of(before.folder, before.run), items_of(after.folder, after.run))
        told = [*unpaired, *_told_otherwise(before.run, after.run)]
        for (model, what), (old, new) in pairs.items():
            found = _changed(name, model, what, old, new, how)
            if isinstance(found, Change):
                changes[name, model, what] = found
            else:
                told.append(f"{model}, {what}: {found}")
        left_out += [f"{name}: {one}" for one in told]
    corrected = correct({key: one.comparison for key, one in changes.items()})
    shown = [replace(one, comparison=corrected[key]) for key, one in changes.items()]
    return Compared(str(first), str(second), shown, left_out)


def _told_otherwise(before: Run, after: Run) -> list[str]:
    """What differs besides the models, such as the training side of an overlap: numbers differ for that reason, too."""
    old, new = ({**one.origin.settings, **_drawn(one), "version": one.origin.version} for one in (before, after))
    names = [name for name in {**old, **new} if name not in MODELS and old.get(name) != new.get(name)]
    told = [f"{name} was {old.get(name)}, and is {new.get(name)}" for name in names]
    read = [one.origin.corpus for one in (before, after)]
    if read[0] != read[1]:
        return [f"other dialogues ({', then '.join(read)}), paired by their ids alone", *told]
    return [*told, *_other_sets(before.data, after.data)]


def _drawn(run: Run) -> dict[str, Any]:
    """The seed, where it decides what is measured; others only draw resamples and controls."""
    is_drawn = run.instrument == "distract" or run.origin.settings.get("classifier") == "mlp"
    return {"seed": run.origin.seed} if is_drawn else {}


def _other_sets(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Test sets of one name that hold other words: distractions are drawn anew with every seed."""
    old, new = (
        {name: one.get("fingerprint") for name, one in side.get("sets", {}).items()} for side in (before, after)
    )
    others = [f"{name} was {old[name]}, and is {new[name]}" for name in old if name in new and old[name] != new[name]]
    return [f"other test sets ({'; '.join(others)}), paired by dialogue and turn alone"] if others else []


def _shared(first: Sequence[Placed], second: Sequence[Placed]) -> list[tuple[Placed, Placed]]:
    """Runs of both; names of steps say less of a corpus than its own name does."""
    pairs = [(one, next((other for other in second if _is_same_step(one, other)), None)) for one in first]
    return [(one, other) for one, other in pairs if other is not None]


def _is_same_step(first: Placed, second: Placed) -> bool:
    """Whether one instrument was asked by one name of one corpus.

    Single runs, and steps of older books, do not say what was asked: their names decide, and that of a single run is
    its instrument, whatever its corpus or its folder is called.
    """
    if first.run.instrument != second.run.instrument:
        return False
    if first.asked and second.asked:
        return (first.asked, first.corpus) == (second.asked, second.corpus)
    return first.name == second.name


def _asked(one: Placed) -> str:
    return f"{one.asked} on {one.corpus}" if one.asked else one.name


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


def _changed(run: str, model: str, what: str, old: Items, new: Items, how: Resampling) -> Change | str:
    """One number on the items that both have a number for, or why it cannot be compared."""
    is_old, is_new = old.is_scored, new.is_scored
    places = {key: place for place, key in enumerate(new.keys) if is_new[place]}
    both = [(place, places[key]) for place, key in enumerate(old.keys) if is_old[place] and key in places]
    before, after = (side.at([pair[number] for pair in both]) for number, side in enumerate((old, new)))
    if count := _rated_otherwise(before, after):
        return f"{count} of {len(both)} items of both were rated otherwise"
    origin = Origin(settings={"compared": what, **({"model": model} if model else {})})
    comparison, is_identical = _compared(after, before, how, origin), after.is_same_as(before)
    if is_identical:  # models that were not touched do not make it harder to find what the others do
        comparison = replace(comparison, p_value=None, reason=SAME)
    if not both:  # not that denominators sum to 0
        missing = replace(comparison.difference, reason=NONE_SHARED)
        comparison = replace(comparison, difference=missing, reason=NONE_SHARED)
    elif comparison.p_value is None and not is_identical:
        comparison = replace(comparison, reason=_why_no_p_value(comparison))
    return Change(
        run,
        model,
        what,
        first=_value(before),
        second=_value(after),
        items=len(both),
        dialogues=len({*before.dialogues}),
        only=(int(is_old.sum()) - len(both), int(is_new.sum()) - len(both)),
        own=(_value(old), _value(new)),
        comparison=comparison,
        best=old.best,
        is_identical=is_identical,
    )


def _why_no_p_value(comparison: Comparison) -> str | None:
    """The reason, said of what it is a reason for: the difference stands beside it, and its interval needs less."""
    if comparison.difference.value is None:
        return comparison.reason
    other = "" if comparison.difference.interval is None else "; the interval needs no bootstrap"
    return f"no p-value: {comparison.reason}{other}"


def _rated_otherwise(first: Items, second: Items) -> int:
    """Items of which people say one thing here and another there."""
    if first.people is None or second.people is None:
        return 0
    is_unrated = np.isnan(first.people) & np.isnan(second.people)
    return int(((first.people != second.people) & ~is_unrated).sum())


def _compared(first: Items, second: Items, how: Resampling, origin: Origin) -> Comparison:
    if first.people is not None and second.people is not None:
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
    """The number itself, over those of these items that have one."""
    items = items.at(np.flatnonzero(items.is_scored).tolist())
    if not items.keys:
        return None
    once = Resampling(resamples=0)
    if items.people is not None:
        return correlate(items.above, items.people, resampling=once).value
    return ratio_score(items.above, items.below, resampling=once).value


def written_p(p: float | None) -> str | None:
    """A p-value with three decimals, or with as many as show on which side of the limit it is.

    >>> [written_p(p) for p in (0.00004, 0.012, 0.0499)]
    ['<0.001', '0.012', '0.0499']
    """
    if p is None or p < 0.001:
        return None if p is None else "<0.001"
    written = (f"{p:.{decimals}f}" for decimals in range(3, 18))
    return next((one for one in written if (float(one) < SURE) == (p < SURE)), str(p))


def section_of(compared: Compared) -> Section:
    """The comparison as a section of a report."""
    return Section(
        "Compared",
        "compared",
        "What has changed?",
        [*_partly(compared), _table(compared), *_own(compared)],
        lead=_lead(compared),
        verdict=_verdict(compared),
        origin=Origin(settings={"before": compared.first, "after": compared.second}),
    )


def _table(compared: Compared) -> Table:
    columns = [
        Column("run"), Column("model"), Column("number"), Column("before", ".4g"), Column("after", ".4g"),
        Column("difference", ".4g"), Column("p (Holm)", ".3g"), Column("items of both", ",d"), Column("for sure"),
    ]  # fmt: skip
    rows = [
        [one.run, one.model, one.what, one.first, one.second, one.comparison.difference,
         p_cell(one.comparison.p_holm, n=one.items, reason=one.comparison.reason), one.items,
         one.said or ("the same" if one.is_identical else "")]
        for one in compared.changes
    ]  # fmt: skip
    notes = [
        f"Before: {compared.first}. After: {compared.second}. Both values and the difference, after minus before, are "
        "of the items of both, with an interval over dialogues; p-values are of paired tests, corrected over this "
        "table without what is the same item by item.",
        *compared.left_out,
    ]
    return Table(columns, rows, "Before and after", notes=notes, name="compared")


def _partly(compared: Compared) -> list[Prose]:
    if not compared.partly:
        return []
    told = f"{len(compared.partly)} of {len(compared.changes)} numbers share only a part of their items"
    return [Prose(f"{told}: before and after are of that part, and what each run says of all its items stands below.")]


def _own(compared: Compared) -> list[Table]:
    """What the runs' own pages say where they have other items, too."""
    columns = [
        Column("run"), Column("model"), Column("number"), Column("items of both", ",d"),
        Column("items before", ",d"), Column("items after", ",d"), Column("all before", ".4g"),
        Column("all after", ".4g"),
    ]  # fmt: skip
    rows = [[one.run, one.model, one.what, one.items, *one.of, *one.own] for one in compared.partly]
    notes = ["These values are of other items before than after, and are not compared."]
    return [Table(columns, rows, "Each run over all of its items", notes=notes, name="own")] if rows else []


def _lead(compared: Compared) -> str:
    counts = f"{compared.better} better for sure, {compared.worse} worse, {compared.untested} that could not be tested"
    told = [f"{len(compared.changes)} numbers of both: {counts}{_why_untested(compared)}."]
    if compared.identical:
        told.append(f"{compared.identical} {'is' if compared.identical == 1 else 'are'} the same item by item.")
    if compared.out_of_reach:
        told.append(f"Of {len(compared.out_of_reach)} no change could have been found {_with_so_few(compared)}.")
    return " ".join(told)


def _verdict(compared: Compared) -> Verdict:
    """Good is what is better for sure, where all was tested on the same dialogues and a fall could have been found.

    That nothing was found is no good news: with few dialogues nothing can be.
    """
    total = f"of {len(compared.changes)} numbers"
    if compared.worse:
        return Verdict(f"{total} worse for sure than before", compared.worse, "bad", "d")
    hidden = len(compared.out_of_reach)
    if not compared.better:
        return Verdict(f"{total} changed for sure: {_why_none(compared)}", 0, "info", "d")
    said = f"{total} better for sure than before, none worse"
    said += f"; in {hidden} of them no change could have been found {_with_so_few(compared)}" if hidden else ""
    is_whole = not (compared.untested or compared.left_out or hidden)
    return Verdict(said, compared.better, "good" if is_whole else "info", "d")


def _why_none(compared: Compared) -> str:
    """What it means that nothing was found."""
    if compared.changes and compared.identical == len(compared.changes):
        return "all are the same item by item"
    if not compared.tested:
        return f"none could be tested{_why_untested(compared)}"
    hidden = len(compared.out_of_reach)
    if not hidden:
        return "no change was found"
    which = "none" if hidden == len(compared.tested) else f"in {hidden} of them none"
    return f"no change was found, and {which} could have been found {_with_so_few(compared)}"


def _why_untested(compared: Compared) -> str:
    """The reason, where it is one for all; others are told by the table."""
    reasons = {one.comparison.reason for one in compared.changes if one.comparison.p_value is None} - {SAME, None}
    return f" ({reasons.pop()})" if len(reasons) == 1 else ""


def _with_so_few(compared: Compared) -> str:
    counts = sorted({one.dialogues for one in compared.out_of_reach})
    return f"with {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} dialogues"
