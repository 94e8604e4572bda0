from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dialoscope.errors import UsageError
from dialoscope.overlap.join import exact_threshold, join
from dialoscope.overlap.tokens import Bags, bags_of

Sets = list[set[int]]


def bags(sets: Sets) -> Bags:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    tokens = np.array([token for one in sets for token in sorted(one)], dtype=np.int32)
    return Bags(offsets, tokens)


def ratio(one: set[int], other: set[int]) -> Fraction:
    return Fraction(2 * len(one & other), len(one) + len(other)) if one or other else Fraction(0)


def reaches(one: set[int], other: set[int], threshold: Fraction, is_strict: bool) -> bool:
    found = ratio(one, other)
    return found > threshold if is_strict else found >= threshold


def brute_within(sets: Sets, threshold: Fraction, is_strict: bool) -> list[tuple[int, int, int]]:
    return [
        (i, j, len(sets[i] & sets[j]))
        for i in range(len(sets))
        for j in range(i + 1, len(sets))
        if reaches(sets[i], sets[j], threshold, is_strict)
    ]


def brute_between(left: Sets, right: Sets, threshold: Fraction, is_strict: bool) -> list[tuple[int, int, int]]:
    return [
        (i, j, len(one & other))
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if reaches(one, other, threshold, is_strict)
    ]


# Few tokens give many overlaps; sizes from none to many give every branch of the filters.
SETS = st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=25)
LARGE = st.lists(st.sets(st.integers(0, 300), min_size=50, max_size=200), max_size=5)
THRESHOLDS = st.sampled_from(["0.5", "0.6", "0.75", "0.8", "0.9", "0.99", "1", "1/3", "2/3", "0.01"]).map(Fraction)
ALL_EQUAL: Sets = [{1, 2, 3}] * 6


@settings(max_examples=300, deadline=None)
@given(SETS | LARGE, THRESHOLDS, st.booleans())
@example(ALL_EQUAL, Fraction(1), False)
@example(ALL_EQUAL, Fraction(1), True)
@example([set(), set(), {1}], Fraction(1, 2), False)
@example([{1, 2, 3, 4}, {1, 2, 3, 5}], Fraction(3, 4), False)  # at exactly the threshold
@example([{1, 2, 3, 4}, {1, 2, 3, 5}], Fraction(3, 4), True)
@example([{1}, {1}, {2}], Fraction(99, 100), True)
def test_within_one_set_the_join_equals_brute_force(sets: Sets, threshold: Fraction, is_strict: bool) -> None:
    pairs = join(bags(sets), threshold=threshold, is_strict=is_strict)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.shared.tolist(), strict=True))
    assert found == brute_within(sets, threshold, is_strict)


@settings(max_examples=300, deadline=None)
@given(SETS, SETS | LARGE, THRESHOLDS, st.booleans())
@example([{1, 2}], [{900, 1, 2}], Fraction(4, 5), False)  # a token that the other side has never seen
@example([{900, 1, 2}], [{1, 2}], Fraction(4, 5), False)
def test_between_two_sets_the_join_equals_brute_force(
    left: Sets, right: Sets, threshold: Fraction, is_strict: bool
) -> None:
    pairs = join(bags(left), bags(right), threshold=threshold, is_strict=is_strict)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.shared.tolist(), strict=True))
    assert found == brute_between(left, right, threshold, is_strict)


@pytest.mark.parametrize("count", [1, 700, 3000])
def test_many_bags_over_many_chunks_are_joined_like_few(count: int) -> None:
    rng = np.random.default_rng(0)
    sets = [set(rng.integers(0, 40, size=rng.integers(0, 9)).tolist()) for _ in range(count)]
    pairs = join(bags(sets), threshold="0.8")
    sizes = np.array([len(one) for one in sets])
    matrix = np.zeros((count, 40), dtype=np.int64)
    for place, one in enumerate(sets):
        matrix[place, list(one)] = 1
    shared = matrix @ matrix.T
    reached = (10 * shared >= 4 * (sizes[:, None] + sizes[None, :])) & (shared > 0)
    expected = np.argwhere(np.triu(reached, 1))
    assert np.array_equal(np.stack([pairs.first, pairs.second], axis=1), expected)


@pytest.mark.parametrize(("given_one", "fraction"), [(0.8, Fraction(4, 5)), ("0.75", Fraction(3, 4)), (1, Fraction(1))])
def test_a_threshold_is_the_fraction_its_digits_say(given_one: float | str, fraction: Fraction) -> None:
    assert exact_threshold(given_one) == fraction


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01])
def test_a_threshold_beyond_all_ratios_is_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="A threshold lies above 0 and at most at 1"):
        exact_threshold(threshold)


@pytest.mark.parametrize("threshold", ["abc", "1/0", "nan", "1e-30", 2 / 3, "0.12345678901234567890", "0", "1.01"])
def test_a_threshold_that_cannot_be_held_exactly_is_refused(threshold: float | str) -> None:
    with pytest.raises(UsageError):
        exact_threshold(threshold)


@pytest.mark.parametrize("threshold", ["2/3", "1/3", "0.666666667", "0.999999999", "0.000000001"])
def test_large_bags_are_joined_exactly_at_odd_thresholds(threshold: str) -> None:
    words = [f"w{number}" for number in range(3001)]
    texts = [" ".join(words[:1500]), " ".join(words[500:2000]), " ".join(words[:1501]), " ".join(words), "w0"]
    (made,), _ = bags_of(texts)
    sets = [set(text.split()) for text in texts]
    limit = Fraction(threshold)
    expected = [
        (i, j)
        for i, j in combinations(range(len(sets)), 2)
        if Fraction(2 * len(sets[i] & sets[j]), len(sets[i]) + len(sets[j])) >= limit
    ]
    found = join(made, threshold=threshold)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == expected


def test_joins_run_in_several_threads_at_once() -> None:
    (made,), _ = bags_of([f"{number % 7} {number % 11} {number % 13}" for number in range(9000)])
    alone = join(made, threshold="0.9")
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: join(made, threshold="0.9"), range(4)):
            assert np.array_equal(found.first, alone.first)
            assert np.array_equal(found.second, alone.second)
