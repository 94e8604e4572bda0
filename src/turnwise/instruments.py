"""The rooms in one visible table: what each one asks, and how it is run on a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from turnwise.corpus import Corpus, summarise
from turnwise.record import Origin
from turnwise.report import Prose, Section
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


def measure_distraction(corpus: Corpus) -> Finding:
    """Where two small models look, trained on the spot with and without distractions."""
    from turnwise.distract.demonstration import MEASURED_ON, small_models
    from turnwise.distract.examine import examine, make_sets
    from turnwise.distract.report import section_of as distract_section

    if find_spec("torch") is None:
        return _not_measured("Distraction", "distract", "Does the model look at what matters?", corpus)
    with TemporaryDirectory() as work:
        models = small_models(corpus, Path(work))
        found = examine(models, make_sets(corpus, limit=MEASURED_ON, context_turns=5))
    section = distract_section(found.result, pictures=found.pictures)
    return Finding(found.result.to_dict(), section, found.result.origin)


def _not_measured(title: str, anchor: str, question: str, corpus: Corpus) -> Finding:
    """A section that says what is missing."""
    missing = "This instrument trains and reads models, and torch is not installed: pip install 'turnwise[models]'."
    section = Section(title, anchor, question, [Prose(missing)], lead="Not measured.")
    return Finding({"not_measured": missing}, section, Origin(corpus=f"{corpus.name}@{corpus.fingerprint}"))


INSTRUMENTS: dict[str, Instrument] = {
    "corpus": Instrument("What is in the corpus?", describe_corpus),
    "overlap": Instrument("Is the test set in the training set?", measure_overlap),
    "distract": Instrument("Does the model look at what matters?", measure_distraction),
}
