"""The number of words alone against people, on DailyDialog-Human.

The file of Ghazarian et al. (2020) holds 300 query-reply pairs with three engagement labels each (the paper on
remaining depth says five). Thirty tasks of ten pairs were rated by three workers each. What is expected here is
computed by scipy and by the krippendorff package from the file itself.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dialoscope.metrics import Resampling, annotator_ceiling, correlate, krippendorff_alpha, ratings_matrix

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DIALOSCOPE_DATA", ROOT.parent / "shared" / "data"))
FILE = DATA / "dailydialog_human" / "DailyDialog_groungtruth_annotated.csv"

pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"no DailyDialog-Human in {DATA} (DIALOSCOPE_DATA)")

Ratings = dict[tuple[str, str], dict[str, float]]  # query and reply -> worker -> rating
Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    found: Ratings = defaultdict(dict)
    with FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            for place in range(1, 11):
                pair = row[f"Input.query{place}"], row[f"Input.response{place}"]
                found[pair][row["WorkerId"]] = float(row[f"Answer.pair{place}"])
    return found


@pytest.fixture(scope="module")
def labels(ratings: Ratings) -> Floats:
    """Pairs × first, second and third rating."""
    return np.array([list(one.values()) for one in ratings.values()])


@pytest.fixture(scope="module")
def words(ratings: Ratings) -> list[int]:
    return [len(reply.split()) for _, reply in ratings]


@pytest.fixture(scope="module")
def printed() -> str:
    """What the example prints."""
    command = [sys.executable, str(ROOT / "examples" / "word_count_baseline.py"), str(DATA)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_there_are_three_hundred_pairs_with_three_ratings_by_24_workers(ratings: Ratings) -> None:
    assert len(ratings) == 300
    assert {len(one) for one in ratings.values()} == {3}
    assert len({worker for one in ratings.values() for worker in one}) == 24


def test_words_of_the_reply_correlate_by_0_725_with_the_mean_rating(words: list[int], labels: Floats) -> None:
    found = correlate(words, labels.mean(axis=1))
    assert found.value == pytest.approx(stats.spearmanr(words, labels.mean(axis=1))[0])
    assert found.value == pytest.approx(0.725, abs=5e-4)


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_the_interval_is_scipys(words: list[int], labels: Floats, method: str, theirs: str) -> None:
    people = labels.mean(axis=1)
    expected = stats.bootstrap(
        (np.array(words, dtype=float), people),
        lambda a, b: stats.spearmanr(a, b)[0],
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method=theirs,
        rng=np.random.default_rng(0),
    ).confidence_interval
    found = correlate(words, people, resampling=Resampling(method=method)).interval
    assert found == pytest.approx(tuple(expected), abs=0.01)  # the ends of 1,000 resamples vary by that much


def test_words_do_better_than_one_annotator_against_the_rest(labels: Floats) -> None:
    ceiling = annotator_ceiling(labels)
    each = [stats.spearmanr(labels[:, j], np.delete(labels, j, axis=1).mean(axis=1))[0] for j in range(3)]
    assert ceiling.value == pytest.approx(np.mean(each))
    assert ceiling.interval is not None
    assert ceiling.interval[1] < 0.725


def test_the_ceiling_by_worker_is_the_mean_over_workers_whose_ratings_vary(ratings: Ratings) -> None:
    triples = [(pair, worker, rating) for pair, one in ratings.items() for worker, rating in one.items()]
    ours = annotator_ceiling(ratings_matrix(triples))
    own: dict[str, list[float]] = defaultdict(list)
    rest: dict[str, list[float]] = defaultdict(list)
    for one in ratings.values():
        for worker, rating in one.items():
            own[worker].append(rating)
            rest[worker].append(float(np.mean([other for name, other in one.items() if name != worker])))
    varying = [worker for worker in own if len(set(own[worker])) > 1 and len(set(rest[worker])) > 1]
    each = [stats.spearmanr(own[worker], rest[worker])[0] for worker in varying]
    weights = [len(own[worker]) for worker in varying]  # who rated more pairs says more
    assert ours.value == pytest.approx(np.average(each, weights=weights))
    assert f"annotators:{len(varying)}/24" in ours.signature


def test_the_annotators_agree_moderately(labels: Floats) -> None:
    import krippendorff

    found = krippendorff_alpha(labels, resampling=Resampling(200))
    assert found.value == pytest.approx(krippendorff.alpha(labels.T, level_of_measurement="ordinal"))


def test_the_example_prints_what_scipy_and_krippendorff_compute(printed: str, words: list[int], labels: Floats) -> None:
    import krippendorff

    rows = [re.split(r" *\| *", line.strip("| \n")) for line in printed.splitlines()[2:]]
    each = [stats.spearmanr(labels[:, j], np.delete(labels, j, axis=1).mean(axis=1))[0] for j in range(3)]
    alpha = krippendorff.alpha(labels.T, level_of_measurement="ordinal")
    expected = [stats.spearmanr(words, labels.mean(axis=1))[0], np.mean(each), alpha]
    assert [rows[place][1] for place in (0, 1, 3)] == [f"{one:.3f}" for one in expected]
    assert all(re.fullmatch(r"\[0\.\d{3}, 0\.\d{3}\]", row[2]) for row in rows)


def test_the_document_shows_what_the_example_prints(printed: str) -> None:
    document = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- word count -->\n(.*?)<!-- end -->", document, re.DOTALL) == [printed]
