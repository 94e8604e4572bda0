from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope.overlap.best import best_match
from dialoscope.overlap.tokens import Bags

Sets = list[set[int]]
SETS = st.lists(st.sets(st.integers(0, 9), max_size=6), max_size=15)


def bags(sets: Sets) -> Bags:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    return Bags(offsets, np.array([token for one in sets for token in sorted(one)], dtype=np.int32))


def ratio(one: set[int], other: set[int]) -> Fraction:
    return Fraction(2 * len(one & other), len(one) + len(other)) if one | other else Fraction(0)


def first_best(ratios: list[Fraction]) -> tuple[float, int]:
    best = max(ratios, default=Fraction(0))
    return (float(best), ratios.index(best)) if best else (0.0, -1)


@settings(deadline=None)
@given(st.data(), SETS, SETS)
def test_the_best_sample_is_the_first_with_the_highest_least_part(data: st.DataObject, left: Sets, right: Sets) -> None:
    responses = data.draw(st.lists(st.sets(st.integers(0, 9)), min_size=len(left), max_size=len(left)))
    known = data.draw(st.lists(st.sets(st.integers(0, 9)), min_size=len(right), max_size=len(right)))
    best = best_match([(bags(left), bags(right)), (bags(responses), bags(known))])
    expected = [
        first_best([min(ratio(c, d), ratio(r, s)) for d, s in zip(right, known, strict=True)])
        for c, r in zip(left, responses, strict=True)
    ]
    assert list(zip(best.ratio.tolist(), best.match.tolist(), strict=True)) == expected


FEW_SETS = st.lists(st.sets(st.integers(0, 2), max_size=2), max_size=15)  # many are identical, and some empty


@settings(deadline=None)
@given(FEW_SETS | SETS)
def test_a_unit_does_not_match_itself(units: Sets) -> None:
    best = best_match([(bags(units), bags(units))], is_self=True)
    expected = [
        first_best([ratio(one, other) if i != j else Fraction(0) for j, other in enumerate(units)])
        for i, one in enumerate(units)
    ]
    assert list(zip(best.ratio.tolist(), best.match.tolist(), strict=True)) == expected


@settings(deadline=None)
@given(st.data(), FEW_SETS | SETS)
def test_a_sample_does_not_match_itself(data: st.DataObject, contexts: Sets) -> None:
    few = st.sets(st.integers(0, 2), max_size=2)
    responses = data.draw(st.lists(few, min_size=len(contexts), max_size=len(contexts)))
    best = best_match([(bags(part), bags(part)) for part in (contexts, responses)], is_self=True)
    samples = list(enumerate(zip(contexts, responses, strict=True)))
    expected = [
        first_best([min(ratio(c, d), ratio(r, s)) if i != j else Fraction(0) for j, (d, s) in samples])
        for i, (c, r) in samples
    ]
    assert list(zip(best.ratio.tolist(), best.match.tolist(), strict=True)) == expected


def test_many_copies_of_one_text_are_matched_in_no_time() -> None:
    count = 200_000
    copies = Bags(np.arange(count + 1) * 3, np.tile(np.arange(3, dtype=np.int32), count))
    best = best_match([(copies, copies)], is_self=True)  # minutes, were every pair of copies looked at
    assert (best.ratio == 1).all()
    assert best.match.tolist() == [1] + [0] * (count - 1)
