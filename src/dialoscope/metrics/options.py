"""What can be chosen about the metrics, and what a metric is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, Swappable

if TYPE_CHECKING:
    from dialoscope.metrics.embedding import Encoder

Extracted = TypeVar("Extracted")


@dataclass(frozen=True)
class Options:
    """Tokenisation and case of those metrics that leave them open, and the encoder of those that need one."""

    tokeniser: str = "13a"
    lowercase: bool = False
    encoder: Encoder | None = None  # None: GloVe vectors, where they are installed
    encoder_name: str | None = None  # as the signature says it; needed where the encoder itself has none


@dataclass(frozen=True)
class Metric(Generic[Extracted]):
    """How a number is made: what is extracted from each pair, and which value the extracts have together.

    Metrics that share `extract` share its work: one pass over the pairs serves BLEU-1 to BLEU-4.
    """

    about: str
    extract: Callable[[Pairs, Options], Extracted]
    statistic: Callable[[Extracted, Clusters], Swappable]
    settings: Callable[[Options], Mapping[str, Any]]  # what the signature must say
    unit: str = "share"  # share (0-1), percent (0-100), cosine, words, ratio or perplexity
    skipped_because: str = ""  # why pairs may have to be left out; said in the notes where some were
