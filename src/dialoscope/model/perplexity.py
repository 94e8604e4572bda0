"""How well models predict a corpus's responses: perplexity of a token, with an interval over dialogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus, Sample
from dialoscope.corpus.split import split_to_read
from dialoscope.errors import UsageError
from dialoscope.metrics.bootstrap import Resampling
from dialoscope.metrics.paired import Comparison, compare_ratios
from dialoscope.metrics.perplexity import perplexity_score
from dialoscope.model.answers import ALL, Asked, in_words, settings_of, unread
from dialoscope.model.loading import open_models
from dialoscope.model.protocol import Account, DialogueModel
from dialoscope.model.settings import PerplexitySettings
from dialoscope.progress import Progress, Stages
from dialoscope.record import Origin, Score, Scores, by_path, path
from dialoscope.report.cell import Cell, p_cell
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.section import Block, Column, Section, Table
from dialoscope.report.verdict import Verdict, judge_difference
from dialoscope.settings import with_options

COLUMNS = {
    "model": "name of the model",
    "response": "number of the response among those that were measured, from 0",
    "dialogue": "id of the dialogue",
    "turn": "number of the response among the turns of its dialogue, from 0",
    "log_likelihood": "natural log-likelihood of the response under the model, summed over its tokens and its end",
    "tokens": "tokens of the response, its end included",
}


@dataclass(frozen=True, eq=False)
class ModelPerplexity:
    """The perplexity of a corpus's responses under one model."""

    perplexity: Score
    model: str  # its own name, with a fingerprint of its weights
    reading: str  # that name, and how the model read contexts
    dialogues: int
    tokens: int
    responses_of: str = ALL
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> responses
    account: Account | None = None  # what was cut from contexts, where the model keeps count
    responses: pa.Table | None = None  # COLUMNS, without the model


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PerplexityResult(Result):
    """Perplexities of a split's responses under models, and comparisons with the first of them."""

    instrument: ClassVar[str] = "perplexity"
    settings_class: ClassVar[type[PerplexitySettings]] = PerplexitySettings

    settings: PerplexitySettings
    part: str  # the split
    models: Mapping[str, ModelPerplexity]
    comparisons: Mapping[str, Comparison]  # model -> its mean negative log-likelihood of a token minus the first's
    responses: pa.Table  # COLUMNS

    @property
    def table(self) -> pa.Table:
        """One row for each response under each model (COLUMNS)."""
        return self.responses

    @kept
    def scores(self) -> Scores:
        """The perplexity under each model, as MODEL/SPLIT/perplexity."""
        return by_path(((name, self.part, "perplexity"), each.perplexity) for name, each in self.models.items())

    def items(self) -> dict[str, Items]:
        """Negative log-likelihood over tokens, for each response, known by its dialogue and turn."""
        found = {}
        for name in self.models:
            rows = self.responses.filter(pc.equal(self.responses["model"], name))
            dialogues, turns = rows["dialogue"].to_pylist(), rows["turn"].to_pylist()
            keys = [(dialogue, str(turn)) for dialogue, turn in zip(dialogues, turns, strict=True)]
            above, below = (np.asarray(rows[each].to_numpy(), float) for each in ("log_likelihood", "tokens"))
            found[path(name, self.part, "perplexity")] = Items(keys, dialogues, -above, below)
        return found

    @kept
    def verdicts(self) -> list[Verdict]:
        """Each further model against the first one; a single perplexity is neither good nor bad."""
        first = next(iter(self.models))
        judged = [self._judged(name, first) for name in list(self.models)[1:]]
        return judged or [self._alone(first)]

    def _alone(self, name: str) -> Verdict:
        score, where = self.models[name].perplexity, path(name, self.part, "perplexity")
        if score.value is None:
            return Verdict("not_measurable", f"Not measurable: {score.reason}.", [where])
        text = f"{name} has perplexity {score.value:.4g} on {score.n:,} responses."
        why = "Whether that is good cannot be told without a second model on the same responses."
        return Verdict("cannot_tell", f"{text} {why}", [where])

    def _judged(self, name: str, first: str) -> Verdict:
        """Perplexities compare only where both models count the same tokens."""
        where, baseline = path(name, self.part, "perplexity"), path(first, self.part, "perplexity")
        mine, theirs = self.models[name], self.models[first]
        if mine.perplexity.value is None or theirs.perplexity.value is None:
            reason = mine.perplexity.reason or theirs.perplexity.reason
            return Verdict("not_measurable", f"Not measurable: {reason}.", [where], baseline)
        text = f"{name} has perplexity {mine.perplexity.value:.4g}, {first} has {theirs.perplexity.value:.4g}."
        if name not in self.comparisons:
            why = "They cannot be compared: the models cut the responses into different tokens, or left others out."
            return Verdict("cannot_tell", f"{text} {why}", [where], baseline)
        difference = self.comparisons[name].difference
        return judge_difference(difference, where, better="low", text=text, against=baseline)

    def section(self) -> Section:
        """The perplexity of each model and its difference to the first."""
        blocks: list[Block] = [self.summary()]
        return Section(
            title="Perplexity",
            anchor="perplexity",
            question="How well do the models predict the responses?",
            blocks=blocks,
            lead=f"{self.verdict.text} {self.used}",
            verdict=self.card,
            origin=self.origin,
        )

    def summary(self) -> Table:
        """A row for each model."""
        rows: list[list[Cell]] = []
        for name, each in self.models.items():
            row: list[Cell] = [name, each.perplexity, each.perplexity.n, each.dialogues, each.tokens]
            if self.comparisons:
                compared = self.comparisons.get(name)
                row += [None, None] if compared is None else [
                    compared.difference, p_cell(compared.p_value, n=each.perplexity.n, reason=compared.reason)
                ]  # fmt: skip
            rows.append(row)
        columns: list[str | Column] = ["model", Column("perplexity", ",.2f"), "responses", "dialogues", "tokens"]
        columns += [Column("log difference to the first", ".3f"), Column("p", ".2g")] if self.comparisons else []
        return Table(columns, rows, "Perplexity of a token", notes=self.notes)

    @property
    def notes(self) -> list[str]:
        """What models did not read."""
        notes = []
        for name, each in self.models.items():
            found = unread(each.account)
            if found["cut"] and found["cut"]["contexts"]:
                counts = f"{found['cut']['contexts']:,} contexts lost {found['cut']['turns']:,} of their oldest turns"
                notes.append(f"{name}: {counts}.")
            if found["unknown_share"]:
                notes.append(f"{name}: {found['unknown_share']:.1%} of the words are unknown to the model.")
        return notes


