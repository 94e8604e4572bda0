"""What was found: the DAS ratio of every model on every set, with its interval, beside what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dialoscope.distract.measure import Heads, Measured
from dialoscope.distract.sets import ORIGINAL
from dialoscope.metrics import (
    Comparison,
    Resampling,
    compare_ratios,
    correct,
    mean_score,
    median_score,
    perplexity_score,
    ratio_score,
)
from dialoscope.record import Origin, Score

LARGEST = 300.0  # of a logarithm: squares of its exponential are still numbers
NO_RATIO = "History has no attention in any context"
NONE_USED = "no context has both History and a distraction"
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class SetResult:
    """One model on one set: its scores by name, and how many contexts they are of.

    ``das_ratio`` is equation 8, the mean over contexts of the ratio of distractions to History in each;
    ``das_ratio_of_means`` is what the cells of the paper's Tables 4 to 6 are; ``das_ratio_median``. Percentages are of
    the average attention: ``distraction_percent``, ``history_percent``, ``first_percent`` and ``last_percent`` of
    History. ``perplexity`` is over all contexts. The original test split has no distractions and lacks the first four.
    """

    scores: Mapping[str, Score]
    samples: int  # contexts that count: with History, and with distractions where they were put in
    without_history: int
    without_distraction: int | None = None
    cut: int = 0  # contexts whose distractions or History lie before what the model reads
    too_long: int = 0  # contexts that do not fit into the model's window, and count nowhere
    undefined: int = 0  # contexts where neither distractions nor History have any attention: they have no ratio
    heads: Heads | None = None

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: values, intervals and counts by name; a value that is missing says why."""
        values = {name: score.value for name, score in self.scores.items()}
        intervals = {name: score.interval for name, score in self.scores.items() if score.interval}
        reasons = {name: score.reason for name, score in self.scores.items() if score.reason}
        shown: dict[str, Any] = {
            **values,
            "intervals": intervals,
            "counts": {name: score.n for name, score in self.scores.items()},  # perplexity is of more than `samples`
            "samples": self.samples,
            "without_history": self.without_history,
        }
        if self.without_distraction is not None:
            shown |= {"interval": self["das_ratio"].interval, "without_distraction": self.without_distraction}
        shown |= {"cut": self.cut, **({"too_long": self.too_long} if self.too_long else {})}
        shown |= {"undefined": self.undefined} if self.undefined else {}
        return {**shown, **({"reasons": reasons} if reasons else {}), **_heads(self.heads)}


class MoreThanAttention(Protocol):
    """What was found of one set besides attention."""

    @property
    def scores(self) -> Mapping[str, Score]:
        """By name."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """What could not be measured, by name."""
        ...


@dataclass(frozen=True)
class Extras:
    """Influence and behaviour on one set: scores, and counts of what they leave out."""

    scores: Mapping[str, Score] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: MoreThanAttention) -> Extras:
        return Extras({**self.scores, **other.scores}, {**self.left_out, **other.left_out})

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**{name: score.to_dict() for name, score in self.scores.items()}, **self.left_out}


@dataclass(frozen=True)
class ModelResult:
    """One model on all sets."""

    original: SetResult | None
    sets: Mapping[str, SetResult]
    extras: Mapping[str, Extras] = field(default_factory=dict)  # of sets

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        more = {name: one.to_dict() for name, one in self.extras.items()}
        sets = {name: {**one.to_dict(), **more.get(name, {})} for name, one in self.sets.items()}
        return {"original": None if self.original is None else self.original.to_dict(), "sets": sets}


@dataclass(frozen=True, eq=False)
class DistractResult:
    """All models on all sets, and how the others differ from the first."""

    models: Mapping[str, ModelResult]
    comparisons: Mapping[str, Mapping[str, Comparison]]  # model -> set -> first model minus this one
    origin: Origin
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The model that the others are compared with."""
        return next(iter(self.models))

    @cached_property
    def set_names(self) -> list[str]:
        """Sets in their order."""
        return list(dict.fromkeys(name for one in self.models.values() for name in one.sets))

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = {"models": {name: one.to_dict() for name, one in self.models.items()}}
        if self.comparisons:
            compared = {name: {one: c.to_dict() for one, c in by.items()} for name, by in self.comparisons.items()}
            shown["compared_with"] = self.first
            shown["comparisons"] = compared
        return {**shown, **self.about}


def summarise(
    measured: Sequence[Measured],
    *,
    origin: Origin,
    resampling: Resampling | None = None,
    extras: Mapping[str, Mapping[str, Extras]] | None = None,
    about: Mapping[str, Any] | None = None,
) -> DistractResult:
    """Means, ratios and their intervals over dialogues, and paired tests against the first model."""
    how = resampling or Resampling()
    by: dict[str, dict[str, Measured]] = {}
    for one in measured:
        by.setdefault(one.model, {})[one.name] = one
    models = {}
    for name, sets in by.items():
        base = sets.get(ORIGINAL)
        found = {key: set_result(one, origin, how) for key, one in sets.items() if key != ORIGINAL}
        original = None if base is None else original_result(base, origin, how)
        models[name] = ModelResult(original, found, (extras or {}).get(name, {}))
    return DistractResult(models, compared(by, origin, how), origin, about or {})


