"""How long what is to do of a study may take, by what it took before; where that is not known, nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

UNITS = ((3600, "h"), (60, "min"), (1, "s"))  # from so many seconds on


def forecast(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of `planned` in a line or two.

    >>> forecast([{"state": "to do", "seconds": 90.0, "training_seconds": None}])
    'About 1.5 min for what is to do, by what it took when it was last done in this folder.'
    """
    to_do = [row for row in rows if row["state"].startswith("to do")]
    if not to_do:
        return "Nothing is to do."
    known = [row["seconds"] for row in to_do if row["seconds"] is not None]
    if not known:
        return "How long it takes is not known: nothing that is to do was done in this folder before."
    learning = [row["training_seconds"] for row in to_do if row["state"] != "to do"]
    part = "what" if len(known) == len(to_do) else f"{len(known)} of {len(to_do)} steps of what"
    told = f"About {duration(sum(known))} for {part} is to do, by what it took when it was last done"
    without = " Training is not in it: how long that takes is not known." if learning and not any(learning) else ""
    return f"{told} in this folder.{without}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(7), duration(90), duration(40_000)
    ('7.0 s', '1.5 min', '11 h')
    """
    least, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    amount = seconds / least
    return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
