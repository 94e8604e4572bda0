"""How much each turn changes the probability of the response, since attention need not be what a model acts on.

The influence of a turn is how far the log-likelihood of the given response falls when that turn is left out of the
context. It needs no attention, so every model that scores responses has it. The influence ratio is the mean size of
that change for distractions over that for History: 0 for a model that ignores distractions.

Turns that a model does not read, because they are older than its window, have no influence that could be measured: they
are left out and counted, not taken for turns that change nothing. So are contexts that do not fit at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.distract.portions import Portion, portions, resumable
from dialoscope.distract.prepare import Sets, prepare
from dialoscope.distract.result import (
    EACH,
    NO_CONTROL,
    NO_DISTRACTION,
    NO_HISTORY,
    RANDOM_FIRST,
    TOO_LONG,
    in_words,
    rows_of,
)
from dialoscope.distract.sets import Case
from dialoscope.distract.settings import InfluenceSettings
from dialoscope.metrics import mean_score, ratio_score
from dialoscope.model.answers import enough_memory
from dialoscope.model.protocol import Context, DialogueModel, TooLong, log_likelihood_sharing, unread_turns
from dialoscope.progress import Progress, Stages
from dialoscope.record import Score, Scores, by_path, path
from dialoscope.report import Column, Prose, Section, Table
from dialoscope.report.cell import Cell
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.verdict import Verdict, undecided
from dialoscope.settings import with_options

AT_ONCE = 256  # cases whose shortened contexts are scored together, and kept as one portion
CUT = f"a context whose distractions or History all lie before what the model reads {EACH}"
TURNS_CUT = f"a turn that lies before what the model reads {EACH}"
COLUMNS = {
    "model": "the model's name",
    "set": "the test set's name",
    "dialogue": "id of the dialogue",
    "turn": "number of the response in its dialogue, from 0",
    "distraction_change": "mean size of the change of log p of the response without one distraction (nats)",
    "history_change": "mean size of the change of log p of the response without one turn of the History (nats)",
    "distraction_fall": "mean fall of log p without one distraction (nats); below 0 where it rises",
    "history_fall": "mean fall of log p without one turn of the History (nats); below 0 where it rises",
    "unread_turns": "turns that the model does not read, a count",
    "is_too_long": "whether the context does not fit into the model's window",
}
NUMBERS = ("influence_ratio", "distraction_fall", "history_fall")
NONE_READ = "no context has both History and a distraction that the model reads"
NO_CHANGE = "no turn of the History changes the probability of a response"
Floats = np.ndarray[Any, np.dtype[np.float64]]
Value = TypeVar("Value")
Falls = list[float | None]  # of each utterance before the Query; None: the model does not read it


def influence(
    corpus: Corpus | Sets | None = None,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: InfluenceSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> InfluenceResult:
    """Measure how much distractions change the probability of a response, relative to real turns.

    Every turn before the Query is left out in turn; contexts without both kinds of turns are left out whole.

    >>> result = influence(load("concierge"), models={"mine": "runs/mine"}, limit=15)               # doctest: +SKIP
    >>> result.scores()["mine/random-1.0/influence_ratio"].value                                    # doctest: +SKIP
    0.87...
    """
    settings = with_options(settings, InfluenceSettings, options)
    prepared = prepare(corpus, against, settings, models)
    used = {each.name: with_both(each.cases) for each in prepared.distracting}
    stages = Stages(progress, len(prepared.models) * sum(map(len, used.values())))
    tables = [
        _case_table(name, each, used[each], falls_of(model, used[each], work=work, progress=stages.next()))
        for name, model in prepared.models.items()
        for each in used
    ]
    cases = documented(pa.concat_tables(tables), COLUMNS)
    without = _without_both([case for each in prepared.distracting for case in each.cases], len(prepared.models))
    return InfluenceResult(
        settings=prepared.settings,
        parts=prepared.parts,
        used=prepared.used,
        counts={**skipped(prepared.skipped, without, _left_out(cases)), "contexts": prepared.contexts},
        origin=prepared.origin,
        models=tuple((name, model.name) for name, model in prepared.models.items()),
        sets=tuple(used),
        cases=cases,
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class InfluenceResult(Result):
    """How much leaving out a distraction, or a turn of the History, changes log p of the response.

    ``influence_ratio`` is the ratio of the mean sizes of the change; ``distraction_fall`` and ``history_fall`` are mean
    falls in nats, below 0 where the response is likelier without the turn.
    """

    instrument: ClassVar[str] = "influence"
    settings_class: ClassVar[type[InfluenceSettings]] = InfluenceSettings

    settings: InfluenceSettings
    models: tuple[tuple[str, str], ...]  # name, and the model's own name with a fingerprint of its weights
    sets: tuple[str, ...]
    cases: pa.Table  # COLUMNS

    @property
    def table(self) -> pa.Table:
        """A row for each model, set and context with both distractions and History (COLUMNS)."""
        return self.cases

    @property
    def model_names(self) -> list[str]:
        """Models in their order."""
        return [name for name, _ in self.models]

    @kept
    def scores(self) -> Scores:
        """The influence ratio of each model on each set, and the falls."""
        return by_path(
            ((model, name, number), score)
            for model in self.model_names
            for name in self.sets
            for number, score in self._scores_of(model, name).items()
        )

    def _scores_of(self, model: str, name: str) -> dict[str, Score]:
        rows = scored_rows(rows_of(self.cases, model, name))
        how: dict[str, Any] = {"clusters": rows["dialogue"].to_pylist(), "origin": self.origin}
        distraction, history = (column(rows, f"{kind}_change") for kind in ("distraction", "history"))
        undefined = NO_CHANGE if len(rows) else NONE_READ
        ratio = ratio_score(distraction, history, undefined=undefined, **how).within(0)
        falls = {f"{kind}_fall": mean_score(column(rows, f"{kind}_fall"), **how) for kind in ("distraction", "history")}
        return {"influence_ratio": ratio, **falls}

    def items(self) -> dict[str, Items]:
        """The size of the change by distractions over that by the History."""
        items = {}
        for model in self.model_names:
            for name in self.sets:
                rows = rows_of(self.cases, model, name)
                dialogues = rows["dialogue"].to_pylist()
                keys = list(zip(dialogues, map(str, rows["turn"].to_pylist()), strict=True))
                changes = (column(rows, f"{kind}_change") for kind in ("distraction", "history"))
                items[path(model, name, "influence_ratio")] = Items(keys, dialogues, *changes)
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """Each model on the random set with most distractions."""
        name = next((each for each in RANDOM_FIRST if each in self.sets), self.sets[0])
        return [self._judged(model, name) for model in self.model_names]

    def _judged(self, model: str, name: str) -> Verdict:
        where = path(model, name, "influence_ratio")
        score = self.scores()[where]
        ratio = "" if score.value is None else f"{score.value:.2f} times"
        text = (
            f"On {name}, unrelated turns change the probability of {model}'s response {ratio} as much as real ones "
            "(1 = cannot tell them apart, 0 = not at all)."
        )
        return undecided(score, where, text=text, reason=NO_CONTROL)

    def section(self) -> Section:
        """Ratios and falls by model and set."""
        text = (
            "Each turn before the Query is left out once; the fall is how much less likely the response becomes. The "
            "ratio is the mean size of the change by distractions over that by turns of the History."
        )
        return Section(
            title="Influence",
            anchor="influence",
            question="Which turns change the response's probability?",
            blocks=[Prose(text, heading="What distractions change"), self._table()],
            lead=f"{' '.join(verdict.text for verdict in self.verdicts())} {self.used}",
            verdict=self.card,
            origin=self.origin,
        )

    def summary(self) -> Table:
        """A row for each model and set; each number with its interval and n."""
        return in_words(self._table())

    def _table(self) -> Table:
        rows: list[list[Cell]] = [
            [model, name, *(self.scores()[path(model, name, number)] for number in NUMBERS)]
            for model in self.model_names
            for name in self.sets
        ]
        heads = ("influence ratio", "fall without a distraction", "fall without a real turn")
        columns = [Column("model"), Column("set"), *(Column(head, ".3f") for head in heads)]
        caption = "Change of log p of the response (nats) by unrelated turns, relative to real ones"
        return Table(columns, rows, caption, name="influence")


def falls_of(
    model: DialogueModel, cases: Sequence[Case], *, work: Path | None = None, progress: Progress | None = None
) -> list[Falls | None]:
    """Of each case, how far log p falls without each utterance before the Query; None for one that does not fit.

    With a `work` folder, what was done there before is not done again.
    """
    falls: list[Falls | None] = []
    for portion in influence_portions(cases):
        falls += resumable(work, model, portion, _fall_table)["falls"].to_pylist()
        if progress is not None:
            progress(len(falls), len(cases))
    return falls


def influence_portions(cases: Sequence[Case]) -> Iterator[Portion]:
    """The portions that influence is measured in."""
    return portions(cases, AT_ONCE, {"what": "influence"})


def with_both(cases: Sequence[Case]) -> list[Case]:
    """The cases with both distractions and History."""
    return [case for case in cases if case.distractions and case.history]


def _without_both(cases: Sequence[Case], models: int) -> dict[str, int]:
    """How many rows have no History or no distraction, over all models."""
    without_history = sum(not case.history for case in cases)
    without_distraction = sum(bool(case.history) and not case.distractions for case in cases)
    return {NO_HISTORY: models * without_history, NO_DISTRACTION: models * without_distraction}


def _case_table(model: str, name: str, cases: Sequence[Case], falls: Sequence[Falls | None]) -> pa.Table:
    """A row for each case (COLUMNS)."""
    parts = [((), ()) if fall is None else _split(case, fall) for case, fall in zip(cases, falls, strict=True)]
    whole = [both if len(both[0]) and len(both[1]) else None for both in parts]
    sizes, means = (
        [[math.nan] * 2 if both is None else [float(of(np.asarray(part)).mean()) for part in both] for both in whole]
        for of in (np.abs, np.asarray)
    )
    return pa.table({
        "model": pa.array([model] * len(cases), pa.string()),
        "set": pa.array([name] * len(cases), pa.string()),
        "dialogue": pa.array([case.dialogue for case in cases], pa.string()),
        "turn": pa.array([case.turn for case in cases], pa.int64()),
        "distraction_change": pa.array([size[0] for size in sizes], pa.float64()),
        "history_change": pa.array([size[1] for size in sizes], pa.float64()),
        "distraction_fall": pa.array([mean[0] for mean in means], pa.float64()),
        "history_fall": pa.array([mean[1] for mean in means], pa.float64()),
        "unread_turns": pa.array([sum(each is None for each in fall or ()) for fall in falls], pa.int64()),
        "is_too_long": pa.array([fall is None for fall in falls], pa.bool_()),
    })  # fmt: skip


def column(rows: pa.Table, name: str) -> Floats:
    """A column of numbers; NaN where there is none."""
    return np.asarray(rows[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def scored_rows(rows: pa.Table) -> pa.Table:
    """The rows in which both distractions and History are read."""
    return rows.filter(pa.array(~np.isnan(column(rows, "distraction_change"))))


def _left_out(cases: pa.Table) -> dict[str, int]:
    """How many rows and turns could not be measured, by reason."""
    is_too_long = column(cases, "is_too_long") > 0
    is_cut = ~is_too_long & np.isnan(column(cases, "distraction_change"))
    turns = int(column(cases, "unread_turns").sum())
    return {TOO_LONG: int(is_too_long.sum()), CUT: int(is_cut.sum()), TURNS_CUT: turns}


def _fall_table(model: DialogueModel, cases: Sequence[Case]) -> pa.Table:
    return pa.table({"falls": pa.array(_falls(model, cases), pa.list_(pa.float64()))})


def _falls(model: DialogueModel, cases: Sequence[Case]) -> list[Falls | None]:
    """Of each case, how far log p falls without each utterance before the Query; None for one that does not fit."""
    try:
        unread = unread_turns(model, [case.context for case in cases], [case.response for case in cases])
    except TooLong as error:
        return around(error.parts, cases, partial(_falls, model), None)
    contexts, owners = [], []
    for position, (case, first) in enumerate(zip(cases, unread, strict=True)):
        variants = [case.context, *_shortened(case.context, first)]
        contexts += variants
        owners += [position] * len(variants)
    try:
        with enough_memory(model):
            responses = [cases[position].response for position in owners]
            likelihoods = log_likelihood_sharing(model, contexts, responses, owners)
    except TooLong as error:
        return around({owners[position] for position in error.parts}, cases, partial(_falls, model), None)
    totals = iter([likelihood.total for likelihood in likelihoods])
    return [_fall(len(case.context) - 1, first, totals) for case, first in zip(cases, unread, strict=True)]


def _fall(utterances: int, unread: int, totals: Iterator[float]) -> Falls:
    """From log p after the whole context, and after it without each utterance that is read."""
    whole = next(totals)
    return [None] * unread + [whole - next(totals) for _ in range(utterances - unread)]


def around(
    long: Collection[int], cases: Sequence[Case], find: Callable[[list[Case]], Sequence[Value]], instead: Value
) -> list[Value]:
    """Find a value for each case that fits, and take `instead` for those that are too long."""
    rest = iter(find([case for position, case in enumerate(cases) if position not in long]))
    return [instead if position in long else next(rest) for position in range(len(cases))]


def _shortened(context: Context, first: int) -> Iterator[Context]:
    """The context without its turn `first`, without the next, and so on; never without the Query."""
    return (tuple(context[:position]) + tuple(context[position + 1 :]) for position in range(first, len(context) - 1))


def _split(case: Case, falls: Falls) -> tuple[Floats, Floats]:
    """Falls of the distractions and of History that are read."""
    distraction, history = (
        np.array([fall for position in positions if (fall := falls[position]) is not None], dtype=np.float64)
        for positions in (case.distractions, case.history)
    )
    return distraction, history
