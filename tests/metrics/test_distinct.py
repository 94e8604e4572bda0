from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.metrics import Options, Pairs, Resampling, distinct, score_pairs
from dialoscope.metrics.distinct import Distinct, Exchange, distinct_across_ends, distinct_grams
from dialoscope.metrics.score import statistics_of
from dialoscope.metrics.statistic import Clusters
from dialoscope.metrics.tokens import Tokens, tokenise

SAID = ["a b a", "b c"]
# Responses that hold any, of "a b", "yes", "c d" and an empty one.
NAMES = {"distinct-1": 3, "distinct-2": 2, "distinct-1-overlap": 3, "distinct-2-overlap": 3, "distinct-responses": 4}
WORDS = st.text("abcdef", max_size=4)
SYSTEMS = st.lists(st.tuples(st.integers(0, 3), WORDS, WORDS), min_size=1, max_size=8)  # dialogue, and what each said


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("distinct-1", SAID, 3 / 5),  # a, b, c of five words
        ("distinct-2", SAID, 3 / 3),  # ab, ba, bc, and none across the two responses
        ("distinct-1", ["a", "a", "a", "a"], 1 / 4),
        ("distinct-2", ["a b", "a b"], 1 / 2),
        # the overlap paper: a b a b c as one text, bigrams ab, ba, ab, bc, so three types over five words
        ("distinct-1-overlap", SAID, 100 * 3 / 5),
        ("distinct-2-overlap", SAID, 100 * 3 / 5),
        ("distinct-2-overlap", ["a", "", "b", "a"], 100 * 2 / 3),  # ab, ba: an empty response does not part words
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


@pytest.mark.parametrize(("name", "scale"), [("distinct-1", 1), ("distinct-1-overlap", 100)])
def test_the_interval_is_the_jackknife_of_the_logit(name: str, scale: float) -> None:
    from scipy import special, stats

    said = ["a b", "a c c", "b d", "a b c"]
    words = [text.split() for text in said]
    shares = [len({w for one in kept for w in one}) / sum(map(len, kept)) for kept in _leaving_one_out(words)]
    centre, logits = special.logit(4 / 10), special.logit(shares)
    error = np.sqrt(3 / 4 * ((logits - logits.mean()) ** 2).sum())
    ends = special.expit(centre + np.array([-1, 1]) * stats.t.ppf(0.975, 3) * error)
    scored = score_pairs(Pairs(said, [""] * 4), metrics=[name]).scores[name]
    assert scored.value == pytest.approx(scale * 4 / 10)
    assert scored.interval == pytest.approx(scale * ends)
    assert "interval:jackknife-0.95" in scored.signature


def test_a_type_of_several_dialogues_counts_once_in_the_error() -> None:
    # Words of one response: three in each, fifteen in each of the last two. Of two responses: "a" to "c" (one pair) and
    # "d" (another). Of three: "e". Of all but the last two: "f".
    said = [[f"{place}-{word}" for word in range(15 if place > 17 else 3)] for place in range(20)]
    for word, places in {"a": (0, 1), "b": (0, 1), "c": (0, 1), "d": (2, 3), "e": (4, 5, 6), "f": range(18)}.items():
        for place in places:
            said[place].append(word)
    statistic = distinct_grams(said, Clusters.of(None, n=20), order=1)
    left_out = statistic.left_out()
    jackknife = 19 / 20 * ((left_out - left_out.mean()) ** 2).sum()
    shared = (3**2 + 1 - 1 + 1) / statistic.totals.sum() ** 2  # pairs, less triples, and the eighteen
    assert statistic.error_share**2 == pytest.approx(1 - shared / jackknife)


def test_few_dialogues_keep_the_wide_error_of_the_jackknife() -> None:
    words = [text.split() for text in ["a b", "a c c", "b d", "a b c"]]
    assert distinct_grams(words, Clusters.of(None, n=4), order=1).error_share == 1


def test_at_most_half_of_the_variance_is_taken_off() -> None:
    said = [["x", str(place // 2), str(place // 2 + 100)] for place in range(20)] + [["y"], ["z", "z"]]
    assert distinct_grams(said, Clusters.of(None, n=22), order=1).error_share == pytest.approx(np.sqrt(0.5))


def _leaving_one_out(words: list[list[str]]) -> list[list[list[str]]]:
    return [words[:place] + words[place + 1 :] for place in range(len(words))]


def test_a_response_without_bigrams_is_not_counted() -> None:
    scores = score_pairs(Pairs(["a b", "yes", "c d", ""], [""] * 4), metrics=list(NAMES)).scores
    assert {name: one.n for name, one in scores.items()} == NAMES


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=5))
def test_dist_of_the_overlap_paper_is_nltks_over_all_words_as_one_text(responses: list[list[str]]) -> None:
    from nltk.collocations import BigramCollocationFinder

    words = [word for response in responses for word in response]
    finder = BigramCollocationFinder.from_words(words)
    statistic = distinct_across_ends(responses, Clusters.of(None, n=len(responses)), order=2)
    expected = 100 * len(finder.ngram_fd) / finder.N if words else np.nan
    assert statistic.value() == pytest.approx(expected, nan_ok=True)


@given(SYSTEMS)
def test_exchanged_dialogues_have_the_types_a_count_of_the_texts_finds(systems: list[tuple[int, str, str]]) -> None:
    clusters = Clusters.of([dialogue for dialogue, _, _ in systems], n=len(systems))
    sides = [[list(said) for _, said, _ in systems], [list(said) for _, _, said in systems]]
    ours, theirs = (distinct_grams(side, clusters, order=1) for side in sides)
    swaps = np.array(list(itertools.product([False, True], repeat=clusters.count)))
    found = ours.exchange_with(theirs).count_types(swaps)
    for row, swap in enumerate(swaps):
        for side in (0, 1):
            said = [sides[1 - side if swap[code] else side][item] for item, code in enumerate(clusters.codes)]
            assert found[side][row] == len({word for response in said for word in response})


def test_the_vocabularies_of_two_systems_are_joined_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()
    between = Exchange.between

    def counted(first: Distinct, second: Distinct) -> Exchange:
        calls["join"] += 1
        return between(first, second)

    monkeypatch.setattr(Exchange, "between", counted)
    clusters = Clusters.of(None, n=3)
    ours, theirs = (
        distinct_grams([list(text) for text in side], clusters, order=1) for side in (["ab"] * 3, ["c"] * 3)
    )
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: ours.swapped(theirs, np.ones((2, 3), dtype=np.bool_)), range(16)))
    assert calls == {"join": 1}


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
    statistics_of(Pairs(SAID, SAID), ["distinct-1", "distinct-2", "repetition-2"], Options())
    assert calls == {"13a": 1}


def test_no_resamples_means_no_interval() -> None:
    scored = score_pairs(
        Pairs(["a b", "c d", "e"], [""] * 3), metrics=["distinct-1"], resampling=Resampling(resamples=0)
    )
    assert scored.scores["distinct-1"].interval is None
