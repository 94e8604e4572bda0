"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) by `rouge-score`: the mean F-measure over pairs, a share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from turnwise.errors import MissingExtraError
from turnwise.metrics.options import Metric, Options
from turnwise.metrics.pairs import Pairs
from turnwise.metrics.statistic import Clusters, FloatArray, Sums, mean_of

KINDS = ("rouge1", "rouge2", "rougeL")


def f_measures(pairs: Pairs, options: Options) -> FloatArray:
    """ROUGE-1, 2 and L of each pair: (pairs, 3). The package has its own tokens: lower-case a-z and 0-9."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError("ROUGE", "metrics") from error
    scorer = RougeScorer(list(KINDS))
    found = [scorer.score(target, said) for said, target in zip(pairs.hypotheses, pairs.references, strict=True)]
    return np.array([[one[kind].fmeasure for kind in KINDS] for one in found], dtype=np.float64).reshape(-1, len(KINDS))


def mean_f_measure(values: FloatArray, clusters: Clusters, *, kind: str) -> Sums:
    """The mean over pairs."""
    return mean_of(values[:, KINDS.index(kind)], clusters=clusters, undefined="there are no pairs to score")


def settings(options: Options) -> Mapping[str, Any]:
    """What the signature must say."""
    return {"measure": "f1", "rouge-score": version("rouge-score")}


def metric(kind: str) -> Metric[FloatArray]:
    """Mean F-measure of one kind of ROUGE."""
    return Metric(
        f"mean {kind} F-measure by rouge-score, a share", f_measures, partial(mean_f_measure, kind=kind), settings
    )
