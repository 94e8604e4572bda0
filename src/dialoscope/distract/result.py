"""The DAS ratio of every model on every set, with its interval, and the numbers that it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.distract.names import ORIGINAL
from dialoscope.distract.settings import AttentionSettings
from dialoscope.metrics import (
    Comparison,
    compare_ratios,
    correct,
    mean_score,
    median_score,
    perplexity_score,
    ratio_score,
)
from dialoscope.record import Origin, Score, Scores, by_path, path
from dialoscope.report import Section, Table
from dialoscope.report.cell import Cell, in_one_line
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.verdict import Verdict, judge

LARGEST = 300.0  # of a logarithm: squares of its exponential are still numbers
MARGIN = 0.005  # a ratio this near 1 is written 1.00
NO_CONTROL = "Lengths of turns alone move this ratio, and no control for them is measured: it is not judged."
NO_RATIO = "History has no attention in any context"
NONE_USED = "no context has both History and a distraction"
COLUMNS = {
    "model": "the model's name",
    "set": "the test set's name; original is the test set without distractions",
    "dialogue": "id of the dialogue",
    "turn": "number of the response in its dialogue, from 0",
    "distractions": "inserted turns, a count",
    "history_turns": "real turns before the Query, a count",
    "log_distraction": "natural logarithm of the mean attention score of the distractions; 0 is the average, 100 %",
    "log_history": "natural logarithm of the mean attention score of the History; 0 is the average, 100 %",
    "log_first": "natural logarithm of the attention score of the first turn of the History that is read",
    "log_last": "natural logarithm of the attention score of the last turn of the History",
    "log_likelihood": "natural logarithm of the response's probability, its end included (nats)",
    "tokens": "tokens of the response, its end included; 0: the context does not fit into the model's window",
}
EACH = "(counted for each model and set)"
NO_HISTORY = f"a context of one turn, which has no History {EACH}"
NO_DISTRACTION = f"a context that received no distraction {EACH}"
CUT = f"a context whose distractions or History lie before what the model reads {EACH}"
TOO_LONG = f"a context that is too long for the model {EACH}"
UNDEFINED = f"a context without attention on distractions and History {EACH}"
RANDOM_FIRST = ("random-1.0", "random-0.7", "random-0.5")  # the set of the headline
Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Heads:
    """Sums over contexts of the mean score on distractions and on History, in every layer and head of a model."""

    model: str
    set: str
    distraction: Floats  # (layers, heads)
    history: Floats

    @property
    def ratio(self) -> Floats:
        """The ratio of means of each head."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.distraction / self.history)


@dataclass(frozen=True)
class ModelComparison:
    """The first model's ratio of means on a set, minus another model's, over the same contexts."""

    model: str
    set: str
    comparison: Comparison


@dataclass(frozen=True)
class Picture:
    """One context, and how much attention a model gave to each of its turns, 1 for the average."""

    model: str
    dialogue: str
    turns: tuple[str, ...]
    distractions: tuple[int, ...]  # positions
    response: str
    scores: tuple[float | None, ...]  # of each turn; None: it is not read


