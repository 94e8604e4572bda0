"""Metrics and statistics: every number with its n, its interval and its origin.

>>> from dialoscope.metrics import correlate
>>> correlate([1, 2, 3, 4], [1, 3, 2, 4]).value
0.8
"""

from dialoscope.metrics.agreement import annotator_ceiling, krippendorff_alpha, ratings_matrix
from dialoscope.metrics.bootstrap import INTERVALS, Resampling, mean_score, median_score, ratio_score
from dialoscope.metrics.correlation import CORRELATIONS, correlate, partial_correlation
from dialoscope.metrics.dependent import Significance, compare_correlations, steiger, williams
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.paired import TESTS, Comparison, compare_means, compare_ratios, correct, holm
from dialoscope.metrics.pairs import Pairs, read_pairs
from dialoscope.metrics.perplexity import perplexity_score
from dialoscope.metrics.score import DEFAULT_METRICS, METRICS, MetricsResult, measure, score_files, score_pairs
from dialoscope.metrics.tokens import TOKENISERS, tokenise

__all__ = [
    "CORRELATIONS",
    "DEFAULT_METRICS",
    "INTERVALS",
    "METRICS",
    "TESTS",
    "TOKENISERS",
    "Comparison",
    "Metric",
    "MetricsResult",
    "Options",
    "Pairs",
    "Resampling",
    "Significance",
    "annotator_ceiling",
    "compare_correlations",
    "compare_means",
    "compare_ratios",
    "correct",
    "correlate",
    "holm",
    "krippendorff_alpha",
    "mean_score",
    "measure",
    "median_score",
    "partial_correlation",
    "perplexity_score",
    "ratings_matrix",
    "ratio_score",
    "read_pairs",
    "score_files",
    "score_pairs",
    "steiger",
    "tokenise",
    "williams",
]
