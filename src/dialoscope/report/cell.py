"""What stands in a cell of a table: text, a number, a score or nothing, and how it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialoscope.record import Score

Number = int | float
Cell = str | Number | Score | None

NOT_COMPUTED = "—"
# The largest number of a column decides how many decimals all of it gets, so that the points are aligned.
FORMATS = ((100, ",.1f"), (10, ",.2f"), (0.01, ".3f"), (0, ".3g"))

# The part of Python's format language that Plotly reads, too; no widths, which a broken file could set to a million.
KNOWN_FORMAT = re.compile(r"(\+?,?(\.\d)?[dfeg%])?")


@dataclass(frozen=True)
class Written:
    """A cell in words: the number, its interval, its n, or the reason why there is none."""

    text: str
    interval: str = ""
    n: str = ""
    reason: str = ""


def p_cell(p_value: float | None, *, n: int, reason: str | None) -> Cell:
    """A p-value, or a score that says why there is none."""
    return p_value if p_value is not None or reason is None else Score(None, n, reason=reason)


def checked(cell: Any) -> Cell:
    """A cell with NumPy's numbers made Python's and facts made words; what is no cell is refused."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and not math.isfinite(cell):
        raise ValueError(f"expected a finite number in a cell, found {cell}. Give None, or a Score with a reason.")
    if cell is None or isinstance(cell, str | int | float | Score):
        return cell
    raise TypeError(f"expected text, a number, a Score or None in a cell, found {type(cell).__name__}")


def checked_format(number_format: str) -> str:
    """A number format, or an error that shows what one looks like."""
    if not KNOWN_FORMAT.fullmatch(number_format):
        raise ValueError(f"expected a number format such as ',d', '.3f' or '.1%', found {number_format!r}")
    return number_format


def is_numeric(cell: Cell) -> bool:
    """Whether the cell stands in a column of numbers; a missing score does, too."""
    return isinstance(cell, int | float | Score)


def number_in(cell: Cell) -> Number | None:
    """The number a cell holds, if any."""
    if isinstance(cell, Score):
        return cell.value
    return None if isinstance(cell, str) else cell


def common_format(cells: Sequence[Cell]) -> str:
    """One number format for all of these cells."""
    numbers = [number for number in map(number_in, cells) if number is not None]
    if all(isinstance(number, int) for number in numbers):
        return ",d"
    largest = max(abs(number) for number in numbers)
    return next(form for limit, form in FORMATS if largest >= limit)


def write_number(number: Number, number_format: str) -> str:
    """A number in a format of Python's own: ``,d``, ``.3f``, ``.1%``."""
    # Python refuses to write 3.0 as ",d"; a caller who asks for whole numbers gets them.
    return format(round(number) if number_format.endswith("d") else number, number_format)


def write(cell: Cell, number_format: str = "") -> Written:
    """A cell in words.

    >>> write(Score(0.41273, 1000, (0.40511, 0.42034)), ".3f")
    Written(text='0.413', interval='[0.405, 0.420]', n='1,000', reason='')
    """
    if isinstance(cell, Score):
        return _write_score(cell, number_format)
    if cell is None or isinstance(cell, str):
        return Written(cell or "")
    return Written(write_number(cell, number_format or common_format([cell])))


def _write_score(score: Score, number_format: str) -> Written:
    if score.value is None:
        return Written(NOT_COMPUTED, n=f"{score.n:,d}", reason=score.reason or "")
    form = number_format or common_format([score])
    bounds = [write_number(bound, form) for bound in score.interval or ()]
    return Written(write_number(score.value, form), f"[{', '.join(bounds)}]" if bounds else "", f"{score.n:,d}")


def in_one_line(cell: Cell, number_format: str = "") -> str:
    """A cell as one line of text, with its interval and n where it has them."""
    written = write(cell, number_format)
    if written.reason:
        return f"not computed: {written.reason}"
    parts = [written.text, written.interval, f"(n={written.n})" if written.n else ""]
    return " ".join(part for part in parts if part)
