"""Dist-n: distinct n-grams over all n-grams of the responses (Li et al. 2016), as a share.

The more text, the lower it is, so compare systems on the same number of responses only. And a resample that
draws a dialogue twice has fewer distinct n-grams, not more text: the bootstrap would put the value outside its
own interval. Leaving out one dialogue at a time (the jackknife) does not repeat anything, and the n-grams that
go are exactly those that occur in no other dialogue.

The overlap paper's script takes bigrams across the ends of responses as well, and divides by words instead of
bigrams. Ours stay within a response, as Li et al. have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from turnwise.metrics.kernels import compiled, weighted_sums
from turnwise.metrics.options import Metric, Options
from turnwise.metrics.pairs import Pairs
from turnwise.metrics.statistic import BoolArray, Clusters, FloatArray, IntArray
from turnwise.metrics.tokens import Tokens, name_of, ngrams, tokenise

Gram = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct over all, as a statistic: which types occur in which dialogue, and how many tokens each holds."""

    vocabulary: Mapping[Gram, int]
    types: IntArray  # (occurrences,), each type once for each dialogue that has it
    codes: IntArray  # (occurrences,), that dialogue
    totals: FloatArray  # (dialogues,), tokens
    n: int  # responses
    undefined: str = "the responses are too short to have any"

    @classmethod
    def over(cls, grams: Sequence[Sequence[Gram]], clusters: Clusters) -> Distinct:
        """Number the types and note where they occur."""
        vocabulary: dict[Gram, int] = {}
        types = [vocabulary.setdefault(gram, len(vocabulary)) for response in grams for gram in response]
        lengths = np.array([len(response) for response in grams], dtype=np.int64)
        places = np.repeat(clusters.codes, lengths).astype(np.int64)
        once = np.unique(places * max(1, len(vocabulary)) + np.array(types, dtype=np.int64))
        codes, kinds = np.divmod(once, max(1, len(vocabulary)))
        totals = np.bincount(clusters.codes, lengths, minlength=clusters.count).astype(np.float64)
        return cls(vocabulary, kinds, codes, totals, len(grams))

    @property
    def dialogues(self) -> int:
        """Dialogues that can be left out."""
        return len(self.totals)

    def value(self) -> float:
        """Distinct over all, or NaN."""
        total = self.totals.sum()
        return len(self.vocabulary) / float(total) if total else math.nan

    def left_out(self) -> FloatArray:
        """The value without each dialogue in turn: only types of that dialogue alone are lost."""
        is_alone = np.bincount(self.types, minlength=len(self.vocabulary))[self.types] == 1
        lost = np.bincount(self.codes[is_alone], minlength=self.dialogues)
        remaining = self.totals.sum() - self.totals
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(remaining > 0, (len(self.vocabulary) - lost) / remaining, np.nan)

    def swapped(self, other: Distinct, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values of both systems after the marked dialogues change sides."""
        joined = dict(self.vocabulary)
        renumbered = np.array([joined.setdefault(gram, len(joined)) for gram in other.vocabulary], dtype=np.int64)
        found = np.zeros((2, len(swaps)))
        theirs = renumbered[other.types] if len(other.types) else other.types
        compiled(_count_types)(swaps, self.types, self.codes, theirs, other.codes, len(joined), found)
        moved = weighted_sums(swaps, (other.totals - self.totals)[:, None])[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return found[0] / (self.totals.sum() + moved), found[1] / (other.totals.sum() - moved)


def _count_types(
    swaps: BoolArray,
    types: IntArray,
    codes: IntArray,
    other_types: IntArray,
    other_codes: IntArray,
    size: int,
    found: FloatArray,
) -> None:
    seen = np.zeros((2, size), dtype=np.int64)  # the last round in which a side had the type
    for row in range(len(swaps)):
        for place in range(len(types)):
            side = 1 if swaps[row, codes[place]] else 0
            if seen[side, types[place]] != row + 1:
                seen[side, types[place]] = row + 1
                found[side, row] += 1
        for place in range(len(other_types)):
            side = 0 if swaps[row, other_codes[place]] else 1
            if seen[side, other_types[place]] != row + 1:
                seen[side, other_types[place]] = row + 1
                found[side, row] += 1


def tokens_of(pairs: Pairs, options: Options) -> Tokens:
    """The responses' tokens; references play no part."""
    return tokenise(pairs.hypotheses, tokeniser=options.tokeniser, lowercase=options.lowercase)


def distinct_grams(tokens: Tokens, clusters: Clusters, *, order: int) -> Distinct:
    """Dist-n of tokenised responses."""
    return Distinct.over([ngrams(response, order) for response in tokens], clusters)


def distinct_responses(tokens: Tokens, clusters: Clusters) -> Distinct:
    """The share of responses that differ from all others: how often a system says the same thing."""
    return Distinct.over([[tuple(response)] for response in tokens], clusters)


def token_settings(options: Options) -> Mapping[str, Any]:
    """What the signature must say of the tokens."""
    return {"case": "lc" if options.lowercase else "mixed", "tok": name_of(options.tokeniser)}


def distinct_metric(order: int) -> Metric[Tokens]:
    """Dist-n, a share."""
    about = f"distinct {order}-grams over all {order}-grams of the responses, a share"
    return Metric(about, tokens_of, partial(distinct_grams, order=order), token_settings)


def distinct_response_metric() -> Metric[Tokens]:
    """Distinct responses over all, a share."""
    return Metric("distinct responses over all responses, a share", tokens_of, distinct_responses, token_settings)
