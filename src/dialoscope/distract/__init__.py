"""Does the model attend to what matters? The DAS ratio on distracting test sets, and training that lowers it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialoscope.distract.distractions import InsertDistractions
from dialoscope.distract.examine import Examined, Wish, examine, make_sets
from dialoscope.distract.influence import behaviour, influence
from dialoscope.distract.measure import Scoring, measure
from dialoscope.distract.output import write_result
from dialoscope.distract.result import DistractResult
from dialoscope.distract.sets import NINE, Case, DistractingSet
from dialoscope.distract.stored import read_sets, write_sets

if TYPE_CHECKING:
    from dialoscope.distract.attention_loss import AttentionLoss
    from dialoscope.distract.huggingface_loss import AttentionLossMixin

_WITH_TORCH = {"AttentionLoss": "attention_loss", "AttentionLossMixin": "huggingface_loss"}
__all__ = [
    "NINE",
    "AttentionLoss",
    "AttentionLossMixin",
    "Case",
    "DistractResult",
    "DistractingSet",
    "Examined",
    "InsertDistractions",
    "Scoring",
    "Wish",
    "behaviour",
    "examine",
    "influence",
    "make_sets",
    "measure",
    "read_sets",
    "write_result",
    "write_sets",
]


def __getattr__(name: str) -> Any:
    if name in _WITH_TORCH:
        return getattr(import_module(f"dialoscope.distract.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module 'dialoscope.distract' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
