"""Which splits of a corpus a study's instruments and models read, and how a corpus of one split is dealt before."""

from __future__ import annotations

from dialoscope.corpus import Corpus, resplit
from dialoscope.errors import UsageError
from dialoscope.study.plan import Ask

HELD_OUT = 10  # of a corpus with one split, one in so many dialogues, twice
NAMED = ("train_split", "split")  # options of instruments that name one
ALWAYS = {"engage": ("train", "validation")}  # what an instrument reads besides, whatever it is told


def dealt(corpus: Corpus, seed: int) -> Corpus:
    """A corpus of one split with one in ten dialogues held out for validation and one for testing; others unchanged."""
    if len(corpus.splits) > 1 or len(corpus) < HELD_OUT:
        return corpus
    count = len(corpus) // HELD_OUT
    return resplit(corpus, validation=count, test=count, seed=seed)


def check_splits(ask: Ask, corpus: Corpus) -> None:
    """Complain of splits that an instrument would read of a corpus, and that are not there."""
    if _is_read_whole(ask, corpus):
        return
    where = f"[{ask.instrument}]"
    for name in ALWAYS.get(ask.instrument, ()):
        need_split(corpus, name, where)
    for option in NAMED:
        if hasattr(ask.wish, option):
            need_split(corpus, getattr(ask.wish, option), f"{where} {option}")


def _is_read_whole(ask: Ask, corpus: Corpus) -> bool:
    """Whether splits play no part: overlap holds a single one against itself, and distract asks all of a whole."""
    if ask.instrument == "overlap":
        return len(corpus.splits) == 1
    return ask.instrument == "distract" and set(corpus.splits) == {"all"}


def need_split(corpus: Corpus, name: str, where: str) -> None:
    """Complain of a split that is not there, in the words of a plan: `where` is the table that asks for it."""
    if name in corpus.splits:
        return
    present = ", ".join(corpus.splits) or "none, for it is empty"
    few = (
        f" A corpus of one split is dealt to training, validation and test from {HELD_OUT} dialogues on; this one has "
        f"{len(corpus)}."
    )
    advice = few if len(corpus.splits) == 1 else ""
    raise UsageError(f"{where}: expected a split '{name}' in {corpus.name}, found {present}.{advice}")
