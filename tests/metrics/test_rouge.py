from __future__ import annotations

import pytest

from turnwise.metrics import Pairs, score_pairs


def value(name: str, said: list[str], targets: list[str]) -> float | None:
    return score_pairs(Pairs(said, targets), metrics=[name]).scores[name].value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rouge-1", 2 * 1 * (2 / 3) / (1 + 2 / 3)),  # both words said, of three that should have been
        ("rouge-2", 2 * 1 * (1 / 2) / (1 + 1 / 2)),
        ("rouge-l", 2 * 1 * (2 / 3) / (1 + 2 / 3)),
    ],
)
def test_rouge_is_the_f_measure_worked_by_hand(name: str, expected: float) -> None:
    assert value(name, ["The cat"], ["the cat sat."]) == pytest.approx(expected)


@pytest.mark.parametrize(("name", "kind"), [("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL")])
def test_rouge_equals_the_mean_of_rouge_score(name: str, kind: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    said = ["how are you doing?", "no, I would not", ""]
    targets = ["are you doing well?", "I would not say no", "yes"]
    scores = [RougeScorer([kind]).score(b, a)[kind].fmeasure for a, b in zip(said, targets, strict=True)]
    assert value(name, said, targets) == pytest.approx(sum(scores) / 3)
