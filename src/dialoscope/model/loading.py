"""Any model by its path or name: a folder of ours, or a Hugging Face checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.model.checkpoint import is_checkpoint, load_model
from dialoscope.model.options import ModelOptions
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.sharing import shared

if TYPE_CHECKING:
    from dialoscope.model.huggingface.conversation import Joining, Separator

# Names of number types as people write them.
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@shared
def load(
    path_or_name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int = 64,
    window: int | None = None,
    joining: Joining = "auto",
    separator: Separator = "auto",
    layer: int = -1,
    pooling: str = "auto",
    quiet: bool = False,
) -> DialogueModel:
    """A folder written by `dialoscope train` (or one of its checkpoints), or a Hugging Face path or name.

    window, joining, separator, layer, pooling: how a Hugging Face model reads and encodes contexts (see
    `load_huggingface`).

    >>> model = load("runs/static-ui")                    # its best checkpoint    # doctest: +SKIP
    >>> model = load("HuggingFaceTB/SmolLM2-135M")                                 # doctest: +SKIP
    """
    require_torch("A dialogue model")
    options: dict[str, Any] = {"device": choose_device(device), "dtype": DTYPES.get(dtype, dtype)}
    if is_checkpoint(path_or_name) or _is_broken(Path(path_or_name)):
        if (window, joining, separator) != (None, "auto", "auto"):
            raise UsageError(f"window, joining and separator are for Hugging Face models; {path_or_name} is ours.")
        if (layer, pooling) != (-1, "auto"):
            raise UsageError(f"layer and pooling are for Hugging Face models; {path_or_name} is ours.")
        return load_model(path_or_name, batch_size=batch_size, **options)
    from dialoscope.model.huggingface import load_huggingface

    reading: dict[str, Any] = {
        "window": window, "joining": joining, "separator": separator, "layer": layer, "pooling": pooling,
    }  # fmt: skip
    return load_huggingface(path_or_name, batch_size=batch_size, quiet=quiet, **options, **reading)


def open_models(
    models: Mapping[str, Any], options: ModelOptions, *, quiet: bool = False, **reading: Any
) -> dict[str, DialogueModel]:
    """Models by name: each may be a path, a hub name, a loaded model, or a (model, tokenizer) pair of transformers.

    `reading` says how Hugging Face models read and encode contexts (see `load`). Loaded models and pairs stay on their
    device and keep their number type.
    """
    if not isinstance(models, Mapping):
        raise UsageError(f'Give models by name, models={{"mine": "runs/mine"}}; found {type(models).__name__}.')
    if not models:
        raise UsageError('There is no model. Give models by name: models={"mine": "runs/mine"}.')
    for name in models:
        if not isinstance(name, str) or not name:
            raise UsageError(f"Names of models are texts, found {name!r}.")
    for model in models.values():  # a mistyped path is reported before a large model is loaded
        if isinstance(model, str | Path):
            check_model(model)
    return {name: open_model(model, options, name=name, quiet=quiet, **reading) for name, model in models.items()}


def open_model(
    model: Any, options: ModelOptions, *, name: str = "model", quiet: bool = False, **reading: Any
) -> DialogueModel:
    """One model: a path, a hub name, a loaded model, or a (model, tokenizer) pair of transformers."""
    if isinstance(model, str | Path):
        how: dict[str, Any] = {"device": options.device, "dtype": options.dtype, "batch_size": options.batch_size}
        return load(model, quiet=quiet, **how, **reading)
    if isinstance(model, tuple | list):
        if len(model) != 2 or not _is_network(model[0]) or not _is_tokenizer(model[1]):
            kinds = ", ".join(type(each).__name__ for each in model)
            raise UsageError(f"models['{name}'] takes a pair (model, tokenizer) of transformers, found ({kinds}).")
        from dialoscope.model.huggingface import wrap_pretrained

        return wrap_pretrained(*model, batch_size=options.batch_size, **reading)
    if _is_network(model):
        raise UsageError(f"models['{name}'] is a network without its tokenizer: give the pair (model, tokenizer).")
    if _is_tokenizer(model) or not any(hasattr(model, method) for method in METHODS):
        wanted = "a path, a hub name, a loaded model or a pair (model, tokenizer)"
        raise UsageError(f"models['{name}'] takes {wanted}, found {type(model).__name__}.")
    loaded: DialogueModel = model
    return loaded


METHODS = ("encode", "attend", "log_likelihood")  # what a loaded model can do: at least one of these


def _is_network(model: object) -> bool:
    """Whether this is a network of transformers, told without importing the library."""
    return hasattr(model, "config") and hasattr(model, "forward")


def _is_tokenizer(model: object) -> bool:
    """Whether this is a tokenizer of transformers, told without importing the library."""
    return hasattr(model, "convert_ids_to_tokens") and hasattr(model, "encode")


def check_model(path_or_name: str | Path) -> None:
    """Complain of a path that leads to no model, before other work is begun; a hub name is taken at its word."""
    from dialoscope.model.huggingface.pretrained import source_of

    if not is_checkpoint(path_or_name) and not _is_broken(Path(path_or_name)):
        source_of(path_or_name)


def _is_broken(path: Path) -> bool:
    """A folder that is neither ours nor Hugging Face's: ours to complain about."""
    return path.is_dir() and not (path / "config.json").is_file() and not any(path.glob("*.gguf"))


def choose_device(device: str) -> str:
    """The device that a name means, tried; `auto` is the first GPU, where there is one."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise UsageError(f"Unknown device '{device}'. Give auto, cpu, cuda or cuda:N.") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"Device '{device}' was asked for, but PyTorch finds no GPU. Give --device cpu.")
    try:
        torch.ones(1, device=device).item()  # `meta` makes tensors, but none that hold a number
    except Exception as error:  # each backend complains in its own way
        line = str(error).partition("\n")[0].rstrip(".")
        raise UsageError(f"Device '{device}' cannot be used here ({line}). Give --device auto or cpu.") from error
    return device


def require_torch(purpose: str) -> None:
    """Say what to install where PyTorch is missing."""
    if any(find_spec(name) is None for name in ("torch", "safetensors", "tokenizers", "accelerate")):
        raise MissingExtraError(purpose, "hf")
