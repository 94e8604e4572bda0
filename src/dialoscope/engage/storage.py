"""Predictors on disk: safetensors weights, a tokenizer, and a JSON description that vouches for every file.

Nothing is unpickled and no code is taken from a folder. A training run's folder holds `best`, `last` and `log.csv`::

    engage.json           settings, what it learnt from, sizes and hashes of the files below
    weights.safetensors   the encoder's weights and the linear layer's
    config.json, tokenizer.json, tokenizer_config.json
    training.json, optimiser.safetensors     only in `last`, for --resume
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoscope.engage.shape import Shape
from dialoscope.errors import DialoscopeError, ModelError, OutputError
from dialoscope.files import whole_folder
from dialoscope.model.vouched import read_json, sha256, vouched_files
from dialoscope.record import version

if TYPE_CHECKING:
    from torch import Tensor

    from dialoscope.engage.live import Calibration
    from dialoscope.engage.predictor import Predictor

FORMAT, SCHEMA = "dialoscope-engage", 1
ABOUT, WEIGHTS, STATE, OPTIMISER = "engage.json", "weights.safetensors", "training.json", "optimiser.safetensors"
CHOSEN = ("", "best", "last")  # which predictor a path means, the first that is there
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
FILES = (WEIGHTS, "config.json", *TOKENIZER, STATE, OPTIMISER)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a training run stands, for going on later."""

    state: Mapping[str, Any]
    optimiser: Mapping[str, Tensor]


def save(path: str | Path, predictor: Predictor, *, standing: Standing | None = None) -> None:
    """Write a predictor as a folder that appears whole or not at all."""
    from safetensors.torch import save_file

    from dialoscope.model.checkpoint import plain

    with whole_folder(path, check=_check_ours) as folder:
        encoder = predictor.encoder
        parts = (("encoder", encoder.network), ("head", predictor.head))
        tensors = {f"{part}.{key}": one for part, module in parts for key, one in module.state_dict().items()}
        save_file(plain(tensors), folder / WEIGHTS)
        encoder.network.config.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        for file in folder.iterdir():  # some tokenizers write their words once more, in older forms
            if file.name not in (WEIGHTS, "config.json", *TOKENIZER):
                file.unlink()
        if standing is not None:
            save_file(plain(standing.optimiser), folder / OPTIMISER)
            (folder / STATE).write_text(json.dumps(standing.state, indent=2), encoding="utf-8")
        (folder / ABOUT).write_text(json.dumps(_about(predictor, folder), indent=2), encoding="utf-8")


def _about(predictor: Predictor, folder: Path) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": version(),
        "encoder": predictor.encoder.name,
        "settings": predictor.settings.to_dict(),
        "origin": dict(predictor.origin),
        "calibration": None if predictor.calibration is None else predictor.calibration.to_dict(),
        "files": vouched_files(folder),
    }


def _check_ours(path: Path) -> None:
    """Only a predictor may be replaced by a predictor."""
    others = {file.name for file in path.iterdir()} - {ABOUT, *FILES}
    if others or not (path / ABOUT).is_file():
        raise OutputError(f"{path}: expected a predictor to replace, found other files. Give another folder.")


def load(path: str | Path, *, device: str = "cpu") -> Predictor:
    """The predictor of a folder written by `dialoscope engage train`, every file of it checked."""
    import torch

    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.predictor import Predictor
    from dialoscope.model.checkpoint import read_tensors
    from dialoscope.model.loading import choose_device

    place = choose_device(device)
    folder = find(path)
    about = _read(folder)
    settings = _settings(folder, about)
    encoder = Encoder.of(*_made(folder), str(about.get("encoder")))
    head = torch.nn.Linear(encoder.width, settings.outputs)
    weights = read_tensors(folder / WEIGHTS)
    for part, module in (("encoder.", encoder.network), ("head.", head)):
        _fill(module, {key[len(part) :]: one for key, one in weights.items() if key.startswith(part)}, folder)
    encoder.network.to(place).eval()
    return Predictor(encoder, head.to(place), settings, about["origin"], _calibration(folder, about))


