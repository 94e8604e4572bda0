"""Keys made of all that something depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def digest(parts: Any) -> str:
    """The same for the same parts, in every process."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def fingerprint(path: str | Path) -> str:
    """Of a file, or of all files in a folder; of what is neither, its name."""
    from turnwise.model.vouched import sha256

    place = Path(path)
    if not place.exists():
        return str(path)
    files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
    return digest([(str(file.relative_to(place)), sha256(file)) for file in files])
