"""Dialogue models: one protocol, one sequence-to-sequence family, Hugging Face checkpoints, one training loop.

Names are imported when they are first used: `import dialoscope.model` does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialoscope.model.answers import PerplexityResult, perplexity, respond
    from dialoscope.model.batch import Batch, Output
    from dialoscope.model.checkpoint import load_model, save_model
    from dialoscope.model.huggingface import load_huggingface
    from dialoscope.model.loading import load
    from dialoscope.model.presets import PRESETS, Preset, preset
    from dialoscope.model.protocol import Attention, Decoding, DialogueModel, Likelihood
    from dialoscope.model.run import TrainingResult
    from dialoscope.model.seq2seq import Seq2SeqModel
    from dialoscope.model.settings import Recipe, Settings
    from dialoscope.model.training import train
    from dialoscope.model.vocabulary import Vocabulary

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
        return getattr(import_module(f"dialoscope.model.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'dialoscope.model' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
