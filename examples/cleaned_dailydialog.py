"""DailyDialog cleaned, beside Table 3 of the overlap paper: the tables in docs/overlap.md.

python examples/cleaned_dailydialog.py PATH_TO_DAILYDIALOG           # prints both tables
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from dialoscope.corpus import Corpus, load, samples
from dialoscope.overlap import Cleaned, clean

Key = tuple[str, str]
SPLITS = ("train", "validation", "test")

# Table 3 of the paper, as printed.
TABLE_3 = {"1": (60_005, 6_594, 6_955), "3": (60_138, 6_612, 6_980)}
NAMES = {"1": "one turn", "3": "three turns"}


def row(*cells: object) -> str:
    """One line of a table."""
    return f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |"


def sizes(cleaned: Cleaned) -> str:
    """Samples of each split, ours and the paper's, in Markdown."""
    lines = [row("context", "", *SPLITS, "all"), "|---|---|--:|--:|--:|--:|"]
    for turns, paper in TABLE_3.items():
        ours = [cleaned.counts["samples"][turns][split] for split in SPLITS]
        lines += [row(NAMES[turns], "ours", *ours, sum(ours)), row("", "Table 3", *paper, sum(paper))]
    return "\n".join(lines)


# --- What the rule for duplicates of samples does ---------------------------------------------------------------------


def lowered(text: str) -> str:
    """Our spelling: lower case, single blanks."""
    return " ".join(text.lower().split())


def as_written(text: str) -> str:
    """Single blanks only."""
    return " ".join(text.split())


def kept(corpus: Corpus, turns: int, *, spelt: Callable[[str], str], test_against: Iterable[str]) -> int:
    """Samples that are left where validation is held against training, and test against these splits."""
    seen: dict[str, set[Key]] = {}
    for split in SPLITS:
        table = samples(corpus.split(split), context_turns=turns).to_table()
        keys = {
            (spelt(context), spelt(response))
            for context, response in zip(table["context"].to_pylist(), table["response"].to_pylist(), strict=True)
        }
        earlier = {"train": (), "validation": ("train",), "test": tuple(test_against)}[split]
        seen[split] = keys.difference(*(seen[other] for other in earlier))
    return sum(map(len, seen.values()))


def rules(cleaned: Cleaned) -> str:
    """Samples in all under our rule, under two others, and in the paper."""
    before = ("train", "validation")
    counts = {
        "ours": [kept(cleaned.corpus, int(turns), spelt=lowered, test_against=before) for turns in TABLE_3],
        "test not held against validation": [
            kept(cleaned.corpus, int(turns), spelt=lowered, test_against=("train",)) for turns in TABLE_3
        ],
        "without lower-casing": [
            kept(cleaned.corpus, int(turns), spelt=as_written, test_against=before) for turns in TABLE_3
        ],
        "Table 3": [sum(paper) for paper in TABLE_3.values()],
    }
    lines = [row("duplicates of samples", *NAMES.values()), "|---|--:|--:|"]
    return "\n".join([*lines, *(row(name, *both) for name, both in counts.items())])


def tables(path: Path) -> str:
    """Everything that the document shows."""
    cleaned = clean(load(path), threshold=0.75, validation_size=1000, test_size=1000)
    shown = cleaned.counts
    count = f"{shown['kept']:,} of {shown['dialogues']:,} dialogues are kept after {shown['passes']} passes."
    return "\n\n".join([count, sizes(cleaned), rules(cleaned)])


if __name__ == "__main__":
    print(tables(Path(sys.argv[1])))
