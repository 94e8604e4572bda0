"""Numbers of the overlap paper on the original DailyDialog."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialoscope.corpus import load
from dialoscope.overlap import clean, measure


@pytest.mark.parametrize(("split", "identical", "samples"), [("test", 1560, 6740), ("validation", 1397, 7069)])
def test_that_many_samples_are_identical_to_training_ones(data: Path, split: str, identical: int, samples: int) -> None:
    result = measure(load(data / "dailydialog"), split=split)
    assert (result.count_identical(), result.counts["units"]) == (identical, {split: samples, "reference": 76_052})
    assert result.scores()[f"ratio/{split}/identical_share"].value == identical / samples


def test_a_limit_gives_the_leak_of_the_first_test_dialogues_against_all_of_training(data: Path) -> None:
    whole, cut = measure(load(data / "dailydialog")), measure(load(data / "dailydialog"), limit=150)
    assert cut.counts["units"]["reference"] == 76_052
    assert cut.ratio.tolist() == whole.ratio[: len(cut.ratio)].tolist()
    assert cut.parts == {"train": 11_118, "test": 150}
    assert cut.verdict.level == "concern"


def test_cleaning_leaves_as_many_samples_as_table_3_in_all(data: Path) -> None:
    cleaned = clean(load(data / "dailydialog"), threshold=0.75, validation_size=1000, test_size=1000)
    totals = {turns: sum(len(table) for table in by.values()) for turns, by in cleaned.pairs.items()}
    # Table 3: 60,005 + 6,594 + 6,955 single-turn, 60,138 + 6,612 + 6,980 multi-turn; how they are split is random.
    assert abs(totals["1"] - 73_554) <= 20
    assert abs(totals["3"] - 73_730) <= 20
    assert (cleaned.counts["kept"], cleaned.counts["passes"]) == (10_973, 2)
