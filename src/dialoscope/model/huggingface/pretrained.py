"""Loading a checkpoint safely: safetensors or GGUF only, no code from elsewhere, no weights made up."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dialoscope.errors import DialoscopeError, MissingExtraError, ModelError, UsageError, unknown_name
from dialoscope.model.huggingface.samples import ModelKind
from dialoscope.model.loading import choose_device

DTYPES = ("float32", "float16", "bfloat16")
SAMPLED = 1024  # values of each tensor that go into the fingerprint
FILES = (".gguf", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".json", ".zip", ".gz", ".tar")  # no hub name ends so
PROBED = 8  # tokens that show whether a network looks ahead


@dataclass(frozen=True)
class Source:
    """Where a checkpoint comes from: a folder or a hub name, and a GGUF file in it where there is one."""

    place: str
    gguf: str | None = None

    @property
    def name(self) -> str:
        """As scores name it."""
        is_local = Path(self.place).is_dir()
        return Path(self.gguf).stem if self.gguf else Path(self.place).resolve().name if is_local else self.place

    @property
    def options(self) -> dict[str, Any]:
        """What every loading call gets: nothing from a checkpoint is ever run or unpickled."""
        return {"trust_remote_code": False, **({"gguf_file": self.gguf} if self.gguf else {})}


def source_of(path_or_name: str | Path) -> Source:
    """Check what was given before anything heavy is loaded."""
    given = str(path_or_name)
    path = Path(given).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        return _gguf(path)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        raise UsageError(f"A checkpoint is a folder, a .gguf file or a hub name; '{given}' is another kind of file.")
    if _is_path(given):
        raise UsageError(f"No checkpoint at '{given}': there is no such folder or file.")
    return Source(given)


def _is_path(given: str) -> bool:
    """Whether a name can only be a path: a hub name is NAME or OWNER/NAME, and may have a dot in it (Qwen2.5-0.5B).

    Where OWNER is a folder here, such as runs/, its NAME was looked for in it.
    """
    is_file = Path(given).suffix.lower() in FILES
    is_inside = "/" in given and Path(given.partition("/")[0]).is_dir()
    has_parts = given.count("/") > 1 or given.endswith("/") or "\\" in given
    return Path(given).is_absolute() or given.startswith((".", "~")) or is_file or has_parts or is_inside


def _gguf(path: Path) -> Source:
    if find_spec("gguf") is None:
        raise UsageError(f"Reading {path.name} needs one more package: pip install 'dialoscope[gguf]'")
    return Source(str(path.parent), path.name)


def _folder(path: Path) -> Source:
    if not (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return _gguf(files[0])
        if files:
            raise UsageError(f"'{path}' holds {len(files)} .gguf files: name one of them, such as {files[0].name}.")
        raise UsageError(f"'{path}' is no Hugging Face checkpoint: it holds no config.json.")
    if not any(path.glob("*.safetensors")):
        pickled = sorted(each.name for each in path.iterdir() if each.suffix in (".bin", ".pt", ".pth"))
        found = f"only {pickled[0]}, which would have to be unpickled" if pickled else "none"
        raise UsageError(f"'{path}' must hold safetensors weights, found {found}: save it again as safetensors.")
    return Source(str(path))


def require_models() -> None:
    """Say how to install what Hugging Face models need, where it is missing."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("A Hugging Face model", "hf")


@contextmanager
def readable(source: Source) -> Iterator[None]:
    """Turn what a loading call complains about into one line; files from elsewhere can make it fail in any way."""
    try:
        yield
    except DialoscopeError:
        raise
    except Exception as error:
        line = " ".join(str(error).split())
        short = line if len(line) <= 300 else f"{line[:300]}…"
        why = short if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: {short}"
        if not Path(source.place).exists():  # a misspelt path can look like a name
            raise UsageError(
                f"No folder '{source.place}' is here, and as a name on the Hugging Face hub "
                f"it could not be loaded: {why}"
            ) from error
        raise UsageError(f"The checkpoint '{source.name}' could not be loaded: {why}") from error


@contextmanager
def silent(is_quiet: bool) -> Iterator[None]:
    """Without the bars of transformers and what its hub says of each retry, where quiet is asked for.

    Afterwards as before.
    """
    bars: Any = import_module("transformers.utils.logging")  # its functions are not typed
    gguf: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    was_shown, own = bars.is_progress_bar_enabled(), gguf.tqdm
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    if is_quiet:
        hub.setLevel(logging.ERROR)
        bars.disable_progress_bar()
        gguf.tqdm = bars.tqdm  # the reader of GGUF has a bar of its own, which heeds no switch
    try:
        yield
    finally:
        gguf.tqdm = own
        hub.setLevel(level)
        if is_quiet and was_shown:
            bars.enable_progress_bar()


