"""Do raters agree with people? Correlations with intervals, beside the annotators' ceiling and what needs no training.

Selection may use a human set, but then the items it used are not reported (`selected_on`). The paper stops training by
DailyDialog-Human and reports it, too: `reproduce_paper` does the same, and the result says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.engage.baselines import BASELINES, SingleTurn, word_count
from dialoscope.engage.human_sets import HumanSet, Numbers, halves, read_human, some_of
from dialoscope.engage.human_sets.corpora import rated_turns_of
from dialoscope.engage.predictors import check_named, open_predictor, untrained_control
from dialoscope.engage.protocol import Rater
from dialoscope.engage.ratings_result import (
    PARTIAL,
    SELECTED,
    SHARE,
    RatedSet,
    RaterComparison,
    RaterResult,
    RatingsResult,
    rated_table,
)
from dialoscope.engage.settings import RatingsSettings
from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import (
    CORRELATIONS,
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
from dialoscope.progress import Progress
from dialoscope.record import Origin, Score
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

RESAMPLING = Resampling(method="percentile")  # correlations with people come with bootstrap intervals
FEWEST_ITEMS = 10  # that selection must leave for a set to be reported
NO_SHUFFLED = (
    "No control with shuffled labels: train one with dialoscope engage train --shuffled and name it beside the others."
)
Scores = Mapping[str, Mapping[str, Numbers]]  # kind -> rater -> (items,)
Rated = Corpus | HumanSet | str | Path


def ratings(
    rated: Rated | Sequence[Rated],
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: RatingsSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> RatingsResult:
    """Measure how far scores of turns agree with people's ratings, beside baselines and the people themselves.

    `rated` is one set of rated turns or several: paths, corpora whose turns carry ratings, or `HumanSet`s. `models` are
    predictors (a path, or a loaded one), names of baselines, or anything that meets `Rater`.

    >>> found = ratings("dailydialog_human", models={"mine": "engaged"})                   # doctest: +SKIP
    >>> found.scores()["word_count/dailydialog-human/spearman"].value                      # doctest: +SKIP
    0.725...
    """
    settings = with_options(settings, RatingsSettings, options)
    if against:
        raise UsageError("ratings compares with nothing: leave out against.")
    sets = [cut_set(each, settings) for each in read_sets(rated, settings)]
    raters, controls = open_raters(models or {}, settings)
    return measure_sets(raters, sets, settings=settings, baselines={**BASELINES, **controls})


def read_sets(rated: Rated | Sequence[Rated], settings: RatingsSettings) -> list[HumanSet]:
    """Sets of rated turns, read where they are not yet."""
    listed = [rated] if isinstance(rated, Corpus | HumanSet | str | Path) else rated
    if not isinstance(listed, Sequence) or not all(isinstance(each, Corpus | HumanSet | str | Path) for each in listed):
        raise UsageError(f"ratings takes paths, corpora or HumanSets of rated turns, found {type(rated).__name__}.")
    reading: dict[str, Any] = {"aspect": settings.aspect, "metrics": settings.metrics}
    sets = []
    for each in listed:
        if isinstance(each, HumanSet):
            sets.append(each)
        elif isinstance(each, Corpus):
            sets.append(rated_turns_of(each, each.name, splits=settings.split, **reading))
        else:
            sets.append(read_human(each, annotators=settings.annotators, splits=settings.split, **reading))
    return sets


def cut_set(rated: HumanSet, settings: RatingsSettings) -> HumanSet:
    """The rated turns that are measured: of the reported half alone, and not more than the limit."""
    rated = halves(rated).reported if settings.reported_half else rated
    return rated if settings.limit is None else some_of(rated, settings.limit)


def open_raters(models: Mapping[str, Any], settings: RatingsSettings) -> tuple[dict[str, Rater], dict[str, Rater]]:
    """Raters by name, and the untrained control that stands beside predictors."""
    check_named(models)
    raters: dict[str, Rater] = {}
    predictors = {}
    for name, model in models.items():
        if isinstance(model, str) and model in BASELINES:
            raters[name] = BASELINES[model]
        elif hasattr(model, "rate") and not hasattr(model, "encoder"):
            raters[name] = model
        else:
            raters[name] = predictors[name] = open_predictor(model, settings)
    controls: dict[str, Rater] = dict(untrained_control(predictors))
    if settings.single_turn:
        raters = {name: SingleTurn(rater) for name, rater in raters.items()}
        controls = {name: SingleTurn(rater) for name, rater in controls.items()}
    return raters, controls


def measure_sets(
    raters: Mapping[str, Rater],
    sets: Sequence[HumanSet],
    *,
    settings: RatingsSettings | None = None,
    baselines: Mapping[str, Rater] = BASELINES,
    resampling: Resampling = RESAMPLING,
    selected_on: Mapping[str, Collection[str]] | None = None,
) -> RatingsResult:
    """Compare raters with people, with baselines, with other metrics and with the annotators themselves.

    Items that a rater was selected on are known by the keys in its own `selected_on`, where it has that (a `Predictor`
    does), and by those given here for its name (`HumanSet.selection_keys`; by `HumanSet.keys`, fewer copies are known).
    They are taken out for all raters, for all are compared on the same items; with `reproduce_paper` they stay in and
    the result is marked. P-values are corrected by Holm over all comparisons: of each model with the best baseline,
    each other model and each metric of the set.
    """
    settings = settings or RatingsSettings()
    how = replace(resampling, seed=settings.seed)
    _check([*raters, *baselines], sets, selected_on or {})
    used = _used([*raters.items(), *baselines.items()], selected_on or {})
    measured_sets = [each if settings.reproduce_paper else without_selected(each, used) for each in sets]
    measured = [_measured(each, raters, baselines, used, how) for each in measured_sets]
    has_control = any(getattr(each, "is_shuffled", False) for each in [*raters.values(), *baselines.values()])
    return RatingsResult(
        settings=settings,
        parts={each.name: len(each) for each in measured_sets},
        used=f"Measured: {', '.join(f'{each.name}, {len(each):,} rated turns' for each in measured_sets)}.",
        counts=skipped(*(each.left_out for each in measured_sets)),
        origin=_origin_of(measured_sets, raters, settings),
        sets=_corrected({each.rated.name: each.compared for each in measured}),
        rated=rated_table([(each.rated, each.scores) for each in measured]),
        models=tuple(raters),
        note=NO_SHUFFLED if raters and not has_control else "",
    )


def _origin_of(sets: Sequence[HumanSet], raters: Mapping[str, Rater], settings: RatingsSettings) -> Origin:
    names = " ".join(f"{each.name}@{each.fingerprint}" for each in sets)
    asked = ",".join(f"{name}={rater.name}" for name, rater in raters.items())
    changed = {name: value for name, value in settings.changed().items() if name != "seed"}
    return Origin(names, {**changed, "raters": asked or None}, settings.seed)


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
        used = f"{rated.name}: {gone} of {len(rated)} items were used for the selection of {names}"
        advice = f"Measure another set, or give --reproduce-paper to report it marked '{SELECTED}'."
        raise UsageError(f"{used}, {len(places)} are left (at least {FEWEST_ITEMS} are needed). {advice}")
    note = f"{gone} items that {names} was selected on are left out for all raters."
    left_out = {**rated.left_out, f"used for the selection of {names}": gone}
    return replace(rated.select(places), note=_joined(rated.note, note), left_out=left_out)


def _check(raters: Sequence[str], sets: Sequence[HumanSet], selected_on: Mapping[str, Collection[str]]) -> None:
    if not sets:
        raise UsageError("Expected at least one set of turns that people rated, found none.")
    names = [each.name for each in sets]
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


@dataclass(frozen=True, eq=False)
class Measured:
    """One set with what every rater said of every item."""

    rated: HumanSet
    scores: Scores
    compared: RatedSet


def _measured(
    rated: HumanSet,
    raters: Mapping[str, Rater],
    baselines: Mapping[str, Rater],
    selected_on: Mapping[str, Collection[str]],
    how: Resampling,
) -> Measured:
    by = _selected(rated, selected_on)  # what is left of it where the paper is reproduced
    if by:
        rated = replace(rated, note=_joined(rated.note, f"{', '.join(by)}: {SELECTED}."))
    who = {"models": raters, "baselines": baselines}
    scores = {kind: {name: _rate(rater, rated) for name, rater in some.items()} for kind, some in who.items()}
    scores["metrics"] = dict(rated.metrics)
    called = {kind: {name: rater.name for name, rater in some.items()} for kind, some in who.items()}
    origin = Origin(f"{rated.name}@{rated.fingerprint}", {"aspect": rated.aspect or None, "selected": bool(by) or None})
    ceilings = {
        kind: annotator_ceiling(rated.ratings, kind=kind, clusters=rated.clusters, resampling=how, origin=origin)
        for kind in ("spearman", "pearson")
    }
    results = {
        kind: {
            name: _result(
                rated,
                values,
                ceilings["spearman"],
                _of(origin, called.get(kind, {}).get(name, name)),
                how,
                is_selected=kind in who and name in by,
            )
            for name, values in some.items()
        }
        for kind, some in scores.items()
    }
    compared = RatedSet(
        n=len(rated),
        aspect=rated.aspect,
        note=rated.note,
        left_out=dict(rated.left_out),
        annotators_per_item=rated.annotators_per_item,
        annotators=tuple(rated.annotators),
        fingerprint=rated.fingerprint,
        ceilings=ceilings,
        raters=results,
        comparisons=tuple(_compared(rated, scores, results["baselines"], origin, how)),
    )
    return Measured(rated, scores, compared)


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


def _corrected(sets: Mapping[str, RatedSet]) -> dict[str, RatedSet]:
    """Holm's correction over all comparisons of all sets, for either test."""
    flat = {(name, number): each for name, one in sets.items() for number, each in enumerate(one.comparisons)}
    bootstrapped = correct({key: each.spearman for key, each in flat.items()})
    by_williams = dict(zip(flat, holm([each.pearson.p_value for each in flat.values()]), strict=True))
    done = {
        key: replace(each, spearman=bootstrapped[key], pearson_p_holm=by_williams[key]) for key, each in flat.items()
    }
    return {
        name: replace(one, comparisons=tuple(done[name, number] for number in range(len(one.comparisons))))
        for name, one in sets.items()
    }
