"""Fingerprints: the same for the same content, in every process."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def digest(parts: Any) -> str:
    """A hash of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def content_of(path: str | Path) -> str:
    """A hash of a file, or of all files in a folder with their names; for anything else, the path itself."""
    place = Path(path).expanduser()
    if not place.exists():
        return str(path)
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    hashes = []
    for file in files:
        with file.open("rb") as content:
            hashes.append((str(file.relative_to(place)), hashlib.file_digest(content, "sha256").hexdigest()))
    return digest(hashes)
