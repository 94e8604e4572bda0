"""BLEU with sacreBLEU underneath: counts once per pair, then any order, corpus or sentence, and any resample.

Two papers report "BLEU-2" and mean different numbers. They are named after the papers and kept apart:

``bleu-2-overlap`` (and ``bleu-4-overlap``)
    "An Empirical Study on the Overlapping Problem of Open-Domain Dialogue Datasets", section 5.1: "our BLEU-n
    measures the geometric mean of i-gram overlap for i = 1, …, n", in percent (Table 4, Figure 2). The text
    leaves the rest open; its public evaluation script calls NLTK's ``corpus_bleu`` with equal weights, no
    smoothing, case kept, on NLTK word tokens, so that is what is computed here.

``bleu-2-probe``
    "Do Encoder Representations of Generative Dialogue Models Encode Sufficient Information about the Task?",
    Table 4: "We measure BLEU-2 (case insensitive)", in percent. Its public script averages NLTK's
    ``sentence_bleu`` with weights (0.5, 0.5) and no smoothing over samples, on whitespace tokens.

``bleu-2-probe-exchanged``
    The same, with the two sides exchanged: that script passes the model's response as the reference and the
    target as the hypothesis, so precision becomes recall and the brevity penalty falls on short targets. Only
    this is repeated here, and it is not what the script prints, which strays further: it cuts the start mark off
    one side and two tokens off the other, so that a recurrent model's response keeps one token too many at its
    start (its first output is never written and stays vocabulary entry 0); a side without an end mark is cut at
    index -1 and loses its last token; and the sum is divided by n + 0.001.

NLTK counts at least one n-gram in every sentence, even in one too short to have any, so a one-word response
adds a missed bigram. sacreBLEU does not; ``bleu-2`` is sacreBLEU's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, mean_of
from dialoscope.metrics.tokens import Tokens, settings_of, tokenise

ORDERS = 4
NO_WORDS = "there are no words to score"
PERCENT = (0.0, 100.0)


def count_matches(hypotheses: Tokens, references: Tokens) -> FloatArray:
    """Lengths, matched and possible n-grams of each pair, by sacreBLEU.

    Columns: hypothesis length, reference length, matches of orders 1-4, possible ones of orders 1-4.
    """
    from sacrebleu.metrics.bleu import BLEU

    # The texts are tokens already, and `effective_order` only keeps a warning about sentence scores away.
    bleu = BLEU(tokenize="none", max_ngram_order=ORDERS, effective_order=True)
    counts = np.zeros((len(hypotheses), 2 + 2 * ORDERS))
    for row, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        found = bleu.sentence_score(" ".join(hypothesis), [" ".join(reference)])
        counts[row] = [found.sys_len, found.ref_len, *found.counts, *found.totals]
    return counts


def bleu_of_counts(counts: FloatArray, *, order: int, is_smoothed: bool, is_effective: bool) -> FloatArray:
    """BLEU in percent of each row of counts (rows, 2 + 2·4), the formula of sacreBLEU's `compute_bleu`.

    Smoothed: the k-th order without a match counts 1/2^k matches ("exp", as in mteval-v13a). Effective: orders
    for which the hypothesis is too short are left out of the mean.
    """
    matches, possible = counts[:, 2 : 2 + order], counts[:, 2 + ORDERS : 2 + ORDERS + order]
    has_any, is_missed = possible > 0, (matches == 0) & (possible > 0)
    halved = np.where(is_missed, 0.5 ** np.cumsum(is_missed, axis=1), 0.0) if is_smoothed else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(has_any, (matches + halved) / possible, 0.0))  # -inf where nothing matches
        brevity = np.where(counts[:, 0] < counts[:, 1], np.exp(1 - counts[:, 1] / counts[:, 0]), 1.0)
    used = has_any if is_effective else np.ones_like(has_any)
    mean = np.where(used, logs, 0.0).sum(axis=1) / np.maximum(1, used.sum(axis=1))
    return np.where(matches.any(axis=1), 100 * brevity * np.exp(mean), 0.0)


def corpus_bleu(counts: FloatArray, clusters: Clusters, *, order: int) -> Sums:
    """The corpus score of sacreBLEU: counts of all pairs added up, exponential smoothing."""
    value = partial(bleu_of_counts, order=order, is_smoothed=True, is_effective=False)
    return Sums.over(counts, _unless_empty(value), clusters=clusters, undefined=NO_WORDS, bounds=PERCENT)


def sentence_bleu(counts: FloatArray, clusters: Clusters, *, order: int) -> Sums:
    """The mean of sacreBLEU's sentence scores: effective order, exponential smoothing."""
    values = bleu_of_counts(counts, order=order, is_smoothed=True, is_effective=True)
    return mean_of(values, clusters=clusters, undefined=NO_WORDS, bounds=PERCENT)


