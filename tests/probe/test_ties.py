from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dialoscope.errors import CorpusError
from dialoscope.probe.ties import Judgement, read_judgements, tie_study

CHOSEN = {"x": "a", "y": "tie", "z": "tie"}
ROWS = [Judgement(str(item), person, choice) for item in range(40) for person, choice in CHOSEN.items()]


def test_shares_are_counted() -> None:
    found = tie_study(ROWS, draws=2000, size=30)
    assert [found.shares[choice].value for choice in ("a", "b", "tie")] == pytest.approx([1 / 3, 0, 2 / 3])
    assert {name: score.value for name, score in found.by_annotator.items()} == {"x": 0.0, "y": 1.0, "z": 1.0}
    assert found.shares["tie"].n == 120


def test_studies_spread_as_new_ones_would() -> None:
    """A binomial share: mean 2/3, variance p(1 - p)/size; a study may be larger than what was collected."""
    assert tie_study(ROWS, draws=50_000, size=480).studies.var() == pytest.approx((2 / 3) * (1 / 3) / 480, rel=0.05)
    found = tie_study(ROWS, draws=50_000, size=30, seed=3)
    assert found.studies.mean() == pytest.approx(2 / 3, abs=0.002)
    assert found.studies.var() == pytest.approx((2 / 3) * (1 / 3) / 30, rel=0.05)
    low, high = found.spread
    assert np.mean((found.studies >= low) & (found.studies <= high)) >= 0.95


def test_people_who_choose_alike_agree() -> None:
    alike = [Judgement(str(item), person, "ab"[item % 2]) for item in range(10) for person in "xy"]
    assert tie_study(alike, draws=10, size=5).agreement.value == pytest.approx(1.0)


def test_judgements_are_read(file: Callable[[str, str], Path]) -> None:
    path = file("j.csv", "item,annotator,choice\n1,x,A\n1,y, tie \n2,x,b\n")
    assert [one.choice for one in read_judgements(path)] == ["a", "tie", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,choice\n1,a\n", r"j\.csv:1: expected the columns item, annotator, choice, found item, choice"),
        ("item,annotator,choice\n1,x,a\n1,y,c\n", r"j\.csv:3: expected a choice of a, b or tie, found 'c'"),
        ("", "found nothing"),
    ],
)
def test_bad_files_say_where(text: str, message: str, file: Callable[[str, str], Path]) -> None:
    with pytest.raises(CorpusError, match=message):
        read_judgements(file("j.csv", text))
