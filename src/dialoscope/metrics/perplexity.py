"""Perplexity: exp of the mean negative log-likelihood of a token, over all tokens, not over responses.

A response that the model holds impossible (log-likelihood −∞) makes the perplexity infinite. It is not left out,
for that would reward a model for the very responses it does worst on: the score says that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoscope.errors import UsageError
from dialoscope.metrics.bootstrap import DEFAULT, Resampling, score
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import LIKELIHOOD_COLUMN, TOKENS_COLUMN, Pairs
from dialoscope.metrics.statistic import BoolArray, Clusters, FloatArray, Ids, Sums
from dialoscope.record import Origin, Score

COLUMNS = f"(columns '{LIKELIHOOD_COLUMN}' and '{TOKENS_COLUMN}')"
UNDEFINED = f"perplexity needs log-likelihoods and token counts of the responses {COLUMNS}, and at least one token"
IMPOSSIBLE = "a response has probability 0 (log-likelihood -inf), so the perplexity is infinite"
OVERFLOW = "the perplexity is larger than any number that can be written"
SKIPPED = "their log-likelihood or token count is missing"


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
    _check(items)
    is_impossible = np.isneginf(items[:, 0]) & np.isfinite(items[:, 1])
    finite = np.where(is_impossible, 0.0, items[:, 0])
    # A third sum counts the impossible responses, so that a resample without them has its own perplexity.
    counted = np.stack([finite, items[:, 1], is_impossible.astype(np.float64)], axis=1)
    undefined = _why_undefined(items, is_impossible)
    return Sums.over(counted, _of_sums, clusters=clusters, undefined=undefined, bounds=(1.0, math.inf))


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
    about = f"exp of the mean negative log-likelihood of a token {COLUMNS}"
    return Metric(about, likelihoods_of, of_likelihoods, settings, unit="perplexity", skipped_because=SKIPPED)


def _check(items: FloatArray) -> None:
    """Refuse what no log-likelihood and no count can be; gaps (NaN) are skipped elsewhere."""
    likelihoods, tokens = items[:, 0], items[:, 1]
    advice = "expected a log-likelihood of at most 0. If these are negative log-likelihoods (losses), change their sign"
    _refuse(likelihoods > 0, likelihoods, "log-likelihood", advice)
    _refuse((tokens < 0) | np.isinf(tokens), tokens, "token count", "expected 0 tokens or more")
    without = (tokens == 0) & ~np.isnan(likelihoods) & (likelihoods != 0)
    advice = "without tokens it must be 0. Count the tokens that it was summed over, the end mark included"
    _refuse(without, likelihoods, "0 tokens, but log-likelihood", advice)


def _refuse(is_wrong: BoolArray, values: FloatArray, what: str, advice: str) -> None:
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise UsageError(f"Response {place + 1}: {what} {values[place]:g}: {advice}.")


def _why_undefined(items: FloatArray, is_impossible: BoolArray) -> str:
    if is_impossible.any():
        return IMPOSSIBLE
    scored = np.isfinite(items).all(axis=1)
    return OVERFLOW if items[scored, 1].sum() > 0 else UNDEFINED


def _of_sums(sums: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        is_defined = (sums[:, 1] > 0) & (sums[:, 2] == 0)
        return np.where(is_defined, np.exp(-sums[:, 0] / sums[:, 1]), np.nan)
