"""Any dialogue corpus in, one form out: dialogues as Arrow columns."""

from dialoscope.corpus.dialogue import Corpus, Dialogue, Turn
from dialoscope.corpus.generate import generate
from dialoscope.corpus.load import from_dataset, load
from dialoscope.corpus.split import resplit
from dialoscope.corpus.summary import CorpusSummary, summarise
from dialoscope.corpus.turns import Sample, Samples, merge_turns, samples
from dialoscope.corpus.write import write

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
