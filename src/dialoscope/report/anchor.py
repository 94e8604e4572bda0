"""Names that are safe in a link, an id and a file name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

LONGEST = 60  # characters; some file systems allow few more once the folder is counted


def slug(text: str, *, default: str = "part") -> str:
    """Lower-case letters, digits and hyphens only.

    >>> slug("Words per turn (test)")
    'words-per-turn-test'
    """
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    joined = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")
    return joined[:LONGEST].strip("-") or default


def free_name(name: str, taken: Collection[str]) -> str:
    """`name`, or `name-2`, `name-3` … where others had it first; a long one is cut, or `slug` would cut the number."""
    number, free = 1, name
    while free in taken:
        number += 1
        ending = f"-{number}"
        free = f"{name[: LONGEST - len(ending)].rstrip('-')}{ending}"
    return free
