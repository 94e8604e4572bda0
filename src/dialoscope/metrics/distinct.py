"""Dist-n: distinct n-grams over all n-grams of the responses (Li et al. 2016), as a share.

The more text, the lower it is, so compare systems on the same number of responses only. And a resample that
draws a dialogue twice has fewer distinct n-grams, not more text: the bootstrap would put the value outside its
own interval. Leaving out one dialogue at a time (the jackknife) does not repeat anything, and the n-grams that
go are exactly those that occur in no other dialogue.

``distinct-1-overlap`` and ``distinct-2-overlap`` are the numbers of "An Empirical Study on the Overlapping
Problem of Open-Domain Dialogue Datasets", Table 4, in percent. Its public evaluation script joins the NLTK word
tokens of all responses to one text (case kept), so bigrams reach across the ends of responses, and NLTK's
`BigramCollocationFinder` divides distinct bigrams by words, of which there is one more than bigrams. Here a
bigram across an end belongs to the response it starts in: in intervals and tests it goes where that response goes,
and the neighbours of a response that is left out are not joined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dialoscope.metrics.kernels import compiled, weighted_sums
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import BoolArray, Clusters, FloatArray, IntArray, Interval
from dialoscope.metrics.tokens import Tokens, ngrams, settings_of, tokenise

Gram = tuple[str, ...]
CORRECTED_FROM = 10  # dialogues; with fewer the jackknife's standard error is left as it is, too wide
LEAST_SHARE = 0.5  # of the jackknife's variance that the correction leaves


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct over all, as a statistic: which types occur in which dialogue, and how many tokens each holds."""

    vocabulary: Mapping[Gram, int]
    types: IntArray  # (occurrences,), each type once for each dialogue that has it
    codes: IntArray  # (occurrences,), that dialogue
    totals: FloatArray  # (dialogues,), tokens
    n: int  # responses that hold any
    is_grouped: bool = False  # whether dialogues were named
    scale: float = 1.0  # 100 for percent
    undefined: str = "the responses are too short to have any"
    exchanges: WeakKeyDictionary[Distinct, Exchange] = field(default_factory=WeakKeyDictionary, repr=False)

    @classmethod
    def over(
        cls,
        grams: Sequence[Sequence[Gram]],
        clusters: Clusters,
        *,
        totals: Sequence[int] | None = None,
        scale: float = 1.0,
    ) -> Distinct:
        """Number the types and note where they occur; `totals` says what each response is divided by, if not these."""
        vocabulary: dict[Gram, int] = {}
        types = [vocabulary.setdefault(gram, len(vocabulary)) for response in grams for gram in response]
        lengths = np.array([len(response) for response in grams], dtype=np.int64)
        places = np.repeat(clusters.codes, lengths).astype(np.int64)
        once = np.unique(places * max(1, len(vocabulary)) + np.array(types, dtype=np.int64))
        codes, kinds = np.divmod(once, max(1, len(vocabulary)))
        tokens = lengths if totals is None else np.array(totals, dtype=np.int64)
        sums = np.bincount(clusters.codes, tokens, minlength=clusters.count).astype(np.float64)
        return cls(vocabulary, kinds, codes, sums, int((tokens > 0).sum()), clusters.is_grouped, scale)

    @property
    def dialogues(self) -> int:
        """Dialogues that can be left out."""
        return len(self.totals)

    @property
    def bounds(self) -> Interval:
        """There are never more types than tokens."""
        return 0.0, self.scale

    def value(self) -> float:
        """Distinct over all, or NaN."""
        total = self.totals.sum()
        return self.scale * len(self.vocabulary) / float(total) if total else math.nan

    def left_out(self) -> FloatArray:
        """The value without each dialogue in turn: only types of that dialogue alone are lost."""
        is_alone = np.bincount(self.types, minlength=len(self.vocabulary))[self.types] == 1
        lost = np.bincount(self.codes[is_alone], minlength=self.dialogues)
        remaining = self.totals.sum() - self.totals
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * np.where(remaining > 0, (len(self.vocabulary) - lost) / remaining, np.nan)

    @cached_property
    def error_share(self) -> float:
        """What is left of the jackknife's standard error once types that several dialogues share are counted.

        A type that occurs in k dialogues is lost only with all of them, and the jackknife counts its variance k
        times. Taking off what pairs of dialogues share, adding what triples share, and so on, counts it once
        (Efron and Stein 1981). For single tokens it is the series of Good and Toulmin (1956) for the new types that
        as much text again would bring, which is the variance of their number. It is noisy: half at most is taken off.
        """
        left_out = self.left_out()
        squares = float(((left_out - left_out.mean()) ** 2).sum()) * (self.dialogues - 1) / self.dialogues
        if self.dialogues < CORRECTED_FROM or not squares > 0:
            return 1.0
        shared = (self.scale / float(self.totals.sum())) ** 2 * self._shared_types()
        return math.sqrt(min(1.0, max(LEAST_SHARE, 1 - shared / squares)))

    def _shared_types(self) -> float:
        """Types of exactly the same k dialogues, counted and squared; summed, with a minus where k is odd."""
        uses = np.bincount(self.types, minlength=len(self.vocabulary))
        marks = np.random.default_rng(0).integers(2**62, size=self.dialogues)  # sums of these stand for sets
        ordered = marks[self.codes[np.argsort(self.types, kind="stable")]]
        sets = np.add.reduceat(ordered, np.cumsum(uses) - uses)
        _, firsts, counts = np.unique(sets, return_index=True, return_counts=True)
        sizes = uses[firsts]
        return float(np.where(sizes > 1, (-1.0) ** sizes * counts**2.0, 0.0).sum())

    def swapped(self, other: Distinct, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values of both systems after the marked dialogues change sides."""
        ours, theirs = self.exchange_with(other).count_types(swaps)
        moved = weighted_sums(swaps, (other.totals - self.totals)[:, None])[:, 0]
        totals = self.totals.sum() + moved, other.totals.sum() - moved
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * ours / totals[0], self.scale * theirs / totals[1]

    def exchange_with(self, other: Distinct) -> Exchange:
        """What the two systems share, worked out once for all rounds and threads of a test."""
        with JOINING:
            if other not in self.exchanges:
                self.exchanges[other] = Exchange.between(self, other)
            return self.exchanges[other]


JOINING = Lock()


@dataclass(frozen=True, eq=False)
class Exchange:
    """Where the types of two systems occur, less those whose fate is known before any dialogue changes sides.

    A type that both systems use in one dialogue stays on both sides whatever changes. A type of a single dialogue
    and system goes where that dialogue goes, so it is a sum. The others have to be looked for in every round, but
    only until both sides have them.
    """

    always: int  # types that both sides have in every round
    alone: FloatArray  # (2, dialogues), types found only there, of the first system and of the second
    starts: IntArray  # (types + 1,), where the occurrences of each remaining type begin
    codes: IntArray  # (occurrences,), the dialogue
    systems: IntArray  # (occurrences,), 0 or 1

    @classmethod
    def between(cls, first: Distinct, second: Distinct) -> Exchange:
        """Number the types of both together and sort them by what can happen to them."""
        joined = dict(first.vocabulary)
        renumbered = np.array([joined.setdefault(gram, len(joined)) for gram in second.vocabulary], dtype=np.int64)
        types = np.concatenate([first.types, renumbered[second.types] if len(second.types) else second.types])
        codes = np.concatenate([first.codes, second.codes])
        systems = np.repeat([0, 1], [len(first.types), len(second.types)])
        order = np.lexsort((systems, codes, types))
        types, codes, systems = types[order], codes[order], systems[order]
        is_repeated = (types[1:] == types[:-1]) & (codes[1:] == codes[:-1])  # both systems, one dialogue
        is_shared = np.bincount(types[1:][is_repeated], minlength=len(joined)) > 0
        uses = np.bincount(types, minlength=len(joined))
        is_alone = (uses == 1)[types]
        alone = [np.bincount(codes[is_alone & (systems == side)], minlength=first.dialogues) for side in (0, 1)]
        is_left = ~is_shared[types] & ~is_alone
        _, firsts = np.unique(types[is_left], return_index=True)
        starts = np.append(firsts, is_left.sum()).astype(np.int64)
        left = codes[is_left].astype(np.int64), systems[is_left].astype(np.int64)
        return cls(int(is_shared.sum()), np.array(alone, dtype=np.float64), starts, *left)

    def count_types(self, swaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Types of both sides in each round: (rounds, dialogues) to two (rounds,)."""
        found = np.full((2, len(swaps)), float(self.always))
        compiled(_count_types)(swaps, self.starts, self.codes, self.systems, found)
        moved = weighted_sums(swaps, (self.alone[1] - self.alone[0])[:, None])[:, 0]
        return found[0] + self.alone[0].sum() + moved, found[1] + self.alone[1].sum() - moved


def _count_types(swaps: BoolArray, starts: IntArray, codes: IntArray, systems: IntArray, found: FloatArray) -> None:
    for row in range(len(swaps)):
        for kind in range(len(starts) - 1):
            sides = 0  # 1: the first side has the type, 2: the second, 3: both
            for place in range(starts[kind], starts[kind + 1]):
                is_second = (systems[place] == 1) != swaps[row, codes[place]]
                sides |= 2 if is_second else 1
                if sides == 3:
                    break
            found[0, row] += sides & 1
            found[1, row] += sides >> 1


def tokens_of(pairs: Pairs, options: Options) -> Tokens:
    """The responses' tokens; references play no part."""
    return tokenise(pairs.hypotheses, tokeniser=options.tokeniser, lowercase=options.lowercase)


def overlap_tokens(pairs: Pairs, options: Options) -> Tokens:
    """The responses' tokens as in the overlap paper: NLTK's words, case kept."""
    return tokenise(pairs.hypotheses, tokeniser="nltk", lowercase=False)


def distinct_grams(tokens: Tokens, clusters: Clusters, *, order: int) -> Distinct:
    """Dist-n of tokenised responses."""
    return Distinct.over([ngrams(response, order) for response in tokens], clusters)


def distinct_across_ends(tokens: Tokens, clusters: Clusters, *, order: int) -> Distinct:
    """Dist-n of the overlap paper: n-grams of all responses as one text, over its words, in percent."""
    text = [token for response in tokens for token in response]
    grams, start = [], 0
    for response in tokens:
        grams.append(ngrams(text[start : start + len(response) + order - 1], order))
        start += len(response)
    return Distinct.over(grams, clusters, totals=[len(response) for response in tokens], scale=100.0)


def distinct_responses(tokens: Tokens, clusters: Clusters) -> Distinct:
    """The share of responses that differ from all others: how often a system says the same thing."""
    return Distinct.over([[tuple(response)] for response in tokens], clusters)


def token_settings(options: Options) -> Mapping[str, Any]:
    """What the signature must say of the tokens."""
    return settings_of(options.tokeniser, lowercase=options.lowercase)


def overlap_settings(options: Options) -> Mapping[str, Any]:
    """The overlap paper's choices."""
    return {**settings_of("nltk", lowercase=False), "ends": "crossed", "over": "words"}


def distinct_metric(order: int) -> Metric[Tokens]:
    """Dist-n, a share."""
    about = f"distinct {order}-grams over all {order}-grams of the responses"
    return Metric(about, tokens_of, partial(distinct_grams, order=order), token_settings)


def overlap_metric(order: int) -> Metric[Tokens]:
    """Dist-n as the overlap paper reports it."""
    about = f"Dist-{order} of the overlap paper: distinct {order}-grams of all responses as one text over its words"
    statistic = partial(distinct_across_ends, order=order)
    return Metric(about, overlap_tokens, statistic, overlap_settings, unit="percent")


def distinct_response_metric() -> Metric[Tokens]:
    """Distinct responses over all, a share."""
    return Metric("distinct responses over all responses", tokens_of, distinct_responses, token_settings)
