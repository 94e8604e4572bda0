"""The rooms in one visible table: what each one asks, and how it is run on a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from turnwise.corpus import Corpus, summarise
from turnwise.record import Origin
from turnwise.report import Prose, Section
from turnwise.report.corpus import examples_of, section_of

PROBED_FROM, PROBED_ON = 300, 100  # dialogues of the demonstration


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
    run: Callable[[Corpus, Path], Finding]  # the folder is for what several instruments need, such as small models


def describe_corpus(corpus: Corpus, work: Path) -> Finding:
    """What is in the corpus: the section every report starts with."""
    summary = summarise(corpus)
    origin = Origin(corpus=f"{corpus.name}@{corpus.fingerprint}")
    return Finding(summary.to_dict(), section_of(summary, examples=list(examples_of(corpus))), origin)


def measure_overlap(corpus: Corpus, work: Path) -> Finding:
    """How much of the test split is in the training split."""
    from turnwise.overlap.measure import measure_with_examples
    from turnwise.overlap.report import chosen_examples
    from turnwise.overlap.report import section_of as overlap_section

    measured = measure_with_examples(corpus.split("train"), corpus.split("test"), choose=chosen_examples)
    return Finding(measured.result.to_dict(), overlap_section(measured), measured.result.origin)


def measure_distraction(corpus: Corpus, work: Path) -> Finding:
    """Where two small models look, trained on the spot with and without distractions."""
    from turnwise.distract.demonstration import MEASURED_ON, small_models
    from turnwise.distract.examine import examine, make_sets
    from turnwise.distract.report import section_of as distract_section

    if find_spec("torch") is None:
        return _not_measured("Distraction", "distract", "Does the model look at what matters?", corpus)
    found = examine(small_models(corpus, work), make_sets(corpus, limit=MEASURED_ON, context_turns=5))
    section = distract_section(found.result, pictures=found.pictures)
    return Finding(found.result.to_dict(), section, found.result.origin)


def probe_encodings(corpus: Corpus, work: Path) -> Finding:
    """What the encodings of two small models know of a context."""
    from turnwise.distract.demonstration import small_models
    from turnwise.probe import examine, examples
    from turnwise.probe.report import section_of as probe_section

    if find_spec("torch") is None:
        return _not_measured("Probes", "probe", "What does the encoding of a context know?", corpus)
    training, held_out = (
        examples(corpus.split(name)[:most]) for name, most in (("train", PROBED_FROM), ("validation", PROBED_ON))
    )
    found = examine(small_models(corpus, work), training, held_out)
    section = probe_section(found.result, labels=found.measured.labels, pictures=found.pictures)
    return Finding(found.result.to_dict(), section, found.result.origin)


def predict_engagement(corpus: Corpus, work: Path) -> Finding:
    """How much of real conversations remains, predicted from single turns; the corpus of the study is not asked.

    A weak label learnt from made dialogues would show nothing of how people talk.
    """
    from turnwise.engage.demonstration import missing_packages, small_depth
    from turnwise.engage.output import chosen_cases, chosen_conversation
    from turnwise.engage.report import ANCHOR, QUESTION, TITLE, depth_section

    if missing := missing_packages():
        why = f"Not installed: {', '.join(missing)}. Try: pip install 'turnwise[models,demo]'."
        return _said_missing(Section(TITLE, ANCHOR, QUESTION, [Prose(why)], lead="Not measured."), why, corpus)
    found = small_depth(work)
    section = depth_section(found, conversation=chosen_conversation(found), cases=chosen_cases(found))
    return Finding(found.to_dict(), section, found.origin)


def _not_measured(title: str, anchor: str, question: str, corpus: Corpus) -> Finding:
    """A section that says what is missing."""
    missing = "This instrument trains and reads models, and torch is not installed: pip install 'turnwise[models]'."
    return _said_missing(Section(title, anchor, question, [Prose(missing)], lead="Not measured."), missing, corpus)


def _said_missing(section: Section, missing: str, corpus: Corpus) -> Finding:
    return Finding({"not_measured": missing}, section, Origin(corpus=f"{corpus.name}@{corpus.fingerprint}"))


INSTRUMENTS: dict[str, Instrument] = {
    "corpus": Instrument("What is in the corpus?", describe_corpus),
    "overlap": Instrument("Is the test set in the training set?", measure_overlap),
    "distract": Instrument("Does the model look at what matters?", measure_distraction),
    "probe": Instrument("What does the encoding of a context know?", probe_encodings),
    "engage": Instrument("Is the user engaged, turn by turn?", predict_engagement),
}
