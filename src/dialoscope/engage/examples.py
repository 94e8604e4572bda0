"""Turns with the share of the conversation that remains after each: the weak label of engagement.

The remaining depth of turn j of n is RD_j = (n − j) / (n − 1) (equation 1 of the RDEP paper): 1 at the start, 0 at the
end. Consecutive messages of one speaker are one turn, instructions are none (`conversation`); a dialogue of one turn
has no depth, and is left out and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.corpus import Dialogue as CorpusDialogue
from dialoscope.corpus.turns import conversation
from dialoscope.engage.protocol import Floats
from dialoscope.errors import UsageError

Ints = np.ndarray[Any, np.dtype[np.int64]]
Target = Callable[[CorpusDialogue], Floats | None]  # of each turn of a conversation; None: it has none


def remaining_depth(turns: int) -> Floats:
    """RD of every turn of a dialogue: (turns,).

    >>> remaining_depth(5).tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    return np.linspace(1.0, 0.0, turns, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Examples:
    """All turns of all dialogues, one after another, and what is to be predicted of each."""

    name: str
    texts: Sequence[str]  # (turns,)
    starts: Ints  # (dialogues + 1,) where each dialogue begins, and where the last one ends
    targets: Floats  # (turns,), NaN for a turn that has none
    ids: Sequence[str] = field(default_factory=list)  # (dialogues,)
    left_out: int = 0  # dialogues of one turn, or without a target

    def __len__(self) -> int:
        """Dialogues."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ints:
        """Turns of each dialogue."""
        return np.diff(self.starts)

    @property
    def positions(self) -> Ints:
        """The number of each turn in its dialogue, from 1."""
        return np.arange(len(self.texts)) - np.repeat(self.starts[:-1], self.lengths) + 1

    @property
    def dialogues(self) -> Iterator[Sequence[str]]:
        """The turns of each dialogue."""
        return (self.texts[first:stop] for first, stop in zip(self.starts[:-1], self.starts[1:], strict=True))

    def select(self, dialogues: Sequence[int] | Ints) -> Examples:
        """The dialogues at these places, in this order."""
        chosen = [slice(*self.starts[[place, place + 1]]) for place in dialogues]
        return replace(
            self,
            texts=[text for one in chosen for text in self.texts[one]],
            starts=np.cumsum([0, *(one.stop - one.start for one in chosen)]),
            targets=np.concatenate([np.zeros(0, np.float32), *(self.targets[one] for one in chosen)]),
            ids=[self.ids[place] for place in dialogues] if self.ids else [],
        )

    @property
    def label(self) -> str:
        """Name and fingerprint, as origins have them."""
        return f"{self.name}@{self.fingerprint}"

    @cached_property
    def dialogue_fingerprint(self) -> str:
        """Of the texts and where dialogues begin alone: the same dialogues, whatever is to be predicted of them."""
        return self._digest(self.starts.tobytes())

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of the texts, where dialogues begin, and the targets."""
        return self._digest(self.starts.tobytes() + self.targets.tobytes())

    def _digest(self, more: bytes) -> str:
        digest = hashlib.blake2b(more, digest_size=6)
        for text in self.texts:
            digest.update(text.encode() + b"\x1f")
        return digest.hexdigest()


def of_length(corpus: Corpus, least: int | None, most: int | None) -> tuple[Corpus, dict[str, int]]:
    """Dialogues with at least `least` and at most `most` messages, and how many were left out."""
    if least is None and most is None:
        return corpus, {}
    lengths = corpus.turns_per_dialogue
    is_kept = (lengths >= (least or 0)) & (lengths <= (np.inf if most is None else most))
    left_out = {f"a dialogue of fewer than {least} messages": int((lengths < (least or 0)).sum())}
    left_out |= {f"a dialogue of more than {most} messages": int((lengths > (most or np.inf)).sum())}
    if not is_kept.any():
        raise UsageError(
            f"{corpus.name} has no dialogue of {least or 1} to {'any number of' if most is None else most} messages."
        )
    return corpus.select(np.flatnonzero(is_kept)), left_out


def examples(corpus: Corpus, *, target: Target | None = None, may_be_empty: bool = False) -> Examples:
    """Every turn of a corpus with its remaining depth, or another target.

    A corpus without any is refused, unless it may be empty.

    >>> from dialoscope.corpus import Corpus, Dialogue, Turn
    >>> turns = tuple(Turn(*one) for one in [("A", "Hi."), ("A", "How are you?"), ("B", "Fine."), ("A", "Good.")])
    >>> found = examples(Corpus.of([Dialogue(turns)]))
    >>> list(zip(found.texts, found.targets.tolist()))
    [('Hi. How are you?', 1.0), ('Fine.', 0.5), ('Good.', 0.0)]
    """
    aim = target or _depth
    texts: list[str] = []
    starts, targets, ids, left_out = [0], [np.zeros(0, np.float32)], [], 0
    for dialogue in map(conversation, corpus):
        wanted = aim(dialogue) if len(dialogue.turns) > 1 else None
        if wanted is None:
            left_out += 1
            continue
        texts += dialogue.texts
        starts.append(len(texts))
        targets.append(wanted)
        ids.append(dialogue.id)
    if not texts and not may_be_empty:
        whose = f"Corpus '{corpus.name}': none of its {len(corpus):,} dialogues ({', '.join(corpus.splits)})"
        aimed_at = "" if target is None else " and a target to learn"
        raise UsageError(f"{whose} has two turns or more{aimed_at}; what one speaker says in a row is one turn.")
    return Examples(corpus.name, texts, np.array(starts), np.concatenate(targets), ids, left_out)


def _depth(dialogue: CorpusDialogue) -> Floats:
    return remaining_depth(len(dialogue.turns))


def dialogue_scores(label: str, *, lowest: float, highest: float) -> Target:
    """Scores that people gave to whole dialogues, as targets of their turns (ConvAI), taken to 0 … 1.

    The label holds one number for the dialogue, or one for each speaker, whose own turns it is then for. Among
    `ratings`, as ConvAI has them, are the scores that participants gave: a speaker's turns get the mean of what the
    others gave. Turns without a score teach nothing; a dialogue without any is left out.
    """
    if not highest > lowest:
        raise UsageError(f"A scale goes from a lower to a higher number, found {lowest:g} to {highest:g}.")

    def of(dialogue: CorpusDialogue) -> Floats | None:
        scores = _received(dialogue, label)
        if scores is None:
            return None
        by_turn = [scores.get(turn.speaker) if isinstance(scores, dict) else scores for turn in dialogue.turns]
        if any(isinstance(one, bool) or not isinstance(one, int | float | None) for one in by_turn):
            raise UsageError(f"Dialogue '{dialogue.id}': '{label}' must hold a number, or one for each speaker.")
        known = np.array([np.nan if one is None else one for one in by_turn], dtype=np.float64)
        scaled = (known - lowest) / (highest - lowest)
        if any(not 0 <= value <= 1 for value, one in zip(scaled, by_turn, strict=True) if one is not None):
            raise UsageError(f"Dialogue '{dialogue.id}': '{label}' lies outside {lowest:g} to {highest:g}.")
        return None if np.isnan(scaled).all() else scaled.astype(np.float32)

    return of


def _received(dialogue: CorpusDialogue, label: str) -> Any:
    """A label's scores, or what each speaker got from the other participants."""
    ratings = dialogue.labels.get("ratings")
    if label in dialogue.labels or not isinstance(ratings, dict) or not isinstance(ratings.get(label), dict):
        return dialogue.labels.get(label)
    given = {judge: one for judge, one in ratings[label].items() if one is not None}
    others = {
        speaker: [one for judge, one in given.items() if judge != speaker]
        for speaker in {turn.speaker for turn in dialogue.turns}
    }
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in given.values()):
        raise UsageError(f"Dialogue '{dialogue.id}': ratings of '{label}' must be numbers.")
    return {speaker: sum(some) / len(some) for speaker, some in others.items() if some} or None


