"""The predictors of a question: those that were given, opened, and the controls that stand beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoscope.engage.settings import PredictorOptions
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor


def open_predictor(model: Any, options: PredictorOptions | None = None) -> Predictor:
    """A predictor by its path, or a loaded one as it is."""
    from dialoscope.model.loading import require_torch

    require_torch("A predictor of remaining depth")
    from dialoscope.engage import storage
    from dialoscope.engage.predictor import Predictor

    if isinstance(model, Predictor):
        return model
    if not isinstance(model, str | Path):
        raise UsageError(f"A predictor is a folder of 'dialoscope engage train' or loaded, found {_kind(model)}.")
    options = options or PredictorOptions()
    loaded = storage.load(model, device=options.device)
    return loaded.using(dtype=options.dtype, batch_size=options.batch_size)


def open_predictors(models: Mapping[str, Any], options: PredictorOptions) -> dict[str, Predictor]:
    """Predictors by name: each may be a path or a loaded predictor."""
    check_named(models)
    return {name: open_predictor(model, options) for name, model in models.items()}


def check_named(models: object) -> None:
    """Refuse models without names."""
    if not isinstance(models, Mapping) or not all(isinstance(name, str) for name in models):
        raise UsageError(f'Give predictors by name: models={{"mine": "engaged"}}; found {_kind(models)}.')


def untrained_control(predictors: Mapping[str, Predictor], *, seed: int = 0) -> dict[str, Predictor]:
    """The first predictor's encoder as published, where a package has it, under a random layer: the control RDEP-U."""
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.packaged import PACKAGED
    from dialoscope.engage.predictor import Predictor

    first = next(iter(predictors.values()), None)
    if first is None:
        return {}
    encoder, is_packaged = first.encoder, first.encoder.name in PACKAGED
    name = "untrained" if is_packaged else "untrained layer"
    if name in predictors:
        raise UsageError(f"'{name}' is the name of the control. Give your model another name, such as mine=PATH.")
    if is_packaged:
        published = Encoder.load(encoder.name, device=str(encoder.device))
        encoder = published.using(dtype=encoder.dtype, batch_size=encoder.batch_size)
    return {name: Predictor.untrained(encoder, first.settings, seed=seed)}


def _kind(value: object) -> str:
    return type(value).__name__
