"""Reads dialogue datasets into one form: dialogues as Arrow columns.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.corpus.dialogue import Corpus, Dialogue, Turn
    from dialoscope.corpus.generate import generate
    from dialoscope.corpus.load import from_dataset as from_dataset
    from dialoscope.corpus.load import load
    from dialoscope.corpus.split import resplit
    from dialoscope.corpus.summary import CorpusSummary as CorpusSummary
    from dialoscope.corpus.summary import summarise
    from dialoscope.corpus.turns import Sample as Sample
    from dialoscope.corpus.turns import Samples as Samples
    from dialoscope.corpus.turns import merge_turns, samples
    from dialoscope.corpus.write import write

__all__ = [
    "Corpus",
    "Dialogue",
    "Turn",
    "generate",
    "load",
    "merge_turns",
    "resplit",
    "samples",
    "summarise",
    "write",
]
make_lazy(
    __name__,
    {
        "dialogue": (
            "Corpus",
            "Dialogue",
            "Turn",
        ),
        "generate": ("generate",),
        "load": (
            "from_dataset",
            "load",
        ),
        "split": ("resplit",),
        "summary": (
            "CorpusSummary",
            "summarise",
        ),
        "turns": (
            "Sample",
            "Samples",
            "merge_turns",
            "samples",
        ),
        "write": ("write",),
    },
)
