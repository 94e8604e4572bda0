"""The steps of a plan: their names, what their numbers depend on, and whether one is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dialoscope.corpus import Corpus
from dialoscope.errors import DialoscopeError, UsageError
from dialoscope.instruments import INSTRUMENTS, CorpusShown
from dialoscope.record import version
from dialoscope.report import read_run
from dialoscope.report.anchor import LONGEST, slug
from dialoscope.report.run import FILES, table_files
from dialoscope.study.book import Step
from dialoscope.study.keys import digest, fingerprint
from dialoscope.study.models import Source
from dialoscope.study.plan import Ask, Plan

KEY_LETTERS = 12  # of a step's key, in the name of its folder
NAME_LETTERS = 8  # of what stands for the true names, where a folder's name cannot
COMPARED = Step("compared", "compare", "", "pending")  # with an earlier study


def steps_of(plan: Plan) -> list[tuple[str, Ask, str]]:
    """Every corpus itself, then every instrument on each of its corpora; each with a name that a folder can have.

    No name depends on the order of the plan: where two would be called the same, or letters are lost, a digest of the
    true names is added.
    """
    shown = Ask("corpus", "corpus", CorpusShown(), tuple(plan.corpora))
    asked = [(ask, corpus) for ask in (shown, *plan.asks) for corpus in ask.corpora]
    texts = [f"{ask.name}-{corpus}" for ask, corpus in asked]
    slugs = [slug(text, default=ask.instrument) for text, (ask, _) in zip(texts, asked, strict=True)]
    same, alike = Counter(texts), Counter([COMPARED.name, *slugs])
    found = []
    for text, short, (ask, corpus) in zip(texts, slugs, asked, strict=True):
        is_own = same[text] == 1 if short == text else alike[short] == 1 and _has_all_letters(text)
        name = short if is_own else _with_digest(short, [ask.instrument, ask.name, corpus])
        found.append((name, ask, corpus))
    return found


def _has_all_letters(text: str) -> bool:
    """Whether the slug of a text has all of its letters; case, blanks and signs may be lost."""
    return text.isascii() and len(text) <= LONGEST


def _with_digest(short: str, names: Sequence[str]) -> str:
    """A slug, cut where it must be, that no other names have."""
    return f"{short[: LONGEST - NAME_LETTERS - 1].rstrip('-')}-{digest(names)[:NAME_LETTERS]}"


def shown_name(name: str, asked: str, corpus: str) -> str:
    """What people read of a step: its name, or what was asked of which corpus where the name has a digest for that."""
    return name if not asked or name == slug(f"{asked}-{corpus}") else f"{asked} on {corpus}"


def trace_name(name: str) -> str:
    """The file of the trace of a step, or of a model, that failed."""
    short = slug(name, default="step")
    return f"{name if short == name else _with_digest(short, [name])}.txt"


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
    return said if isinstance(error, DialoscopeError) else f"{type(error).__name__}: {said}"
