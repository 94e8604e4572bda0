"""Any dialogue corpus in, one form out: dialogues as Arrow columns."""

from turnwise.corpus.dialogue import Corpus, Dialogue, Turn
from turnwise.corpus.generate import generate
from turnwise.corpus.load import from_dataset, load
from turnwise.corpus.split import resplit
from turnwise.corpus.summary import CorpusSummary, summarise
from turnwise.corpus.turns import Sample, Samples, merge_turns, samples
from turnwise.corpus.write import write

__all__ = [
    "Corpus",
    "CorpusSummary",
    "Dialogue",
    "Sample",
    "Samples",
    "Turn",
    "from_dataset",
    "generate",
    "load",
    "merge_turns",
    "resplit",
    "samples",
    "summarise",
    "write",
]
