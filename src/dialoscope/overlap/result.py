"""The best match of every test unit, and the numbers that follow from it; thresholds can be changed afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.metrics import Resampling, mean_score
from dialoscope.overlap.engine import Floats, Match, Matches
from dialoscope.overlap.responses import score_answers
from dialoscope.overlap.scan import Flags
from dialoscope.overlap.settings import OverlapSettings, threshold_text
from dialoscope.record import Score, Scores, by_path, path
from dialoscope.report import Column, Section, Table
from dialoscope.report.cell import Cell
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept
from dialoscope.report.verdict import Verdict, judge

THRESHOLDS = (0.5, 0.6, 0.75, 0.8, 0.9, 0.99)
CONCERN = 0.01  # share of leaked units from which a benchmark is doubtful
COLUMNS = {
    "part": "the part of the data that the unit belongs to",
    "id": "id of the unit: of samples and turns the dialogue, #, and the number of the turn",
    "dialogue": "id of the unit's dialogue",
    "ratio": "highest overlap with a unit of the other side, from 0 to 1",
    "match_id": "id of the first unit of the other side that reaches this ratio; null for none",
    "match": "row of that unit, from 0; -1 for none",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OverlapResult(Result):
    """Overlap of test units with a training set, or of the units of one split with the rest of it."""

    instrument: ClassVar[str] = "overlap"
    settings_class: ClassVar[type[OverlapSettings]] = OverlapSettings

    settings: OverlapSettings
    matches: pa.Table  # COLUMNS
    measured: tuple[str, ...]  # parts
    unit: str
    is_within: bool
    examples: tuple[Match, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)  # part -> why it was not measured
    answers: pa.Table | None = None  # a model's responses, their references, and the number of the dialogue
    responses: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)  # part -> metric -> score
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pa.Table:
        """One row for each measured unit (COLUMNS)."""
        return self.matches

    @cached_property
    def ratio(self) -> Floats:
        """The best overlap of each measured unit."""
        return np.asarray(self.matches["ratio"].to_numpy())

    @property
    def match(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The row of each unit's match; -1 for none."""
        return np.asarray(self.matches["match"].to_numpy())

    def share_over(self, threshold: float, part: str | None = None) -> Score:
        """Share of a part's units strictly over a threshold, with an interval over dialogues."""
        return self._mean(lambda ratio: ratio > threshold, part or self.measured[0])

    def is_over(self, threshold: float) -> Flags:
        """Which units are strictly over a threshold."""
        return np.asarray(self.ratio > threshold)

    def count_over(self, threshold: float, part: str | None = None) -> int:
        """Units of a part strictly over a threshold."""
        return int((self._ratios(part or self.measured[0]) > threshold).sum())

    def count_identical(self, part: str | None = None) -> int:
        """Units of a part with a ratio of exactly 1."""
        return int((self._ratios(part or self.measured[0]) == 1).sum())

    def at(self, threshold: float) -> OverlapResult:
        """The same result with another threshold for leaked units; nothing is measured again."""
        settings = replace(self.settings, leak=threshold)
        choices = origin_settings(settings, self.unit, str(self.origin.settings.get("measured", "")))
        changed = replace(self, settings=settings, origin=replace(self.origin, settings=choices))
        return changed if self.answers is None else changed.with_answers(self.answers)

    @kept
    def scores(self) -> Scores:
        """Shares over each threshold, identical units, the mean ratio, and the responses' scores on each part."""
        return by_path(self._named_scores())

    def _named_scores(self) -> Iterator[tuple[tuple[str, str, str], Score]]:
        for part in self.measured:
            for threshold in sorted({*THRESHOLDS, self.settings.leak}):
                yield ("ratio", part, f"share_over_{threshold_text(threshold)}"), self.share_over(threshold, part)
            yield ("ratio", part, "identical_share"), self._mean(lambda ratio: ratio == 1, part)
            yield ("ratio", part, "mean_ratio"), self._mean(lambda ratio: ratio, part)
        for part, scores in self.responses.items():
            for metric, score in scores.items():
                yield ("responses", part, metric), score

    def items(self) -> dict[str, Items]:
        """For each unit whether it is over the threshold, whether it is identical, and its ratio."""
        items = {}
        for part in self.measured:
            rows = self._rows(part)
            keys = [(name,) for name in rows["id"].to_pylist()]
            dialogues = rows["dialogue"].to_pylist()
            ratio = self._ratios(part)
            leak = f"share_over_{threshold_text(self.settings.leak)}"
            items[path("ratio", part, leak)] = Items.mean_of(
                keys, dialogues, (ratio > self.settings.leak).astype(float)
            )
            items[path("ratio", part, "mean_ratio")] = Items.mean_of(keys, dialogues, ratio)
        return items

    @kept
    def verdicts(self) -> list[Verdict]:
        """How much of each part leaks."""
        return [self._judged(part) for part in self.measured]

    def _judged(self, part: str) -> Verdict:
        share = self.share_over(self.settings.leak, part)
        other = f"another {self.unit}" if self.is_within else f"a training {self.unit}"
        where = f"of the {part} {self.unit}s" if not self.is_within else f"of the {self.unit}s"
        text = "" if share.value is None else f"{share.value:.1%} {where} nearly repeat {other}."
        return judge(
            share,
            path("ratio", part, f"share_over_{threshold_text(self.settings.leak)}"),
            text=text,
            concern_over=CONCERN,
        )

    def with_answers(self, answers: pa.Table) -> OverlapResult:
        """The same result with a model's responses scored on the whole part, its clean units and its leaked units."""
        responses, notes = score_answers(self, answers)
        return replace(self, answers=answers, responses=responses, notes=notes)

    def section(self) -> Section:
        """How much leaks, how it is spread, and which unit matched which."""
        from dialoscope.overlap.section import section_of

        return section_of(self)

    def summary(self) -> Table:
        """Identical units and units over each threshold, by part; the responses' scores, where there are any."""
        scores, rows = self.scores(), list[list[Cell]]()
        for part in self.measured:
            counts = {"identical": (self.count_identical(part), "identical_share")}
            for threshold in reversed(with_threshold(self.settings.leak)):
                counts[f"over {threshold_text(threshold)}"] = (
                    self.count_over(threshold, part),
                    f"share_over_{threshold_text(threshold)}",
                )
            for name, (count, number) in counts.items():
                share = scores[path("ratio", part, number)]
                rows.append([part, name, None if part in self.reasons else count, share])
        return Table(["part", "ratio", f"{self.unit}s", Column("share", ".2%")], rows, "Units by their best overlap")

    def example(self) -> str:
        """The closest pair of texts."""
        for match in self.examples:
            response = f'"{match.texts[-1]}"\n  repeats\n"{match.partner_texts[-1]}"'
            return f"{match.id} and {match.partner}, ratio {match.ratio:.2f}:\n{response}"
        return ""

    def histogram(self, part: str | None = None) -> tuple[list[float], list[int]]:
        """Edges and counts in bins of 0.05; the last bin holds ratios from 0.95 up to and including 1."""
        edges = np.arange(0, 21) / 20
        counts, _ = np.histogram(self._ratios(part or self.measured[0]), bins=edges)
        return edges.tolist(), counts.tolist()

    def closest(self, most: int | None = None) -> pa.Table:
        """The units over the threshold, the highest ratio first and the first of equals before."""
        order = np.argsort(-self.ratio, kind="stable")[: int(self.is_over(self.settings.leak).sum())]
        return self.matches.take(pa.array(order[:most]))

    def _rows(self, part: str) -> pa.Table:
        return self.matches.filter(pc.equal(self.matches["part"], part))

    def _ratios(self, part: str) -> Floats:
        return np.asarray(self._rows(part)["ratio"].to_numpy())

    def _mean(self, of: Any, part: str) -> Score:
        if part in self.reasons:
            return Score.missing(self.reasons[part])
        rows = self._rows(part)
        ratio = np.asarray(rows["ratio"].to_numpy())
        clusters = rows["dialogue"].combine_chunks().dictionary_encode().indices.to_numpy()
        return mean_score(
            of(ratio), clusters=clusters, origin=self.origin, resampling=Resampling(seed=self.settings.seed)
        )


def matches_table(part: str, matches: Matches, unit: str) -> pa.Table:
    """The matches of one part, as COLUMNS say."""
    text = pa.large_string()
    ids = matches.ids.cast(text)
    columns: Mapping[str, Any] = {
        "part": pa.array([part], pa.string()).take(pa.array(np.zeros(len(ids), dtype=np.int64))),
        "id": ids,
        "dialogue": ids if unit == "dialogue" else pc.replace_substring_regex(ids, r"#[0-9]+$", ""),
        "ratio": pa.array(matches.ratio, pa.float64()),
        "match_id": matches.partners.cast(text),
        "match": pa.array(matches.match, pa.int64()),
    }
    return documented(pa.table(columns), COLUMNS)


def origin_settings(settings: OverlapSettings, unit: str, measured: str) -> dict[str, Any]:
    """What has to be repeated to get the same numbers: the settings that were changed, and what was measured."""
    changed = {name: value for name, value in settings.changed().items() if name != "seed"}
    return {**changed, "unit": unit, "measured": measured}


def with_threshold(threshold: float) -> Sequence[float]:
    """The usual thresholds and one more, in order."""
    return sorted({*THRESHOLDS, threshold})