def shuffled(given: Examples, rng: np.random.Generator) -> Examples:
    """The same turns with each other's targets: what a predictor learns from them is chance."""
    return Examples(given.name, given.texts, given.starts, rng.permutation(given.targets), given.ids, given.left_out)


def runs(starts: Ints, *, turns: int, dialogues: int | None = None) -> Iterator[tuple[int, int]]:
    """Whole dialogues in their order, some at a time: at most so many, and so many turns unless one alone has more.

    >>> list(runs(np.array([0, 2, 5, 6]), turns=4))
    [(0, 1), (1, 3)]
    """
    first, count = 0, len(starts) - 1
    while first < count:
        stop = int(np.searchsorted(starts, starts[first] + turns, side="right")) - 1
        stop = min(max(stop, first + 1), first + (dialogues or count), count)
        yield first, stop
        first = stop


def joined(parts: Sequence[Examples]) -> Examples:
    """Several corpora as one."""
    if len(parts) == 1:
        return parts[0]
    starts, offset = [np.zeros(1, np.int64)], 0
    for part in parts:
        starts.append(part.starts[1:] + offset)
        offset += len(part.texts)
    return Examples(
        "+".join(part.name for part in parts),
        [text for part in parts for text in part.texts],
        np.concatenate(starts),
        np.concatenate([part.targets for part in parts]),
        [one for part in parts for one in part.ids],
        sum(part.left_out for part in parts),
    )