@dataclass(frozen=True, eq=False)
class CaseRows:
    """One model on one set: a row for each context (COLUMNS)."""

    model: str
    set: str
    table: pa.Table

    def column(self, name: str) -> Floats:
        """A column of numbers."""
        return np.asarray(self.table[name].to_numpy(), dtype=np.float64)

    @property
    def dialogues(self) -> list[str]:
        """The dialogue of each context."""
        return list(self.table["dialogue"].to_pylist())

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What each context is called in every run: its dialogue and the turn of its response."""
        return list(zip(self.dialogues, map(str, self.table["turn"].to_pylist()), strict=True))

    @property
    def is_read(self) -> Flags:
        """Whether each context fits into the model's window."""
        return np.asarray(self.column("tokens") > 0)

    @property
    def is_used(self) -> Flags:
        """Whether the model reads both History and, where there are any, distractions of each context."""
        is_used = ~np.isnan(self.column("log_history"))
        return is_used if self.set == ORIGINAL else is_used & ~np.isnan(self.column("log_distraction"))

    @property
    def das_ratios(self) -> Floats:
        """The ratio in each context, NaN where there is none. A ratio too large to be added up is held down."""
        with np.errstate(invalid="ignore"):  # none on either: there is no ratio
            log = self.column("log_distraction") - self.column("log_history")
            return np.asarray(np.exp(np.minimum(log, LARGEST)))

    @property
    def means(self) -> tuple[Floats, Floats]:
        """Scores of distractions and of History in each context, both or none."""
        distraction, history = np.exp(self.column("log_distraction")), np.exp(self.column("log_history"))
        is_whole = ~(np.isnan(distraction) | np.isnan(history))
        return np.where(is_whole, distraction, np.nan), np.where(is_whole, history, np.nan)

    def left_out(self) -> dict[str, int]:
        """How many contexts are part of no ratio, by reason; each has one reason."""
        had_history, had_distraction = self.column("history_turns") > 0, self.column("distractions") > 0
        needs_distraction = self.set != ORIGINAL
        is_read, is_used = self.is_read, self.is_used
        was_whole = had_history & (had_distraction | (not needs_distraction))
        flags = {
            TOO_LONG: ~is_read,
            NO_HISTORY: is_read & ~had_history,
            NO_DISTRACTION: is_read & had_history & ~was_whole,
            CUT: is_read & was_whole & ~is_used,
            UNDEFINED: is_used & np.isnan(self.das_ratios) & needs_distraction,
        }
        return {reason: int(flag.sum()) for reason, flag in flags.items()}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttentionResult(Result):
    """Attention of all models on all sets, and how the first model differs from the others.

    ``das_ratio`` is equation 8, the mean over contexts of the ratio of distractions to History in each;
    ``das_ratio_of_means`` is what the cells of the paper's Tables 4 to 6 are; ``das_ratio_median``. Percentages are of
    the average attention: ``distraction_percent``, ``history_percent``, ``first_percent`` and ``last_percent`` of
    History. ``perplexity`` is over all contexts. The part ``original`` has no distractions and lacks the first four.
    """

    instrument: ClassVar[str] = "attention"
    settings_class: ClassVar[type[AttentionSettings]] = AttentionSettings

    settings: AttentionSettings
    models: tuple[tuple[str, str], ...]  # name, and the model's own name with a fingerprint of its weights
    sets: Mapping[str, Mapping[str, Any]]  # set -> fingerprint, number of distractions, sentences
    cases: pa.Table  # COLUMNS
    heads: tuple[Heads, ...] = ()
    comparisons: tuple[ModelComparison, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def table(self) -> pa.Table:
        """A row for each model, set and context (COLUMNS)."""
        return self.cases

    @cached_property
    def rows(self) -> dict[tuple[str, str], CaseRows]:
        """The rows of each model on each set."""
        return {
            (model, name): CaseRows(model, name, rows_of(self.cases, model, name))
            for model in self.model_names
            for name in self.sets
        }

    @property
    def model_names(self) -> list[str]:
        """Models in their order; the others are compared with the first."""
        return [name for name, _ in self.models]

    @property
    def set_names(self) -> list[str]:
        """Distracting sets in their order."""
        return [name for name in self.sets if name != ORIGINAL]

    @property
    def headline_set(self) -> str:
        """The set that the first finding is about."""
        return next((name for name in RANDOM_FIRST if name in self.sets), self.set_names[0])

    def score(self, model: str, name: str, number: str) -> Score | None:
        """One number of a model on a set; None where the set was not measured."""
        return self.scores().get(path(model, name, number))

    @kept
    def scores(self) -> Scores:
        """DAS ratios, mean attention scores and perplexity of each model on each set."""
        return by_path(
            ((model, name, number), score)
            for (model, name), rows in self.rows.items()
            for number, score in scores_of(rows, self.origin).items()
        )

    def items(self) -> dict[str, Items]:
        """Attention on distractions over attention on History, and negative log-likelihood over tokens."""
        items = {}
        for (model, name), rows in self.rows.items():
            loss = np.where(rows.is_read, -rows.column("log_likelihood"), np.nan)
            items[path(model, name, "perplexity")] = Items(rows.keys, rows.dialogues, loss, rows.column("tokens"))
            if name != ORIGINAL:
                ratio = Items(rows.keys, rows.dialogues, *rows.means)
                items[path(model, name, "das_ratio_of_means")] = ratio
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """Each model on one set, and on the sets whose unrelated turns have more attention than real ones for sure."""
        name = self.headline_set
        verdicts = [self._judged(model, [name]) for model in self.model_names]
        for model in self.model_names:
            drawn = [each for each in self.set_names if each != name and self._is_drawn(model, each)]
            verdicts += [self._judged(model, drawn)] if drawn else []
        return sorted(verdicts, key=lambda verdict: ORDER.index(verdict.level))

    def _judged(self, model: str, names: Sequence[str]) -> Verdict:
        """One finding about a model's ratios on sets; the first set decides."""
        paths = [path(model, name, "das_ratio_of_means") for name in names]
        scores = [self.scores()[each] for each in paths]
        ratios = " and ".join(f"{score.value:.2f} times" for score in scores if score.value is not None)
        text = f"On {' and '.join(names)}, {model} gives unrelated turns {ratios} the attention of real ones ({ONE})."
        verdict = judge(scores[0], paths[0], text=text, concern_over=1, margin=MARGIN)
        if verdict.level in ("good", "concern"):  # a verdict needs an interval and a control
            verdict = Verdict("cannot_tell", f"{text} {NO_CONTROL}")
        return Verdict(verdict.level, verdict.text, paths)

    def _is_drawn(self, model: str, name: str) -> bool:
        """Whether unrelated turns surely have more attention than real ones."""
        interval = self.scores()[path(model, name, "das_ratio_of_means")].interval
        return interval is not None and interval[0] > 1 + MARGIN

    def section(self) -> Section:
        """Ratios, the numbers that they are made of, heads, and a context with the attention on each turn."""
        from dialoscope.distract.section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """The ratio of means by set and model, below what the models make of the original test set."""
        rows: list[list[Cell]] = [
            [f"{label} (original)", *(self._written(model, ORIGINAL, number) for model in self.model_names)]
            for label, number in (("perplexity", "perplexity"), ("History %", "history_percent"))
            if ORIGINAL in self.sets
        ]
        rows += [
            [name, *(self._written(model, name, "das_ratio_of_means") for model in self.model_names)]
            for name in self.set_names
        ]
        caption = "DAS ratio of means: attention on unrelated turns, relative to real ones"
        notes = [self._compared(each) for each in self.comparisons]
        return Table(["set", *self.model_names], rows, caption, notes=notes)

    def _compared(self, compared: ModelComparison) -> str:
        """One comparison as a line: the difference of the ratios, and its corrected p-value or why there is none."""
        tested = compared.comparison
        p = f"p = {tested.p_holm:.3g} (Holm)" if tested.p_holm is not None else f"no p-value: {tested.reason}"
        difference = in_one_line(tested.difference, "+.3f")
        return f"{self.model_names[0]} minus {compared.model} on {compared.set}: {difference}, {p}"

    def _written(self, model: str, name: str, number: str) -> str:
        """One number with its interval and n."""
        return in_one_line(self.score(model, name, number), ".3f")

    def example(self) -> str:
        """The inserted turn that the first model gives most attention to, in the context that the page shows."""
        for picture in self.pictures:
            scores = ((picture.scores[position], picture.turns[position]) for position in picture.distractions)
            read = [(score, turn) for score, turn in scores if score is not None]
            if read:
                score, turn = max(read)
                text = f'"{turn}"'
                return f"In {picture.dialogue}, {picture.model} gives {score:.0%} of the average attention to\n{text}"
        return ""


ONE = "1 = cannot tell them apart; lower is better"
ORDER = ("concern", "cannot_tell", "not_measurable", "good")


def attention_table(rows: Sequence[CaseRows]) -> pa.Table:
    """The rows of all models and sets as one table (COLUMNS)."""
    return documented(pa.concat_tables([_named(each) for each in rows]).select(list(COLUMNS)), COLUMNS)


def _named(rows: CaseRows) -> pa.Table:
    """The rows with the names of their model and set."""
    count = rows.table.num_rows
    table = rows.table.append_column("model", pa.array([rows.model] * count, pa.string()))
    return table.append_column("set", pa.array([rows.set] * count, pa.string()))


def rows_of(table: pa.Table, model: str, name: str) -> pa.Table:
    """The rows of one model on one set."""
    return table.filter(pc.and_(pc.equal(table["model"], model), pc.equal(table["set"], name)))


def left_out(rows: Sequence[CaseRows]) -> dict[str, int]:
    """How many rows are part of no ratio, by reason."""
    totals: dict[str, int] = {}
    for each in rows:
        for reason, count in each.left_out().items():
            totals[reason] = totals.get(reason, 0) + count
    return totals


def scores_of(rows: CaseRows, origin: Origin) -> dict[str, Score]:
    """The numbers of one model on one set."""
    perplexity = {"perplexity": _perplexity(rows, origin)}
    if rows.set == ORIGINAL:
        return {**perplexity, **_percentages(rows, ("history", "first", "last"), origin)}
    is_used = rows.is_used
    how: dict[str, Any] = {"clusters": _chosen(rows.dialogues, is_used), "origin": origin}
    ratios = rows.das_ratios[is_used]
    means = (np.exp(rows.column(name)[is_used]) for name in ("log_distraction", "log_history"))
    undefined = NO_RATIO if is_used.any() else NONE_USED
    return {
        "das_ratio": mean_score(ratios, **how).within(0),
        "das_ratio_of_means": ratio_score(*means, undefined=undefined, **how).within(0),
        "das_ratio_median": median_score(ratios, **how),
        **_percentages(rows, ("distraction", "history", "first", "last"), origin),
        **perplexity,
    }


def _percentages(rows: CaseRows, names: Sequence[str], origin: Origin) -> dict[str, Score]:
    """Mean attention scores over the contexts that count, in percent of the average."""
    is_used = rows.is_used
    dialogues = _chosen(rows.dialogues, is_used)
    return {
        f"{name}_percent": mean_score(
            100 * np.exp(rows.column(f"log_{name}")[is_used]), clusters=dialogues, origin=origin
        ).within(0)
        for name in names
    }


def _perplexity(rows: CaseRows, origin: Origin) -> Score:
    is_read = rows.is_read
    if not is_read.any():
        return Score.missing("no dialogue of the measured split has a response that the model reads")
    likelihood, tokens = (rows.column(name)[is_read] for name in ("log_likelihood", "tokens"))
    return perplexity_score(likelihood, tokens, clusters=_chosen(rows.dialogues, is_read), origin=origin)


def _chosen(dialogues: Sequence[str], is_chosen: Flags) -> list[str]:
    return [name for name, is_in in zip(dialogues, is_chosen.tolist(), strict=True) if is_in]


def compared(rows: Sequence[CaseRows], origin: Origin) -> Iterator[ModelComparison]:
    """The first model's ratio of means minus each other model's, over the same contexts, corrected over the table.

    Not equation 8: where a softmax has settled, a few contexts decide a mean of ratios, and a test of it. And not by
    randomisation, which asks whether two models are alike in everything: models differ in how much attention they leave
    to History at all, and equal ratios would be found different.
    """
    first = {each.set: each for each in rows if each.model == rows[0].model}
    tested = {
        (each.model, each.set): compare_ratios(
            first[each.set].means, each.means, clusters=each.dialogues, test="bootstrap", origin=origin
        )
        for each in rows
        if each.model != rows[0].model and each.set != ORIGINAL
    }
    return (ModelComparison(*names, comparison) for names, comparison in correct(tested).items())


def in_words(table: Table) -> Table:
    """A table for the terminal: each number as text, with its interval and n."""
    formats = [head.number_format for head in table.heads]
    rows = [[in_one_line(cell, form) for cell, form in zip(row, formats, strict=True)] for row in table.rows]
    return Table([head.name for head in table.heads], rows, table.caption)
