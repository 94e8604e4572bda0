"""Do raters agree with people? Correlations with intervals, beside the annotators' ceiling and what needs no training.

Selection may use a human set, but then the items it used are not reported (`selected_on`). The paper stops training by
DailyDialog-Human and reports it, too: `reproduce_paper` does the same, and the result says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from dialoscope.engage.baselines import BASELINES, word_count
from dialoscope.engage.human_sets import MOST_NAMED, HumanSet, Numbers
from dialoscope.engage.protocol import Rater
from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import (
    CORRELATIONS,
    Comparison,
    Resampling,
    Significance,
    annotator_ceiling,
    compare_correlations,
    correct,
    correlate,
    holm,
    partial_correlation,
    williams,
)
from dialoscope.metrics.correlation import correlation
from dialoscope.record import Origin, Score
from dialoscope.report import Column, Table
from dialoscope.report.cell import Cell

RESAMPLING = Resampling(method="percentile")  # correlations with people come with bootstrap intervals
FEWEST_ITEMS = 10  # that selection must leave for a set to be reported
SELECTED = "selected on this set"
NO_SHUFFLED = (
    "No control with shuffled labels: train one with dialoscope engage train --shuffled and name it beside the others."
)
KINDS = ("models", "baselines", "metrics")  # of raters; metrics are other people's, scored beforehand
PARTIAL, SHARE = "partial_given_length", "share_of_ceiling"
Scores = Mapping[str, Mapping[str, Numbers]]  # kind -> rater -> (items,)


@dataclass(frozen=True, eq=False)
class RaterResult:
    """One rater on one set: how far it agrees with people's mean rating.

    ``pearson``, ``spearman`` and ``kendall``; ``partial_given_length`` is Spearman's correlation with the number of
    words of the rated turn held fixed; ``share_of_ceiling`` is Spearman's over the annotators' own. A rater is held
    against the mean of all annotators, one annotator against the mean of the others, which is noisier and leaves the
    annotator out: a share above 1 is possible, and does not mean that a rater is better than a person.
    """

    scores: Mapping[str, Score]
    is_selected: bool = False  # whether it was selected on items that are reported here

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: values, intervals and signatures by name; a value that is missing says why."""
        shown: dict[str, Any] = {name: score.value for name, score in self.scores.items()}
        shown |= {
            "interval": self["spearman"].interval,
            "intervals": {name: score.interval for name, score in self.scores.items() if score.interval},
            "n": self["spearman"].n,
            "signature": self["spearman"].signature,
            "signatures": {name: score.signature for name, score in self.scores.items()},
        }
        reasons = {name: score.reason for name, score in self.scores.items() if score.reason}
        shown |= {"reasons": reasons} if reasons else {}
        return {**shown, "mark": SELECTED} if self.is_selected else shown


@dataclass(frozen=True)
class RaterComparison:
    """Two raters on the same items: the paired bootstrap of Spearman's correlations, Williams' t of Pearson's."""

    first: str
    second: str
    second_kind: str  # one of KINDS
    spearman: Comparison
    pearson: Significance
    pearson_p_holm: float | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        tested = {key: value for key, value in dataclasses.asdict(self.pearson).items() if key != "reason" or value}
        shown: dict[str, Any] = {
            "first": self.first,
            "second": self.second,
            "second_is": self.second_kind.removesuffix("s"),
        }
        shown |= {**self.spearman.to_dict(), "williams": {**tested, "p_holm": self.pearson_p_holm}}
        return {**shown, "note": self.note} if self.note else shown


