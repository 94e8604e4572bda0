"""What a rater has to beat: raters that need no training, and guesses of the remaining depth.

The number of words of a turn alone correlates by 0.725 with people on DailyDialog-Human (Spearman), above every metric
of the paper's Table 3. So no rater is shown without these beside it. Among replies that a model generated to the same
queries the sign is the opposite (`examples/engagement_baselines.py`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoscope.engage.examples import Examples
from dialoscope.engage.human_sets import item_key, normalised
from dialoscope.engage.protocol import Dialogue, Floats, Rater
from dialoscope.errors import UsageError

QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")  # Latin, full-width, Arabic, Greek
SHORTEST = 2  # turns of a dialogue that has a remaining depth: (n − j) / (n − 1)
DepthGuess = Callable[[Dialogue], Floats]  # the remaining depth of every turn of a dialogue: (turns,)


@dataclass(frozen=True)
class Baseline:
    """A rule that rates one dialogue's last turn; it meets `Rater`."""

    name: str
    rule: Callable[[Dialogue], float]

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        """The score of each dialogue's last turn: (dialogues,)."""
        return np.array([self.rule(dialogue) for dialogue in dialogues], dtype=np.float32)


@dataclass(frozen=True)
class SingleTurn:
    """A rater that is shown the rated turn alone, as in the paper's Table 4."""

    rater: Rater

    @property
    def name(self) -> str:
        """The rater's own, and that it read one turn."""
        return f"{self.rater.name}-single"

    @property
    def selected_on(self) -> frozenset[str]:
        """What the rater was selected on."""
        return frozenset(getattr(self.rater, "selected_on", ()))

    @property
    def is_shuffled(self) -> bool:
        """Whether the rater learnt from shuffled labels."""
        return bool(getattr(self.rater, "is_shuffled", False))

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        """The score of each dialogue's last turn, without the turns before it: (dialogues,)."""
        return self.rater.rate([dialogue[-1:] for dialogue in dialogues])


def word_count(dialogue: Dialogue) -> float:
    """Words of the turn, separated by blanks."""
    return len(dialogue[-1].split())


def question_mark(dialogue: Dialogue) -> float:
    """1 if the turn asks something, else 0."""
    return float(any(mark in dialogue[-1] for mark in QUESTION_MARKS))


def position(dialogue: Dialogue) -> float:
    """The number of the turn; the first is 1."""
    return len(dialogue)


def average_length(dialogue: Dialogue) -> float:
    """The mean number of words of the turns so far, the rated one with them; the paper's Average counts turns."""
    return mean(len(turn.split()) for turn in dialogue)


def chance(dialogue: Dialogue) -> float:
    """A number from 0 to 1 that the turns themselves decide: the same in every batch and on every machine."""
    return _drawn(item_key(dialogue))


# Raters that need no training.
BASELINES: Mapping[str, Rater] = {
    "word_count": Baseline("word_count", word_count),
    "question_mark": Baseline("question_mark", question_mark),
    "position": Baseline("position", position),
    "average_length": Baseline("average_length", average_length),
    "random": Baseline("random", chance),
}


# --- Remaining depth of whole dialogues -------------------------------------------------------------------------------


def mean_length(turns_per_dialogue: npt.ArrayLike) -> float:
    """The mean number of turns of the training dialogues, those of one turn left out, for they have no depth."""
    lengths = np.asarray(turns_per_dialogue)
    lengths = lengths[lengths >= SHORTEST]
    if not len(lengths):
        raise UsageError(f"Expected training dialogues of at least {SHORTEST} turns, found none.")
    return float(lengths.mean())


def average_depth(mean_length: float, j: npt.ArrayLike) -> Floats:
    """The paper's Average baseline as its Tables 1 and 2 have it: clip((a + 1 − j) / a, 0, 1), turns numbered from 1.

    >>> average_depth(4.0, [1, 2, 5, 9]).tolist()
    [1.0, 0.75, 0.0, 0.0]
    """
    return _clipped((_checked(mean_length) + 1 - np.asarray(j)) / mean_length)


def average_depth_literal(mean_length: float, j: npt.ArrayLike) -> Floats:
    """The paper's sentence read literally, the average length for n in equation 1: clip((a − j) / (a − 1), 0, 1).

    It does not give the paper's numbers: DailyDialog's error is 5.24 where Table 1 has 5.02, and that of
    EmpatheticDialogues 0.86 where it has 2.86 (squared, times 100).

    >>> average_depth_literal(5.0, [1, 2, 5, 9]).tolist()
    [1.0, 0.75, 0.0, 0.0]
    """
    return _clipped((_checked(mean_length) - np.asarray(j)) / (mean_length - 1))


def random_depth(dialogue: Dialogue) -> Floats:
    """Numbers from 0 to 1 that the whole dialogue decides, so that equal openings have others: (turns,)."""
    seed = int.from_bytes(hashlib.sha256(f"depth {item_key(dialogue)}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed).random(len(dialogue), dtype=np.float32)


def lookup_depth(training: Examples) -> DepthGuess:
    """A table of training turns: the mean depth at which a text stood there, and that of all turns for a new one.

    It learns nothing: what it reaches beyond greetings and farewells comes from dialogues that stand in both splits.
    """
    met: dict[str, list[float]] = defaultdict(list)
    for text, target in zip(training.texts, training.targets.tolist(), strict=True):
        met[normalised(text)].append(target)
    known, usual = {text: mean(targets) for text, targets in met.items()}, float(np.mean(training.targets))
    return lambda dialogue: np.array([known.get(normalised(turn), usual) for turn in dialogue], dtype=np.float32)


def _by_number(depth: Callable[[float, npt.ArrayLike], Floats], training: Examples) -> DepthGuess:
    length = mean_length(training.lengths)
    return lambda dialogue: depth(length, np.arange(1, len(dialogue) + 1))


# From training dialogues, a guess of every turn's depth.
DEPTH_BASELINES: Mapping[str, Callable[[Examples], DepthGuess]] = {
    "random": lambda _: random_depth,
    "average": partial(_by_number, average_depth),
    "average_literal": partial(_by_number, average_depth_literal),
    "lookup": lookup_depth,
}


def _checked(mean_length: float) -> float:
    if not mean_length >= SHORTEST:
        raise UsageError(
            f"A mean length of {mean_length:g} turns: expected at least {SHORTEST}; leave out shorter ones."
        )
    return mean_length


def _clipped(values: npt.NDArray[Any]) -> Floats:
    return np.asarray(np.clip(values, 0, 1), dtype=np.float32)


def _drawn(key: str) -> float:
    """A number from a key; hashed once more, for the key itself decides in which half of a set an item lies."""
    return int.from_bytes(hashlib.sha256(f"random {key}".encode()).digest()[:3], "little") / 2**24