def perplexity(
    corpus: Corpus,
    *,
    models: Mapping[str, Any],
    settings: PerplexitySettings | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    **options: Any,
) -> PerplexityResult:
    """Measure the perplexity of a split's responses under models by name, with an interval over dialogues.

    A model is a path, a hub name, a loaded model or a (model, tokenizer) pair. Further models are compared with the
    first, where both count the same tokens.

    >>> perplexity(load("concierge"), models={"mine": "run"}, split="test").scores()       # doctest: +SKIP
    """
    settings = with_options(settings, PerplexitySettings, options)
    if not isinstance(corpus, Corpus):
        raise UsageError(f"perplexity takes a Corpus, found {type(corpus).__name__}. Load it with dialoscope.load.")
    chosen, part, used = split_to_read(corpus, split=settings.split, limit=settings.limit)
    opened = open_models(models, settings, quiet=quiet, **settings.reading)
    stages = Stages(progress, total=0)
    measured = {}
    for name, model in opened.items():
        asked = Asked.of(model, chosen, context_turns=settings.context_turns, responses=settings.responses)
        stages.total = stages.total or len(asked.samples) * len(opened)
        measured[name] = _measured(asked, chosen, seed=settings.seed, progress=stages.next())
    return PerplexityResult(
        settings=settings,
        parts={part: len(chosen)},
        used=used.replace("Read", "Measured"),
        counts=skipped(chosen.skipped, *(each.left_out for each in measured.values())),
        origin=Origin(
            f"{corpus.name}@{corpus.fingerprint}",
            {
                **{key: value for key, value in settings.changed().items() if key != "seed"},
                **{name: each.reading for name, each in measured.items()},
            },
            settings.seed,
        ),
        part=part,
        models={name: replace(each, responses=None) for name, each in measured.items()},
        comparisons=_comparisons(measured, seed=settings.seed),
        responses=_table(measured),
    )


