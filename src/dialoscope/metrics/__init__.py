"""Metrics and statistics: every number with its n, its interval and its origin.

>>> import dialoscope as ds
>>> ds.metrics.measure(["a cat", "a dog"], ["a cat", "a dog"], metrics=["bleu-2"], name="mine").scores()
{'mine/all/bleu-2': ...}

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.metrics.agreement import annotator_ceiling as annotator_ceiling
    from dialoscope.metrics.agreement import krippendorff_alpha as krippendorff_alpha
    from dialoscope.metrics.agreement import ratings_matrix as ratings_matrix
    from dialoscope.metrics.bootstrap import INTERVALS as INTERVALS
    from dialoscope.metrics.bootstrap import Resampling as Resampling
    from dialoscope.metrics.bootstrap import mean_score as mean_score
    from dialoscope.metrics.bootstrap import median_score as median_score
    from dialoscope.metrics.bootstrap import ratio_score as ratio_score
    from dialoscope.metrics.correlation import CORRELATIONS as CORRELATIONS
    from dialoscope.metrics.correlation import correlate as correlate
    from dialoscope.metrics.correlation import partial_correlation as partial_correlation
    from dialoscope.metrics.dependent import Significance as Significance
    from dialoscope.metrics.dependent import compare_correlations as compare_correlations
    from dialoscope.metrics.dependent import steiger as steiger
    from dialoscope.metrics.dependent import williams as williams
    from dialoscope.metrics.measure import measure
    from dialoscope.metrics.options import Metric as Metric
    from dialoscope.metrics.options import Options as Options
    from dialoscope.metrics.paired import TESTS as TESTS
    from dialoscope.metrics.paired import Comparison as Comparison
    from dialoscope.metrics.paired import compare_means as compare_means
    from dialoscope.metrics.paired import compare_ratios as compare_ratios
    from dialoscope.metrics.paired import correct as correct
    from dialoscope.metrics.paired import holm as holm
    from dialoscope.metrics.pairs import Pairs
    from dialoscope.metrics.pairs import read_pairs as read_pairs
    from dialoscope.metrics.perplexity import perplexity_score as perplexity_score
    from dialoscope.metrics.result import MetricsResult
    from dialoscope.metrics.score import METRICS as METRICS
    from dialoscope.metrics.score import score_pairs as score_pairs
    from dialoscope.metrics.settings import DEFAULT_METRICS as DEFAULT_METRICS
    from dialoscope.metrics.settings import MetricsSettings as MetricsSettings
    from dialoscope.metrics.tokens import TOKENISERS as TOKENISERS
    from dialoscope.metrics.tokens import tokenise as tokenise

__all__ = [
    "MetricsResult",
    "Pairs",
    "measure",
]
make_lazy(
    __name__,
    {
        "agreement": (
            "annotator_ceiling",
            "krippendorff_alpha",
            "ratings_matrix",
        ),
        "bootstrap": (
            "INTERVALS",
            "Resampling",
            "mean_score",
            "median_score",
            "ratio_score",
        ),
        "correlation": (
            "CORRELATIONS",
            "correlate",
            "partial_correlation",
        ),
        "dependent": (
            "Significance",
            "compare_correlations",
            "steiger",
            "williams",
        ),
        "measure": ("measure",),
        "options": (
            "Metric",
            "Options",
        ),
        "paired": (
            "TESTS",
            "Comparison",
            "compare_means",
            "compare_ratios",
            "correct",
            "holm",
        ),
        "pairs": (
            "Pairs",
            "read_pairs",
        ),
        "perplexity": ("perplexity_score",),
        "result": ("MetricsResult",),
        "score": (
            "METRICS",
            "score_pairs",
        ),
        "settings": (
            "DEFAULT_METRICS",
            "MetricsSettings",
        ),
        "tokens": (
            "TOKENISERS",
            "tokenise",
        ),
    },
)