def find(path: str | Path) -> Path:
    """The folder of the predictor that a path means: itself, or the best one of a training run."""
    folder = Path(path)
    for place in CHOSEN:
        if (folder / place / ABOUT).is_file():
            return folder / place
    raise ModelError(f"{path}: expected a folder written by dialoscope engage train (with {ABOUT}), found none.")


def read_standing(folder: Path) -> Standing:
    """Where the run stood when `last` was written."""
    from dialoscope.model.checkpoint import read_tensors

    files = _read(folder)["files"]
    if not {STATE, OPTIMISER} <= files.keys():
        raise ModelError(f"{folder}: expected the state of a training run ({STATE}), found a predictor only.")
    return Standing(read_json(folder / STATE), read_tensors(folder / OPTIMISER))


def _read(folder: Path) -> dict[str, Any]:
    """`engage.json`, and that every file it names is there with the content it says."""
    about = read_json(folder / ABOUT)
    if about.get("format") != FORMAT or about.get("schema") != SCHEMA:
        found = f"{about.get('format')!r} {about.get('schema')!r}"
        raise ModelError(f"{folder / ABOUT}: expected format '{FORMAT}' {SCHEMA}, found {found}.")
    files = about.get("files")
    if not isinstance(files, dict) or not {WEIGHTS, "config.json", "tokenizer.json"} <= files.keys():
        raise ModelError(f"{folder / ABOUT}: expected 'files' with {WEIGHTS}, config.json and tokenizer.json.")
    if not isinstance(about.get("origin"), dict):
        raise ModelError(f"{folder / ABOUT}: expected 'origin' as a JSON object.")
    # A tokenizer reads files that lie beside its own, such as added_tokens.json; whatever is read is vouched for.
    beside = {file.name for file in folder.iterdir() if not file.name.startswith((".", "README"))} - {ABOUT, *files}
    if beside:
        raise ModelError(f"{folder}: expected the files that {ABOUT} vouches for, found '{min(beside)}' as well.")
    for name, expected in files.items():
        if name not in FILES:
            raise ModelError(f"{folder / ABOUT}: expected the files of a predictor, found '{name}'.")
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name}: expected this file of the predictor, found nothing.")
        if not isinstance(expected, dict) or sha256(folder / name) != expected.get("sha256"):
            raise ModelError(f"{folder / name}: expected the content that {ABOUT} vouches for (SHA-256 differs).")
    return about


def _settings(folder: Path, about: Mapping[str, Any]) -> Shape:
    given = about.get("settings")
    if not isinstance(given, dict):
        raise ModelError(f"{folder / ABOUT}: expected 'settings' as a JSON object, found {type(given).__name__}.")
    try:
        return Shape.from_dict(given)
    except DialoscopeError as error:
        raise ModelError(f"{folder / ABOUT}: {error}") from error


def _calibration(folder: Path, about: Mapping[str, Any]) -> Calibration | None:
    from dialoscope.engage.live import Calibration

    given = about.get("calibration")
    try:
        return None if given is None else Calibration.from_dict(given)
    except DialoscopeError as error:
        raise ModelError(f"{folder / ABOUT}: {error}") from error


def _made(folder: Path) -> tuple[Any, Any]:
    """A network of the configuration's shape and the tokenizer; nothing but JSON is read."""
    import transformers

    from dialoscope.model.huggingface.pretrained import Source, kind_of, readable

    source = Source(str(folder))
    with readable(source):
        config = transformers.AutoConfig.from_pretrained(folder, **source.options)
        if kind_of(config) != "encoder":
            raise ModelError(f"{folder}: expected an encoder of BERT's kind, found {config.model_type}.")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **source.options)
        network: Any = transformers.AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    return network, tokenizer


def _fill(module: Any, weights: Mapping[str, Tensor], folder: Path) -> None:
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        why = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{folder / WEIGHTS}: expected the weights of its configuration, found others: {why}"
        ) from error
