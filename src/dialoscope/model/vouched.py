"""What folders of models have in common: files that a JSON description vouches for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dialoscope.errors import ModelError


def vouched_files(folder: Path) -> dict[str, dict[str, Any]]:
    """The size and SHA-256 of every file in a folder."""
    return {file.name: {"bytes": file.stat().st_size, "sha256": sha256(file)} for file in sorted(folder.iterdir())}


def sha256(path: Path) -> str:
    """Of a file's content, which is never held whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or one line that says what was found instead."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: expected JSON, found {' '.join(str(error).split())}.") from error
    if not isinstance(read, dict):
        raise ModelError(f"{path}: expected a JSON object, found {type(read).__name__}.")
    return read
