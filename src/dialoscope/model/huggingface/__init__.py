"""Hugging Face checkpoints as dialogue models: causal and encoder-decoder ones whole, encoders for their encodings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dialoscope.model.huggingface.conversation import Joining, Separator
from dialoscope.model.huggingface.pretrained import kind_of, load_network, readable, require_models, silent, source_of

if TYPE_CHECKING:
    from dialoscope.model.huggingface.adapter import HuggingFaceModel


def load_huggingface(
    path_or_name: str | Path,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    batch_size: int = 16,
    joining: Joining = "auto",
    separator: Separator = "auto",
    layer: int = -1,
    pooling: str = "auto",
    window: int | None = None,
    quiet: bool = False,
) -> HuggingFaceModel:
    """Load a folder, a hub name or a .gguf file; weights are safetensors or GGUF, and no code comes with them.

    joining: the tokenizer's chat template, or turns plainly joined by a separator (newline, or the end token).
    layer, pooling: which hidden states `encode` gives: last | first | mean | query (mean over the Query's tokens);
    auto is the last token of a causal model, the mean of others. window: tokens read at once, if not the model's own.
    quiet: no progress bars.
    """
    source = source_of(path_or_name)
    require_models()
    from transformers import AutoConfig, AutoTokenizer

    from dialoscope.model.huggingface.adapter import Options, adapt

    options = Options(batch_size, joining, separator, layer, pooling, window)
    with readable(source), silent(quiet):
        config = AutoConfig.from_pretrained(source.place, **source.options)
        tokenizer = AutoTokenizer.from_pretrained(source.place, **source.options)
        kind = kind_of(config)
    with silent(quiet):
        network = load_network(source, config, kind, device=device, dtype=dtype)
    return adapt(source.name, kind, network, tokenizer, options)


__all__ = ["load_huggingface"]
