"""Whether a model writes something else once distractions are inserted, and how much else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.distract.influence import around, column
from dialoscope.distract.measure import read_attention
from dialoscope.distract.names import ORIGINAL
from dialoscope.distract.phrases import words_of
from dialoscope.distract.portions import Portion, portions, resumable
from dialoscope.distract.prepare import Sets, prepare
from dialoscope.distract.result import EACH, NO_DISTRACTION, RANDOM_FIRST, TOO_LONG, CaseRows, in_words, rows_of
from dialoscope.distract.sets import Case
from dialoscope.distract.settings import BehaveSettings
from dialoscope.errors import UsageError
from dialoscope.metrics import correlate, mean_score
from dialoscope.model.answers import enough_memory
from dialoscope.model.protocol import DialogueModel, TooLong, unread_turns
from dialoscope.progress import Progress, Stages
from dialoscope.record import Origin, Score, Scores, by_path, path
from dialoscope.report import Column, Prose, Section, Table
from dialoscope.report.cell import Cell
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.verdict import Verdict, undecided
from dialoscope.settings import with_options

AT_ONCE = 512  # cases that are answered together
CUT = f"a context whose distractions all lie before what the model reads {EACH}"
NO_ATTENTION = "the model gives no attention weights"
NO_LIMIT = "a distraction may change a response for good reasons, and there is no control yet"
COLUMNS = {
    "model": "the model's name",
    "set": "the test set's name",
    "dialogue": "id of the dialogue",
    "turn": "number of the response in its dialogue, from 0",
    "response": "what the model writes to the context without distractions; null: the context is too long",
    "distracted_response": "what it writes to the same context with distractions; null: the context is too long",
    "is_distraction_read": "whether the model reads any of the distractions",
    "is_changed": "whether the responses differ; null where one is missing or no distraction is read",
    "kept_words": "overlap of the words of both responses: 2 |u and v| / (|u| + |v|), from 0 to 1; NaN as above",
    "das_ratio": "attention on distractions over attention on the History; NaN where there is none",
}
NUMBERS = {
    "changed_share": Column("changed responses", ".1%"),
    "kept_words": Column("overlap of words", ".3f"),
    "change_with_das_ratio": Column("correlation of lost words with the DAS ratio", ".3f"),
}


def behave(
    corpus: Corpus | Sets | None = None,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: BehaveSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> BehaveResult:
    """Compare what models write with and without distractions.

    Responses to contexts that received no distraction do not count, nor do those that could not be written, nor those
    to a context none of whose distractions the model reads.

    >>> result = behave(load("concierge"), models={"mine": "runs/mine"}, sets=["random-1.0"])       # doctest: +SKIP
    >>> result.scores()["mine/random-1.0/changed_share"].value                                      # doctest: +SKIP
    0.64...
    """
    settings = with_options(settings, BehaveSettings, options)
    prepared = prepare(corpus, against, settings, models)
    original = next((each for each in prepared.sets if each.name == ORIGINAL), None)
    if original is None:
        raise UsageError("What distractions change needs the original test set among the sets.")
    distracted = sum(map(len, prepared.distracting))
    stages = Stages(progress, len(prepared.models) * (len(original) + 2 * distracted))
    tables, without_attention = [], list[str]()
    for name, model in prepared.models.items():
        responses = respond(model, original.cases, work=work, progress=stages.next())
        has_attention = gives_attention(model, original.cases)
        without_attention += [] if has_attention else [name]
        for each in prepared.distracting:
            written = respond(model, each.cases, work=work, progress=stages.next())
            ratios = np.full(len(each), np.nan)
            step = stages.next()
            if has_attention:
                table, _ = read_attention(model, each.cases, settings, work=work, progress=step)
                ratios = CaseRows(name, each.name, table).das_ratios
            tables.append(
                behave_table(name, each.name, each.cases, responses, written, ratios, unread(model, each.cases))
            )
    cases = documented(pa.concat_tables(tables), COLUMNS)
    without = sum(not case.distractions for each in prepared.distracting for case in each.cases)
    left_out = {NO_DISTRACTION: without * len(prepared.models), **_left_out(cases)}
    return BehaveResult(
        settings=prepared.settings,
        parts=prepared.parts,
        used=prepared.used,
        counts={**skipped(prepared.skipped, left_out), "contexts": prepared.contexts},
        origin=prepared.origin,
        models=tuple((name, model.name) for name, model in prepared.models.items()),
        sets=tuple(each.name for each in prepared.distracting),
        cases=cases,
        without_attention=tuple(without_attention),
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BehaveResult(Result):
    """What distractions do to the responses that models write.

    ``changed_share`` of the responses are not the same any more; ``kept_words`` is the mean overlap of the words of
    both; ``change_with_das_ratio`` is the rank correlation of the words lost with the DAS ratio, over contexts.
    """

    instrument: ClassVar[str] = "behave"
    settings_class: ClassVar[type[BehaveSettings]] = BehaveSettings

    settings: BehaveSettings
    models: tuple[tuple[str, str], ...]  # name, and the model's own name with a fingerprint of its weights
    sets: tuple[str, ...]
    cases: pa.Table  # COLUMNS
    without_attention: tuple[str, ...] = ()  # models

    @property
    def table(self) -> pa.Table:
        """A row for each model, set and context that received a distraction (COLUMNS)."""
        return self.cases

    @property
    def model_names(self) -> list[str]:
        """Models in their order."""
        return [name for name, _ in self.models]

    @kept
    def scores(self) -> Scores:
        """Changed responses, kept words and their relation to attention, of each model on each set."""
        return by_path(
            ((model, name, number), score)
            for model in self.model_names
            for name in self.sets
            for number, score in self._scores_on(model, name).items()
        )

    def _scores_on(self, model: str, name: str) -> dict[str, Score]:
        scores = scores_of(rows_of(self.cases, model, name), self.origin)
        is_blind = model in self.without_attention
        return scores | ({"change_with_das_ratio": Score.missing(NO_ATTENTION)} if is_blind else {})

    def items(self) -> dict[str, Items]:
        """Whether each response changed, and the overlap of its words."""
        items = {}
        for model in self.model_names:
            for name in self.sets:
                rows = rows_of(self.cases, model, name)
                dialogues = rows["dialogue"].to_pylist()
                keys = list(zip(dialogues, map(str, rows["turn"].to_pylist()), strict=True))
                for number, values in (("changed_share", "is_changed"), ("kept_words", "kept_words")):
                    items[path(model, name, number)] = Items.mean_of(keys, dialogues, column(rows, values))
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """Each model on the random set with most distractions."""
        name = next((each for each in RANDOM_FIRST if each in self.sets), self.sets[0])
        return [self._judged(model, name) for model in self.model_names]

    def _judged(self, model: str, name: str) -> Verdict:
        where = path(model, name, "changed_share")
        score = self.scores()[where]
        share = "" if score.value is None else f"{score.value:.0%}"
        text = f"On {name}, {share} of {model}'s responses change when unrelated turns are inserted."
        return undecided(score, where, text=text, reason=NO_LIMIT)

    def section(self) -> Section:
        """Changed responses by model and set."""
        text = "Each model writes a response to the context as it is, and to the same context with distractions."
        return Section(
            title="Behaviour",
            anchor="behave",
            question="Do distractions change what the model says?",
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
        columns = [Column("model"), Column("set"), *NUMBERS.values()]
        return Table(columns, rows, "Responses with and without distractions", name="behaviour")

    def example(self) -> str:
        """The first response that changed."""
        for row in self.cases.to_pylist():
            if row["is_changed"]:
                where = f"{row['model']} in {row['dialogue']}, turn {row['turn']}, on {row['set']}"
                return f'{where}:\n"{row["response"]}"\n  becomes\n"{row["distracted_response"]}"'
        return ""


def gives_attention(model: DialogueModel, cases: Sequence[Case]) -> bool:
    """Whether a model gives attention weights, tried on the first context that fits."""
    for case in cases:
        try:
            model.attend([case.context], [case.response])
        except TooLong:
            continue
        except UsageError:
            return False
        return True
    return False


def respond(
    model: DialogueModel, cases: Sequence[Case], *, work: Path | None = None, progress: Progress | None = None
) -> list[str | None]:
    """What a model writes to each context; None for one that does not fit into its window."""
    responses: list[str | None] = []
    for portion in response_portions(cases):
        responses += resumable(work, model, portion, _response_table)["response"].to_pylist()
        if progress is not None:
            progress(len(responses), len(cases))
    return responses


def response_portions(cases: Sequence[Case]) -> Iterator[Portion]:
    """The portions that responses are written in."""
    return portions(cases, AT_ONCE, {"what": "responses"})


def _response_table(model: DialogueModel, cases: Sequence[Case]) -> pa.Table:
    return pa.table({"response": pa.array(_written(model, cases), pa.string())})


def _written(model: DialogueModel, cases: Sequence[Case]) -> list[str | None]:
    try:
        with enough_memory(model):
            return [*model.generate([case.context for case in cases])]
    except TooLong as error:
        return around(error.parts, cases, partial(_written, model), None)


def unread(model: DialogueModel, cases: Sequence[Case]) -> list[int]:
    """How many of each context's oldest turns a model does not read where it answers; none of one too long."""
    try:
        return unread_turns(model, [case.context for case in cases], None)
    except TooLong as error:
        return around(error.parts, cases, partial(unread, model), 0)


