from __future__ import annotations

import pytest

from dialoscope.metrics import Pairs, score_pairs


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


@pytest.mark.parametrize("name", ["rouge-1", "rouge-2", "rouge-l"])
@pytest.mark.parametrize(("said", "target"), [("你好 世界", "你好 世界"), ("yes", "да"), ("yes", "..."), ("yes", " ")])
def test_a_pair_whose_reference_cannot_be_read_is_skipped_not_scored_0(name: str, said: str, target: str) -> None:
    result = score_pairs(Pairs(["a b", said], ["a b", target]), metrics=[name])
    assert (result.scores[name].value, result.scores[name].n) == (1, 1)
    assert "|skipped:1|" in result.scores[name].signature
    assert result.notes[0].startswith(f"{name} (pairs): 1 of 2 pairs skipped: rouge-score knows the letters a-z")


def test_words_are_not_stemmed() -> None:
    assert value("rouge-1", ["she walks"], ["she walked"]) == pytest.approx(1 / 2)


def test_texts_in_another_alphabet_alone_have_no_rouge() -> None:
    scored = score_pairs(Pairs(["你好"], ["你好"]), metrics=["rouge-1"]).scores["rouge-1"]
    assert scored.value is None
    assert scored.reason is not None
    assert "a-z" in scored.reason


@pytest.mark.parametrize("name", ["rouge-1", "rouge-2", "rouge-l"])
@pytest.mark.parametrize("evasive", ["", " ", "...", "да , конечно"])
def test_a_response_that_cannot_be_read_scores_0(name: str, evasive: str) -> None:
    """One answer word for word and three evasions are a quarter, not all of it."""
    scored = score_pairs(Pairs(["a b", *[evasive] * 3], ["a b", *["c d"] * 3]), metrics=[name]).scores[name]
    assert (scored.value, scored.n) == (1 / 4, 4)


def test_the_signature_says_which_tokens_and_whose() -> None:
    from importlib.metadata import version

    signature = score_pairs(Pairs(["a"], ["a"]), metrics=["rouge-l"]).scores["rouge-l"].signature
    assert f"|case:lc|tok:a-z0-9|stem:no|measure:f1|rouge-score:{version('rouge-score')}|" in signature
