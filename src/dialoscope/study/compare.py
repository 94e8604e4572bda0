"""Two results, or two studies: what has changed on the items that both have, and whether chance would do as much."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

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
from dialoscope.record import Origin, Score, Scores, by_path, direction
from dialoscope.report import Column, Prose, Section, Table
from dialoscope.report.cell import Cell, p_cell
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.verdict import Verdict
from dialoscope.settings import BaseSettings, options_of
from dialoscope.study.results import StoredResult, read_results

SIGNIFICANT = 0.05  # of p-values corrected over the whole table
POWER = 0.8  # with which a difference is found that these data could have shown
SAME = "both have the same values, item by item"
NO_SHARED_ITEM = "no item is in both"
NO_P_VALUE = "no p-value: "  # how the reason begins where a difference stands beside it
SEEDS_OF_SPLITS_AND_FITS = ("depth", "probe")  # questions whose seed decides more than their intervals
ROUNDING = 1e-10  # a standard error below this share of the numbers is rounding noise
SAME_DIFFERENCE = "the difference is the same for every dialogue"
NOT_SETTINGS = ("models", "weights", "raters")  # in an origin: they name what is compared
COLUMNS = {
    "run": "the step of the study, or the question",
    "path": "path of the number; where two models are compared, both names",
    "first": "the number before, over the items of both",
    "second": "the number after, over the items of both",
    "difference": "after minus before",
    "low": "lower end of the 95 % interval of the difference",
    "high": "upper end of it",
    "p_holm": "p-value of the paired test, corrected by Holm over the whole table",
    "smallest": "smallest difference that these data could have shown, with a power of 80 %",
    "items": "items that both have a number for",
    "dialogues": "dialogues of these items",
}
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Change:
    """One number before and after; the difference is after minus before."""

    run: str
    path: str
    direction: str  # which end is better: high, low, or neither
    first: float | None
    second: float | None
    items: int  # that both have
    dialogues: int  # of these items
    only: tuple[int, int]  # items that only the first or only the second has
    own: tuple[float | None, float | None]  # over all items of each result
    difference: Score
    p_value: float | None
    p_holm: float | None = None
    reason: str | None = None  # why there is no p-value
    standard_error: float | None = None  # of the difference, paired, over dialogues
    smallest: float | None = None  # the smallest difference that these data could have shown
    is_identical: bool = False  # then there is nothing to test
    has_other_corpus: bool = False  # the corpora differ, and the items were paired by their ids alone

    @property
    def is_better(self) -> bool | None:
        """Whether it is significantly better or worse; None for neither, and where neither end is better."""
        value = self.difference.value
        if self.p_holm is None or not value or self.p_holm >= SIGNIFICANT or self.direction == "neither":
            return None
        return (value > 0) == (self.direction == "high")

    @property
    def word(self) -> str:
        """The same in a word, or none."""
        return {True: "better", False: "worse", None: ""}[self.is_better]

    @property
    def shown_path(self) -> str:
        """The path as people read it: perplexity is compared by its logarithm."""
        head, _, number = self.path.rpartition("/")
        return f"{head}/{'log ' if number.startswith('perplexity') else ''}{number}"

    @property
    def is_partly_shared(self) -> bool:
        """Whether a result has items that the other lacks: then its own value is another one."""
        return self.only != (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON has it."""
        names = ("run", "path", "direction", "first", "second", "items", "dialogues", "p_value", "p_holm", "reason",
                 "standard_error", "smallest")  # fmt: skip
        shown = {name: getattr(self, name) for name in names}
        only = {"only_first": self.only[0], "only_second": self.only[1]}
        own = {"own_first": self.own[0], "own_second": self.own[1]}
        facts = {"better": self.is_better, "identical": self.is_identical, "other_corpus": self.has_other_corpus}
        return {**shown, "difference": self.difference.to_dict(), **only, **own, **facts}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CompareResult(Result):
    """All numbers that two results or studies both have, and what could not be compared."""

    instrument: ClassVar[str] = "compare"
    settings_class: ClassVar[type[BaseSettings]] = BaseSettings

    first: str
    second: str
    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()

    @property
    def better(self) -> int:
        """Numbers that are significantly better."""
        return sum(change.is_better is True for change in self.changes)

    @property
    def worse(self) -> int:
        """Numbers that are significantly worse."""
        return sum(change.is_better is False for change in self.changes)

    @property
    def identical(self) -> int:
        """Numbers that are the same item by item."""
        return sum(change.is_identical for change in self.changes)

    @property
    def tested(self) -> list[Change]:
        """Numbers with a p-value."""
        return [change for change in self.changes if change.p_value is not None]

    @property
    def untested(self) -> int:
        """Numbers that differ or may differ, and could not be tested."""
        return len(self.changes) - self.identical - len(self.tested)

    @property
    def out_of_reach(self) -> list[Change]:
        """Numbers of so few dialogues that no change could have been significant in this table."""
        family = len(self.tested) - self.better - self.worse  # a number that Holm's correction has found counts no more
        return [
            change
            for change in self.tested
            if change.is_better is None and smallest_p_value(change.dialogues) * family >= SIGNIFICANT
        ]

    @kept
    def scores(self) -> Scores:
        """The differences; the subject of a path names the step as well."""
        named = []
        for change in self.changes:
            subject, part, number = change.path.split("/")
            named.append(((f"{change.run}: {subject}", part, number), change.difference))
        return by_path(named)

    @kept
    def verdicts(self) -> list[Verdict]:
        """Good is what is significantly better, where everything was tested and a fall could have been found.

        That nothing was found is no good news: with few dialogues nothing can be.
        """
        total = f"of {len(self.changes)} numbers"
        if not self.changes:
            return [Verdict("not_measurable", "Not measurable: no number of both could be compared.")]
        if self.worse:
            is_sure = any(change.is_better is False and not change.has_other_corpus for change in self.changes)
            text = f"{self.worse} {total} are significantly worse than before"
            if is_sure:
                return [Verdict("concern", f"{text}.")]
            return [Verdict("cannot_tell", f"{text}, but the dialogues differ and were paired by their ids alone.")]
        if not self.better:
            return [Verdict("cannot_tell", f"0 {total} changed significantly: {self._why_none()}.")]
        hidden = len(self.out_of_reach)
        text = f"{self.better} {total} are significantly better than before, none is worse"
        text += f"; in {hidden} of them no change could have been found {self._with_so_few()}" if hidden else ""
        text += f"; {self.untested} could not be tested" if self.untested else ""
        text += "; but more than the models differs (see the notes)" if self.left_out else ""
        is_whole = not (self.untested or self.left_out or hidden)
        return [Verdict("good" if is_whole else "cannot_tell", f"{text}.")]

    def items(self) -> dict[str, Items]:
        """None: a comparison is not compared."""
        return {}

    @property
    def table(self) -> pa.Table:
        """One row for each number (COLUMNS)."""
        rows = []
        for change in self.changes:
            row = {name: getattr(change, name) for name in COLUMNS if name not in ("difference", "low", "high")}
            low, high = change.difference.interval or (None, None)
            rows.append({**row, "difference": change.difference.value, "low": low, "high": high})
        kinds = {"run": pa.string(), "path": pa.string(), "items": pa.int64(), "dialogues": pa.int64()}
        schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in COLUMNS])
        return documented(pa.Table.from_pylist(rows, schema), COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it, with every change."""
        changes = [change.to_dict() for change in self.changes]
        counts = {name: getattr(self, name) for name in ("better", "worse", "identical", "untested")}
        return {**super().to_dict(), **counts, "out_of_reach": len(self.out_of_reach), "changes": changes,
                "left_out": list(self.left_out)}  # fmt: skip

    def section(self) -> Section:
        """Every number before and after, and what each result says over all of its items."""
        blocks: list[Prose | Table] = []
        partly = [change for change in self.changes if change.is_partly_shared]
        if partly:
            text = f"{len(partly)} of {len(self.changes)} numbers share only a part of their items"
            text += ": before and after are of that part, and what each result says of all its items stands below."
            blocks.append(Prose(text))
        blocks.append(self.summary())
        if partly:
            counts = [Column(f"items {name}", ",d") for name in ("of both", "before", "after")]
            columns = [Column("number"), *counts, Column("all before", ".4g"), Column("all after", ".4g")]
            rows: list[list[Cell]] = [
                [
                    f"{change.run}: {change.shown_path}",
                    change.items,
                    *(change.items + count for count in change.only),
                    *change.own,
                ]
                for change in partly
            ]
            notes = ["These values are of other items before than after, and are not compared."]
            blocks.append(Table(columns, rows, "Each result over all of its items", notes=notes, name="own"))
        return Section("Comparison", "compared", "What has changed?", blocks, lead=self._lead(), verdict=self.card,
                       origin=self.origin)  # fmt: skip

    def summary(self) -> Table:
        """Every number before and after."""
        columns = [
            Column("number"), Column("before", ".4g"), Column("after", ".4g"), Column("after minus before", ".3g"),
            Column("p (Holm)"), Column("smallest to be found", ".2g"), Column("items", ",d"), Column("significantly"),
        ]  # fmt: skip
        rows: list[list[Cell]] = [
            [f"{change.run}: {change.shown_path}", change.first, change.second, change.difference, self._p(change),
             change.smallest, change.items, change.word or ("the same" if change.is_identical else "")]
            for change in self.changes
        ]  # fmt: skip
        notes = [
            f"Before: {self.first}. After: {self.second}. Both values are of the items of both; intervals are over "
            "dialogues, p-values of paired tests, corrected over this table without what is the same item by item.",
            "Smallest to be found: a true difference of this size would have been found 4 times in 5.",
            *(
                f"No p-value for {count} of them: {reason.removeprefix(NO_P_VALUE)}."
                for reason, count in self._reasons().items()
            ),
            *self._without_smallest(),
            *self.left_out,
        ]
        return Table(columns, rows, "Before and after", notes=notes, name="compared")

    def _without_smallest(self) -> list[str]:
        """Why no smallest difference stands beside differences that are constant."""
        count = sum(change.p_value is not None and change.standard_error == 0 for change in self.changes)
        return [f"No smallest difference to be found for {count} of them: {SAME_DIFFERENCE}."] if count else []

    def _p(self, change: Change) -> Cell:
        written = written_p(change.p_holm)
        return written if written is not None else p_cell(None, n=change.items, reason=change.reason)

    def _reasons(self) -> dict[str, int]:
        return Counter(change.reason for change in self.changes if change.p_value is None and change.reason)

    def _lead(self) -> str:
        counts = f"{self.better} significantly better, {self.worse} worse, {self.untested} that could not be tested"
        lines = [f"{len(self.changes)} numbers of both: {counts}{self._why_untested()}."]
        if self.identical:
            lines.append(f"{self.identical} {'is' if self.identical == 1 else 'are'} the same item by item.")
        if self.out_of_reach:
            lines.append(f"In {len(self.out_of_reach)} no change could have been found {self._with_so_few()}.")
        return " ".join(lines)

    def _why_none(self) -> str:
        """What it means that nothing was found."""
        if self.identical == len(self.changes):
            return "all are the same item by item"
        if not self.tested:
            return f"none could be tested{self._why_untested()}"
        hidden = len(self.out_of_reach)
        if not hidden:
            return "no change was found"
        which = "none" if hidden == len(self.tested) else f"in {hidden} of them none"
        return f"no change was found, and {which} could have been found {self._with_so_few()}"

    def _why_untested(self) -> str:
        """The reason, where it is one for all; others are in the table."""
        reasons = [reason for reason in self._reasons() if reason != SAME]
        return f" ({reasons[0]})" if len(reasons) == 1 else ""

    def _with_so_few(self) -> str:
        counts = sorted({change.dialogues for change in self.out_of_reach})
        return f"with {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} dialogues"


def compare(first: str | Path, second: str | Path, *, resampling: Resampling | None = None) -> CompareResult:
    """Compare two folders of results or studies by paired tests, corrected over all numbers together.

    Numbers are paired by their paths, and tested on the items that both have.
    """
    if Path(first).resolve() == Path(second).resolve():
        raise UsageError(f"{first} and {second} are one folder: give an earlier one and a later one.")
    sides = [read_results([folder]) for folder in (first, second)]
    pairs = [
        (before, after)
        for before in sides[0]
        if (after := next((each for each in sides[1] if _is_same_question(before, each)), None)) is not None
    ]
    if not pairs:
        names = [", ".join(f"{each.instrument} on {each.corpus}" for each in side) for side in sides]
        raise UsageError(f"{first} and {second} share no result: one has {names[0]}; the other {names[1]}.")
    changes, left_out = list[Change](), list[str]()
    for before, after in pairs:
        name = before.step.shown_name
        numbers, messages = pair_numbers(before.result.items(), after.result.items())
        has_other_corpus = is_paired_by_ids_alone(before, after)
        for path, (old, new) in numbers.items():
            change = change_of(name, path, old, new, resampling or Resampling())
            if isinstance(change, Change):
                changes.append(replace(change, has_other_corpus=has_other_corpus))
            else:
                messages.append(f"{path}: {change}")
        messages += other_differences(before, after) if numbers else []
        left_out += [f"{name}: {message}" for message in messages]
    return CompareResult(
        settings=BaseSettings(),
        parts={},
        used=f"Before: {first}. After: {second}. Numbers were compared on the items that both have.",
        counts=skipped(),
        origin=Origin(settings={"before": str(first), "after": str(second)}),
        first=str(first),
        second=str(second),
        changes=tuple(corrected(changes)),
        left_out=tuple(left_out),
    )


def _is_same_question(first: StoredResult, second: StoredResult) -> bool:
    """Whether one question was asked under one name of one corpus; a single result does not say of which corpus."""
    if first.instrument != second.instrument or first.instrument in ("corpus", "compare"):
        return False
    if first.step.asked and second.step.asked:
        return (first.step.asked, first.step.corpus) == (second.step.asked, second.step.corpus)
    return True


def pair_numbers(
    first: Mapping[str, Items], second: Mapping[str, Items]
) -> tuple[dict[str, tuple[Items, Items]], list[str]]:
    """The items of numbers with the same path; where each side alone has one subject, these two are compared."""
    subjects = [list(dict.fromkeys(path.partition("/")[0] for path in side)) for side in (first, second)]
    alone = [[name for name in side if name not in other] for side, other in (subjects, subjects[::-1])]
    old = dict(first)
    new = dict(second)
    if len(alone[0]) == len(alone[1]) == 1:
        both = f"{alone[0][0]} → {alone[1][0]}"
        old, new = (
            {(f"{both}/{rest}" if subject == own[0] else f"{subject}/{rest}"): items
             for path, items in side.items() for subject, _, rest in [path.partition("/")]}
            for side, own in zip((first, second), alone, strict=True)
        )  # fmt: skip
    lonely = [f"{path}: in one of both only" for path in sorted(old.keys() ^ new.keys())]
    return {path: (items, new[path]) for path, items in old.items() if path in new}, lonely


def change_of(run: str, path: str, old: Items, new: Items, how: Resampling) -> Change | str:
    """One number on the items that both have a number for, or why it cannot be compared."""
    old, new = _with_own_keys(old), _with_own_keys(new)
    is_old, is_new = old.is_scored, new.is_scored
    places = {key: place for place, key in enumerate(new.keys) if is_new[place]}
    shared = [(place, places[key]) for place, key in enumerate(old.keys) if is_old[place] and key in places]
    before, after = (side.at([pair[number] for pair in shared]) for number, side in enumerate((old, new)))
    if count := _rated_otherwise(before, after):
        return f"{count} of {len(shared)} items of both were rated otherwise"
    comparison, is_identical = _tested(after, before, how, path), after.is_same_as(before)
    p_value, reason, difference = comparison.p_value, comparison.reason, comparison.difference
    if is_identical:  # models that were not touched do not make it harder to find what the others do
        p_value, reason = None, SAME
    elif not shared:  # the reason is not that denominators sum to 0
        difference, reason = replace(difference, reason=NO_SHARED_ITEM), NO_SHARED_ITEM
    elif p_value is None and difference.value is not None:
        reason = f"{NO_P_VALUE}{reason}" + ("" if difference.interval is None else "; the interval needs no bootstrap")
    return Change(
        run,
        path,
        direction(path),
        first=_value(before),
        second=_value(after),
        items=len(shared),
        dialogues=len({*before.dialogues}),
        only=(int(is_old.sum()) - len(shared), int(is_new.sum()) - len(shared)),
        own=(_value(old), _value(new)),
        difference=difference,
        p_value=p_value,
        reason=reason,
        standard_error=None if is_identical else standard_error(before, after),
        is_identical=is_identical,
    )


def _with_own_keys(items: Items) -> Items:
    """With a number in each key, for several items can have one dialogue and turn."""
    seen: Counter[tuple[str, ...]] = Counter()
    keys = []
    for key in map(tuple, items.keys):
        seen[key] += 1
        keys.append((*key, str(seen[key])))
    return replace(items, keys=keys)


def _rated_otherwise(first: Items, second: Items) -> int:
    """Items of which people say one thing here and another there."""
    if first.people is None or second.people is None:
        return 0
    is_unrated = np.isnan(first.people) & np.isnan(second.people)
    return int(((first.people != second.people) & ~is_unrated).sum())


def _tested(first: Items, second: Items, how: Resampling, path: str) -> Comparison:
    origin = Origin(settings={"compared": path})
    if first.people is not None and second.people is not None:
        return compare_correlations(
            first.people, first.above, second.above, clusters=first.dialogues, resampling=how, origin=origin
        )
    sides = (first.above, first.below), (second.above, second.below)
    return compare_ratios(*sides, clusters=first.dialogues, test="bootstrap", resampling=how, origin=origin)


def _value(items: Items) -> float | None:
    """The number itself, over those of these items that have one."""
    items = items.at(np.flatnonzero(items.is_scored).tolist())
    if not items.keys:
        return None
    once = Resampling(resamples=0)
    if items.people is not None:
        return correlate(items.above, items.people, resampling=once).value
    return ratio_score(items.above, items.below, resampling=once).value


# --- What could have been found ---------------------------------------------------------------------------------------


def corrected(changes: Sequence[Change]) -> list[Change]:
    """Changes with p-values by Holm, and the smallest difference that each could have shown in this table."""
    comparisons = {place: Comparison(change.difference, change.p_value, "bootstrap")
                   for place, change in enumerate(changes)}  # fmt: skip
    tests = sum(change.p_value is not None for change in changes)
    return [
        replace(
            change,
            p_holm=comparison.p_holm,
            smallest=None if change.p_value is None or change.standard_error is None
            else smallest_difference(change.standard_error, dialogues=change.dialogues, tests=tests),
        )
        for change, comparison in zip(changes, correct(comparisons).values(), strict=True)
    ]  # fmt: skip


def smallest_difference(standard_error: float, *, dialogues: int, tests: int) -> float | None:
    """The smallest true difference that a paired test over these dialogues finds 4 times in 5.

    It is (t(1 - α/2m) + t(0.8)) · SE, with the paired standard error SE of the difference over n dialogues, Student's
    quantiles t with n - 1 degrees of freedom, α = 0.05, and m tests in the table: the smallest of m p-values has to
    keep α/m by Holm's correction. None where no p-value of so few dialogues can be that small.

    >>> round(smallest_difference(0.01, dialogues=100_000, tests=1), 4)   # (1.96 + 0.84) · 0.01
    0.028
    """
    from scipy.special import stdtrit

    level = SIGNIFICANT / tests
    if dialogues < 2 or standard_error == 0 or smallest_p_value(dialogues) >= level:
        return None
    return float((stdtrit(dialogues - 1, 1 - level / 2) + stdtrit(dialogues - 1, POWER)) * standard_error)


def standard_error(first: Items, second: Items) -> float | None:
    """The standard error of the paired difference: the jackknife over dialogues, or None where it is not defined.

    It is 0 where all that is left of it is rounding noise: the difference is constant.
    """
    names, group = np.unique(np.asarray(first.dialogues, dtype=str), return_inverse=True)
    if len(names) < 2:
        return None
    if first.people is None:
        sums = [[np.bincount(group, part, len(names)) for part in (side.above, side.below)] for side in (first, second)]
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = [(above.sum() - above) / (below.sum() - below) for above, below in sums]
    else:
        once = Resampling(resamples=0)
        left_out = [
            np.asarray([correlate(side.above[group != each], side.people[group != each], resampling=once).value
                        for each in range(len(names))], dtype=np.float64)
            for side in (first, second) if side.people is not None
        ]  # fmt: skip
    values: Floats = left_out[1] - left_out[0]
    error = math.sqrt((len(names) - 1) / len(names) * float(((values - values.mean()) ** 2).sum()))
    if not math.isfinite(error):
        return None
    size = max(float(np.abs(side).max()) for side in left_out)
    return error if error > ROUNDING * size else 0.0


# --- What differs besides ---------------------------------------------------------------------------------------------


def other_differences(before: StoredResult, after: StoredResult) -> list[str]:
    """What differs besides the models: numbers can differ for that reason, too."""
    old, new = (_conditions(each.result) for each in (before, after))
    changed = [f"{name} was {old.get(name)}, and is {new.get(name)}" for name in {**old, **new}
               if old.get(name) != new.get(name)]  # fmt: skip
    corpora = [each.result.origin.corpus for each in (before, after)]
    is_other = is_paired_by_ids_alone(before, after)
    others = [f"other dialogues ({', then '.join(corpora)}), paired by their ids alone"] if is_other else []
    return [*others, *changed]


def is_paired_by_ids_alone(before: StoredResult, after: StoredResult) -> bool:
    """Whether the corpora differ, and nothing but an id says that an item is the same in both."""
    first, second = before.result, after.result
    return first.origin.corpus != second.origin.corpus and not first.has_keys_of_content


def _conditions(result: Result) -> dict[str, Any]:
    """The version, every setting that decides what is measured, and what else the origin names."""
    options = options_of(type(result.settings))
    settings = result.settings.to_dict()
    is_seed_kept = result.instrument in SEEDS_OF_SPLITS_AND_FITS
    deciding = {name: settings[name] for name, each in options.items()
                if each.decides and (each.group != "Statistics" or (name == "seed" and is_seed_kept))}  # fmt: skip
    further = {name: value for name, value in result.origin.settings.items()
               if name not in options and name not in NOT_SETTINGS}  # fmt: skip
    return {"version": result.origin.version, **deciding, **further}


def written_p(p: float | None) -> str | None:
    """A p-value with three decimals, or with as many as show on which side of the limit it is.

    >>> [written_p(p) for p in (0.00004, 0.012, 0.0499)]
    ['<0.001', '0.012', '0.0499']
    """
    if p is None or p < 0.001:
        return None if p is None else "<0.001"
    written = (f"{p:.{decimals}f}" for decimals in range(3, 18))
    return next((text for text in written if (float(text) < SIGNIFICANT) == (p < SIGNIFICANT)), str(p))
