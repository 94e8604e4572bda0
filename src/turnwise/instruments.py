"""The rooms in one visible table: what each one asks, and how it is run on a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from turnwise.corpus import Corpus, summarise
from turnwise.record import Origin
from turnwise.report import Section
from turnwise.report.corpus import examples_of, section_of


@dataclass(frozen=True)
class Finding:
    """What an instrument has to say: numbers for machines, a section for people, and where both come from."""

    data: Mapping[str, Any]
    section: Section
    origin: Origin


@dataclass(frozen=True)
class Instrument:
    """A question and the function that answers it."""

    question: str
    run: Callable[[Corpus], Finding]


def describe_corpus(corpus: Corpus) -> Finding:
    """What is in the corpus: the section every report starts with."""
    summary = summarise(corpus)
    origin = Origin(corpus=f"{corpus.name}@{corpus.fingerprint}")
    return Finding(summary.to_dict(), section_of(summary, examples=list(examples_of(corpus))), origin)


INSTRUMENTS: dict[str, Instrument] = {
    "corpus": Instrument("What is in the corpus?", describe_corpus),
}
