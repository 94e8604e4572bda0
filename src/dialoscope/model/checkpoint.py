"""Models on disk: a folder of safetensors weights, a JSON vocabulary, and a JSON description that vouches for both.

Nothing is ever unpickled. `model.json` holds the settings and the size and SHA-256 of every other file, so that a
folder that was cut short, mixed up or changed is refused in one line before anything is computed with it::

    model.json            what it is, and the sizes and hashes of the files below
    weights.safetensors   the network's weights
    vocabulary.json       its words
    training.json         where a run stands, and
    optimiser.safetensors what its optimiser remembers: only in `last`, for --resume
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoscope.errors import DialoscopeError, ModelError, OutputError, unknown_name
from dialoscope.files import whole_folder
from dialoscope.model.structure import Structure
from dialoscope.model.vocabulary import Vocabulary
from dialoscope.model.vouched import read_json, sha256, vouched_files
from dialoscope.record import version

if TYPE_CHECKING:
    from torch import Tensor

    from dialoscope.model.network import Seq2Seq
    from dialoscope.model.seq2seq import Seq2SeqModel

LOG = logging.getLogger(__name__)
FORMAT, SCHEMA = "dialoscope-model", 1
MODEL, WEIGHTS, VOCABULARY = "model.json", "weights.safetensors", "vocabulary.json"
TRAINING, OPTIMISER = "training.json", "optimiser.safetensors"
CHOSEN = ("best", "last")  # which checkpoint stands for a whole training folder, the first that is there
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
DTYPES = ("float32", "bfloat16")

Tensors = Mapping[str, "Tensor"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What one folder holds."""

    network: Seq2Seq
    vocabulary: Vocabulary
    settings: Structure
    preset: str = "custom"
    origin: Mapping[str, Any] = field(default_factory=dict)  # corpus, seed, recipe and what else the run was given


# --- Writing ----------------------------------------------------------------------------------------------------------


def save_model(
    path: str | Path,
    checkpoint: Checkpoint,
    *,
    state: Mapping[str, Any] | None = None,
    optimiser: Tensors | None = None,
) -> None:
    """Write a checkpoint as a folder that appears whole or not at all; `state` and `optimiser` are for resuming."""
    with whole_folder(path, check=_check_ours) as folder:
        _write_tensors(checkpoint.network.state_dict(), folder / WEIGHTS)
        (folder / VOCABULARY).write_text(checkpoint.vocabulary.to_json(), encoding="utf-8")
        if state is not None:
            _write_tensors(optimiser or {}, folder / OPTIMISER)
            (folder / TRAINING).write_text(json.dumps(state, indent=2), encoding="utf-8")
        described = _describe(checkpoint, folder)
        (folder / MODEL).write_text(json.dumps(described, indent=2), encoding="utf-8")


def _write_tensors(tensors: Tensors, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(plain(tensors), path)
    except SafetensorError as error:  # a full disk, as Rust says it
        found = re.search(r"os error (\d+)", str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1]))) from error


def copy_checkpoint(source: Path, path: Path) -> None:
    """The same checkpoint under another name, without using the disk twice where it can be helped."""
    with whole_folder(path, check=_check_ours) as folder:
        for file in source.iterdir():
            try:
                os.link(file, folder / file.name)  # checkpoints are replaced, never changed
            except OSError:
                shutil.copyfile(file, folder / file.name)


def plain(tensors: Tensors) -> dict[str, Tensor]:
    """Tensors as safetensors wants them: on the CPU, in one piece, sharing nothing."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _describe(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": version(),
        "preset": checkpoint.preset,
        "settings": checkpoint.settings.to_dict(),
        "origin": dict(checkpoint.origin),
        "files": vouched_files(folder),
    }


def _check_ours(path: Path) -> None:
    """Only a checkpoint may be replaced by a checkpoint."""
    known = {MODEL, WEIGHTS, VOCABULARY, TRAINING, OPTIMISER}
    others = sorted(file.name for file in path.iterdir() if file.name not in known)
    if others or not (path / MODEL).is_file():
        raise OutputError(f"{path}: expected a checkpoint to replace, found other files. Give another folder.")


# --- Reading ----------------------------------------------------------------------------------------------------------


def load_model(path: str | Path, *, device: str = "cpu", dtype: str = "float32", batch_size: int = 64) -> Seq2SeqModel:
    """The model of a folder written by `dialoscope train`, or of one of its checkpoints, ready to be asked."""
    import torch

    from dialoscope.model.seq2seq import Seq2SeqModel

    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    folder = find_checkpoint(path)
    found = read_checkpoint(folder)
    if folder == Path(path) / CHOSEN[1]:
        LOG.warning("%s has no %s checkpoint: its %s one is read.", path, *CHOSEN)
    network = found.network.to(device=device, dtype=getattr(torch, dtype)).eval()
    turns = found.origin.get("context_turns")
    return Seq2SeqModel(network, found.vocabulary, name=found.preset, batch_size=batch_size, context_turns=turns)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Everything in a checkpoint's folder but the state of its training, checked."""
    from dialoscope.model.network import Seq2Seq

    folder = find_checkpoint(path)
    described = _read_description(folder)
    vocabulary = Vocabulary.read(folder / VOCABULARY)
    settings = _settings(folder, described, vocabulary)
    weights = read_tensors(folder / WEIGHTS)
    _check_weights(folder, weights, settings)
    network = Seq2Seq(settings)
    network.load_state_dict(weights)
    return Checkpoint(network, vocabulary, settings, str(described.get("preset")), _origin(folder, described))


