"""Is the test set in the training set? Measure it, clean it, split it again."""

from turnwise.overlap.clean import Cleaned, clean
from turnwise.overlap.measure import Settings, measure
from turnwise.overlap.pairs import OverlapPairs, pairs
from turnwise.overlap.result import OverlapResult

__all__ = ["Cleaned", "OverlapPairs", "OverlapResult", "Settings", "clean", "measure", "pairs"]