def nltk_corpus_bleu(counts: FloatArray, clusters: Clusters, *, order: int) -> Sums:
    """NLTK's corpus score: no smoothing, at least one possible n-gram in every sentence."""
    value = partial(bleu_of_counts, order=order, is_smoothed=False, is_effective=False)
    return Sums.over(_at_least_one(counts), _unless_empty(value), clusters=clusters, undefined=NO_WORDS, bounds=PERCENT)


def nltk_sentence_bleu(counts: FloatArray, clusters: Clusters, *, order: int) -> Sums:
    """The mean of NLTK's sentence scores, unsmoothed: most short responses score 0."""
    values = bleu_of_counts(_at_least_one(counts), order=order, is_smoothed=False, is_effective=False)
    return mean_of(values, clusters=clusters, undefined=NO_WORDS, bounds=PERCENT)


def matches_of(pairs: Pairs, options: Options) -> FloatArray:
    """Counts with the tokenisation and case that were asked for."""
    return _counts(pairs.hypotheses, pairs.references, options.tokeniser, options.lowercase)


def overlap_matches(pairs: Pairs, options: Options) -> FloatArray:
    """Counts as in the overlap paper: NLTK's words, case kept."""
    return _counts(pairs.hypotheses, pairs.references, "nltk", False)


def probe_matches(pairs: Pairs, options: Options) -> FloatArray:
    """Counts as the probe-task paper says: whitespace tokens, case ignored."""
    return _counts(pairs.hypotheses, pairs.references, "whitespace", True)


def exchanged_probe_matches(pairs: Pairs, options: Options) -> FloatArray:
    """Counts with the sides exchanged, as the probe-task paper's script has them."""
    return _counts(pairs.references, pairs.hypotheses, "whitespace", True)


def sacrebleu_settings(options: Options) -> Mapping[str, Any]:
    """What sacreBLEU's own signature says, and whose tokens they are where they are not sacreBLEU's."""
    tokens = settings_of(options.tokeniser, lowercase=options.lowercase)
    return {"case": tokens["case"], "tok": tokens["tok"], "smooth": "exp", **tokens, **_counted_by()}


def overlap_settings(options: Options) -> Mapping[str, Any]:
    """The overlap paper's choices."""
    return {**settings_of("nltk", lowercase=False), "smooth": "none", "level": "corpus", **_counted_by()}


def probe_settings(options: Options, *, sides: str | None = None) -> Mapping[str, Any]:
    """The probe-task paper's choices."""
    tokens = settings_of("whitespace", lowercase=True)
    return {**tokens, "smooth": "none", "level": "sentence", "sides": sides, **_counted_by()}


def corpus_metric(order: int) -> Metric[FloatArray]:
    """BLEU of the whole corpus, in percent."""
    about = f"corpus BLEU of orders 1 to {order} by sacreBLEU"
    return Metric(about, matches_of, partial(corpus_bleu, order=order), sacrebleu_settings, unit="percent")


def sentence_metric(order: int) -> Metric[FloatArray]:
    """Mean BLEU of the sentences, in percent."""
    about = f"mean sentence BLEU of orders 1 to {order} by sacreBLEU"
    return Metric(about, matches_of, partial(sentence_bleu, order=order), sacrebleu_settings, unit="percent")


def overlap_metric(order: int) -> Metric[FloatArray]:
    """BLEU as the overlap paper reports it."""
    about = f"BLEU-{order} of the overlap paper: NLTK corpus BLEU, unsmoothed"
    return Metric(about, overlap_matches, partial(nltk_corpus_bleu, order=order), overlap_settings, unit="percent")


def probe_metric(order: int, *, is_exchanged: bool = False) -> Metric[FloatArray]:
    """BLEU as the probe-task paper describes it, or with the sides exchanged."""
    about = f"BLEU-{order} of the probe-task paper: mean NLTK sentence BLEU, unsmoothed, case ignored"
    value = partial(nltk_sentence_bleu, order=order)
    if not is_exchanged:
        return Metric(about, probe_matches, value, probe_settings, unit="percent")
    settings = partial(probe_settings, sides="exchanged")
    return Metric(f"{about}, sides exchanged", exchanged_probe_matches, value, settings, unit="percent")


def _counts(hypotheses: Any, references: Any, tokeniser: str, lowercase: bool) -> FloatArray:
    sides = [tokenise(side, tokeniser=tokeniser, lowercase=lowercase) for side in (hypotheses, references)]
    return count_matches(*sides)


def _counted_by() -> Mapping[str, str]:
    return {"sacrebleu": version("sacrebleu")}  # matched n-grams, whatever the formula above them


def _at_least_one(counts: FloatArray) -> FloatArray:
    possible = np.maximum(1, counts[:, 2 + ORDERS :])
    return np.hstack([counts[:, : 2 + ORDERS], possible])


def _unless_empty(value: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """BLEU of texts is 0 where nothing matches, but of no texts at all it is not defined."""
    return lambda counts: np.where(counts[:, :2].any(axis=1), value(counts), np.nan)
