"""Sizes of the published corpora beside Table 6 of the RDEP paper: the table in docs/corpora.md.

python examples/corpus_sizes.py PATH_TO_DATA           # prints the table
"""

from __future__ import annotations

import sys
from pathlib import Path

from dialoscope.corpus import load, summarise
from dialoscope.corpus.streams import Record, Source, csv_records
from dialoscope.corpus.summary import SplitSummary

Sizes = tuple[int, int, float, float, int]  # dialogues, turns, mean, standard deviation, tokens

# Table 6 of the paper, as printed.
TABLE_6: dict[str, dict[str, Sizes]] = {
    "DailyDialog": {
        "train": (11118, 87170, 7.84, 4.01, 1186046),
        "validation": (1000, 8069, 7.74, 3.84, 108933),
        "test": (1000, 7740, 8.07, 3.88, 106631),
    },
    "PersonaChat": {"validation": (999, 15586, 15.60, 1.04, 186055)},
    "EmpatheticDialogues": {
        "train": (17780, 76609, 4.31, 0.71, 1025120),
        "validation": (2758, 12025, 4.36, 0.73, 175231),
        "test": (2540, 10941, 4.30, 0.73, 169778),
    },
    "Wizard of Wikipedia": {
        "validation": (981, 8909, 9.08, 1.02, 145995),
        "test": (965, 8715, 9.03, 1.02, 142896),
    },
}
PATHS = {
    "DailyDialog": "dailydialog",
    "PersonaChat": "personachat/valid_both_original_no_cands.txt.gz",
    "EmpatheticDialogues": "empathetic_dialogues",
    "Wizard of Wikipedia": "wizard_of_wikipedia",
}


def row(corpus: str, split: str, ours: SplitSummary, paper: Sizes) -> str:
    """One line of the table: what we count, and in brackets what the paper prints where it differs."""
    found = (ours.dialogues, ours.turns, round(ours.turns_mean, 2), round(ours.turns_std, 2), ours.words)
    cells = [f"{one:,}" + (f" ({other:,})" if one != other else "") for one, other in zip(found, paper, strict=True)]
    return f"| {corpus} | {split} | {' | '.join(cells)} |"


def table(data: Path) -> str:
    """The whole table in Markdown."""
    lines = ["| corpus | split | dialogues | turns | mean | std | words |", "|---|---|--:|--:|--:|--:|--:|"]
    for corpus, splits in TABLE_6.items():
        summary = summarise(load(data / PATHS[corpus]))
        lines += [row(corpus, split, summary.splits[split], paper) for split, paper in splits.items()]
    return "\n".join(lines)


def quoted_conversations(data: Path) -> dict[str, int]:
    """Conversations of EmpatheticDialogues if its quotation marks are taken for CSV quotes, which they are not."""
    counts = {}
    for split in ("train", "valid", "test"):
        records = csv_records(Source(data / "empathetic_dialogues" / f"{split}.csv.gz"), quoted=True)
        counts[split] = len({record.value["conv_id"] for record in records if isinstance(record, Record)})
    return counts


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
    print("EmpatheticDialogues read with CSV quotes:", quoted_conversations(Path(sys.argv[1])))
