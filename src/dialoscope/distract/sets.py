"""Distracting test sets: the same contexts with utterances put in that have nothing to do with them.

Nine of them (section 4.4): `random-0.5`, `random-0.7`, `random-1.0` take two turns of other training dialogues and put
each in with that probability at a random place before the Query; `frequent-begin`, `-middle`, `-end` and the same of
`rare` take fixed sentences (see `dialoscope.distract.phrases`). What is drawn for a context depends on the seed, the
set, the dialogue's id and the response's place, and on nothing else that is measured.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from dialoscope.corpus import Corpus, samples
from dialoscope.distract.phrases import Language, Phrase, Style, is_the_papers, language_of, phrases
from dialoscope.errors import CorpusError, UsageError

Source = Literal["random", "frequent", "rare", "given"]
PLACES = ("begin", "middle", "end")
COUNT = 2  # distractions in a context, "a complete turn" of both speakers
ORIGINAL = "original"
NINE = (
    *(f"random-{probability}" for probability in ("0.5", "0.7", "1.0")),
    *(f"{style}-{place}" for style in ("frequent", "rare") for place in PLACES),
)
NAME = re.compile(r"(?P<source>random|frequent|rare|given)-(?P<how>[a-z]+|[\d.]+)(-(?P<count>\d+))?")
TRIES = 100  # draws before the pool is searched for turns that are not the dialogue's own


class Case(NamedTuple):
    """A context with what was put in, and the response that was given."""

    dialogue: str
    turn: int  # of the response in its dialogue
    context: tuple[str, ...]
    response: str
    distractions: tuple[int, ...] = ()  # places in the context

    @property
    def speakers(self) -> list[str]:
        """Who said each turn of the context, and the response: chat models are told; empty for what was put in."""
        return [getattr(turn, "speaker", "") for turn in (*self.context, self.response)]

    @property
    def history(self) -> list[int]:
        """Places of the original turns before the Query."""
        return [place for place in range(len(self.context) - 1) if place not in self.distractions]


@dataclass(frozen=True)
class SetName:
    """What a set's name says: ``random-0.7``, ``frequent-begin``, ``rare-end-4`` for four distractions, not two."""

    source: Source
    probability: float = 1.0
    place: str | None = None  # None: at random
    count: int = COUNT

    @classmethod
    def parse(cls, name: str) -> SetName:
        """The parts of a name; a wrong one is an error that shows right ones."""
        found = NAME.fullmatch(name)
        count = int(found["count"] or COUNT) if found else 0
        if found and count and found["source"] == "random":
            return cls("random", _probability(found["how"], name), None, count)
        if found and count and found["how"] in PLACES:
            return cls(found["source"], 1.0, found["how"], count)  # type: ignore[arg-type]
        raise UsageError(
            f"No distracting set is called '{name}'. "
            "Take random-0.7, frequent-begin, rare-middle or given-end; -4 behind it puts four distractions in."
        )

    def __str__(self) -> str:
        how = np.format_float_positional(self.probability, trim="0") if self.place is None else self.place
        return f"{self.source}-{how}" + (f"-{self.count}" if self.count != COUNT else "")


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
        """Of every word in it, every place and every speaker."""
        digest = hashlib.sha256()
        for case in self.cases:
            digest.update(repr((tuple(case), case.speakers)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]


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
        """The test split's samples, nothing put in."""
        found = samples(self.test, context_turns=self.context_turns, responses=self.responses)
        first = np.concatenate([[0], np.cumsum(self.test.turns_per_dialogue)])
        turns = (found.response - first[found.dialogue]).tolist()
        cases = [Case(one.dialogue, turn, one.context, one.response) for one, turn in zip(found, turns, strict=True)]
        if not cases:
            raise CorpusError(f"{self.test.name}: expected dialogues of two turns or more, found none.")
        return _last_ones(cases, found.dialogue.tolist()) if self.is_last_only else cases

    def original(self) -> DistractingSet:
        """The test split as it is."""
        return DistractingSet(ORIGINAL, self.cases)

    def make(self, name: str) -> DistractingSet:
        """One set by its name."""
        what = SetName.parse(name)
        if what.source == "random":
            return DistractingSet(str(what), [self._randomly(case, what) for case in self.cases], self._about(what))
        found = self._phrases(what)
        texts = [phrase.text for phrase in found]
        cases = [put_in(case, texts, [slot_of(case, what.place or "end")] * len(texts)) for case in self.cases]
        about = {**self._about(what), "sentences": [phrase.to_dict() for phrase in found]}
        return DistractingSet(str(what), cases, about)

    def _about(self, what: SetName) -> dict[str, Any]:
        about = {"corpus": f"{self.test.name}@{self.test.fingerprint}", "seed": self.seed, "count": what.count}
        return about if self.context_turns is None else {**about, "context_turns": self.context_turns}

    def _phrases(self, what: SetName) -> list[Phrase]:
        if what.source != "given":
            style: Style = what.source  # type: ignore[assignment]
            is_paper = is_the_papers(self.training) and what.count <= COUNT
            return phrases(self._language, style, count=what.count, seed=self.seed, is_paper=is_paper)
        if len(self.sentences) < what.count:
            raise UsageError(f"The set '{what}' needs {what.count} sentences: give --sentence so many times.")
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
        """What is said in each test dialogue."""
        return {one.id: frozenset(one.texts) for one in self.test}

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


def _probability(word: str, name: str) -> float:
    try:
        probability = float(word)
    except ValueError:
        probability = -1.0
    if not 0 < probability <= 1:
        raise UsageError(f"'{name}': a random set names a probability over 0 and up to 1, such as random-0.7.")
    return probability


def _number(text: str) -> int:
    """A number that is the same in every process, unlike Python's hash."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


KINDS = ("random", "frequent", "rare")
SAID = (*NINE, "all", *KINDS, "given")  # what names sets


def chosen_names(words: Sequence[str]) -> list[str]:
    """Names of sets from what a user says: ``all``, ``random`` for all of a kind, or a name itself."""
    return list(dict.fromkeys(name for word in words for name in _names(word)))


def _names(word: str) -> Iterator[str]:
    if word == "all":
        yield from NINE
    elif word in KINDS:
        yield from (name for name in NINE if name.startswith(word))
    elif word == "given":
        yield from (f"given-{place}" for place in PLACES)
    else:
        yield str(SetName.parse(word))