@dataclass(frozen=True, eq=False)
class SetResult:
    """All raters on one set."""

    rated: HumanSet  # what is reported of it
    scores: Scores  # what every rater said of every item
    ceiling: Score  # one annotator against the rest, Spearman
    pearson_ceiling: Score
    raters: Mapping[str, Mapping[str, RaterResult]]  # kind -> rater
    comparisons: tuple[RaterComparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        ceilings = {"spearman": self.ceiling, "pearson": self.pearson_ceiling}
        each = self.rated.annotators_per_item
        return {
            "n": len(self.rated),
            "ceiling": self.ceiling.value,
            "ceilings": {kind: score.to_dict() for kind, score in ceilings.items()},
            "annotators": int(each) if each.is_integer() else each,  # of an item
            "annotators_in_all": len(self.rated.annotators),
            "annotator_names": list(self.rated.annotators) if len(self.rated.annotators) <= MOST_NAMED else None,
            "aspect": self.rated.aspect or None,
            "fingerprint": self.rated.fingerprint,
            **{kind: {name: one.to_dict() for name, one in self.raters[kind].items()} for kind in KINDS},
            "comparisons": [one.to_dict() for one in self.comparisons],
            "left_out": dict(self.rated.left_out),
            "note": self.rated.note,
        }


@dataclass(frozen=True, eq=False)
class EngageEvaluation:
    """All raters on all sets."""

    sets: Mapping[str, SetResult]
    origin: Origin
    note: str = ""  # what is missing beside the raters

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = {"sets": {name: one.to_dict() for name, one in self.sets.items()}}
        return {**shown, "note": self.note} if self.note else shown

    def rows(self) -> list[list[Cell]]:
        """A row for each set's ceiling and each of its raters, under the columns of `table`."""
        return [row for name, one in self.sets.items() for row in _rows(name, one)]

    def table(self) -> Table:
        """Everything as one table, for the page, LaTeX and spreadsheets."""
        numbers = [*CORRELATIONS, "partial given length", "share of ceiling"]
        columns = [Column("set"), Column("kind"), Column("rater"), *(Column(name, ".3f") for name in numbers)]
        notes = [
            "Correlations with the mean rating. Ceiling: one annotator against the mean of the others. Partial: "
            "Spearman's with the number of words of the turn held fixed. Share: Spearman's over that of the ceiling. "
            "A rater is held against the mean of all annotators, one annotator against the mean of the others, so a "
            "share above 1 is possible."
        ]
        notes += [self.note] if self.note else []
        notes += [f"{name}: {one.rated.note}" for name, one in self.sets.items() if one.rated.note]
        notes += [f"{name}: left out {_counted(one.rated)}." for name, one in self.sets.items() if one.rated.left_out]
        return Table(columns, self.rows(), "Agreement with people", notes=notes, name="engage-people")

    def latex(self) -> str:
        """The table for a paper."""
        return self.table().to_latex()

    def csv(self) -> str:
        """The table for a spreadsheet, at full precision."""
        return self.table().to_csv()


def evaluate(
    raters: Mapping[str, Rater],
    sets: Sequence[HumanSet],
    *,
    baselines: Mapping[str, Rater] = BASELINES,
    resampling: Resampling = RESAMPLING,
    selected_on: Mapping[str, Collection[str]] | None = None,
    reproduce_paper: bool = False,
) -> EngageEvaluation:
    """Hold raters against people, beside baselines, other metrics and the annotators themselves.

    Items that a rater was selected on are known by the keys in its own `selected_on`, where it has that (a `Predictor`
    does), and by those given here for its name (`HumanSet.selection_keys`; by `HumanSet.keys`, fewer copies are known).
    They are taken out for all raters, for all are compared on the same items; with `reproduce_paper` they stay in and
    the result is marked. P-values are corrected by Holm over all comparisons: of each model with the best baseline,
    each other model and each metric of the set.
    """
    _check([*raters, *baselines], sets, selected_on or {})
    used = _used([*raters.items(), *baselines.items()], selected_on or {})
    kept = [one if reproduce_paper else without_selected(one, used) for one in sets]
    measured = [_measured(one, raters, baselines, used, resampling) for one in kept]
    names = " ".join(f"{one.name}@{one.fingerprint}" for one in kept)
    origin = Origin(names, {"raters": "/".join(one.name for one in raters.values()) or None}, resampling.seed)
    has_control = any(getattr(one, "is_shuffled", False) for one in [*raters.values(), *baselines.values()])
    note = NO_SHUFFLED if raters and not has_control else ""
    return EngageEvaluation({one.rated.name: one for one in _corrected(measured)}, origin, note)


def _used(raters: Sequence[tuple[str, Rater]], selected_on: Mapping[str, Collection[str]]) -> dict[str, frozenset[str]]:
    """The keys of what each rater was selected on, by its own account and by what was given, where there are any."""
    used: dict[str, frozenset[str]] = {}
    for name, rater in raters:
        own: Collection[str] = getattr(rater, "selected_on", None) or ()
        used[name] = used.get(name, frozenset()).union(own, selected_on.get(name, ()))
    return {name: keys for name, keys in used.items() if keys}


def without_selected(rated: HumanSet, selected_on: Mapping[str, Collection[str]]) -> HumanSet:
    """The set without the items that any rater was selected on; they are counted among those left out."""
    by = _selected(rated, selected_on)
    if not by:
        return rated
    keys = frozenset(key for name in by for key in selected_on[name])
    places = [place for place, known in enumerate(rated.known_as) if known.isdisjoint(keys)]
    gone, names = len(rated) - len(places), ", ".join(by)
    if len(places) < FEWEST_ITEMS:
        found = f"{rated.name}: {gone} of {len(rated)} items were used for the selection of {names}"
        advice = f"Report another set, or give --reproduce-paper to report it marked '{SELECTED}'."
        raise UsageError(f"{found}, {len(places)} are left (at least {FEWEST_ITEMS} are needed). {advice}")
    note = f"{gone} items that {names} was selected on are left out for all raters."
    left_out = {**rated.left_out, f"used for the selection of {names}": gone}
    return replace(rated.select(places), note=_joined(rated.note, note), left_out=left_out)


def _check(raters: Sequence[str], sets: Sequence[HumanSet], selected_on: Mapping[str, Collection[str]]) -> None:
    if not sets:
        raise UsageError("Expected at least one set of turns that people rated, found none.")
    names = [one.name for one in sets]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"Two sets are called '{name}'. Give one of them another name.")
    for name in selected_on:
        if name not in raters:
            raise unknown_name("rater", name, raters)


