"""One small parser per published format. The table of all of them is `dialoscope.corpus.formats.FORMATS`.

A reader yields, for everything it meets in a file, one of:

- ``(line, Dialogue)``: a dialogue and the line it starts on; ids and splits may be left empty, the loader fills them;
- `LeftOut`: a sound record that is not a dialogue, with the reason, which is counted;
- `BadRecord`: what was expected and what was found;
- `pyarrow.RecordBatch`: dialogues that are columns already (null ids and splits are filled by the loader).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.streams import BadRecord, LeftOut, Record, Source

Item: TypeAlias = "tuple[int, Dialogue] | LeftOut | BadRecord | pa.RecordBatch"
Reader: TypeAlias = Callable[[Source], Iterator[Item]]
Parser: TypeAlias = Callable[[Record], "Iterable[Dialogue | LeftOut]"]


@dataclass(frozen=True)
class Part:
    """One file (or one split of a data set) to read: where it is, its split, its format."""

    label: str
    split: str
    format: str
    size: int
    read: Callable[[Callable[[int], None]], Iterator[Item]]


def parsed(records: Iterable[Record | BadRecord], parse: Parser) -> Iterator[Item]:
    """Parse each record; one that fails becomes a `BadRecord` at its line, and reading goes on."""
    for record in records:
        if isinstance(record, BadRecord):
            yield record
            continue
        try:
            found = list(parse(record))
        except BadRecord as bad:
            yield bad.at(record.line)
            continue
        for item in found:
            yield item if isinstance(item, LeftOut) else (record.line, item)


def alternate(texts: Iterable[str]) -> tuple[Turn, ...]:
    """Turns of two speakers who take turns, for formats that do not name them."""
    return tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts))
