from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from turnwise.metrics import Options, Pairs, Resampling, distinct, measure, score_pairs
from turnwise.metrics.distinct import distinct_grams
from turnwise.metrics.statistic import Clusters
from turnwise.metrics.tokens import Tokens, tokenise

SAID = ["a b a", "b c"]


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("distinct-1", SAID, 3 / 5),  # a, b, c of five words
        ("distinct-2", SAID, 3 / 3),  # ab, ba, bc, and none across the two responses
        ("distinct-1", ["a", "a", "a", "a"], 1 / 4),
        ("distinct-2", ["a b", "a b"], 1 / 2),
        ("distinct-responses", ["I do not know", "yes", "I do not know"], 2 / 3),
    ],
)
def test_distinct_is_types_over_tokens(name: str, said: list[str], expected: float) -> None:
    assert score_pairs(Pairs(said, said), metrics=[name]).scores[name].value == pytest.approx(expected)


def test_responses_without_bigrams_have_no_distinct_2() -> None:
    scored = score_pairs(Pairs(["yes", "no"], ["", ""]), metrics=["distinct-2"]).scores["distinct-2"]
    assert scored.value is None
    assert scored.reason == "the responses are too short to have any"


def test_leaving_a_response_out_loses_only_what_no_other_response_says() -> None:
    statistic = distinct_grams([text.split() for text in SAID], Clusters.of(None, n=2), order=1)
    assert statistic.left_out() == pytest.approx([2 / 2, 2 / 3])


def test_the_interval_holds_the_value_although_a_bootstrap_would_not() -> None:
    words = [[f"w{i}", f"w{i + 1}", "the"] for i in range(0, 60, 2)]
    scored = score_pairs(Pairs([" ".join(one) for one in words], [""] * 30), metrics=["distinct-1"]).scores[
        "distinct-1"
    ]
    assert scored.value is not None
    assert scored.interval is not None
    assert scored.interval[0] < scored.value < scored.interval[1]
    assert "interval:jackknife-0.95" in scored.signature


def test_swapping_counts_types_as_if_the_responses_had_been_exchanged() -> None:
    first, second = ["a b a", "b c", "d"], ["a a", "e f", "b c d"]
    clusters = Clusters.of(["x", "y", "x"], n=3)
    ours, theirs = (distinct_grams([text.split() for text in side], clusters, order=1) for side in (first, second))
    swaps = np.array(list(itertools.product([False, True], repeat=2)))
    found = ours.swapped(theirs, swaps)
    for row, swap in enumerate(swaps):
        sides = [
            [b if swap[code] else a for a, b, code in zip(*pair, clusters.codes, strict=True)]
            for pair in ((first, second), (second, first))
        ]
        for side, values in zip(sides, found, strict=True):
            words = " ".join(side).split()
            assert values[row] == pytest.approx(len(set(words)) / len(words))


def test_metrics_of_one_tokenisation_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()

    def counted(texts: list[str], *, tokeniser: str, lowercase: bool) -> Tokens:
        calls[tokeniser] += 1
        return tokenise(texts, tokeniser=tokeniser, lowercase=lowercase)

    monkeypatch.setattr(distinct, "tokenise", counted)
    measure(Pairs(SAID, SAID), ["distinct-1", "distinct-2", "repetition-2"], Options())
    assert calls == {"13a": 1}


def test_no_resamples_means_no_interval() -> None:
    scored = score_pairs(
        Pairs(["a b", "c d", "e"], [""] * 3), metrics=["distinct-1"], resampling=Resampling(resamples=0)
    )
    assert scored.scores["distinct-1"].interval is None
