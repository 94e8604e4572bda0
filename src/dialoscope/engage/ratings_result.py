"""How far raters agree with people, set by set, and the items behind every correlation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.engage.human_sets import HumanSet, Numbers
from dialoscope.engage.settings import RatingsSettings
from dialoscope.metrics import Comparison, Significance
from dialoscope.record import Score, Scores, by_path, path
from dialoscope.report import Section, Table
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.verdict import Verdict, judge_difference

KINDS = ("models", "baselines", "metrics")  # of raters; metrics are other people's, scored beforehand
PARTIAL, SHARE = "partial_given_length", "share_of_ceiling"
SELECTED = "selected on this set"
ANNOTATORS, WORD_COUNT = "annotators", "word_count"
COLUMNS = {
    "set": "set of rated turns",
    "kind": "models, baselines, or metrics that were scored beforehand",
    "rater": "name of what gave the score",
    "item": "hash of the rated turn and the turn before it, the same in every file",
    "dialogue": "dialogue that the rated turn comes from",
    "people": "mean rating of the people who rated the turn, on the set's own scale",
    "score": "the rater's score of the turn; NaN where it has none",
}


@dataclass(frozen=True, eq=False)
class RaterResult:
    """One rater on one set: how far it agrees with people's mean rating.

    ``pearson``, ``spearman`` and ``kendall``; ``partial_given_length`` is Spearman's correlation with the number of
    words of the rated turn held fixed; ``share_of_ceiling`` is Spearman's over the annotators' own. A rater is compared
    with the mean of all annotators, one annotator with the mean of the others, which is noisier and leaves the
    annotator out: a share above 1 is possible, and does not mean that a rater is better than a person.
    """

    scores: Mapping[str, Score]
    is_selected: bool = False  # whether it was selected on items that are reported here

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]


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


@dataclass(frozen=True, eq=False)
class RatedSet:
    """All raters on one set."""

    n: int  # rated turns
    aspect: str
    note: str
    left_out: Mapping[str, int]  # reason -> rated turns
    annotators_per_item: float
    annotators: tuple[str, ...]
    fingerprint: str
    ceilings: Mapping[str, Score]  # one annotator against the mean of the others, by correlation
    raters: Mapping[str, Mapping[str, RaterResult]]  # kind -> rater
    comparisons: tuple[RaterComparison, ...]

    @property
    def ceiling(self) -> Score:
        """Spearman's correlation of one annotator with the mean of the others."""
        return self.ceilings["spearman"]

    def against_baseline(self, model: str) -> RaterComparison | None:
        """The comparison of a model with the best baseline, where there is one."""
        wanted = (each for each in self.comparisons if each.first == model and each.second_kind == "baselines")
        return next(wanted, None)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RatingsResult(Result):
    """All raters on all sets."""

    instrument: ClassVar[str] = "ratings"
    settings_class: ClassVar[type[RatingsSettings]] = RatingsSettings

    settings: RatingsSettings
    sets: Mapping[str, RatedSet]
    rated: pa.Table  # COLUMNS
    models: tuple[str, ...]
    note: str = ""  # what is missing beside the raters

    @property
    def table(self) -> pa.Table:
        """One row for each set, rater and rated turn."""
        return self.rated

    def subject(self, name: str, kind: str, rater: str) -> str:
        """What paths call a rater: its name, with its kind before it where a model or baseline has that name."""
        raters = self.sets[name].raters
        taken = [
            path(other, "", "") for before in KINDS[: KINDS.index(kind)] for other in (*raters[before], ANNOTATORS)
        ]
        return f"{kind.removesuffix('s')} {rater}" if path(rater, "", "") in taken else rater

    @kept
    def scores(self) -> Scores:
        """Correlations of every rater with people, by set, and those of one annotator with the others."""
        return by_path(self._named_scores())

    def _named_scores(self) -> Iterator[tuple[tuple[str, str, str], Score]]:
        for name, rated in self.sets.items():
            for number, score in rated.ceilings.items():
                yield (ANNOTATORS, name, number), score
            for kind in KINDS:
                for rater, result in rated.raters[kind].items():
                    for number, score in result.scores.items():
                        yield (self.subject(name, kind, rater), name, number), score

    def items(self) -> dict[str, Items]:
        """The models' score of every rated turn, beside the people's."""
        items = {}
        for name in self.sets:
            for model in self.models:
                is_row = pc.and_(pc.equal(self.rated["set"], name), pc.equal(self.rated["rater"], model))
                rows = self.rated.filter(pc.and_(is_row, pc.equal(self.rated["kind"], "models")))
                keys = [(str(each),) for each in rows["item"].to_pylist()]
                scores, people = (np.asarray(rows[column].to_numpy()) for column in ("score", "people"))
                items[path(model, name, "spearman")] = Items(
                    keys, [str(each) for each in rows["dialogue"].to_pylist()], scores, np.ones(len(scores)), people
                )
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """Whether each model agrees with people better than what needs no training, on each set."""
        return [self._judged(name, model) for name in self.sets for model in self.models or (None,)]

    def _judged(self, name: str, model: str | None) -> Verdict:
        rated = self.sets[name]
        words = rated.raters["baselines"].get(WORD_COUNT)
        known = {
            "the number of words": None if words is None else words["spearman"].value,
            "one annotator with the others": rated.ceiling.value,
        }
        others = " and ".join(f"{who} by {value:.2f}" for who, value in known.items() if value is not None)
        if model is None:
            text = f"On {name}, {others} correlate with people (Spearman)." if others else ""
            return Verdict("not_measurable", f"Not measurable: no predictor was given. {text}".strip(), [])
        result, compared = rated.raters["models"][model], rated.against_baseline(model)
        own, number = result["spearman"].value, path(model, name, "spearman")
        if own is None:
            return Verdict("not_measurable", f"Not measurable: {result['spearman'].reason}.", [number])
        text = f"{model} correlates with people by {own:.2f} on {name} (Spearman)"
        text += f"; {others}." if others else "."
        if compared is None:
            return Verdict("cannot_tell", f"{text} There is no baseline to compare it with.", [number])
        if compared.second != WORD_COUNT:
            best = rated.raters["baselines"][compared.second]["spearman"].value or 0.0
            text += f" The best baseline, {compared.second}, reaches {best:.2f}."
        against = path(self.subject(name, "baselines", compared.second), name, "spearman")
        verdict = judge_difference(compared.spearman.difference, number, better="high", text=text, against=against)
        if result.is_selected and verdict.level == "good":
            flattered = f"{text} Whether it beats its baseline cannot be told: it was {SELECTED}."
            return replace(verdict, level="cannot_tell", text=flattered)
        return verdict

    def section(self) -> Section:
        """A table of all raters, and a chart for each set."""
        from dialoscope.engage.ratings_section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """Every rater's correlations with people, and the ceiling."""
        from dialoscope.engage.ratings_section import summary_table

        return summary_table(self)


def rated_table(measured: Sequence[tuple[HumanSet, Mapping[str, Mapping[str, Numbers]]]]) -> pa.Table:
    """A row for each set, rater and item, so that correlations can be computed again."""
    rows: list[dict[str, Any]] = [
        dict(zip(COLUMNS, (rated.name, kind, rater, key, cluster, float(mean), float(score)), strict=True))
        for rated, scores in measured
        for kind, by_rater in scores.items()
        for rater, values in by_rater.items()
        for key, cluster, mean, score in zip(rated.keys, rated.clusters, rated.mean, values, strict=True)
    ]
    kinds = [
        *(pa.field(name, pa.string()) for name in list(COLUMNS)[:5]),
        *(pa.field(n, pa.float64()) for n in ("people", "score")),
    ]
    return documented(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), COLUMNS)