def _selected(rated: HumanSet, selected_on: Mapping[str, Collection[str]]) -> list[str]:
    """The raters that were selected on items of this set."""
    if not any(selected_on.values()):
        return []
    known = frozenset[str]().union(*rated.known_as)
    return [name for name, keys in selected_on.items() if not known.isdisjoint(keys)]


# --- One set ----------------------------------------------------------------------------------------------------------


def _measured(
    rated: HumanSet,
    raters: Mapping[str, Rater],
    baselines: Mapping[str, Rater],
    selected_on: Mapping[str, Collection[str]],
    how: Resampling,
) -> SetResult:
    by = _selected(rated, selected_on)  # what is left of it where the paper is reproduced
    if by:
        rated = replace(rated, note=_joined(rated.note, f"{', '.join(by)}: {SELECTED}."))
    who = {"models": raters, "baselines": baselines}
    scores = {kind: {name: _rate(one, rated) for name, one in some.items()} for kind, some in who.items()}
    scores["metrics"] = dict(rated.metrics)
    called = {kind: {name: one.name for name, one in some.items()} for kind, some in who.items()}
    origin = Origin(f"{rated.name}@{rated.fingerprint}", {"aspect": rated.aspect or None, "selected": bool(by) or None})
    ceiling, pearson = (
        annotator_ceiling(rated.ratings, kind=kind, clusters=rated.clusters, resampling=how, origin=origin)
        for kind in ("spearman", "pearson")
    )
    results = {
        kind: {
            name: _result(
                rated,
                values,
                ceiling,
                _of(origin, called.get(kind, {}).get(name, name)),
                how,
                is_selected=kind in who and name in by,
            )
            for name, values in some.items()
        }
        for kind, some in scores.items()
    }
    compared = tuple(_compared(rated, scores, results["baselines"], origin, how))
    return SetResult(rated, scores, ceiling, pearson, results, compared)


def _rate(rater: Rater, rated: HumanSet) -> Numbers:
    values = np.asarray(rater.rate(rated.dialogues), dtype=np.float64)
    if values.shape != (len(rated),):
        raise ValueError(f"{rater.name}: expected a score for each of {len(rated)} dialogues, found {values.shape}")
    return values


def _result(
    rated: HumanSet, values: Numbers, ceiling: Score, origin: Origin, how: Resampling, *, is_selected: bool
) -> RaterResult:
    common: dict[str, Any] = {"clusters": rated.clusters, "resampling": how, "origin": origin}
    scores = {kind: correlate(values, rated.mean, kind=kind, **common) for kind in CORRELATIONS}
    words = np.array([word_count(dialogue) for dialogue in rated.dialogues], dtype=np.float64)
    scores[PARTIAL] = partial_correlation(values, rated.mean, given=[words], **common)
    scores[SHARE] = _share(scores["spearman"], ceiling)
    return RaterResult(scores, is_selected)


