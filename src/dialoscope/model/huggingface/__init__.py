"""Hugging Face checkpoints as dialogue models: causal and encoder-decoder ones whole, encoders for their encodings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def wrap_pretrained(
    model: Any,
    tokenizer: Any,
    *,
    name: str | None = None,
    batch_size: int = 16,
    joining: Joining = "auto",
    separator: Separator = "auto",
    layer: int = -1,
    pooling: str = "auto",
    window: int | None = None,
) -> HuggingFaceModel:
    """Make a dialogue model of a network and a tokenizer of transformers that are loaded already.

    The network stays on its device, keeps its number type, and is set to evaluation (`model.eval()`). A causal network
    without its language-model head can only encode. The other options are those of `load_huggingface`.
    """
    require_models()
    from dialoscope.model.huggingface.adapter import Options, adapt

    kind = kind_of(model.config)
    if kind == "causal" and model.get_output_embeddings() is None:
        kind = "encoder"
    called = name or Path(str(getattr(model.config, "_name_or_path", "") or type(model).__name__)).name
    return adapt(called, kind, model.eval(), tokenizer, Options(batch_size, joining, separator, layer, pooling, window))


__all__ = ["load_huggingface", "wrap_pretrained"]
