"""Perplexity: exp of the mean negative log-likelihood of a token, over all tokens, not over responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from turnwise.metrics.bootstrap import DEFAULT, Resampling, score
from turnwise.metrics.options import Metric, Options
from turnwise.metrics.pairs import LIKELIHOOD_COLUMN, TOKENS_COLUMN, Pairs
from turnwise.metrics.statistic import Clusters, FloatArray, Ids, Sums
from turnwise.record import Origin, Score

UNDEFINED = (
    f"perplexity needs log-likelihoods and token counts of the responses (columns '{LIKELIHOOD_COLUMN}' and "
    f"'{TOKENS_COLUMN}'), and a mean that exp can hold"
)


def perplexity_score(
    log_likelihoods: npt.ArrayLike,
    token_counts: npt.ArrayLike,
    *,
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Score:
    """Perplexity from each response's log-likelihood (natural logarithm, summed) and number of tokens.

    >>> import math
    >>> round(perplexity_score([math.log(1 / 8), math.log(1 / 2)], [3, 1]).value, 9)   # four tokens, each by 1/2
    2.0
    """
    items = np.stack([np.asarray(side, dtype=np.float64) for side in (log_likelihoods, token_counts)], axis=1)
    statistic = of_likelihoods(items, Clusters.of(clusters, n=len(items)))
    return score(statistic, resampling=resampling, origin=origin, skipped=len(items) - statistic.n)


def of_likelihoods(items: FloatArray, clusters: Clusters) -> Sums:
    """Perplexity as a statistic of (log-likelihood, tokens) for each response."""
    return Sums.over(items, _of_sums, clusters=clusters, undefined=UNDEFINED)


def likelihoods_of(pairs: Pairs, options: Options) -> FloatArray:
    """What the pairs bring with them; NaN where they bring nothing."""
    if pairs.log_likelihoods is None or pairs.token_counts is None:
        return np.full((len(pairs), 2), np.nan)
    return np.array([pairs.log_likelihoods, pairs.token_counts], dtype=np.float64).T


def settings(options: Options) -> Mapping[str, Any]:
    """Nothing to choose."""
    return {}


def metric() -> Metric[FloatArray]:
    """Perplexity of responses whose log-likelihoods are given."""
    return Metric("exp of the mean negative log-likelihood of a token", likelihoods_of, of_likelihoods, settings)


def _of_sums(sums: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(sums[:, 1] > 0, np.exp(-sums[:, 0] / sums[:, 1]), np.nan)
