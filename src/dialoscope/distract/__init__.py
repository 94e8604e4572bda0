"""Does the model attend to what matters? The DAS ratio on distracting test sets, and training that lowers it.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.distract.attention_loss import AttentionLoss
    from dialoscope.distract.behave import BehaveResult, behave
    from dialoscope.distract.distractions import InsertDistractions
    from dialoscope.distract.huggingface_loss import AttentionLossMixin as AttentionLossMixin
    from dialoscope.distract.influence import InfluenceResult, influence
    from dialoscope.distract.measure import measure
    from dialoscope.distract.names import NINE as NINE
    from dialoscope.distract.result import AttentionResult
    from dialoscope.distract.sets import make_sets
    from dialoscope.distract.settings import AttentionSettings as AttentionSettings
    from dialoscope.distract.settings import BehaveSettings as BehaveSettings
    from dialoscope.distract.settings import InfluenceSettings as InfluenceSettings
    from dialoscope.distract.settings import SetsSettings as SetsSettings
    from dialoscope.distract.stored import read_sets as read_sets
    from dialoscope.distract.stored import write_sets as write_sets

__all__ = [
    "AttentionLoss",
    "AttentionResult",
    "BehaveResult",
    "InfluenceResult",
    "InsertDistractions",
    "behave",
    "influence",
    "make_sets",
    "measure",
]
make_lazy(
    __name__,
    {
        "attention_loss": ("AttentionLoss",),
        "behave": ("BehaveResult", "behave"),
        "distractions": ("InsertDistractions",),
        "huggingface_loss": ("AttentionLossMixin",),
        "influence": ("InfluenceResult", "influence"),
        "measure": ("measure",),
        "names": ("NINE",),
        "result": ("AttentionResult",),
        "sets": ("make_sets",),
        "settings": ("AttentionSettings", "BehaveSettings", "InfluenceSettings", "SetsSettings"),
        "stored": ("read_sets", "write_sets"),
    },
)
