from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics import (
    DEFAULT_METRICS,
    INTERVALS,
    METRICS,
    TESTS,
    TOKENISERS,
    Options,
    Pairs,
    Resampling,
    score_pairs,
)
from dialoscope.metrics.embedding import WordVectors
from dialoscope.metrics.settings import METHODS, NAMES, TEST_NAMES, TOKENISER_NAMES
from dialoscope.record import direction

TARGETS = ["the cat sat", "a dog ran off", "yes", "no way", "I see"]
SAID = ["the cat sat", "a dog ran", "yes", "no", "I am"]


def test_an_unknown_metric_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"Unknown metric 'blue-2'. Did you mean 'bleu-2'\?"):
        score_pairs(Pairs(SAID, TARGETS), metrics=["blue-2"])


def test_without_names_the_metrics_that_need_no_extra_are_computed() -> None:
    assert tuple(score_pairs(Pairs(SAID, TARGETS)).scores) == DEFAULT_METRICS


def test_the_settings_name_every_metric_tokeniser_method_and_test() -> None:
    """Settings are read without the libraries that compute, so they have lists of their own."""
    assert set(NAMES) == set(METRICS)
    assert len(NAMES) == len(METRICS)
    assert (tuple(TOKENISERS), INTERVALS, tuple(TESTS)) == (TOKENISER_NAMES, METHODS, TEST_NAMES)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_which_end_of_it_is_better(name: str) -> None:
    better = direction(f"mine/all/{name}")
    assert better == ("neither" if name.startswith("length") else "low" if name[:3] in ("rep", "per") else "high")


# Twice the same five words, each with probability 1/2, and nothing else to be said.
PERFECT = {
    **{f"{kind}bleu-{order}": 100 for kind in ("", "sentence-") for order in (1, 2, 3, 4)},
    **{f"bleu-{rest}": 100 for rest in ("2-overlap", "4-overlap", "2-probe", "2-probe-exchanged")},
    "distinct-1": 5 / 10,
    "distinct-2": 4 / 8,
    "distinct-1-overlap": 100 * 5 / 10,
    "distinct-2-overlap": 100 * 5 / 10,  # four within, and one across the end of the first
    "distinct-responses": 1 / 2,
    "rouge-1": 1,
    "rouge-2": 1,
    "rouge-l": 1,
    "meteor": 1 - 0.5 / 5**3,
    "meteor-stem": 1 - 0.5 / 5**3,  # five matches in one chunk
    "embedding-average": 1,
    "embedding-extrema": 1,
    "embedding-greedy": 1,
    "perplexity": 2,
    "length": 5,
    "length-ratio": 1,
    "repetition-2": 0,
    "repetition-4": 0,
}


def test_every_metric_of_the_table_knows_a_perfect_answer() -> None:
    assert set(PERFECT) == set(METRICS)
    said = ["the cat sat on it"] * 2
    pairs = Pairs(said, said, log_likelihoods=[-5 * math.log(2)] * 2, token_counts=[5, 5])
    encoder = WordVectors({word: row for row, word in enumerate(said[0].split())}, np.eye(5, dtype=np.float32), "eye")
    result = score_pairs(pairs, metrics=list(METRICS), options=Options(encoder=encoder), resampling=Resampling(0))
    assert {name: one.value for name, one in result.scores.items()} == pytest.approx(
        {name: value for name, value in PERFECT.items() if name in result.scores}
    )
    assert set(METRICS) - set(result.scores) <= {"meteor"}  # where NLTK finds no WordNet


@pytest.mark.parametrize("name", METRICS)
def test_the_unit_of_a_metric_holds_its_perfect_answer(name: str) -> None:
    limits = {"percent": 100, "share": 1, "cosine": 1, "ratio": math.inf, "words": math.inf, "perplexity": math.inf}
    assert PERFECT[name] <= limits[METRICS[name].unit]


def test_no_pairs_at_all_are_answered_by_every_metric() -> None:
    names = [name for name in METRICS if not name.startswith("embedding")]
    scores = score_pairs(Pairs([], []), metrics=names).scores
    assert all(one.value is None and one.reason for one in scores.values())


def test_a_metric_has_the_same_interval_alone_and_in_company() -> None:
    alone = score_pairs(Pairs(SAID, TARGETS), metrics=["bleu-2"]).scores["bleu-2"]
    company = score_pairs(Pairs(SAID, TARGETS), metrics=["length", "bleu-2"]).scores["bleu-2"]
    assert alone == company


def test_dialogues_widen_the_interval_of_alike_responses() -> None:
    said = [" ".join(["word"] * (1 + place // 20 % 3)) for place in range(40 * 20)]  # 40 dialogues of 20 alike
    grouped = score_pairs(Pairs(said, said, dialogues=[place // 20 for place in range(800)]), metrics=["length"])
    single = score_pairs(Pairs(said, said), metrics=["length"])
    widths = [one.scores["length"].interval or (0, 0) for one in (grouped, single)]
    # Twenty alike responses say no more than one: the interval is wider by the square root of 20.
    ratio = (widths[0][1] - widths[0][0]) / (widths[1][1] - widths[1][0])
    assert ratio == pytest.approx(math.sqrt(20), rel=0.1)


def test_lower_case_applies_to_metrics_that_leave_case_open() -> None:
    pairs = Pairs(["Yes yes"], ["yes yes"])
    result = score_pairs(pairs, metrics=["distinct-1", "bleu-1"], options=Options(lowercase=True))
    assert result.scores["distinct-1"].value == pytest.approx(1 / 2)
    assert "case:lc" in result.scores["bleu-1"].signature


def test_importing_the_metrics_loads_no_heavy_library() -> None:
    heavy = ["torch", "numba", "scipy", "sacrebleu", "nltk", "rouge_score", "krippendorff", "transformers"]
    code = f"import sys, dialoscope.metrics.measure; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
