"""The overlap section of the report: how much leaks, how it is spread, and which unit matched which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialoscope.overlap.engine import Match
from dialoscope.overlap.responses import units_of_metrics
from dialoscope.overlap.result import OverlapResult, with_threshold
from dialoscope.overlap.settings import threshold_text
from dialoscope.overlap.tokens import REFERENCE, TOKENISERS
from dialoscope.record import path
from dialoscope.report import Block, Column, Fact, Facts, Mark, Prose, Section, ShownTurn, Table, Transcript
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis, histogram, lines

if TYPE_CHECKING:
    from dialoscope.overlap.clean import Cleaned
    from dialoscope.overlap.filter import Filtered

LISTED = 50  # matches in the table; matches.parquet has all
LONGEST = 1500  # characters of a text that are shown
PIECES = {"reference": REFERENCE, "words": re.compile(r"\w+"), "blanks": re.compile(r"\S+")}  # to be marked


def section_of(result: OverlapResult) -> Section:
    """A result as a section of a page."""
    leak = threshold_text(result.settings.leak)
    return Section(
        title="Overlap",
        anchor="overlap",
        question="Does the corpus repeat itself?" if result.is_within else "Is the test set in the training set?",
        blocks=[
            *(block for part in result.measured if part not in result.reasons for block in _part_blocks(result, part)),
            *_responses(result),
            *_closest(result),
            *shown_matches(
                result.examples,
                result.settings.words,
                names=("one", "other") if result.is_within else ("test", "train"),
            ),
        ],
        lead=f"{result.verdict.text} A {result.unit} counts as leaked over a ratio of {leak}. {result.used}",
        verdict=result.card,
        origin=result.origin,
    )


def _part_blocks(result: OverlapResult, part: str) -> Iterator[Block]:
    """The numbers of one part: identical units, units over each threshold, and how ratios are spread."""
    scores, units, leak = result.scores(), f"{result.unit}s", threshold_text(result.settings.leak)
    heading = part if len(result.measured) > 1 else ""
    measured = sum(result.histogram(part)[1])
    facts = [
        Fact("Identical", scores[path("ratio", part, "identical_share")], number_format=".1%"),
        Fact(f"Over {leak}", scores[path("ratio", part, f"share_over_{leak}")], number_format=".1%"),
        Fact(f"Measured {units}", measured),
    ]
    if heading:
        yield Prose(f"{measured:,} {units} of {part}.", heading=heading)
    n_reference = result.counts["units"]["reference"]
    yield Facts(facts if result.is_within else [*facts, Fact(f"Training {units}", n_reference)])
    yield from _spread(result, part)
    rows: list[list[Cell]] = [
        [
            f"over {threshold_text(each)}",
            result.count_over(each, part),
            scores[path("ratio", part, f"share_over_{threshold_text(each)}")],
        ]
        for each in with_threshold(result.settings.leak)
    ]
    identical = scores[path("ratio", part, "identical_share")]
    rows.append(["identical", result.count_identical(part), identical])
    notes = ["Shares over a threshold are strict; identical units have the same words (in context and response)."]
    if without_words := result.counts["without_words"].get(part):
        notes.append(f"{without_words:,} {units} have a text without words; their overlap is 0.")
    caption = f"{units.capitalize()} by their best overlap{f', {part}' if heading else ''}"
    yield Table(["overlap", units, "share"], rows, caption, notes=notes)


def _spread(result: OverlapResult, part: str) -> Iterator[Block]:
    edges, counts = result.histogram(part)
    units, total = f"{result.unit}s", sum(counts)
    where = "the rest of the corpus" if result.is_within else "the training set"
    yield histogram(
        edges,
        {units: counts},
        title=f"Best overlap of each {result.unit}, {part}",
        description=f"Histogram of the best overlap of {total:,} {units} with {where}, in bins "
        f"of 0.05; {counts[-1]:,} lie in the last bin, from 0.95 to 1.",
        x=Axis("overlap ratio", ".2f", (0, 1)),
        y=Axis(units, ",d"),
        marks={f"leaked over {threshold_text(result.settings.leak)}": result.settings.leak},
        is_half=True,
    )
    shares = (np.cumsum(counts) / max(1, total)).tolist()
    yield lines(
        edges[1:],
        {"share": shares},
        title=f"Cumulative share of {units}, {part}",
        description=f"Cumulative share of {units} by best overlap: {shares[15]:.0%} lie under 0.8.",
        x=Axis("overlap ratio up to", ".2f", (0, 1)),
        y=Axis(f"share of {units}", ".0%", (0, 1)),
        is_half=True,
    )


def _responses(result: OverlapResult) -> Iterator[Block]:
    if not result.responses:
        return
    text = "A model that remembers its training set scores high on the leaked part; the clean part says what it learnt."
    yield Prose(text, heading="Scores with and without the leak")
    yield responses_table(result)


def responses_table(result: OverlapResult) -> Table:
    """A row for each metric, a column for each part."""
    parts, units = list(result.responses), units_of_metrics(next(iter(result.responses.values())))
    rows: list[list[Cell]] = [
        [metric, unit, *(result.responses[part][metric] for part in parts)] for metric, unit in units.items()
    ]
    caption = f"Scores of the responses on all units, and at or under and over {threshold_text(result.settings.leak)}"
    columns: list[Column | str] = ["metric", "unit", *(Column(part, ".4g") for part in parts)]
    return Table(columns, rows, caption, notes=result.notes, name="responses")


def _closest(result: OverlapResult) -> Iterator[Block]:
    rows = result.closest(LISTED)
    if len(rows):
        yield Prose("Words that both have are marked below.", heading=f"Which {result.unit} matched which")
        cells: list[list[Cell]] = [[row["id"], row["match_id"], row["ratio"]] for row in rows.to_pylist()]
        total = int(result.is_over(result.settings.leak).sum())
        notes = [f"The closest {LISTED} of {total:,}; all are in matches.parquet."] if total > len(rows) else []
        yield Table([result.unit, "match", Column("overlap", ".3f")], cells, "Closest matches", notes=notes)


def shown_matches(examples: Sequence[Match], words: str, *, names: tuple[str, str]) -> Iterator[Block]:
    """Matches side by side, with the words that both have marked."""
    for match in examples:
        parts = ("context", "response") if len(match.texts) > 1 else ("",)
        turns = []
        for part, mine, theirs in zip(parts, match.texts, match.partner_texts, strict=True):
            turns.append(_turn(f"{names[0]} {part}".strip(), mine, theirs, words))
            turns.append(_turn(f"{names[1]} {part}".strip(), theirs, mine, words))
        title = f"{match.id} and {match.partner}, overlap {match.ratio:.2f}"
        yield Transcript(turns, title=title, mark="shared with the other")


def _turn(name: str, text: str, other: str, words: str) -> ShownTurn:
    cut = TOKENISERS[words]
    shared = set(cut(other))
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    pieces = re.finditer(PIECES[words], shown)
    marks = [Mark(*piece.span()) for piece in pieces if shared.intersection(cut(piece.group()))]
    return ShownTurn(name, shown, marks=marks)


# --- Data that was made -----------------------------------------------------------------------------------------------


def cleaned_section(cleaned: Cleaned) -> Section:
    """A cleaning as a section of a page: what was kept, what was dropped, and for which partner."""
    counts, settings = cleaned.counts, cleaned.settings
    rows: list[list[Cell]] = [["dialogues", *cleaned.parts.values()]]
    for turns, by_split in counts["samples"].items():
        rows.append([f"samples, context of {turns}", *by_split.values()])
        rows.append([f"duplicates of those, removed (context of {turns})", *counts["duplicates"][turns].values()])
    names = ("dialogues", "kept", "dropped", "passes")
    return Section(
        title="Cleaned corpus",
        anchor="clean",
        question="What is left without near-copies?",
        blocks=[
            Facts([Fact(name.capitalize(), counts[name]) for name in names]),
            Table(["", *cleaned.parts], rows, "The corpus split again", name="splits"),
            *_drops([row for row in cleaned.ledger() if row["unit"] == "dialogue"], "dialogue"),
            *shown_matches(cleaned.examples, settings.words, names=("dropped", "partner")),
        ],
        lead=f"{counts['kept']:,} of {counts['dialogues']:,} dialogues are kept: no two of them overlap by more than "
        f"{threshold_text(settings.threshold)}. {cleaned.used}",
        origin=cleaned.origin,
    )


def filtered_section(filtered: Filtered) -> Section:
    """A filtering as a section of a page: what was kept, what was dropped, and for which partner."""
    counts, settings, unit = filtered.counts, filtered.settings, filtered.result.unit
    facts = {"Kept": "kept", "Dropped": "dropped", f"Test {unit}s": "measured", f"Training {unit}s": "reference"}
    return Section(
        title="Filtered test set",
        anchor="filter",
        question="What is left of the test set without its leak?",
        blocks=[
            Facts([Fact(name, counts[key]) for name, key in facts.items()]),
            *_drops(list(filtered.ledger()), unit),
            *shown_matches(filtered.result.examples, settings.words, names=("dropped", "partner")),
        ],
        lead=f"{counts['kept']:,} of {counts['measured']:,} test {unit}s are kept: none overlaps with a training "
        f"{unit} by more than {threshold_text(settings.threshold)}. {filtered.used}",
        origin=filtered.origin,
    )


def _drops(ledger: Sequence[Mapping[str, Any]], unit: str) -> Iterator[Block]:
    """The dropped items that overlap most."""
    if not ledger:
        return
    text = "The closest first; words that both have are marked below."
    yield Prose(text, heading="What was dropped, and for which partner")
    if "pass" in ledger[0]:
        counts = Counter(row["pass"] for row in ledger)
        yield Table(["pass", f"{unit}s dropped"], sorted(counts.items()), f"{unit.capitalize()}s dropped in each pass")
    closest = sorted(ledger, key=lambda row: -row["ratio"])[:LISTED]
    rows = [[row["id"], row["partner"], row["ratio"], row["reason"]] for row in closest]
    notes = [f"The closest {LISTED} of {len(ledger):,}; all are in ledger.jsonl."] if len(ledger) > LISTED else []
    yield Table([unit, "partner", Column("overlap", ".3f"), "reason"], rows, "Dropped", notes=notes)
