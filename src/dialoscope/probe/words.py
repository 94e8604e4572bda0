"""Contexts as bags of words: the control that knows every word and nothing of their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dialoscope.model.protocol import Floats
from dialoscope.probe.examples import TOKEN

MOST = 1000  # words


def bags_of_words(training: Sequence[Sequence[str]], held_out: Sequence[Sequence[str]]) -> tuple[Floats, Floats]:
    """Which of the words that are in most training contexts each context has: (contexts, words) of 0 and 1."""
    bags = [_bag(context) for context in training]
    counts = Counter(word for bag in bags for word in bag)
    numbers = {word: number for number, (word, _) in enumerate(sorted(counts.items(), key=_rank)[:MOST])}
    return _features(bags, numbers), _features([_bag(context) for context in held_out], numbers)


def _bag(context: Sequence[str]) -> frozenset[str]:
    return frozenset(word for turn in context for word in TOKEN.findall(turn.lower()))


def _rank(counted: tuple[str, int]) -> tuple[int, str]:
    word, count = counted
    return -count, word


def _features(bags: Sequence[frozenset[str]], numbers: dict[str, int]) -> Floats:
    features = np.zeros((len(bags), len(numbers)), dtype=np.float32)
    for row, bag in enumerate(bags):
        features[row, [numbers[word] for word in bag if word in numbers]] = 1
    return features
