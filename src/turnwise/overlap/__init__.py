"""Is the test set in the training set? Measure it, clean it, split it again."""

from turnwise.overlap.clean import Cleaned, clean
from turnwise.overlap.contamination import Contamination, contamination, hypothesis_pairs
from turnwise.overlap.filter import Filtered, filter
from turnwise.overlap.measure import Settings, measure
from turnwise.overlap.output import read_result, write_cleaned, write_filtered, write_result
from turnwise.overlap.pairs import OverlapPairs, pairs
from turnwise.overlap.result import OverlapResult

__all__ = [
    "Cleaned",
    "Contamination",
    "Filtered",
    "OverlapPairs",
    "OverlapResult",
    "Settings",
    "clean",
    "contamination",
    "filter",
    "hypothesis_pairs",
    "measure",
    "pairs",
    "read_result",
    "write_cleaned",
    "write_filtered",
    "write_result",
]
