"""The scores of one system's responses, and its comparisons with other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.fingerprint import digest
from dialoscope.metrics.paired import Comparison
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.score import METRICS
from dialoscope.metrics.settings import MetricsSettings
from dialoscope.metrics.statistic import Mean, Swappable
from dialoscope.record import Score, Scores, by_path, direction, path
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.section import Section, Table
from dialoscope.report.verdict import Verdict, judge_difference

COLUMNS = {
    "system": "name of the system",
    "row": "number of the response, from 0",
    "dialogue": "the dialogue that the response belongs to; its row where no dialogues are named",
    "hypothesis": "the response",
    "reference": "what it is compared with",
    "log_likelihood": "log-likelihood of the response, natural logarithm, summed over its tokens; null for none",
    "tokens": "tokens of the response; null where unknown",
}
HASH_LETTERS = 12  # of a reference, in the key of a response
DECIDED = ("good", "concern")
SIGNIFICANT = 0.05  # p-values from here on, after Holm's correction, leave a comparison open


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MetricsResult(Result):
    """Scores of responses by metric, and comparisons with other systems on the same references."""

    instrument: ClassVar[str] = "metrics"
    settings_class: ClassVar[type[MetricsSettings]] = MetricsSettings
    has_keys_of_content: ClassVar[bool] = True

    settings: MetricsSettings
    system: str  # the one that was measured; the others are what it is compared with
    system_scores: Mapping[str, Mapping[str, Score]]  # system -> metric -> score
    comparisons: Mapping[str, Mapping[str, Comparison]]  # other system -> metric -> measured system minus it
    responses: pa.Table  # COLUMNS, and a column for each metric that is a mean over responses
    notes: tuple[str, ...] = field(default=())

    @property
    def table(self) -> pa.Table:
        """One row for each response of each system (COLUMNS), with the metrics that are means over responses."""
        return self.responses

    @kept
    def scores(self) -> Scores:
        """Every metric of every system, as SYSTEM/all/METRIC."""
        return by_path(
            ((system, "all", metric), score)
            for system, scores in self.system_scores.items()
            for metric, score in scores.items()
        )

    def items(self) -> dict[str, Items]:
        """The values of each response, for metrics that are means over responses, and for perplexity.

        A response is known by its row and its reference: rows of files in another order are not paired.
        """
        found = {}
        for system, scores in self.system_scores.items():
            rows = self.responses.filter(pc.equal(self.responses["system"], system))
            references = rows["reference"].to_pylist()
            keys = [(str(row), digest(reference)[:HASH_LETTERS])
                    for row, reference in zip(rows["row"].to_pylist(), references, strict=True)]  # fmt: skip
            dialogues = rows["dialogue"].to_pylist()
            for metric in scores:
                if metric in rows.column_names:
                    found[path(system, "all", metric)] = Items.mean_of(keys, dialogues, _numbers(rows, metric))
            if "perplexity" in scores:
                likelihoods, tokens = _numbers(rows, "log_likelihood"), _numbers(rows, "tokens")
                found[path(system, "all", "perplexity")] = Items(keys, dialogues, -likelihoods, tokens)
        return found

    @kept
    def verdicts(self) -> list[Verdict]:
        """For each other system the comparison by the first metric, and by every other metric that decides."""
        found = []
        for other, comparisons in self.comparisons.items():
            named = [each for each in comparisons.items() if direction(each[0]) != "neither"]
            judged = [self._judged(other, metric, comparison) for metric, comparison in named]
            found += judged[:1] + [verdict for verdict in judged[1:] if verdict.level in DECIDED]
        return found or [self._alone()]

    def _alone(self) -> Verdict:
        """A number without a baseline is neither good nor bad."""
        metric, score = next(iter(self.system_scores[self.system].items()))
        name = path(self.system, "all", metric)
        if score.value is None:
            return Verdict("not_measurable", f"Not measurable: {score.reason}.", [name])
        text = f"{self.system} has {metric} {score.value:.4g} ({METRICS[metric].unit}) on {score.n:,} responses."
        why = "Whether that is good cannot be told without another system's responses: give them as against."
        return Verdict("cannot_tell", f"{text} {why}", [name])

    def _judged(self, other: str, metric: str, comparison: Comparison) -> Verdict:
        """A difference decides where its interval excludes 0 and the test, corrected for the table, agrees."""
        name, baseline = path(self.system, "all", metric), path(other, "all", metric)
        mine, theirs = (self.system_scores[system][metric] for system in (self.system, other))
        text = ""
        if mine.value is not None and theirs.value is not None:
            text = f"{self.system} has {metric} {mine.value:.4g}, {other} has {theirs.value:.4g}."
        better: Literal["high", "low"] = "high" if direction(metric) == "high" else "low"
        found = judge_difference(comparison.difference, name, better=better, text=text, against=baseline)
        p = comparison.p_holm
        if found.level not in DECIDED:
            return found
        if p is not None and p < SIGNIFICANT:
            return replace(found, text=f"{text.removesuffix('.')} (p = {p:.2g}).")
        why = f"p is {p:.2g} by {comparison.test}" if p is not None else comparison.reason or "it was not tested"
        return replace(found, level="cannot_tell", text=f"{text} Which is better cannot be told: {why}.")

    def section(self) -> Section:
        """The scores, the comparisons, and the responses that score lowest."""
        from dialoscope.metrics.section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """Every metric, and the comparisons beside it."""
        from dialoscope.metrics.section import scores_table

        return scores_table(self)

    def example(self) -> str:
        """The response that the first metric over responses scores lowest."""
        metric = next((name for name in self.system_scores[self.system] if name in self.responses.column_names), None)
        rows = self.responses.filter(pc.equal(self.responses["system"], self.system))
        if metric is None or metric == "length" or not len(rows) or rows[metric].null_count == len(rows):
            return ""
        worst = direction(metric) == "low"
        value = (pc.max if worst else pc.min)(rows[metric])
        row = rows.filter(pc.equal(rows[metric], value)).slice(0, 1).to_pylist()[0]
        texts = f'"{row["hypothesis"]}"\n  for\n"{row["reference"]}"'
        return f"Response {row['row'] + 1}, {metric} {value.as_py():.3g}:\n{texts}"


def responses_table(systems: Mapping[str, tuple[Pairs, Mapping[str, Swappable]]]) -> pa.Table:
    """The table of all systems' responses, with the values of metrics that are means over them."""
    metrics = [metric for metric, statistic in next(iter(systems.values()))[1].items() if isinstance(statistic, Mean)]
    tables = []
    for system, (pairs, statistics) in systems.items():
        count = len(pairs)
        dialogues = range(count) if pairs.dialogues is None else pairs.dialogues
        columns: dict[str, Any] = {
            "system": pa.array([system] * count, pa.string()),
            "row": pa.array(range(count), pa.int64()),
            "dialogue": pa.array(map(str, dialogues), pa.string()),
            "hypothesis": pa.array(pairs.hypotheses, pa.large_string()),
            "reference": pa.array(pairs.references, pa.large_string()),
            "log_likelihood": _column(pairs.log_likelihoods, count),
            "tokens": _column(pairs.token_counts, count),
        }
        for metric in metrics:
            statistic = statistics[metric]
            assert isinstance(statistic, Mean)
            columns[metric] = _column(np.where(statistic.scored, statistic.items[:, 0], np.nan), count)
        tables.append(pa.table(columns))
    meanings = {metric: f"{METRICS[metric].about}, of this response ({METRICS[metric].unit})" for metric in metrics}
    return documented(pa.concat_tables(tables), {**COLUMNS, **meanings})


def _column(values: Any, count: int) -> pa.Array:
    """Numbers as a column; what is missing is null."""
    numbers = np.full(count, np.nan) if values is None else np.asarray(values, dtype=np.float64)
    return pa.array(numbers, pa.float64(), from_pandas=True)


def _numbers(rows: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(rows[name].to_numpy(), dtype=np.float64)
