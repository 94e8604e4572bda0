"""Dialogue models: one protocol, one sequence-to-sequence family, Hugging Face checkpoints, one training loop.

Names are imported when they are first used: `import turnwise.model` does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnwise.model.answers import PerplexityResult, perplexity, respond
    from turnwise.model.batch import Batch, Output
    from turnwise.model.checkpoint import load_model, save_model
    from turnwise.model.huggingface import load_huggingface
    from turnwise.model.loading import load
    from turnwise.model.presets import PRESETS, Preset, preset
    from turnwise.model.protocol import Attention, Decoding, DialogueModel, Likelihood
    from turnwise.model.run import TrainingResult
    from turnwise.model.seq2seq import Seq2SeqModel
    from turnwise.model.settings import Recipe, Settings
    from turnwise.model.training import train
    from turnwise.model.vocabulary import Vocabulary

_NAMES = {
    "Attention": "protocol",
    "Batch": "batch",
    "Decoding": "protocol",
    "DialogueModel": "protocol",
    "Likelihood": "protocol",
    "Output": "batch",
    "PRESETS": "presets",
    "PerplexityResult": "answers",
    "Preset": "presets",
    "Recipe": "settings",
    "Seq2SeqModel": "seq2seq",
    "Settings": "settings",
    "TrainingResult": "run",
    "Vocabulary": "vocabulary",
    "load": "loading",
    "load_huggingface": "huggingface",
    "load_model": "checkpoint",
    "perplexity": "answers",
    "preset": "presets",
    "respond": "answers",
    "save_model": "checkpoint",
    "train": "training",
}
__all__ = [
    "PRESETS",
    "Attention",
    "Batch",
    "Decoding",
    "DialogueModel",
    "Likelihood",
    "Output",
    "PerplexityResult",
    "Preset",
    "Recipe",
    "Seq2SeqModel",
    "Settings",
    "TrainingResult",
    "Vocabulary",
    "load",
    "load_huggingface",
    "load_model",
    "perplexity",
    "preset",
    "respond",
    "save_model",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"turnwise.model.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'turnwise.model' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
