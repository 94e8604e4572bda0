"""Does the model attend to what matters? The DAS ratio on distracting test sets, and training that lowers it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnwise.distract.distractions import InsertDistractions
from turnwise.distract.examine import Examined, Wish, examine, make_sets
from turnwise.distract.influence import behaviour, influence
from turnwise.distract.measure import Scoring, measure
from turnwise.distract.output import write_result
from turnwise.distract.result import DistractResult
from turnwise.distract.sets import NINE, Case, DistractingSet
from turnwise.distract.stored import read_sets, write_sets

if TYPE_CHECKING:
    from turnwise.distract.attention_loss import AttentionLoss
    from turnwise.distract.huggingface_loss import AttentionLossMixin

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
        return getattr(import_module(f"turnwise.distract.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module 'turnwise.distract' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
