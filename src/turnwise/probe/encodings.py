"""Encodings of contexts, computed once: kept in portions under a name made of the model, the contexts and the cut."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from turnwise.atomic import whole_file
from turnwise.errors import UsageError
from turnwise.model.protocol import DialogueModel, Floats
from turnwise.probe.examples import Examples
from turnwise.record import version

AT_ONCE = 4096  # contexts handed to a model at a time, and kept as one portion
Progress = Callable[[int, int], None]  # contexts done, contexts in all


def encode(
    model: DialogueModel,
    examples: Examples,
    *,
    tokens: int | None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Floats:
    """One vector for each position (positions, width); with a cache, what is there is mapped and not computed."""
    contexts = examples.contexts(tokens)
    place = None if cache is None else cache / _key(model, examples, tokens)
    portions = []
    for first in range(0, len(contexts), AT_ONCE):
        portions.append(_portion(model, contexts[first : first + AT_ONCE], place, first))
        if progress is not None:
            progress(min(first + AT_ONCE, len(contexts)), len(contexts))
    return np.concatenate(portions)


def _portion(model: DialogueModel, contexts: Sequence[tuple[str, ...]], place: Path | None, first: int) -> Floats:
    path = None if place is None else place / f"{first:09d}.npy"
    if path is not None and path.is_file():
        with suppress(ValueError, OSError, EOFError):  # a damaged file is made anew
            return _mapped(path)
    made = np.asarray(model.encode(contexts), dtype=np.float32)
    if not np.isfinite(made).all():
        raise UsageError(f"Model '{model.name}' encodes some contexts as numbers that are not finite.")
    if path is None:
        return made
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.save(file, made, allow_pickle=False)
    return _mapped(path)


def _mapped(path: Path) -> Floats:
    found: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def _key(model: DialogueModel, examples: Examples, tokens: int | None) -> str:
    settings: Mapping[str, Any] = getattr(model, "settings", {})
    parts = [version(), model.name, dict(settings), examples.fingerprint, tokens, AT_ONCE]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
