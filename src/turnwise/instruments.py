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


def measure_overlap(corpus: Corpus) -> Finding:
    """How much of the test split is in the training split."""
    from turnwise.overlap.measure import measure_with_examples
    from turnwise.overlap.report import chosen_examples
    from turnwise.overlap.report import section_of as overlap_section

    measured = measure_with_examples(corpus.split("train"), corpus.split("test"), choose=chosen_examples)
    return Finding(measured.result.to_dict(), overlap_section(measured), measured.result.origin)


INSTRUMENTS: dict[str, Instrument] = {
    "corpus": Instrument("What is in the corpus?", describe_corpus),
    "overlap": Instrument("Is the test set in the training set?", measure_overlap),
}
