"""Distracting test sets: the same contexts with inserted utterances that have nothing to do with them.

Nine of them (section 4.4): `random-0.5`, `random-0.7`, `random-1.0` take two turns of other training dialogues and
insert each with that probability at a random place before the Query; `frequent-begin`, `-middle`, `-end` and the same
of `rare` insert fixed sentences (see `dialoscope.distract.phrases`). What is drawn for a context depends on the seed,
the set, the dialogue's id and the response's place, and on nothing else that is measured; dialogues that share an id
are told apart first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dialoscope.corpus import Corpus, samples
from dialoscope.corpus.split import split_for
from dialoscope.distract.names import COUNT, ORIGINAL, SetName, chosen_names
from dialoscope.distract.phrases import Language, Phrase, Style, is_the_papers, language_of, phrases
from dialoscope.distract.settings import SetsSettings
from dialoscope.errors import CorpusError, UsageError
from dialoscope.settings import with_options

TRIES = 100  # draws before the pool is searched for turns that are not the dialogue's own


class Case(NamedTuple):
    """A context with its distractions, and the response that was given."""

    dialogue: str
    turn: int  # of the response in its dialogue
    context: tuple[str, ...]
    response: str
    distractions: tuple[int, ...] = ()  # their positions in the context

    @property
    def speakers(self) -> list[str]:
        """Who said each turn of the context, and the response: chat models are told; empty for distractions."""
        return [getattr(turn, "speaker", "") for turn in (*self.context, self.response)]

    @property
    def history(self) -> list[int]:
        """Positions of the original turns before the Query."""
        return [position for position in range(len(self.context) - 1) if position not in self.distractions]


@dataclass(frozen=True, eq=False)
class DistractingSet:
    """A test set by name; `about` says how it was made."""

    name: str
    cases: Sequence[Case]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cases)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of every word, every distraction's position and every speaker."""
        digest = hashlib.sha256()
        for case in self.cases:
            digest.update(repr((tuple(case), case.speakers)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]


def make_sets(corpus: Corpus, settings: SetsSettings | None = None, **options: Any) -> list[DistractingSet]:
    """Make the original test set and distracting sets of it; distractions come from the training split.

    A corpus of one split is measured whole, and distractions come from its other dialogues than the one at hand.

    >>> [len(each) for each in make_sets(load("concierge"), limit=2, sets=["random-0.7"])]      # doctest: +SKIP
    [14, 14]
    """
    settings = with_options(settings, SetsSettings, options)
    _check_corpus(corpus)
    parts = split_for(
        corpus, alone="whole", split=settings.split, train_split=settings.train_split, limit=settings.limit
    )
    maker = Maker(
        parts.measured_apart,
        parts.reference,
        settings.seed,
        settings.context_turns,
        settings.last_only,
        settings.sentences,
        settings.responses,
    )
    made = {
        "corpus": f"{corpus.name}@{corpus.fingerprint}",
        "seed": settings.seed,
        "context_turns": settings.context_turns,
        "parts": dict(parts.sizes),
        "used": parts.used,
    }
    sets = [maker.original(), *(maker.make(name) for name in chosen_names(settings.sets))]
    return [replace(each, about={**made, **each.about}) for each in sets]


def _check_corpus(corpus: object) -> None:
    if not isinstance(corpus, Corpus):
        hint = "Load it with dialoscope.load."
        raise UsageError(f"Distracting sets are made of a Corpus, found {type(corpus).__name__}. {hint}")


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes test sets from the test split of a corpus; distractions come from its training split."""

    test: Corpus
    training: Corpus
    seed: int = 0
    context_turns: int | None = None
    is_last_only: bool = False  # of each dialogue, only its last response
    sentences: Sequence[str] = ()  # of the sets called `given`
    responses: str | None = None  # only those of this speaker

    @cached_property
    def cases(self) -> list[Case]:
        """The test split's samples, without distractions."""
        flat = samples(self.test, context_turns=self.context_turns, responses=self.responses)
        first = np.concatenate([[0], np.cumsum(self.test.turns_per_dialogue)])
        turns = (flat.response - first[flat.dialogue]).tolist()
        cases = [Case(each.dialogue, turn, each.context, each.response) for each, turn in zip(flat, turns, strict=True)]
        return _last_ones(cases, flat.dialogue.tolist()) if self.is_last_only else cases

    def original(self) -> DistractingSet:
        """The test split as it is."""
        return DistractingSet(ORIGINAL, self.cases)

    def make(self, name: str) -> DistractingSet:
        """One set by its name."""
        what = SetName.parse(name)
        if what.source == "random":
            cases = [self._randomly(case, what) for case in self.cases]
            return DistractingSet(str(what), cases, {"count": what.count})
        sentences = self._phrases(what)
        texts = [phrase.text for phrase in sentences]
        cases = [put_in(case, texts, [slot_of(case, what.place or "end")] * len(texts)) for case in self.cases]
        about = {"count": what.count, "sentences": [phrase.to_dict() for phrase in sentences]}
        return DistractingSet(str(what), cases, about)

    def _phrases(self, what: SetName) -> list[Phrase]:
        if what.source != "given":
            style: Style = what.source  # type: ignore[assignment]
            is_paper = is_the_papers(self.training) and what.count <= COUNT
            return phrases(self._language, style, count=what.count, seed=self.seed, is_paper=is_paper)
        if len(self.sentences) < what.count:
            count = len(self.sentences)
            raise UsageError(f"The set '{what}' needs {what.count} sentences, found {count}: give --sentences.")
        return [Phrase(text, {}, False) for text in self.sentences[: what.count]]

    @cached_property
    def _language(self) -> Language:
        return language_of(self.training)

    @cached_property
    def _pool(self) -> list[str]:
        """Turns of the training split."""
        texts = [text or "" for text in self.training.turn_column("text").to_pylist()]
        if not texts:
            raise CorpusError(f"{self.training.name}: expected turns to draw distractions from, found none.")
        return texts

    @cached_property
    def _own(self) -> dict[str, frozenset[str]]:
        """The texts of each test dialogue; of all that share an id."""
        own: dict[str, frozenset[str]] = {}
        for dialogue in self.test:
            own[dialogue.id] = own.get(dialogue.id, frozenset()).union(dialogue.texts)
        return own

    def _randomly(self, case: Case, what: SetName) -> Case:
        rng = np.random.default_rng([self.seed, _number(str(what)), _number(case.dialogue), case.turn])
        is_in = rng.random(what.count) < what.probability
        slots = rng.integers(0, len(case.context), size=what.count)  # the last slot is just before the Query
        texts = [self._drawn(case.dialogue, rng) for _ in range(what.count)]
        chosen = [(text, int(slot)) for text, slot, is_put in zip(texts, slots, is_in, strict=True) if is_put]
        return put_in(case, [text for text, _ in chosen], [slot for _, slot in chosen])

    def _drawn(self, dialogue: str, rng: np.random.Generator) -> str:
        """A turn that says something and is not said in this dialogue, and so is another's."""
        pool, own = self._pool, self._own[dialogue]
        for _ in range(TRIES):
            text = pool[int(rng.integers(len(pool)))]
            if text.strip() and text not in own:
                return text
        others = [text for text in pool if text.strip() and text not in own]
        if not others:
            raise CorpusError(f"{self.training.name}: expected turns of other dialogues than '{dialogue}', found none.")
        return others[int(rng.integers(len(others)))]


def put_in(case: Case, texts: Sequence[str], slots: Sequence[int]) -> Case:
    """Texts before the turns at these slots; of two at one slot, the first stays first."""
    context: list[str] = []
    distractions: list[int] = []
    for place, turn in enumerate(case.context):
        for text, slot in zip(texts, slots, strict=True):
            if slot == place:
                distractions.append(len(context))
                context.append(text)
        context.append(turn)
    return case._replace(context=tuple(context), distractions=tuple(distractions))


def slot_of(case: Case, place: str) -> int:
    """Before the first turn, in the middle of History, or just before the Query."""
    history = len(case.context) - 1
    return {"begin": 0, "middle": history // 2, "end": history}[place]


def _last_ones(cases: Sequence[Case], dialogues: Sequence[int]) -> list[Case]:
    last = {dialogue: place for place, dialogue in enumerate(dialogues)}
    return [cases[place] for place in last.values()]


def _number(text: str) -> int:
    """A number that is the same in every process, unlike Python's hash."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
