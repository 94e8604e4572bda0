"""The number of words alone against people, on DailyDialog-Human.

The file of Ghazarian et al. (2020) holds 300 query-reply pairs with three engagement labels each (the paper on
remaining depth says five). Thirty tasks of ten pairs were rated by three workers each.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from turnwise.metrics import Resampling, annotator_ceiling, correlate, krippendorff_alpha

DATA = Path(os.environ.get("TURNWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "dailydialog_human" / "DailyDialog_groungtruth_annotated.csv"

pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"no DailyDialog-Human in {DATA} (TURNWISE_DATA)")


@pytest.fixture(scope="module")
def ratings() -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            for place in range(1, 11):
                pair = row[f"Input.query{place}"], row[f"Input.response{place}"]
                found[pair].append(float(row[f"Answer.pair{place}"]))
    return found


def test_there_are_three_hundred_pairs_with_three_ratings(ratings: dict[tuple[str, str], list[float]]) -> None:
    assert len(ratings) == 300
    assert {len(labels) for labels in ratings.values()} == {3}


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_words_of_the_reply_correlate_by_0_725_with_the_mean_rating(
    ratings: dict[tuple[str, str], list[float]], method: str
) -> None:
    words = [len(reply.split()) for _, reply in ratings]
    people = [np.mean(labels) for labels in ratings.values()]
    found = correlate(words, people, resampling=Resampling(method=method))
    assert found.value == pytest.approx(0.725, abs=5e-4)
    assert found.interval == pytest.approx((0.66, 0.78), abs=0.01)


def test_words_do_better_than_one_annotator_against_the_rest(ratings: dict[tuple[str, str], list[float]]) -> None:
    from scipy import stats

    labels = np.array(list(ratings.values()))
    ceiling = annotator_ceiling(labels)
    each = [stats.spearmanr(labels[:, j], np.delete(labels, j, axis=1).mean(axis=1))[0] for j in range(3)]
    assert ceiling.value == pytest.approx(np.mean(each))
    assert ceiling.interval is not None
    assert ceiling.interval[1] < 0.725


def test_the_annotators_agree_moderately(ratings: dict[tuple[str, str], list[float]]) -> None:
    import krippendorff

    labels = np.array(list(ratings.values()))
    found = krippendorff_alpha(labels, resampling=Resampling(200))
    assert found.value == pytest.approx(krippendorff.alpha(labels.T, level_of_measurement="ordinal"))
