"""The built-in `concierge` corpus: annotated, task-oriented dialogues that need no download.

A guest with a persona and a few wishes talks to the concierge of an invented city. The two are small state machines:
what the guest may do next depends on what the concierge waits for (`HABITS` in concierge/tables.py), what the concierge
answers on what the guest did (`MOVES` in concierge/conversation.py). Text and labels come from the same template, and
the state is read off the guest's acts, so labels cannot claim what nobody said. Some held-out dialogues are planted
copies of training ones: every instrument has something to find, and the truth is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dialoscope.corpus.concierge import tables
from dialoscope.corpus.concierge.city import build_city
from dialoscope.corpus.concierge.conversation import converse
from dialoscope.corpus.concierge.wording import pick, tidy
from dialoscope.corpus.dialogue import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError

PLANTED_SHARE = 0.08  # of validation and of test


def generate(*, dialogues: int = 5000, seed: int = 7) -> Corpus:
    """Write the concierge corpus: 80 % train, 10 % validation, 10 % test, with planted copies in the last two.

    The same seed gives the same corpus, to the letter. Planted dialogues say so in their labels:
    ``planted: {"of": id of a training dialogue, "kind": "exact" or "near"}``.

    >>> generate(dialogues=20, seed=7).splits
    {'train': 16, 'validation': 2, 'test': 2}
    """
    if dialogues < 1:
        raise UsageError(f"Cannot generate {dialogues} dialogues: expected at least 1.")
    written = _write(np.random.default_rng(seed), dialogues)
    return replace(Corpus.of(written, name="concierge"), format="concierge")


def _write(rng: np.random.Generator, count: int) -> Iterator[Dialogue]:
    """One dialogue after the other; only those that will be copied are remembered."""
    city, held_out = build_city(rng), max(count // 10, int(count >= 3))
    splits = ["train"] * (count - 2 * held_out) + ["validation"] * held_out + ["test"] * held_out
    planted = _plan(rng, count - 2 * held_out, held_out)
    originals: dict[int, Dialogue] = {}
    for place, split in enumerate(splits):
        dialogue = _copy(rng, originals[planted[place]]) if place in planted else converse(rng, city)
        dialogue = dialogue._replace(id=f"concierge-{place + 1:05}", split=split)
        originals |= {place: dialogue} if place in planted.values() else {}
        yield dialogue


# --- Planted copies ---------------------------------------------------------------------------------------------------


def _plan(rng: np.random.Generator, train: int, held_out: int) -> dict[int, int]:
    """Which held-out places get a copy of which training dialogue; none is copied twice."""
    share = round(PLANTED_SHARE * held_out)
    places = [train + split * held_out + rng.permutation(held_out)[:share] for split in (0, 1)]
    return dict(zip(np.concatenate(places).tolist(), rng.permutation(train)[: 2 * share].tolist(), strict=True))


def _copy(rng: np.random.Generator, original: Dialogue) -> Dialogue:
    kind = pick(rng, ("exact", "near", "near"))
    turns = near_copy(rng, original.turns) if kind == "near" else original.turns
    return Dialogue(turns, labels={**original.labels, "planted": {"of": original.id, "kind": kind}})


def near_copy(rng: np.random.Generator, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Alter about a third of the turns a little, so that at least one word of the dialogue is new or gone."""
    altered = tuple(turn._replace(text=_alter(rng, turn.text)) if rng.random() < 0.3 else turn for turn in turns)
    return altered if _bag(altered) != _bag(turns) else near_copy(rng, turns)


def _alter(rng: np.random.Generator, text: str) -> str:
    """Swap a filler, add a remark, or change case or punctuation; values stay as they are."""
    swapped = re.sub(r"\w+", lambda found: tables.SWAPS.get(found[0].lower(), found[0]), text)
    added = f"{pick(rng, tables.ADDED)} {text}"
    return pick(rng, (tidy(swapped), added, text.lower(), text.rstrip(".?!"), text.replace(",", "")))


def _bag(turns: tuple[Turn, ...]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(turn.text for turn in turns).lower()))