def read_state(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Where a run stood when `last` was written, and what its optimiser remembered."""
    folder = Path(path)
    described = _read_description(folder)
    if not {TRAINING, OPTIMISER} <= described["files"].keys():
        raise ModelError(f"{folder}: expected the state of a training run ({TRAINING}), found a model only.")
    return read_json(folder / TRAINING), read_tensors(folder / OPTIMISER)


def is_checkpoint(path: str | Path) -> bool:
    """Whether a folder is, or holds, what `dialoscope train` writes."""
    return any((Path(path) / place / MODEL).is_file() for place in ("", *CHOSEN))


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint that a path means: itself, or the best one of a training folder."""
    folder = Path(path)
    for place in ("", *CHOSEN):
        if (folder / place / MODEL).is_file():
            return folder / place
    raise ModelError(f"{path}: expected a folder written by dialoscope train (with {MODEL}), found {_found(folder)}.")


def _found(folder: Path) -> str:
    if not folder.is_dir():
        return "a file" if folder.exists() else "nothing"
    names = sorted(file.name for file in folder.iterdir())
    if any(name.endswith(PICKLES) for name in names):
        return "pickled weights, which are never read. Convert them to safetensors with the tool that wrote them"
    return f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "an empty folder"


def _read_description(folder: Path) -> dict[str, Any]:
    """`model.json`, and that every file it names is there, as long as it says, with the content it says."""
    described = read_json(folder / MODEL)
    if described.get("format") != FORMAT or described.get("schema") != SCHEMA:
        found = f"{described.get('format')!r} {described.get('schema')!r}"
        raise ModelError(f"{folder / MODEL}: expected format '{FORMAT}' {SCHEMA}, found {found}.")
    files = described.get("files")
    if not isinstance(files, dict) or not {WEIGHTS, VOCABULARY} <= files.keys():
        raise ModelError(f"{folder / MODEL}: expected 'files' with {WEIGHTS} and {VOCABULARY}.")
    for name, expected in files.items():
        _check_file(folder, name, expected)
    return described


def _check_file(folder: Path, name: str, expected: Any) -> None:
    path = folder / name
    if name not in (WEIGHTS, VOCABULARY, TRAINING, OPTIMISER):
        raise ModelError(f"{folder / MODEL}: expected the files of a checkpoint, found '{name}'.")
    if not isinstance(expected, dict) or not path.is_file():
        raise ModelError(f"{path}: expected this file of the checkpoint, found nothing.")
    if path.stat().st_size != expected.get("bytes"):
        raise ModelError(f"{path}: expected {expected.get('bytes')} bytes, found {path.stat().st_size}.")
    if sha256(path) != expected.get("sha256"):
        raise ModelError(f"{path}: expected the content that {MODEL} vouches for, found another (SHA-256 differs).")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; anything else, a pickle above all, is refused."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ModelError(f"{path}: expected safetensors, found {' '.join(str(error).split())}.") from error


def _settings(folder: Path, described: Mapping[str, Any], vocabulary: Vocabulary) -> Structure:
    given = described.get("settings")
    if not isinstance(given, dict):
        raise ModelError(f"{folder / MODEL}: expected 'settings' as a JSON object, found {type(given).__name__}.")
    try:
        settings = Structure.from_dict(given)
    except DialoscopeError as error:
        raise ModelError(f"{folder / MODEL}: {error}") from error
    if settings.vocabulary != len(vocabulary):
        found = f"{settings.vocabulary} in {MODEL} and {len(vocabulary)} in {VOCABULARY}"
        raise ModelError(f"{folder}: expected one vocabulary size, found {found}.")
    return settings


def _origin(folder: Path, described: Mapping[str, Any]) -> dict[str, Any]:
    origin = described.get("origin", {})
    turns = origin.get("context_turns") if isinstance(origin, dict) else "no JSON object"
    if turns is not None and (type(turns) is not int or turns < 1):
        expected = "'origin' as a JSON object, its context_turns null or a number from 1"
        raise ModelError(f"{folder / MODEL}: expected {expected}, found {turns}.")
    return dict(origin)


def _check_weights(folder: Path, weights: Tensors, settings: Structure) -> None:
    """Names and shapes against a network that takes no memory, for settings may ask for more than there is."""
    import torch

    from dialoscope.model.network import Seq2Seq

    too_large = ModelError(f"{folder / MODEL}: expected settings that fit {WEIGHTS}, found far larger ones.")
    if _least_bytes(settings) > (folder / WEIGHTS).stat().st_size:
        raise too_large
    try:
        with torch.device("meta"):
            expected = Seq2Seq(settings).state_dict()
    except RuntimeError as error:  # more bytes than can be counted
        raise too_large from error
    for name in sorted(expected.keys() | weights.keys()):
        ours, theirs = _written(expected.get(name)), _written(weights.get(name))
        if ours != theirs:
            raise ModelError(f"{folder / WEIGHTS}: expected '{name}' to be {ours}, found {theirs}.")


def _least_bytes(settings: Structure) -> int:
    """Fewer than the weights of these settings take: what can be said of any number of layers without building them.

    Over the first, each layer of whatever reads, and of whatever writes, has 8 width² weights of 4 bytes at least.
    """
    return 4 * 2 * 8 * settings.width**2 * (settings.layers - 1)


def _written(tensor: Tensor | None) -> str:
    """Shape and type of a tensor, as a message has them."""
    return "absent" if tensor is None else f"{'×'.join(map(str, tensor.shape))} {str(tensor.dtype).split('.')[-1]}"
