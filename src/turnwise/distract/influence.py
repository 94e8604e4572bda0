"""What utterances do to a response, since attention need not be what a model acts on.

**Influence**: how far the log-likelihood of the given response falls when one utterance is left out of the context. It
needs no attention, so it can be had of any model that scores responses. The influence ratio is the mean size of that
change for distractions over that for History: 0 for a model that reads past what was put in.

**Behaviour**: whether a model writes something else once distractions are put in, and how much else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnwise.distract.phrases import words_of
from turnwise.distract.sets import Case
from turnwise.metrics import Resampling, correlate, mean_score, ratio_score
from turnwise.model.protocol import Context, DialogueModel
from turnwise.record import Origin, Score

AT_ONCE = 256  # cases whose shortened contexts are scored together
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Influence:
    """How much leaving out a distraction, or a turn of History, changes log p of the response."""

    ratio: Score  # of the mean sizes of the change
    distraction_fall: Score  # nats; below 0 where the response is likelier without
    history_fall: Score

    @property
    def scores(self) -> dict[str, Score]:
        """By name."""
        falls = {"distraction_fall": self.distraction_fall, "history_fall": self.history_fall}
        return {"influence_ratio": self.ratio, **falls}


def influence(
    model: DialogueModel,
    cases: Sequence[Case],
    *,
    resampling: Resampling | None = None,
    origin: Origin | None = None,
    progress: Progress | None = None,
) -> Influence:
    """Leave out every utterance before the Query in turn; contexts without both kinds are left out whole."""
    how: dict[str, Any] = {"resampling": resampling or Resampling(), "origin": origin}
    used = [case for case in cases if case.distractions and case.history]
    falls: list[list[float]] = []
    for first in range(0, len(used), AT_ONCE):
        falls += _falls(model, used[first : first + AT_ONCE])
        if progress is not None:
            progress(min(first + AT_ONCE, len(used)), len(used))
    both = [_split(case, fall) for case, fall in zip(used, falls, strict=True)]
    dialogues = [case.dialogue for case in used]
    sizes = np.array([[np.abs(part).mean() for part in one] for one in both]).reshape(-1, 2)
    means = np.array([[part.mean() for part in one] for one in both]).reshape(-1, 2)
    return Influence(
        ratio_score(sizes[:, 0], sizes[:, 1], clusters=dialogues, **how),
        mean_score(means[:, 0], clusters=dialogues, **how),
        mean_score(means[:, 1], clusters=dialogues, **how),
    )


def _falls(model: DialogueModel, cases: Sequence[Case]) -> list[list[float]]:
    """Of each case, how far log p falls without each utterance before the Query."""
    contexts, responses = [], []
    for case in cases:
        for context in (case.context, *_shortened(case.context)):
            contexts.append(context)
            responses.append(case.response)
    totals = iter([one.total for one in model.log_likelihood(contexts, responses)])
    found = []
    for case in cases:
        whole = next(totals)
        found.append([whole - next(totals) for _ in range(len(case.context) - 1)])
    return found


def _shortened(context: Context) -> Iterator[Context]:
    """The context without its first turn, without its second, and so on; never without the Query."""
    return (tuple(context[:place]) + tuple(context[place + 1 :]) for place in range(len(context) - 1))


def _split(case: Case, falls: Sequence[float]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    values = np.array(falls)
    return values[list(case.distractions)], values[case.history]


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What distractions do to the responses a model writes."""

    changed: Score  # share of responses that are not the same any more
    kept_words: Score  # overlap of words between the two responses, 1 for the same words
    with_ratio: Score | None  # rank correlation of words lost with the DAS ratio, over contexts

    @property
    def scores(self) -> dict[str, Score]:
        """By name."""
        found = {"changed_share": self.changed, "kept_words": self.kept_words}
        return found if self.with_ratio is None else {**found, "change_with_das_ratio": self.with_ratio}


def behaviour(
    original: Sequence[str],
    distracted: Sequence[str],
    cases: Sequence[Case],
    *,
    ratios: npt.ArrayLike | None = None,
    resampling: Resampling | None = None,
    origin: Origin | None = None,
) -> Behaviour:
    """Compare responses to the same contexts without and with distractions; those that got none do not count."""
    how: dict[str, Any] = {"resampling": resampling or Resampling(), "origin": origin}
    places = [place for place, case in enumerate(cases) if case.distractions]
    dialogues = [cases[place].dialogue for place in places]
    pairs = [(original[place], distracted[place]) for place in places]
    kept = np.array([_shared(*pair) for pair in pairs])
    is_changed = np.array([one != other for one, other in pairs], dtype=bool)
    related = None
    if ratios is not None:
        related = correlate(1 - kept, np.asarray(ratios, dtype=float)[places], clusters=dialogues, **how)
    return Behaviour(
        mean_score(is_changed, clusters=dialogues, **how), mean_score(kept, clusters=dialogues, **how), related
    )


def _shared(one: str, other: str) -> float:
    """2 |u ∩ v| / (|u| + |v|) of the words; 1 where both have none."""
    mine, theirs = set(words_of(one)), set(words_of(other))
    return 2 * len(mine & theirs) / (len(mine) + len(theirs)) if mine or theirs else 1.0
