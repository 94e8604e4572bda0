"""Is the test set in the training set? Measure it, filter it, clean it, split it again.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.overlap.clean import Cleaned, clean
    from dialoscope.overlap.filter import Filtered, filter
    from dialoscope.overlap.measure import measure
    from dialoscope.overlap.pairs import OverlapPairs as OverlapPairs
    from dialoscope.overlap.pairs import pairs
    from dialoscope.overlap.result import OverlapResult
    from dialoscope.overlap.settings import CleanSettings as CleanSettings
    from dialoscope.overlap.settings import FilterSettings as FilterSettings
    from dialoscope.overlap.settings import OverlapSettings as OverlapSettings
    from dialoscope.overlap.settings import PairsSettings as PairsSettings

__all__ = [
    "Cleaned",
    "Filtered",
    "OverlapResult",
    "clean",
    "filter",
    "measure",
    "pairs",
]
make_lazy(
    __name__,
    {
        "clean": ("Cleaned", "clean"),
        "filter": ("Filtered", "filter"),
        "measure": ("measure",),
        "pairs": ("OverlapPairs", "pairs"),
        "result": ("OverlapResult",),
        "settings": ("CleanSettings", "FilterSettings", "OverlapSettings", "PairsSettings"),
    },
)
