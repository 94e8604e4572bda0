"""Self-contained distractions: utterances of other training dialogues, put before the Query, drawn anew every epoch.

Section 3.4 of "Evaluating and Improving Context Attention Distribution": each example draws utterances from other
dialogues of the training split, inserts each with the training probability at a random place before the Query, and a
bitmask M remembers which they are. Examples only hold the places of their turns, so this is arithmetic on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.model.examples import Examples, Flags, Ints, ends_of


@dataclass(frozen=True)
class InsertDistractions:
    """A transform for the training loop: up to `most` distractions in each example, each with a probability.

    >>> transform = InsertDistractions(0.7)
    >>> transform.probability, transform.most
    (0.7, 2)
    """

    probability: float
    most: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise UsageError(f"A probability of insertion is between 0 and 1, found {self.probability}.")
        if self.most < 1:
            raise UsageError(f"Distractions are put in up to a number of at least 1, found most={self.most}.")

    def __call__(self, examples: Examples, rng: np.random.Generator) -> Examples:
        """The same examples with new distractions; equal generators draw equal ones."""
        if not self.probability or not len(examples):
            return examples
        shape = (len(examples), self.most)
        is_inserted = rng.random(shape) < self.probability
        places = draw_from_others(examples, rng, self.most)
        # Slots 0 … |History|: slot k is before turn k, so the last one is just before the Query.
        slots = rng.integers(0, examples.utterances[:, None], size=shape)
        return insert(examples, places, slots, is_inserted)


def draw_from_others(examples: Examples, rng: np.random.Generator, count: int) -> Ints:
    """Places of turns of other dialogues, every one that says something equally likely: (examples, count)."""
    spoken = np.flatnonzero(examples.turns.sizes > 1)  # a blank turn is its end mark alone
    first = np.searchsorted(spoken, examples.turns.first)  # of each dialogue, among the turns that say something
    begin, size = first[examples.dialogue], np.diff(first)[examples.dialogue]
    others = len(spoken) - size
    if not others.all():
        raise UsageError("Distractions come from other dialogues, and in this training split no other says anything.")
    drawn = rng.integers(0, others[:, None], size=(len(examples), count))
    return np.asarray(spoken[drawn + np.where(drawn >= begin[:, None], size[:, None], 0)])  # step over its own dialogue


def insert(examples: Examples, places: Ints, slots: Ints, is_inserted: Flags) -> Examples:
    """Put turns before others: `places[i, k]` goes before turn `slots[i, k]` of context i, where `is_inserted`.

    Of two at one slot, the first stays first.
    """
    counts = examples.utterances
    offsets = ends_of(counts + is_inserted.sum(axis=1))
    context, flags = np.zeros(offsets[-1], dtype=np.int64), np.ones(offsets[-1], dtype=bool)
    own = offsets[:-1].repeat(counts) + _places_after(examples, slots, is_inserted)
    context[own], flags[own] = examples.context, examples.is_distraction
    rows, columns = np.nonzero(is_inserted)
    context[(offsets[:-1, None] + slots + _earlier(slots, is_inserted))[rows, columns]] = places[rows, columns]
    return Examples(examples.turns, context, flags, offsets, examples.response, examples.dialogue)


def _places_after(examples: Examples, slots: Ints, is_inserted: Flags) -> Ints:
    """Where each original turn of a context stands after the insertions before it."""
    counts = examples.utterances
    position = np.arange(len(examples.context)) - examples.offsets[:-1].repeat(counts)
    moved = position.copy()
    for slot, is_in in zip(slots.T, is_inserted.T, strict=True):
        moved += (slot.repeat(counts) <= position) & is_in.repeat(counts)
    return moved


def _earlier(slots: Ints, is_inserted: Flags) -> Ints:
    """How many other insertions of the same context stand before each: (examples, most)."""
    number = np.arange(slots.shape[1])
    is_before = slots[:, :, None] < slots[:, None, :]
    is_before |= (slots[:, :, None] == slots[:, None, :]) & (number[:, None] < number)
    return np.asarray((is_before & is_inserted[:, :, None]).sum(axis=1), dtype=np.int64)