def _share(score: Score, ceiling: Score) -> Score:
    """Spearman's correlation over that of one annotator with the rest, which it may well exceed (`RaterResult`)."""
    if score.value is None or ceiling.value is None:
        reason = score.reason or f"there is no ceiling: {ceiling.reason}"
        return Score.missing(reason, n=score.n, signature=score.signature)
    if ceiling.value <= 0:
        return Score.missing("the annotators' ceiling is not above 0", n=score.n, signature=score.signature)
    reason = "the correlation and the ceiling have intervals of their own"
    return Score(score.value / ceiling.value, score.n, signature=score.signature, interval_reason=reason)


def _of(origin: Origin, rater: str) -> Origin:
    return origin.having(rater=rater)


def _joined(*notes: str) -> str:
    return " ".join(note for note in notes if note)


# --- Comparisons ------------------------------------------------------------------------------------------------------


def _compared(
    rated: HumanSet, scores: Scores, baselines: Mapping[str, RaterResult], origin: Origin, how: Resampling
) -> Iterator[RaterComparison]:
    """Each model against the best baseline, each other model, and each metric that was scored beforehand."""
    # The best by these very items: if that is unfair, then to the models.
    known = {name: value for name, one in baselines.items() if (value := one["spearman"].value) is not None}
    best = max(known, key=known.__getitem__, default=None)
    pairs = [(name, best, "baselines") for name in scores["models"] if best is not None]
    pairs += [(*pair, "models") for pair in combinations(scores["models"], 2)]
    pairs += [(name, metric, "metrics") for name, metric in product(scores["models"], scores["metrics"])]
    for first, second, kind in pairs:
        yield _pair(rated, (first, second, kind), (scores["models"][first], scores[kind][second]), origin, how)


def _pair(
    rated: HumanSet, names: tuple[str, str, str], values: tuple[Numbers, Numbers], origin: Origin, how: Resampling
) -> RaterComparison:
    where = _of(origin, "/".join(names[:2]))
    tested = compare_correlations(rated.mean, *values, clusters=rated.clusters, resampling=how, origin=where)
    kept = np.flatnonzero(np.isfinite([rated.mean, *values]).all(axis=0))  # items that both could score
    dialogues = len({rated.clusters[place] for place in kept})
    note = f"Williams' t takes {len(kept)} items of {dialogues} dialogues as independent."
    significance = _williams(rated.mean[kept], values[0][kept], values[1][kept], where)
    return RaterComparison(*names, tested, significance, note=note if dialogues < len(kept) else "")


def _williams(people: Numbers, first: Numbers, second: Numbers, origin: Origin) -> Significance:
    """Williams' t over items that both raters scored."""
    return williams(
        _pearson(people, first), _pearson(people, second), _pearson(first, second), n=len(people), origin=origin
    )


def _pearson(first: Numbers, second: Numbers) -> float:
    """The bare value, or NaN."""
    return correlation(first, second, kind="pearson")[0].value()


def _corrected(measured: Sequence[SetResult]) -> list[SetResult]:
    """Holm's correction over all comparisons of all sets, for either test."""
    flat = {(place, number): one for place, each in enumerate(measured) for number, one in enumerate(each.comparisons)}
    bootstrapped = correct({key: one.spearman for key, one in flat.items()})
    by_williams = dict(zip(flat, holm([one.pearson.p_value for one in flat.values()]), strict=True))
    done = {key: replace(one, spearman=bootstrapped[key], pearson_p_holm=by_williams[key]) for key, one in flat.items()}
    return [
        replace(each, comparisons=tuple(done[place, number] for number in range(len(each.comparisons))))
        for place, each in enumerate(measured)
    ]


# --- Rows -------------------------------------------------------------------------------------------------------------


def _rows(name: str, one: SetResult) -> Iterator[list[Cell]]:
    ceilings = {"spearman": one.ceiling, "pearson": one.pearson_ceiling}
    yield [name, "ceiling", "annotators", *(ceilings.get(kind) for kind in CORRELATIONS), None, None]
    for kind in KINDS:
        for rater, result in one.raters[kind].items():
            shown = f"{rater} ({SELECTED})" if result.is_selected else rater
            yield [name, kind.removesuffix("s"), shown, *(result[key] for key in (*CORRELATIONS, PARTIAL, SHARE))]


def _counted(rated: HumanSet) -> str:
    return "; ".join(f"{count} ({reason})" for reason, count in rated.left_out.items())
