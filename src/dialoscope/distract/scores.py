"""Attention scores (equation 7) and their ratio in one context (equation 8), in log space.

The score of an utterance is its share of attention times the number of utterances, in percent: 100 % is average.
Three ways to write it, which differ by factors:

- ``utterance``: q · share, whatever the attention is over; what the paper's words say.
- ``per_token``: m · share / tokens of the utterance, so that a long utterance has no advantage.
- ``as_printed``: for attention over tokens the paper prints m/q · share, whose average is not 100 %; the factor is the
  same for all utterances of a context, so ratios are those of ``utterance``.

Utterances that a model did not read, because its window is too short, have no score and count nowhere.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dialoscope.distract.sets import Case
from dialoscope.errors import UsageError
from dialoscope.model.protocol import Attention

Logs = np.ndarray[Any, np.dtype[np.float64]]
HIERARCHICAL = ("static", "dynamic")


class CaseScores(NamedTuple):
    """Log of the mean attention scores in one context, 0 for 100 %; NaN where there is no such utterance."""

    distraction: float
    history: float
    first: float
    last: float


def log_scores(attention: Attention, *, normalisation: str = "utterance") -> Logs:
    """Log of each utterance's score in every layer and head, 0 for 100 %: (layers, heads, utterances)."""
    is_read = attention.tokens > 0
    read, tokens = int(is_read.sum()), float(attention.tokens.sum())
    share = np.where(is_read, attention.log_share.astype(np.float64), np.nan)
    if normalisation == "per_token":
        return np.asarray(share + math.log(max(1.0, tokens)) - np.log(np.maximum(1, attention.tokens)))
    if normalisation == "as_printed" and attention.kind not in HIERARCHICAL:
        return np.asarray(share + math.log(max(1.0, tokens) / max(1, read)))
    return np.asarray(share + math.log(max(1, read)))


def chosen_scores(
    attention: Attention, normalisation: str = "utterance", layer: int | None = None, head: int | None = None
) -> Logs:
    """Log of each utterance's score in one layer and head, or averaged over all where none is named: (utterances,)."""
    scores = log_scores(attention, normalisation=normalisation)
    for axis, (what, place) in enumerate((("layer", layer), ("head", head))):
        if place is not None and not -scores.shape[axis] <= place < scores.shape[axis]:
            raise UsageError(f"The model has {scores.shape[axis]} {what}s, counted from 0: there is no {what} {place}.")
    layers = slice(None) if layer is None else [layer]
    heads = slice(None) if head is None else [head]
    return averaged(np.asarray(scores[layers][:, heads]))


def averaged(scores: Logs) -> Logs:
    """The mean over layers and heads: (utterances,). A head that saw no utterance at all is left out."""
    flat = scores.reshape(-1, scores.shape[-1])
    is_read = ~np.isnan(flat).all(axis=0)
    seen = flat[:, is_read]
    seen = seen[~np.isnan(seen).any(axis=1)]
    mean = np.full(scores.shape[-1], np.nan)
    if len(seen):
        mean[is_read] = np.logaddexp.reduce(seen, axis=0) - math.log(len(seen))
    return mean


def case_scores(scores: Logs, case: Case) -> CaseScores:
    """Means over the distractions and over the original History of one context, from (utterances,)."""
    history = [place for place in case.history if not np.isnan(scores[place])]
    ends = (scores[history[0]], scores[history[-1]]) if history else (math.nan, math.nan)
    return CaseScores(_mean(scores[list(case.distractions)]), _mean(scores[history]), *map(float, ends))


def head_means(scores: Logs, case: Case) -> tuple[Logs, Logs]:
    """Mean scores of distractions and of History in every layer and head, not logs: two of (layers, heads)."""
    history = [place for place in case.history if not np.isnan(scores[..., place]).all()]
    return _plain_mean(scores[..., list(case.distractions)]), _plain_mean(scores[..., history])


def _mean(logs: Logs) -> float:
    """Log of the mean of numbers given by their logs; NaN of none."""
    known = logs[~np.isnan(logs)]
    return float(np.logaddexp.reduce(known) - math.log(len(known))) if len(known) else math.nan


def _plain_mean(logs: Logs) -> Logs:
    with np.errstate(invalid="ignore"):
        values = np.exp(logs)
    is_known = ~np.isnan(values)
    total, count = np.where(is_known, values, 0.0).sum(-1), is_known.sum(-1)
    return np.asarray(np.where(count > 0, total / np.maximum(1, count), np.nan))
