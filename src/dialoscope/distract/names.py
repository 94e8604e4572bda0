"""Names of distracting test sets, and what they say: ``random-0.7``, ``frequent-begin``, ``rare-end-4``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dialoscope.errors import UsageError

Source = Literal["random", "frequent", "rare", "given"]
PLACES = ("begin", "middle", "end")
COUNT = 2  # distractions in a context, "a complete turn" of both speakers
ORIGINAL = "original"
NINE = (
    *(f"random-{probability}" for probability in ("0.5", "0.7", "1.0")),
    *(f"{style}-{place}" for style in ("frequent", "rare") for place in PLACES),
)
KINDS = ("random", "frequent", "rare")
SAID = (*NINE, "all", *KINDS, "given")  # what names sets
NAME = re.compile(r"(?P<source>random|frequent|rare|given)-(?P<how>[a-z]+|[\d.]+)(-(?P<count>\d+))?")


@dataclass(frozen=True)
class SetName:
    """The parts of a set's name; ``rare-end-4`` has four distractions in place of two."""

    source: Source
    probability: float = 1.0
    place: str | None = None  # None: at random
    count: int = COUNT

    @classmethod
    def parse(cls, name: str) -> SetName:
        """The parts of a name; a wrong one is an error that shows right ones."""
        match = NAME.fullmatch(name)
        count = int(match["count"] or COUNT) if match else 0
        if match and count and match["source"] == "random":
            return cls("random", _probability(match["how"], name), None, count)
        if match and count and match["how"] in PLACES:
            return cls(match["source"], 1.0, match["how"], count)  # type: ignore[arg-type]
        raise UsageError(
            f"No distracting set is called '{name}'. "
            "Take random-0.7, frequent-begin, rare-middle or given-end; rare-end-4 inserts four distractions."
        )

    def __str__(self) -> str:
        how = format(Decimal(repr(self.probability)), "f") if self.place is None else self.place
        return f"{self.source}-{how}" + (f"-{self.count}" if self.count != COUNT else "")


def chosen_names(words: Sequence[str]) -> list[str]:
    """Names of sets from what a user says: ``all``, ``random`` for all of a kind, or a name itself."""
    return list(dict.fromkeys(name for word in words for name in _names(word)))


def _names(word: str) -> Iterator[str]:
    if word == "all":
        yield from NINE
    elif word in KINDS:
        yield from (name for name in NINE if name.startswith(word))
    elif word == "given":
        yield from (f"given-{place}" for place in PLACES)
    else:
        yield str(SetName.parse(word))


def _probability(word: str, name: str) -> float:
    try:
        probability = float(word)
    except ValueError:
        probability = -1.0
    if not 0 < probability <= 1:
        raise UsageError(f"'{name}': a random set names a probability over 0 and up to 1, such as random-0.7.")
    return probability
