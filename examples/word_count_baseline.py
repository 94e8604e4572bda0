"""The number of words alone against people, on DailyDialog-Human: the table in docs/metrics.md.

python examples/word_count_baseline.py PATH_TO_DATA           # prints the table

The file of Ghazarian et al. (2020) holds 300 query-reply pairs, each rated for engagement by three of 24 workers.
Which of the three is "the first" is chance: by columns, the first, second and third rating of each pair stand for
three annotators; by worker, everybody is one annotator, who weighs as much as the pairs he or she rated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dialoscope.corpus import load
from dialoscope.metrics import annotator_ceiling, correlate, krippendorff_alpha, ratings_matrix
from dialoscope.record import Score

FILE = Path("dailydialog_human") / "DailyDialog_groungtruth_annotated.csv"


def ratings(data: Path) -> tuple[list[int], list[dict[str, int]]]:
    """Words of each reply, separated by blanks, and what each worker gave it."""
    replies = [dialogue.turns[-1] for dialogue in load(data / FILE)]
    return [len(reply.text.split()) for reply in replies], [reply.labels["ratings"]["engagement"] for reply in replies]


def scores(data: Path) -> dict[str, Score]:
    """The baseline, what people reach against each other, and how far they agree."""
    words, people = ratings(data)
    columns = np.array([list(one.values()) for one in people], dtype=np.float64)  # (pairs, 3)
    workers = ratings_matrix(
        (pair, worker, rating) for pair, one in enumerate(people) for worker, rating in one.items()
    )
    return {
        "words of the reply against the mean rating, Spearman": correlate(words, columns.mean(axis=1)),
        "one annotator against the mean of the rest, Spearman, by columns": annotator_ceiling(columns),
        "one annotator against the mean of the rest, Spearman, by worker": annotator_ceiling(workers),
        "agreement of the annotators, Krippendorff's ordinal alpha": krippendorff_alpha(columns),
    }


def table(data: Path) -> str:
    """The whole table in Markdown."""
    lines = ["| what | value | 95 % interval | n |", "|---|--:|--:|--:|"]
    for what, one in scores(data).items():
        interval = f"[{one.interval[0]:.3f}, {one.interval[1]:.3f}]" if one.interval else f"none: {one.interval_reason}"
        lines.append(f"| {what} | {one.value:.3f} | {interval} | {one.n} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
