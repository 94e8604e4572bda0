"""The overlap section of the report: how much leaks, how it is spread, and which sample matched which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from turnwise.overlap.measure import Match, Measured
from turnwise.overlap.result import THRESHOLDS, OverlapResult
from turnwise.overlap.tokens import REFERENCE, reference_tokens
from turnwise.report import Block, Fact, Facts, Mark, Prose, Section, ShownTurn, Table, Transcript, Verdict
from turnwise.report.cell import Cell
from turnwise.report.charts import Axis, histogram
from turnwise.report.section import Level

LEAK = 0.8  # over this a sample counts as leaked, as in Figure 2 of the paper
TAKE_CARE, BAD = 0.01, 0.05  # shares of leaked samples from which a benchmark is doubtful, or worse


def section_of(measured: Measured) -> Section:
    """A measured overlap as a section."""
    result = measured.result
    share = result.share_over(LEAK)
    level: Level = "bad" if share >= BAD else "warn" if share >= TAKE_CARE else "good"
    return Section(
        title="Overlap",
        anchor="overlap",
        question="Is the test set in the training set?",
        blocks=[*_blocks(result), *_matches(measured.examples)],
        lead=f"{result.count_over(LEAK):,} of {result.n_test:,} test samples overlap with a training sample by more "
        f"than {LEAK}; {result.identical:,} are identical to one.",
        verdict=Verdict("of the test samples are in the training set", share, level, number_format=".1%"),
        origin=result.origin,
    )


def _blocks(result: OverlapResult) -> Iterator[Block]:
    yield Facts(
        [
            Fact("Identical", result.identical_share, f"{result.identical:,} samples", ".1%"),
            Fact(f"Over {LEAK}", result.share_over(LEAK), f"{result.count_over(LEAK):,} samples", ".1%"),
            Fact("Test samples", result.n_test),
            Fact("Training samples", result.n_train),
        ]
    )
    edges, counts = result.histogram()
    yield histogram(
        edges,
        {"test samples": counts},
        title="Best overlap of each test sample",
        description=f"Histogram of the best overlap of {result.n_test:,} test samples with the training set, in bins "
        f"of 0.05; {counts[-1]:,} lie in the last bin, from 0.95 to 1.",
        x=Axis("overlap ratio", ".2f", (0, 1)),
        y=Axis("test samples", ",d"),
        marks={f"leaked over {LEAK}": LEAK},
    )
    rows: list[list[Cell]] = [[f"over {t}", result.count_over(t), result.share_over(t)] for t in THRESHOLDS]
    rows.append(["identical", result.identical, result.identical_share])
    note = "Shares over a threshold are strict; identical samples have the same words in context and response."
    yield Table(["overlap", "samples", "share"], rows, "Test samples by their best overlap", notes=[note])


def _matches(examples: Sequence[Match]) -> Iterator[Block]:
    if examples:
        yield Prose("Words that both have are marked.", heading="Which sample matched which")
    for match in examples:
        yield Transcript(
            [
                _turn("test context", match.context, match.known_context),
                _turn("train context", match.known_context, match.context),
                _turn("test response", match.response, match.known_response),
                _turn("train response", match.known_response, match.response),
            ],
            title=f"{match.test} and {match.train}, overlap {match.ratio:.2f}",
            mark="shared with the other",
        )


def _turn(name: str, text: str, other: str) -> ShownTurn:
    shared = set(reference_tokens(other))
    marks = [Mark(*found.span()) for found in re.finditer(REFERENCE, text) if found.group().lower() in shared]
    return ShownTurn(name, text, marks=marks)


def chosen_examples(result: OverlapResult, most: int = 5) -> list[int]:
    """Places worth showing: the closest matches that are not identical, and one that is."""
    near = np.flatnonzero((result.ratio > LEAK) & (result.ratio < 1))
    near = near[np.argsort(-result.ratio[near], kind="stable")][: most - 1]
    same = np.flatnonzero(result.ratio == 1)[:1]
    return [*near.tolist(), *same.tolist()]