def perplexity_under(
    model: DialogueModel,
    corpus: Corpus,
    *,
    context_turns: int | None = None,
    responses: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ModelPerplexity:
    """Perplexity over all response tokens of a corpus under one loaded model; n counts responses.

    context_turns: None is what the model was trained with, if it says so, else all. responses: a speaker, whose
    responses are measured, or "all"; None is the assistant for a chat model and a corpus that has one, else all.
    """
    asked = Asked.of(model, corpus, context_turns=context_turns, responses=responses)
    return _measured(asked, corpus, seed=seed, progress=progress)


def _measured(asked: Asked, corpus: Corpus, *, seed: int, progress: Progress | None) -> ModelPerplexity:
    totals, tokens, dialogues, turns = [], [], [], list[int]()
    numbered = zip(asked.samples, asked.samples.turns.tolist(), strict=True)
    for some, found in asked.answers(_likelihoods(asked.model), progress):
        totals += [each.total for each in found]
        tokens += [each.tokens for each in found]
        dialogues += [sample.dialogue for sample in some]
        turns += [next(turn for sample, turn in numbered if sample == measured) for measured in some]  # others are out
    if not totals:
        raise UsageError(f"{corpus.name}: every response was left out: {in_words(asked.left_out)}.")
    origin = Origin(f"{corpus.name}@{corpus.fingerprint}", {"metric": "perplexity", **settings_of(asked)}, seed)
    score = perplexity_score(totals, tokens, clusters=dialogues, resampling=Resampling(seed=seed), origin=origin)
    rows = {
        "response": pa.array(range(len(totals)), pa.int64()),
        "dialogue": pa.array(dialogues, pa.string()),
        "turn": pa.array(turns, pa.int64()),
        "log_likelihood": pa.array(totals, pa.float64()),
        "tokens": pa.array(tokens, pa.int64()),
    }
    counts = len(set(dialogues)), sum(tokens)
    left_out = dict(asked.left_out)
    how = {key: value for key, value in settings_of(asked).items() if value is not None}
    reading = ",".join(f"{key}={value}" for key, value in how.items())
    return ModelPerplexity(
        score, asked.model.name, reading, *counts, asked.responses_of, left_out, asked.account, pa.table(rows)
    )


def _likelihoods(model: DialogueModel) -> Callable[[Sequence[Sample]], list[Any]]:
    return lambda some: model.log_likelihood([sample.context for sample in some], [sample.response for sample in some])


def _table(measured: Mapping[str, ModelPerplexity]) -> pa.Table:
    tables = []
    for name, each in measured.items():
        assert each.responses is not None
        names = pa.array([name] * len(each.responses), pa.string())
        tables.append(each.responses.add_column(0, "model", names))
    return documented(pa.concat_tables(tables), COLUMNS)


def _comparisons(measured: Mapping[str, ModelPerplexity], *, seed: int) -> dict[str, Comparison]:
    """Each further model against the first, where both cut the same responses into the same tokens."""
    (_, first), *others = measured.items()
    compared = {}
    for name, other in others:
        mine, theirs = other.responses, first.responses
        assert mine is not None and theirs is not None
        same = ("dialogue", "tokens")
        finite = all(each.perplexity.value is not None for each in (first, other))
        if finite and len(mine) == len(theirs) and all(mine[column].equals(theirs[column]) for column in same):
            sides = [
                (-np.asarray(each["log_likelihood"].to_numpy()), np.asarray(each["tokens"].to_numpy(), float))
                for each in (mine, theirs)
            ]
            clusters = mine["dialogue"].to_pylist()
            compared[name] = compare_ratios(*sides, clusters=clusters, resampling=Resampling(seed=seed))
    return compared
