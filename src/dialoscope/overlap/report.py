"""The overlap section of the report: how much leaks, how it is spread, and which unit matched which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from dialoscope.overlap.contamination import Contamination
from dialoscope.overlap.measure import Match, Measured
from dialoscope.overlap.result import LEAK, OverlapResult, with_threshold
from dialoscope.overlap.tokens import REFERENCE, TOKENISERS
from dialoscope.report import Block, Column, Fact, Facts, Mark, Prose, Section, ShownTurn, Table, Transcript, Verdict
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis, histogram, lines
from dialoscope.report.section import Level

TAKE_CARE, BAD = 0.01, 0.05  # shares of leaked units from which a benchmark is doubtful, or worse
LISTED = 50  # matches in the table; matches.parquet has all
LONGEST = 1500  # characters of a text that are shown
PIECES = {"reference": REFERENCE, "words": re.compile(r"\w+"), "blanks": re.compile(r"\S+")}  # to be marked


def section_of(measured: Measured, *, threshold: float = LEAK, contamination: Contamination | None = None) -> Section:
    """A measured overlap as a section, with the scores on the parts of the test set where there are any."""
    result = measured.result
    units, others = f"{_kind(result)}{result.unit}s", f"{'another' if result.is_within else 'a training'} {result.unit}"
    return Section(
        title="Overlap",
        anchor="overlap",
        question="Does the corpus repeat itself?" if result.is_within else "Is the test set in the training set?",
        blocks=[
            *_blocks(result, threshold),
            *(_scores(contamination) if contamination is not None else ()),
            *_matches(result, threshold),
            *shown_matches(measured.examples, measured.tokeniser, names=_names(result)),
        ],
        lead=f"{result.count_over(threshold):,} of {result.n_test:,} {units} overlap with {others} by more than "
        f"{threshold:g}; {result.identical:,} are identical to one.",
        verdict=Verdict(
            f"of the {units} overlap {others} by more than {threshold:g}",
            result.share(threshold) if result.n_test else None,
            _level(result, threshold),
            number_format=".1%",
        ),
        origin=result.origin,
    )


def _level(result: OverlapResult, threshold: float) -> Level:
    """By the share alone, for all of this test set is there; where there is none, nothing can be said of it."""
    share = result.share_over(threshold)
    if not result.n_test:
        return "info"
    return "bad" if share >= BAD else "warn" if share >= TAKE_CARE else "good"


def _kind(result: OverlapResult) -> str:
    return "" if result.is_within else "test "


def _names(result: OverlapResult) -> tuple[str, str]:
    return ("one", "other") if result.is_within else ("test", "train")


def _blocks(result: OverlapResult, threshold: float) -> Iterator[Block]:
    units = f"{result.unit}s"
    facts = [
        Fact("Identical", result.identical_share, f"{result.identical:,} {units}", ".1%"),
        Fact(f"Over {threshold:g}", result.share_over(threshold), f"{result.count_over(threshold):,} {units}", ".1%"),
        Fact(f"{_kind(result)}{units}".capitalize(), result.n_test),
    ]
    yield Facts(facts if result.is_within else [*facts, Fact(f"Training {units}", result.n_train)])
    yield from _spread(result, threshold)
    thresholds = with_threshold(threshold)
    rows: list[list[Cell]] = [[f"over {t:g}", result.count_over(t), result.share(t)] for t in thresholds]
    rows.append(["identical", result.identical, result.identical_share])
    note = "Shares over a threshold are strict; identical units have the same words (in context and response)."
    yield Table(["overlap", units, "share"], rows, f"{units.capitalize()} by their best overlap", notes=[note])


def _spread(result: OverlapResult, threshold: float) -> Iterator[Block]:
    edges, counts = result.histogram()
    units = f"{_kind(result)}{result.unit}s"
    where = "the rest of the corpus" if result.is_within else "the training set"
    yield histogram(
        edges,
        {units: counts},
        title=f"Best overlap of each {_kind(result)}{result.unit}",
        description=f"Histogram of the best overlap of {result.n_test:,} {units} with {where}, in bins "
        f"of 0.05; {counts[-1]:,} lie in the last bin, from 0.95 to 1.",
        x=Axis("overlap ratio", ".2f", (0, 1)),
        y=Axis(units, ",d"),
        marks={f"leaked over {threshold:g}": threshold},
        is_half=True,
    )
    shares = (np.cumsum(counts) / max(1, result.n_test)).tolist()
    yield lines(
        edges[1:],
        {"share": shares},
        title="The same, added up",
        description=f"Cumulative share of {units} by best overlap: {shares[15]:.0%} lie under 0.8.",
        x=Axis("overlap ratio up to", ".2f", (0, 1)),
        y=Axis(f"share of {units}", ".0%", (0, 1)),
        is_half=True,
    )


def _scores(contamination: Contamination) -> Iterator[Block]:
    text = "A model that remembers its training set scores high on the leaked part; the clean part says what it learnt."
    yield Prose(text, heading="Scores with and without the leak")
    yield contamination.table()


def _matches(result: OverlapResult, threshold: float) -> Iterator[Block]:
    places = result.closest(threshold, most=LISTED)
    if len(places):
        yield Prose("Words that both have are marked below.", heading=f"Which {result.unit} matched which")
        rows = result.table().take(places).to_pylist()
        cells: list[list[Cell]] = [[row["id"], row["match_id"], row["ratio"]] for row in rows]
        total = result.count_over(threshold)
        notes = [f"The closest {LISTED} of {total:,}; all are in matches.parquet."] if total > len(places) else []
        yield Table([result.unit, "match", Column("overlap", ".3f")], cells, "Closest matches", notes=notes)


def shown_matches(examples: Sequence[Match], tokeniser: str, *, names: tuple[str, str]) -> Iterator[Block]:
    """Matches side by side, with the words that both have marked."""
    for match in examples:
        parts = ("context", "response") if len(match.texts) > 1 else ("",)
        turns = []
        for part, mine, theirs in zip(parts, match.texts, match.partner_texts, strict=True):
            turns.append(_turn(f"{names[0]} {part}".strip(), mine, theirs, tokeniser))
            turns.append(_turn(f"{names[1]} {part}".strip(), theirs, mine, tokeniser))
        title = f"{match.id} and {match.partner}, overlap {match.ratio:.2f}"
        yield Transcript(turns, title=title, mark="shared with the other")


def _turn(name: str, text: str, other: str, tokeniser: str) -> ShownTurn:
    cut = TOKENISERS[tokeniser]
    shared = set(cut(other))
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    found = re.finditer(PIECES[tokeniser], shown)
    return ShownTurn(name, shown, marks=[Mark(*one.span()) for one in found if shared.intersection(cut(one.group()))])


def chosen_examples(result: OverlapResult, most: int = 5, *, threshold: float = LEAK) -> list[int]:
    """Places worth showing: the closest matches that are not identical, and one that is."""
    near = np.flatnonzero((result.ratio > threshold) & (result.ratio < 1))
    near = near[np.argsort(-result.ratio[near], kind="stable")][: most - 1]
    same = np.flatnonzero(result.ratio == 1)[:1]
    return [*near.tolist(), *same.tolist()]
