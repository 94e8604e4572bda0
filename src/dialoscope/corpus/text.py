"""What several rooms need of a text: its numbers, by columns, without looking at each one in Python; a safe form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_BLANKS = np.zeros(256, dtype=bool)
_BLANKS[[ord(character) for character in " \t\n\r\v\f"]] = True


def words_per_text(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number of words of each text, separated by blanks (space, tab, line break).

    Counts word starts in the column's bytes: a byte that is no blank and follows a blank or begins a text. UTF-8 makes
    this safe, for no byte of a longer character is a blank.
    """
    return np.concatenate([np.zeros(0, dtype=np.int64), *(_words(chunk) for chunk in column.chunks)])


def _words(chunk: pa.StringArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    if not len(chunk) or chunk.buffers()[2] is None:
        return np.zeros(len(chunk), dtype=np.int64)
    offsets = np.frombuffer(chunk.buffers()[1], dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    data = np.frombuffer(chunk.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
    is_blank = _BLANKS[data]
    starts = ~is_blank
    starts[1:] &= is_blank[:-1]
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]] - offsets[0]  # of texts that are not empty
    starts[firsts] = ~is_blank[firsts]
    before = np.concatenate([[0], np.cumsum(starts)])
    return np.asarray(before[offsets[1:] - offsets[0]] - before[offsets[:-1] - offsets[0]], dtype=np.int64)


def printable(text: str, *, keep: str = "") -> str:
    r"""Text without control characters, which XML and YAML cannot hold and terminals obey; `keep` names exceptions.

    >>> printable("a\x1b[2Jb\n")
    'a�[2Jb�'
    """
    return "".join(one if one.isprintable() or one in keep else "\N{REPLACEMENT CHARACTER}" for one in text)