def behave_table(
    model: str,
    name: str,
    cases: Sequence[Case],
    responses: Sequence[str | None],
    distracted: Sequence[str | None],
    ratios: np.ndarray[Any, Any],
    first_read: Sequence[int],
) -> pa.Table:
    """A row for each case that received a distraction (COLUMNS)."""
    positions = [position for position, case in enumerate(cases) if case.distractions]
    pairs = [(responses[position], distracted[position]) for position in positions]
    is_read = [max(cases[position].distractions) >= first_read[position] for position in positions]
    whole = [
        (before, after) if before is not None and after is not None and is_in else None
        for (before, after), is_in in zip(pairs, is_read, strict=True)
    ]
    return pa.table({
        "model": pa.array([model] * len(positions), pa.string()),
        "set": pa.array([name] * len(positions), pa.string()),
        "dialogue": pa.array([cases[position].dialogue for position in positions], pa.string()),
        "turn": pa.array([cases[position].turn for position in positions], pa.int64()),
        "response": pa.array([before for before, _ in pairs], pa.string()),
        "distracted_response": pa.array([after for _, after in pairs], pa.string()),
        "is_distraction_read": pa.array(is_read, pa.bool_()),
        "is_changed": pa.array([None if both is None else both[0] != both[1] for both in whole], pa.bool_()),
        "kept_words": pa.array([math.nan if both is None else shared_words(*both) for both in whole], pa.float64()),
        "das_ratio": pa.array([float(ratios[position]) for position in positions], pa.float64()),
    })  # fmt: skip


