"""Keys made of all that something depends on."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path
from typing import Any


def digest(parts: Any) -> str:
    """The same for the same parts, in every process."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def fingerprint(path: str | Path) -> str:
    """Of a file, or of all files in a folder; of what is neither, its name, with the versions of its packages."""
    from dialoscope.engage.packaged import PACKAGED

    place = Path(path)
    found = _content(place) if place.exists() else str(path)
    if str(path) not in PACKAGED:
        return found
    return digest([found, [_installed(package) for package in PACKAGED[str(path)].packages]])


def _content(place: Path) -> str:
    from dialoscope.model.vouched import sha256

    files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
    return digest([(str(file.relative_to(place)), sha256(file)) for file in files])


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # then it is the hub's
        return None
