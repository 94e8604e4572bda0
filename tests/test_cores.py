from __future__ import annotations

import pytest

from turnwise.cores import cores, in_ranges


@pytest.mark.parametrize(("count", "ranges"), [(0, None), (1, None), (5000, None), (5000, 7), (5000, 9000), (4097, 64)])
def test_ranges_cover_everything_once_and_in_order(count: int, ranges: int | None) -> None:
    found = in_ranges(count, lambda low, high: range(low, high), ranges=ranges)
    covered = [place for one in found for place in one]
    assert covered == list(range(count))


def test_few_items_are_one_range() -> None:
    assert in_ranges(100, lambda low, high: (low, high), ranges=8) == [(0, 100)]
    assert len(in_ranges(100, lambda low, high: (low, high), ranges=8, few=10)) == 8


def test_there_is_a_core() -> None:
    assert cores() >= 1
