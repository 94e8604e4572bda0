from __future__ import annotations

import pytest

from dialoscope.metrics import Pairs, score_pairs


@pytest.mark.parametrize(
    ("name", "said", "targets", "expected", "n"),
    [
        ("length", ["no no no", "ok"], ["a b", "c"], 4 / 2, 2),
        ("length-ratio", ["no no no", "ok"], ["a b", "c"], 4 / 3, 2),
        # of to-be, be-to, to-be, be-to, to-be three were said before; "why not" repeats nothing; "ok" has no bigram
        ("repetition-2", ["to be to be to be", "why not", "ok"], ["", "", ""], (3 / 5 + 0) / 2, 2),
        ("repetition-4", ["a b c d a b c d"], [""], 1 / 5, 1),  # abcd of abcd, bcda, cdab, dabc, abcd
    ],
)
def test_length_and_repetition_are_counted(
    name: str, said: list[str], targets: list[str], expected: float, n: int
) -> None:
    scored = score_pairs(Pairs(said, targets), metrics=[name]).scores[name]
    assert scored.value == pytest.approx(expected)
    assert scored.n == n


def test_ratio_to_empty_references_is_not_defined() -> None:
    scored = score_pairs(Pairs(["a"], [""]), metrics=["length-ratio"]).scores["length-ratio"]
    assert scored.reason == "the references hold no words"
