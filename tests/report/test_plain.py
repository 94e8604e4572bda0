from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest

from dialoscope.record import Score
from dialoscope.report.plain import plain


@dataclass(frozen=True)
class Pair:
    left: int
    right: tuple[float, ...]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Pair(1, (0.5,)), {"left": 1, "right": [0.5]}),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.float64(0.5), 0.5),
        ({3: "x"}, {"3": "x"}),
        (PurePosixPath("a/b"), "a/b"),
        (True, True),
        (Score(0.5, 3, (0.4, 0.6)), {"value": 0.5, "n": 3, "interval": [0.4, 0.6], "reason": None}),
    ],
)
def test_values_become_plain_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_nan_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"data\.f1\[1\]: expected a finite number, found nan"):
        plain({"f1": [0.5, np.nan]})


def test_a_set_is_refused_because_it_has_no_order() -> None:
    with pytest.raises(TypeError, match=r"data\.words: .* found set"):
        plain({"words": {"a", "b"}})


def test_a_file_name_in_another_encoding_can_be_written() -> None:
    assert plain(b"caf\xe9.txt".decode("utf-8", "surrogateescape")) == "caf?.txt"


@pytest.mark.parametrize(
    "score", [Score(0.5, 3, (0.4, 0.6)), Score(1.0, 2, interval_reason="too few"), Score.missing("empty", n=4)]
)
def test_a_score_survives_the_round_trip(score: Score) -> None:
    assert Score.from_dict(score.to_dict()) == score
