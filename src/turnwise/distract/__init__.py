"""Does the model attend to what matters? Training with self-contained distractions and an attention loss."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnwise.distract.attention_loss import AttentionLoss
    from turnwise.distract.distractions import InsertDistractions
    from turnwise.distract.huggingface_loss import AttentionLossMixin

_NAMES = {
    "AttentionLoss": "attention_loss",
    "AttentionLossMixin": "huggingface_loss",
    "InsertDistractions": "distractions",
}
__all__ = ["AttentionLoss", "AttentionLossMixin", "InsertDistractions"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"turnwise.distract.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'turnwise.distract' has no attribute '{name}'")
