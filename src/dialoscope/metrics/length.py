"""How long responses are, and how often they repeat themselves: the plainest things a metric may be measuring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from dialoscope.metrics.distinct import token_settings, tokens_of
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, mean_of, ratio
from dialoscope.metrics.tokens import Tokens, ngrams

ABOVE_0 = (0.0, math.inf)


def word_counts(pairs: Pairs, options: Options) -> FloatArray:
    """Whitespace words of hypothesis and reference: (pairs, 2)."""
    counts = [(len(a.split()), len(b.split())) for a, b in zip(pairs.hypotheses, pairs.references, strict=True)]
    return np.array(counts, dtype=np.float64).reshape(-1, 2)


def mean_length(counts: FloatArray, clusters: Clusters) -> Sums:
    """Mean words of a response."""
    return mean_of(counts[:, 0], clusters=clusters, undefined="there are no responses", bounds=ABOVE_0)


def length_ratio(counts: FloatArray, clusters: Clusters) -> Sums:
    """Words of all responses over words of all references."""
    undefined = "the references hold no words"
    return Sums.over(counts, ratio, clusters=clusters, undefined=undefined, bounds=ABOVE_0)


def repetition(tokens: Tokens, clusters: Clusters, *, order: int) -> Sums:
    """The share of a response's n-grams that it said before, mean over responses (seq-rep-n, Welleck et al. 2020).

    A response too short to have any n-gram could not be scored, and n does not count it.
    """
    grams = [ngrams(response, order) for response in tokens]
    values = [1 - len(set(one)) / len(one) if one else np.nan for one in grams]
    undefined = "the responses are too short to have any"
    return mean_of(values, clusters=clusters, undefined=undefined, bounds=(0.0, 1.0))


def word_settings(options: Options) -> Mapping[str, Any]:
    """Words are what blanks separate."""
    return {"tok": "whitespace"}


def length_metric() -> Metric[FloatArray]:
    """Mean length in words."""
    return Metric("mean words of a response", word_counts, mean_length, word_settings, unit="words")


def length_ratio_metric() -> Metric[FloatArray]:
    """Length against the references."""
    about = "words of the responses over words of the references"
    return Metric(about, word_counts, length_ratio, word_settings, unit="ratio")


def repetition_metric(order: int) -> Metric[Tokens]:
    """Repetition within responses, a share."""
    about = f"share of a response's {order}-grams that repeat an earlier one, mean over responses"
    return Metric(about, tokens_of, partial(repetition, order=order), token_settings)