def scores_of(rows: pa.Table, origin: Origin) -> dict[str, Score]:
    """The numbers of one model on one set, over the rows with both responses and with distractions that are read."""
    rows = rows.filter(rows["is_changed"].is_valid())
    how: dict[str, Any] = {"clusters": rows["dialogue"].to_pylist(), "origin": origin}
    overlap = column(rows, "kept_words")
    return {
        "changed_share": mean_score(column(rows, "is_changed") > 0, **how),
        "kept_words": mean_score(overlap, **how).within(0, 1),
        "change_with_das_ratio": correlate(1 - overlap, column(rows, "das_ratio"), **how),
    }


def _left_out(cases: pa.Table) -> dict[str, int]:
    """How many rows could not be compared, by reason."""
    is_written = np.asarray(cases["response"].is_valid()) & np.asarray(cases["distracted_response"].is_valid())
    is_read = column(cases, "is_distraction_read") > 0
    return {TOO_LONG: int((~is_written).sum()), CUT: int((is_written & ~is_read).sum())}


def shared_words(text: str, other: str) -> float:
    """2 |u and v| / (|u| + |v|) of the words of two texts; 1 where both have none."""
    mine, theirs = set(words_of(text)), set(words_of(other))
    return 2 * len(mine & theirs) / (len(mine) + len(theirs)) if mine or theirs else 1.0
