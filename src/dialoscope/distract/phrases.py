"""Sentences that have nothing to do with a dialogue: of frequent words, or with rare ones, absent from training.

The paper's four sentences are for the Ubuntu chatlogs. For any other corpus ("lunch" is common in DailyDialog) they
are made from its own words: walks over pairs of words that follow each other in training, kept where the whole
sentence never occurs there. Frequent sentences use the most frequent words only; a rare one ends in a rare word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.errors import CorpusError, UsageError

Style = Literal["frequent", "rare"]

PAPER: Mapping[Style, tuple[str, ...]] = {
    "frequent": ("why should i help you", "i have my right"),
    "rare": ("would you have lunch?", "i should have lunch"),
}
FREQUENT_WORDS = 100  # ranks that count as frequent
RARE_COUNT = 5  # occurrences that still count as rare; one alone may be a slip of the pen
LENGTHS = (4, 5, 6)  # words of a sentence that is made
ENDS = 0.05  # share of a word's uses that end (or begin) a turn, for it to end (or begin) a sentence
WALKS = 20_000  # tries before a corpus is found too small
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
EDGE = ""  # before the first word of a turn and after the last


@dataclass(frozen=True)
class Phrase:
    """A sentence, how frequent its words are, and whether it occurs in training."""

    text: str
    ranks: Mapping[str, int | None]  # by word, 1 for the most frequent; None: not in training
    is_in_training: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"text": self.text, "word_ranks": dict(self.ranks), "is_in_training": self.is_in_training}


class Language:
    """Which words a corpus uses, how often, and which follows which."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts: Counter[str] = Counter()
        self.after: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.before: defaultdict[str, Counter[str]] = defaultdict(Counter)
        turns = []
        for text in texts:
            words = words_of(text)
            self.counts.update(words)
            turns.append(f" {' '.join(words)} ")
            for one, other in zip([EDGE, *words], [*words, EDGE], strict=True):
                self.after[one][other] += 1
                self.before[other][one] += 1
        self.said = "\n".join(turns)
        self.ranks = {word: rank for rank, (word, _) in enumerate(self.counts.most_common(), start=1)}

    def has(self, text: str) -> bool:
        """Whether these words stand one after the other in some turn."""
        words = words_of(text)
        return bool(words) and f" {' '.join(words)} " in self.said

    def phrase(self, text: str) -> Phrase:
        """A sentence, held against the corpus."""
        return Phrase(text, {word: self.ranks.get(word) for word in words_of(text)}, self.has(text))


def words_of(text: str) -> list[str]:
    """Words without case, numbers and punctuation."""
    return WORD.findall(text.lower())


def language_of(training: Corpus) -> Language:
    """The words of a corpus."""
    return Language([text or "" for text in training.turn_column("text").to_pylist()])


def phrases(language: Language, style: Style, *, count: int = 2, seed: int = 0, is_paper: bool = False) -> list[Phrase]:
    """Sentences for a distracting test set: the paper's, or made from the corpus's own words."""
    if is_paper:
        if count > len(PAPER[style]):
            raise UsageError(
                f"The paper has {len(PAPER[style])} {style} sentences, not {count}. Leave it to make some."
            )
        return [language.phrase(text) for text in PAPER[style][:count]]
    walks = _frequent_walks(language, seed) if style == "frequent" else _rare_walks(language, seed)
    found: dict[str, Phrase] = {}
    for words in walks:
        text = " ".join(words)
        if text not in found and not language.has(text):
            found[text] = language.phrase(text)
        if len(found) == count:
            return list(found.values())
    raise CorpusError(
        f"The training split has words for {len(found)} of {count} {style} sentences that do not occur in it. "
        "Give sentences of your own with --sentences."
    )


def is_the_papers(corpus: Corpus) -> bool:
    """Whether the paper's own sentences are meant for this corpus: those about Ubuntu."""
    return "ubuntu" in f"{corpus.name} {corpus.format}".lower()


def _frequent_walks(language: Language, seed: int) -> Iterator[list[str]]:
    """From how turns begin to how they end, over frequent words only, each once."""
    rng = np.random.default_rng([seed, 0])
    frequent = {word for word, rank in language.ranks.items() if rank <= FREQUENT_WORDS}
    for _ in range(WALKS):
        words: list[str] = []
        while len(words) < max(LENGTHS):
            following = language.after[words[-1] if words else EDGE]
            choices = {word: n for word, n in following.items() if word in frequent and word not in words}
            if not choices:
                break
            words.append(_drawn(choices, rng))
            if len(words) in LENGTHS and _share(language.after[words[-1]], EDGE) >= ENDS:
                yield list(words)
                break


def _rare_walks(language: Language, seed: int) -> Iterator[list[str]]:
    """From a rare word back to how turns begin, over words that stand before each other."""
    rng = np.random.default_rng([seed, 1])
    rare = sorted(word for word, n in language.counts.items() if 1 < n <= RARE_COUNT)
    rare = rare or sorted(word for word, n in language.counts.items() if n == min(language.counts.values()))
    for _ in range(WALKS if rare else 0):
        words = [rare[int(rng.integers(len(rare)))]]
        while len(words) < max(LENGTHS):
            choices = {word: n for word, n in language.before[words[0]].items() if word and word not in words}
            if not choices:
                break
            words.insert(0, _drawn(choices, rng))
            if len(words) in LENGTHS and _share(language.before[words[0]], EDGE) >= ENDS:
                yield list(words)
                break


def _share(counts: Counter[str], word: str) -> float:
    return counts[word] / max(1, counts.total())


def _drawn(choices: Mapping[str, int], rng: np.random.Generator) -> str:
    names = sorted(choices)
    weights = np.array([choices[name] for name in names], dtype=float)
    return names[int(rng.choice(len(names), p=weights / weights.sum()))]
