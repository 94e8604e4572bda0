"""Sections for what was taken out: of a corpus by cleaning, of a test set by filtering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialoscope.overlap.clean import Cleaned
from dialoscope.overlap.filter import Filtered
from dialoscope.overlap.report import LISTED, shown_matches
from dialoscope.report import Block, Column, Fact, Facts, Prose, Section, Table, Verdict
from dialoscope.report.cell import Cell


def cleaned_section(cleaned: Cleaned) -> Section:
    """A cleaning as a section: what is left, what went, and because of whom."""
    shown = cleaned.to_dict()
    threshold, tokeniser = (cleaned.origin.settings.get(key) for key in ("threshold", "tok"))
    return Section(
        title="Cleaned corpus",
        anchor="clean",
        question="What is left without near-copies?",
        blocks=[
            Facts([Fact(name.capitalize(), shown[name]) for name in ("units", "kept", "dropped", "passes")]),
            _splits(shown),
            *_drops([row for row in cleaned.ledger() if row["unit"] == "dialogue"], "dialogue"),
            *shown_matches(cleaned.examples, str(tokeniser or "reference"), names=("dropped", "partner")),
        ],
        lead=f"{shown['kept']:,} of {shown['units']:,} dialogues are left: no two of them overlap by more than "
        f"{threshold}. They were split again by whole dialogue, and exact duplicates of samples removed.",
        verdict=Verdict("of the dialogues were near-copies", _share(shown["dropped"], shown["units"]), "info", ".1%"),
        origin=cleaned.origin,
    )


def filtered_section(filtered: Filtered) -> Section:
    """A filtering as a section: what is left of the test set, what went, and because of whom."""
    shown, unit = filtered.to_dict(), filtered.result.unit
    facts = {"Kept": "kept", "Dropped": "dropped", f"Test {unit}s": "n_test", f"Training {unit}s": "n_train"}
    return Section(
        title="Filtered test set",
        anchor="filter",
        question="What is left of the test set without its leak?",
        blocks=[
            Facts([Fact(name, shown[key]) for name, key in facts.items()]),
            *_drops(list(filtered.ledger()), unit),
            *shown_matches(
                filtered.examples, filtered.result.origin.settings.get("tok", "reference"), names=("dropped", "partner")
            ),
        ],
        lead=f"{shown['kept']:,} of {shown['n_test']:,} test {unit}s are left: none overlaps with a training {unit} "
        f"by more than {filtered.threshold:g}.",
        verdict=Verdict(f"of the test {unit}s were dropped", _share(shown["dropped"], shown["n_test"]), "info", ".1%"),
        origin=filtered.origin,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _splits(shown: Mapping[str, Any]) -> Table:
    """Dialogues and samples by split, and how many repeated another."""
    rows: list[list[Cell]] = [["dialogues", *shown["splits"].values()]]
    for turns, by in shown["pairs"].items():
        rows.append([f"samples, context of {turns}", *by.values()])
        rows.append([f"duplicates of those, removed (context of {turns})", *shown["duplicates"][turns].values()])
    return Table(["", *shown["splits"]], rows, "The corpus split again", name="splits")


def _drops(ledger: Sequence[Mapping[str, Any]], unit: str) -> Iterator[Block]:
    if not ledger:
        return
    yield Prose("The closest first; words that both have are marked below.", heading="What went, and because of whom")
    if "pass" in ledger[0]:
        counts = Counter(row["pass"] for row in ledger)
        yield Table(["pass", f"{unit}s dropped"], sorted(counts.items()), f"{unit.capitalize()}s dropped in each pass")
    closest = sorted(ledger, key=lambda row: -row["ratio"])[:LISTED]
    rows = [[row["id"], row["partner"], row["ratio"], row["reason"]] for row in closest]
    notes = [f"The closest {LISTED} of {len(ledger):,}; all are in ledger.jsonl."] if len(ledger) > LISTED else []
    yield Table([unit, "partner", Column("overlap", ".3f"), "reason"], rows, "Dropped", notes=notes)