def set_result(measured: Measured, origin: Origin, resampling: Resampling) -> SetResult:
    """One model on one distracting set."""
    distraction, history = measured.column("distraction"), measured.column("history")
    has_history, is_read = ~np.isnan(history), measured.column("tokens") > 0
    is_used = has_history & ~np.isnan(distraction)
    undefined = int(np.isnan(das_ratios(measured)[is_used]).sum())
    where = origin_of(origin, measured)
    how: dict[str, Any] = {"clusters": _chosen(measured.dialogues, is_used), "resampling": resampling}
    ratios = das_ratios(measured)[is_used]
    means = np.exp(distraction[is_used]), np.exp(history[is_used])
    scores = {
        "das_ratio": mean_score(ratios, origin=where.having(metric="das-ratio"), **how).within(0),
        "das_ratio_of_means": ratio_score(
            *means,
            origin=where.having(metric="das-ratio-of-means"),
            undefined=NO_RATIO if is_used.any() else NONE_USED,
            **how,
        ).within(0),
        "das_ratio_median": median_score(ratios, origin=where.having(metric="das-ratio-median"), **how),
        **_percentages(measured, ("distraction", "history", "first", "last"), is_used, origin, resampling),
        "perplexity": _perplexity(measured, where.having(metric="perplexity"), resampling),
    }
    had_history, had_distraction = measured.column("turns_before") > 0, measured.column("put_in") > 0
    no_history, none_put_in = is_read & ~had_history, is_read & had_history & ~had_distraction
    cut = is_read & had_history & had_distraction & ~is_used
    used, without, none, lost, long = (int(each.sum()) for each in (is_used, no_history, none_put_in, cut, ~is_read))
    return SetResult(scores, used, without, none, cut=lost, too_long=long, undefined=undefined, heads=measured.heads)


def original_result(measured: Measured, origin: Origin, resampling: Resampling) -> SetResult:
    """One model on the contexts as they are."""
    has_history, is_read = ~np.isnan(measured.column("history")), measured.column("tokens") > 0
    scores = {
        "perplexity": _perplexity(measured, origin_of(origin, measured).having(metric="perplexity"), resampling),
        **_percentages(measured, ("history", "first", "last"), has_history, origin, resampling),
    }
    had_history = measured.column("turns_before") > 0
    cut = int((is_read & had_history & ~has_history).sum())
    without = int((is_read & ~had_history).sum())
    return SetResult(scores, int(has_history.sum()), without, cut=cut, too_long=int((~is_read).sum()))


def _percentages(
    measured: Measured, names: Sequence[str], is_used: Flags, origin: Origin, resampling: Resampling
) -> dict[str, Score]:
    dialogues, where = _chosen(measured.dialogues, is_used), origin_of(origin, measured)
    return {
        f"{name}_percent": mean_score(
            100 * np.exp(measured.column(name)[is_used]),
            clusters=dialogues,
            resampling=resampling,
            origin=where.having(metric=f"{name}-percent"),
        ).within(0)
        for name in names
    }


def _chosen(dialogues: Sequence[str], is_used: Flags) -> list[str]:
    return [name for name, is_in in zip(dialogues, is_used.tolist(), strict=True) if is_in]


def das_ratios(measured: Measured) -> np.ndarray[Any, Any]:
    """The ratio in each context; NaN where there is none. One too large to be added up is held down, not left out."""
    with np.errstate(invalid="ignore"):  # none on either: there is no ratio
        return np.asarray(np.exp(np.minimum(measured.column("distraction") - measured.column("history"), LARGEST)))


def compared(
    by: Mapping[str, Mapping[str, Measured]], origin: Origin, resampling: Resampling
) -> dict[str, dict[str, Comparison]]:
    """The first model's ratio of means minus each other one's, over the same contexts, corrected over the table.

    Not equation 8: where a softmax has settled, a few contexts decide a mean of ratios, and a test of it. And not by
    randomisation, which asks whether two models are alike in everything: models differ in how much attention they leave
    to History at all, and equal ratios would be found different.
    """
    first, *others = by
    tested = {
        (name, key): compare_ratios(
            _means(base),
            _means(by[name][key]),
            clusters=base.dialogues,
            test="bootstrap",
            resampling=resampling,
            origin=origin_of(origin, base).having(metric="das-ratio-of-means"),
        )
        for name in others
        for key, base in by[first].items()
        if key != ORIGINAL and key in by[name]
    }
    found: dict[str, dict[str, Comparison]] = {}
    for (name, key), one in correct(tested).items():
        found.setdefault(name, {})[key] = one
    return found


def _means(measured: Measured) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scores of distractions and of History in each context, both or none."""
    distraction, history = np.exp(measured.column("distraction")), np.exp(measured.column("history"))
    is_whole = ~(np.isnan(distraction) | np.isnan(history))
    return np.where(is_whole, distraction, np.nan), np.where(is_whole, history, np.nan)


def _perplexity(measured: Measured, origin: Origin, resampling: Resampling) -> Score:
    is_read = measured.column("tokens") > 0
    return perplexity_score(
        measured.column("log_likelihood")[is_read],
        measured.column("tokens")[is_read],
        clusters=_chosen(measured.dialogues, is_read),
        resampling=resampling,
        origin=origin,
    )


def origin_of(origin: Origin, measured: Measured) -> Origin:
    """Where the numbers of one model on one set come from."""
    return origin.having(model=measured.identity, set=measured.name)


def _heads(heads: Heads | None) -> dict[str, Any]:
    if heads is None:
        return {}
    ratio = heads.ratio
    if not np.isfinite(ratio).any():
        return {}
    places = {"best": np.nanargmin(ratio), "worst": np.nanargmax(ratio)}
    ends = {name: _head(ratio, *map(int, np.unravel_index(at, ratio.shape))) for name, at in places.items()}
    rows = [[float(one) if np.isfinite(one) else None for one in row] for row in ratio]
    return {"heads": {**ends, "das_ratio_of_means": rows}}


def _head(ratio: np.ndarray[Any, Any], layer: int, head: int) -> dict[str, Any]:
    return {"layer": layer, "head": head, "das_ratio_of_means": float(ratio[layer, head])}
