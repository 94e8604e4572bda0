"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) by `rouge-score`: the mean F-measure over pairs, a share.

The package knows the letters a-z and the digits 0-9 only. Beside a reference without any of them every response would
score 0, so such a pair is skipped and counted. A response without any scores 0, as the package has it: a system that
answers "..." must not be spared its hardest pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from dialoscope.errors import MissingExtraError
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, mean_of

KINDS = ("rouge1", "rouge2", "rougeL")
NO_TOKENS = "rouge-score knows the letters a-z and the digits 0-9 only, and the reference has none of them"


def f_measures(pairs: Pairs, options: Options) -> FloatArray:
    """ROUGE-1, 2 and L of each pair, NaN where the package cannot read the reference: (pairs, 3)."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenizers import DefaultTokenizer
    except ImportError as error:
        raise MissingExtraError("ROUGE", "metrics") from error
    tokenizer = DefaultTokenizer(use_stemmer=False)
    scorer = RougeScorer(list(KINDS), tokenizer=tokenizer)
    values = np.full((len(pairs), len(KINDS)), np.nan)
    for row, (said, target) in enumerate(zip(pairs.hypotheses, pairs.references, strict=True)):
        if tokenizer.tokenize(target):
            found = scorer.score(target, said)
            values[row] = [found[kind].fmeasure for kind in KINDS]
    return values


def mean_f_measure(values: FloatArray, clusters: Clusters, *, kind: str) -> Sums:
    """The mean over pairs."""
    undefined = NO_TOKENS if len(values) else "there are no pairs to score"
    return mean_of(values[:, KINDS.index(kind)], clusters=clusters, undefined=undefined, bounds=(0.0, 1.0))


def settings(options: Options) -> Mapping[str, Any]:
    """What the signature must say; the package's own tokens, not those of the options."""
    return {"case": "lc", "tok": "a-z0-9", "stem": "no", "measure": "f1", "rouge-score": version("rouge-score")}


def metric(kind: str) -> Metric[FloatArray]:
    """Mean F-measure of one kind of ROUGE."""
    about = f"mean {kind} F-measure by rouge-score"
    return Metric(about, f_measures, partial(mean_f_measure, kind=kind), settings, skipped_because=NO_TOKENS)
