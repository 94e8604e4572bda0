"""Is the test set in the training set? Measure it, clean it, split it again."""

from dialoscope.overlap.clean import Cleaned, clean
from dialoscope.overlap.contamination import Contamination, contamination, hypothesis_pairs
from dialoscope.overlap.filter import Filtered, filter
from dialoscope.overlap.measure import Settings, measure
from dialoscope.overlap.output import read_result, write_cleaned, write_filtered, write_result
from dialoscope.overlap.pairs import OverlapPairs, pairs
from dialoscope.overlap.result import OverlapResult

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
