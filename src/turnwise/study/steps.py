"""The steps of a plan: their names, what their numbers depend on, and whether one is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from turnwise.corpus import Corpus
from turnwise.errors import TurnwiseError, UsageError
from turnwise.instruments import INSTRUMENTS, CorpusShown
from turnwise.record import version
from turnwise.report import read_run
from turnwise.report.anchor import free_name, slug
from turnwise.report.run import FILES, table_files
from turnwise.study.book import Step
from turnwise.study.keys import digest, fingerprint
from turnwise.study.models import Source
from turnwise.study.plan import Ask, Plan

KEY_LETTERS = 12  # of a step's key, in the name of its folder
COMPARED = Step("compared", "compare", "", "pending")  # with an earlier study


def steps_of(plan: Plan) -> list[tuple[str, Ask, str]]:
    """Every corpus itself, then every instrument on each of its corpora; each with a name that a folder can have."""
    shown = Ask("corpus", "corpus", CorpusShown(), tuple(plan.corpora))
    taken: set[str] = set()
    found = []
    for ask in (shown, *plan.asks):
        for corpus in ask.corpora:
            name = free_name(slug(f"{ask.name}-{corpus}", default=ask.instrument), taken)
            taken.add(name)
            found.append((name, ask, corpus))
    return found


def pending(plan: Plan) -> list[Step]:
    """What a plan will have done."""
    found = [Step(name, ask.instrument, corpus, "pending", asked=ask.name) for name, ask, corpus in steps_of(plan)]
    return found if plan.against is None else [*found, COMPARED]


def keyed(step: Step, ask: Ask, corpus: Corpus, sources: Mapping[str, Source], *, seed: int) -> Step:
    """A step with the key of all that its numbers depend on, and the folder that goes with it."""
    models = {name: one.identity for name, one in sources.items()}
    read = {path: fingerprint(path) for path in INSTRUMENTS[ask.instrument].reads(ask.wish)}
    parts = [version(), ask.to_dict(), corpus.name, corpus.fingerprint, models, read, seed]
    if ask.instrument == "corpus":  # it also shows how the dialogues were read, of which they know nothing
        parts += [corpus.format, dict(corpus.skipped), dict(corpus.ignored)]
    key = digest(parts)
    return replace(step, key=key, run=f"runs/{step.name}-{key[:KEY_LETTERS]}")


def is_whole(run: Path) -> bool:
    """Whether a run is there with all of its files."""
    try:
        kept = read_run(run)
    except UsageError:
        return False
    return all((run / name).is_file() for name in (*FILES, *kept.files, *table_files(kept.section)))


def reason_of(error: Exception) -> str:
    """An error in one line."""
    said = " ".join(str(error).split())
    return said if isinstance(error, TurnwiseError) else f"{type(error).__name__}: {said}"
