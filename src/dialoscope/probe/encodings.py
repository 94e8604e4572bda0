"""Encodings of contexts, computed once: kept under a name made of the model, the contexts and the cut.

While they are made they are portions, so that an interrupted run resumes; once all are there, one file, which is
mapped: its numbers are read from the disk where they are used, and need not fit into memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.files import whole_file
from dialoscope.model.protocol import Context, DialogueModel, Floats
from dialoscope.probe.examples import Examples
from dialoscope.progress import Progress
from dialoscope.record import version

AT_ONCE = 4096  # contexts handed to a model at a time, and kept as one portion
WHOLE = "whole.npy"
# Raise it when code makes other numbers of the same weights and the same text: another way to cut, join, tokenise,
# mask or pool; or another way to fingerprint the text. The package's version stays the same between releases, and old
# numbers would be taken for new ones.
ENCODING = 2
UNREADABLE = (ValueError, OSError, EOFError)  # what a damaged file says; it is made anew


def encode(
    model: DialogueModel,
    examples: Examples,
    *,
    tokens: int | None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Floats:
    """One vector for each position (positions, width); with a cache, they are kept there and mapped, not in memory."""
    contexts = examples.contexts(tokens)
    watch = progress or (lambda done, total: None)
    if cache is None:
        return np.concatenate([_made(model, portion) for _, portion in _portions(contexts, watch)])
    folder = cache / _key(model, examples, tokens)
    with suppress(*UNREADABLE):
        whole = _mapped(folder / WHOLE)
        if len(whole) == len(contexts):
            watch(len(contexts), len(contexts))
            return whole
    return _joined(
        folder, [_kept(model, portion, folder / f"{first:09d}.npy") for first, portion in _portions(contexts, watch)]
    )


def _portions(contexts: Sequence[Context], progress: Progress) -> Iterator[tuple[int, Sequence[Context]]]:
    """Where each portion begins, and its contexts; it is done when the next one is asked for."""
    for first in range(0, len(contexts), AT_ONCE):
        yield first, contexts[first : first + AT_ONCE]
        progress(min(first + AT_ONCE, len(contexts)), len(contexts))


def _made(model: DialogueModel, contexts: Sequence[Context]) -> Floats:
    made = np.asarray(model.encode(contexts), dtype=np.float32)
    if not np.isfinite(made).all():
        raise UsageError(f"Model '{model.name}' encodes some contexts as numbers that are not finite.")
    return made


def _kept(model: DialogueModel, contexts: Sequence[Context], path: Path) -> Floats:
    """A portion from its file, or made and written there."""
    with suppress(*UNREADABLE):
        return _mapped(path)
    made = _made(model, contexts)
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.save(file, made, allow_pickle=False)
    return _mapped(path)


def _joined(folder: Path, portions: Sequence[Floats]) -> Floats:
    """All portions as one file; those of their own are deleted once it is there."""
    shape = sum(map(len, portions)), portions[0].shape[1]
    with whole_file(folder / WHOLE) as unfinished, unfinished.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(portions[0].dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for portion in portions:
            portion.tofile(file)
    for path in folder.glob("[0-9]*.npy"):
        path.unlink(missing_ok=True)  # another process may have been first
    return _mapped(folder / WHOLE)


def _mapped(path: Path) -> Floats:
    """What is in a file, read where it is used."""
    # Torch warns of arrays that cannot be written; what is written to a copy (`c`) never reaches the file.
    array: Floats = np.load(path, mmap_mode="c", allow_pickle=False)
    return array


def _key(model: DialogueModel, examples: Examples, tokens: int | None) -> str:
    settings: Mapping[str, Any] = getattr(model, "settings", {})
    parts = [version(), ENCODING, model.name, dict(settings), examples.fingerprint, tokens, AT_ONCE]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