def kind_of(config: Any) -> ModelKind:
    """What an architecture can do. BERT's kin can be told to write, but were not made for it."""
    from transformers.models.auto import modeling_auto

    if config.is_encoder_decoder:
        return "encoder-decoder"
    masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    writes = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return "causal" if writes and (not masked or getattr(config, "is_decoder", False)) else "encoder"


def load_network(source: Source, config: Any, kind: ModelKind, *, device: str, dtype: str) -> Any:
    """The network, ready to read; one whose attention cannot be exchanged later is loaded with eager attention."""
    import transformers

    classes = {
        "causal": transformers.AutoModelForCausalLM,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
        "encoder": transformers.AutoModel,
    }
    place = choose_device(device)
    model = _load(classes[kind].from_pretrained, source, config, dtype)
    if not model._can_set_attn_implementation() and model.config._attn_implementation != "eager":
        model = _load(classes[kind].from_pretrained, source, config, dtype, attn_implementation="eager")
    return _placed(model, place, source)


def _placed(model: Any, device: str, source: Source) -> Any:
    from dialoscope.model.learner import is_out_of_memory

    try:
        return model.to(device).eval()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        advice = "Give --dtype bfloat16, or --device cpu."
        raise ModelError(f"'{source.name}' does not fit into the memory of {device}. {advice}") from error


def _load(load: Callable[..., Any], source: Source, config: Any, dtype: str, **options: Any) -> Any:
    import torch

    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    with readable(source):
        model, report = load(
            source.place,
            config=config,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
            **source.options,
            **options,
        )
    # A part that the file lacks would be filled with random numbers. A pooler is not used, so it may be missing.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise UsageError(f"The checkpoint '{source.name}' lacks {len(missing)} of its weights, such as {missing[0]}.")
    return model


def check_causal(name: str, model: Any) -> None:
    """Refuse a network that looks ahead (XLNet): it would see each token of a response before it has to predict it.

    Two inputs that differ in their last token must have the same logits in all places before it.
    """
    import torch

    size = model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(PROBED).add(size // 3).remainder(size).repeat(2, 1)
    ids[1, -1] = (ids[1, -1] + size // 2) % size
    with torch.inference_mode():
        ids = ids.to(model.device)
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.float()
    one, other = logits[:, :-1]
    limit = torch.finfo(model.dtype).eps ** 0.5 * float(logits.abs().max())
    if float((one - other).abs().max()) > limit:
        raise UsageError(
            f"'{name}' looks ahead: its earlier predictions change with later words ({type(model).__name__}), so it "
            "cannot say how likely a response is. Use a model that reads from left to right."
        )


def check_window(model: Any, window: int) -> None:
    """Refuse a window beyond the positions that a network has learnt; what computes them may be asked for more."""
    import torch

    if window < 1:
        raise UsageError(f"A window holds at least one token, found {window}.")
    tables = [
        _positions(part)
        for name, part in model.named_modules()
        if isinstance(part, torch.nn.Embedding) and ("position" in name or name.endswith("wpe"))
    ]
    if tables and window > min(tables):
        raise UsageError(f"The model has {min(tables):,} positions and cannot read a window of {window:,} tokens.")


def _positions(table: Any) -> int:
    """Rows of a table of positions, less those before the first one: BART's and OPT's offset, RoBERTa's padding."""
    import torch

    padding = table.padding_idx if type(table) is torch.nn.Embedding else None
    return int(table.num_embeddings - getattr(table, "offset", 0) - (0 if padding is None else padding + 1))


def fingerprint(model: Any, tokenizer: Any) -> str:
    """Twelve hexadecimal digits of what a model has learnt and how it reads text.

    Of every tensor the name, the shape and up to 1,024 evenly spaced values; the tokenizer's words and chat template.
    Cheap at any size, and the same whatever file they came from; a change between the sampled values goes unseen.
    """
    import torch

    digest = hashlib.blake2b(digest_size=6)
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().reshape(-1)
        step = max(1, -(-flat.numel() // SAMPLED))
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(flat[::step].to("cpu", torch.float32).numpy().tobytes())
    for word, number in sorted(tokenizer.get_vocab().items()):
        digest.update(f"{word}\x1f{number}".encode())
    digest.update(str(getattr(tokenizer, "chat_template", "")).encode())
    return digest.hexdigest()
