"""How much of a conversation remains after each turn, and whether scores of turns agree with people.

>>> import dialoscope as ds
>>> ds.engage.Monitor("engaged").hear("Hi! What did you do today?").score        # needs torch   # doctest: +SKIP
0.94

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.engage.depth import depth
    from dialoscope.engage.depth_result import DepthResult
    from dialoscope.engage.fitting import train
    from dialoscope.engage.human_sets import read_human
    from dialoscope.engage.live import Monitor, rank
    from dialoscope.engage.ratings import ratings
    from dialoscope.engage.ratings_result import RatingsResult
    from dialoscope.engage.scoring import score
    from dialoscope.engage.settings import DepthSettings as DepthSettings
    from dialoscope.engage.settings import PredictorSettings as PredictorSettings
    from dialoscope.engage.settings import RatingsSettings as RatingsSettings
    from dialoscope.engage.settings import ScoreSettings as ScoreSettings
    from dialoscope.engage.storage import load

__all__ = [
    "DepthResult",
    "Monitor",
    "RatingsResult",
    "depth",
    "load",
    "rank",
    "ratings",
    "read_human",
    "score",
    "train",
]
make_lazy(
    __name__,
    {
        "depth": ("depth",),
        "depth_result": ("DepthResult",),
        "fitting": ("train",),
        "human_sets": ("read_human",),
        "live": ("Monitor", "rank"),
        "ratings": ("ratings",),
        "ratings_result": ("RatingsResult",),
        "scoring": ("score",),
        "settings": ("DepthSettings", "PredictorSettings", "RatingsSettings", "ScoreSettings"),
        "storage": ("load",),
    },
)
