"""Dialogue models: one protocol, one sequence-to-sequence family, Hugging Face checkpoints, one training loop.

Names are imported when they are first used: `import dialoscope.model` does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.model.batch import Batch as Batch
    from dialoscope.model.batch import Output as Output
    from dialoscope.model.checkpoint import load_model as load_model
    from dialoscope.model.checkpoint import save_model as save_model
    from dialoscope.model.generate import Responses as Responses
    from dialoscope.model.generate import generate
    from dialoscope.model.generate import respond as respond
    from dialoscope.model.huggingface import load_huggingface as load_huggingface
    from dialoscope.model.huggingface import wrap_pretrained as wrap_pretrained
    from dialoscope.model.loading import load
    from dialoscope.model.loading import open_models as open_models
    from dialoscope.model.perplexity import PerplexityResult, perplexity
    from dialoscope.model.presets import PRESETS as PRESETS
    from dialoscope.model.presets import Preset as Preset
    from dialoscope.model.presets import preset as preset
    from dialoscope.model.protocol import Attention as Attention
    from dialoscope.model.protocol import Decoding as Decoding
    from dialoscope.model.protocol import DialogueModel
    from dialoscope.model.protocol import Likelihood as Likelihood
    from dialoscope.model.run import TrainingResult as TrainingResult
    from dialoscope.model.seq2seq import Seq2SeqModel as Seq2SeqModel
    from dialoscope.model.settings import GenerateSettings as GenerateSettings
    from dialoscope.model.settings import PerplexitySettings as PerplexitySettings
    from dialoscope.model.settings import TrainSettings as TrainSettings
    from dialoscope.model.structure import Recipe as Recipe
    from dialoscope.model.structure import Structure as Structure
    from dialoscope.model.train import TrainedModel as TrainedModel
    from dialoscope.model.train import train
    from dialoscope.model.training import run_training as run_training
    from dialoscope.model.vocabulary import Vocabulary as Vocabulary

__all__ = [
    "DialogueModel",
    "PerplexityResult",
    "generate",
    "load",
    "perplexity",
    "train",
]
make_lazy(
    __name__,
    {
        "batch": (
            "Batch",
            "Output",
        ),
        "checkpoint": (
            "load_model",
            "save_model",
        ),
        "generate": ("Responses", "generate", "respond"),
        "huggingface": (
            "load_huggingface",
            "wrap_pretrained",
        ),
        "loading": (
            "load",
            "open_models",
        ),
        "perplexity": (
            "PerplexityResult",
            "perplexity",
        ),
        "presets": (
            "PRESETS",
            "Preset",
            "preset",
        ),
        "protocol": (
            "Attention",
            "Decoding",
            "DialogueModel",
            "Likelihood",
        ),
        "run": ("TrainingResult",),
        "seq2seq": ("Seq2SeqModel",),
        "settings": (
            "GenerateSettings",
            "PerplexitySettings",
            "TrainSettings",
        ),
        "structure": (
            "Recipe",
            "Structure",
        ),
        "train": (
            "TrainedModel",
            "train",
        ),
        "training": ("run_training",),
        "vocabulary": ("Vocabulary",),
    },
)
