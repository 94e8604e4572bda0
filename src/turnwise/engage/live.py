"""Live use: a score for each turn as it comes, one encoding each, however long the conversation is."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from turnwise.engage.predictor import Predictor
from turnwise.engage.protocol import Dialogue, Floats
from turnwise.errors import UsageError

TREND_TURNS = 5
BINS = 10  # of scores, each with an interval of its own


@dataclass(frozen=True)
class Calibration:
    """How far remaining depth lies from a score, on dialogues that were held out: quantiles by range of scores.

    Within each range, the errors' quantiles are those of split conformal prediction (Vovk et al. 2005): an interval
    holds the remaining depth of a new turn in about that share of cases. It is no guarantee, for turns of one dialogue
    are not independent. The dialogues had no part in choosing the checkpoint or the penalty (`fitting.halved`).
    """

    edges: Sequence[float]  # (ranges − 1,) of scores
    low: Sequence[float]  # (ranges,) what to add to a score
    high: Sequence[float]
    share: float = 0.9

    @classmethod
    def of(cls, scores: Floats, targets: Floats, *, share: float = 0.9, bins: int = BINS) -> Calibration:
        """From scores and remaining depths of held-out turns."""
        if not 0 < share < 1:
            raise UsageError(f"A share of cases lies between 0 and 1, found {share:g}.")
        has_target = np.isfinite(targets)
        scores, targets = scores[has_target], targets[has_target]
        edges = np.unique(np.quantile(scores, np.linspace(0, 1, bins + 1)[1:-1]))
        place = np.searchsorted(edges, scores, side="right")
        errors = [np.sort(targets[place == one] - scores[place == one]) for one in range(len(edges) + 1)]
        ends = [_ends(one, share) for one in errors]
        return cls(edges.tolist(), [low for low, _ in ends], [high for _, high in ends], share)

    def around(self, score: float) -> tuple[float, float]:
        """Where the remaining depth is to be expected."""
        place = int(np.searchsorted(self.edges, score, side="right"))
        low, high = score + self.low[place], score + self.high[place]
        return max(0.0, low), min(1.0, high)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"edges": list(self.edges), "low": list(self.low), "high": list(self.high), "share": self.share}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Calibration:
        """As JSON held it."""
        try:
            edges, low, high = (list(map(float, given[key])) for key in ("edges", "low", "high"))
            if not (
                len(low) == len(high) == len(edges) + 1 and sorted(edges) == edges and np.isfinite(low + high).all()
            ):
                raise ValueError
            return cls(edges, low, high, float(given["share"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"Expected a calibration with edges, low, high and share, found {given!r:.80}.") from error


def _ends(errors: np.ndarray[Any, Any], share: float) -> tuple[float, float]:
    """The errors between which a new one falls in the share of cases; without enough of them, anything goes."""
    count = len(errors)
    outside = int((count + 1) * (1 - share) / 2 + 1e-9)  # ranks left on each side; 0.05 · 20 is not to be 0
    if outside < 1:
        return -1.0, 1.0
    return float(errors[outside - 1]), float(errors[count - outside])


@dataclass(frozen=True)
class Rule:
    """When to raise the alarm: so many scores in a row, each lower than the one before and all under a limit.

    A score of 0 cannot fall any more, and counts as falling.
    """

    turns: int = 3
    below: float = 0.3

    def __post_init__(self) -> None:
        if self.turns < 1 or not 0 < self.below <= 1:
            found = f"{self.turns}<{self.below:g}"
            raise UsageError(f"An alarm takes 1 turn or more and a score above 0, up to 1, found {found}.")

    def is_met(self, scores: Sequence[float]) -> bool:
        """Whether the last scores say so.

        >>> Rule(3, 0.3).is_met([0.8, 0.29, 0.2, 0.1]), Rule(3, 0.3).is_met([0.31, 0.2, 0.1])
        (True, False)
        """
        last = list(scores)[-self.turns :]
        falls = all(later < earlier or later == 0 for earlier, later in pairwise(last))
        return len(last) == self.turns and falls and all(score < self.below for score in last)


@dataclass(frozen=True)
class Reading:
    """What is known after a turn."""

    turn: int  # its number, from 1
    score: float
    interval: tuple[float, float] | None  # where remaining depth is to be expected, where that was calibrated
    trend: float | None  # change of the score by turn over the last turns; None after the first
    is_alert: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        interval = None if self.interval is None else list(self.interval)
        return {
            "turn": self.turn, "score": self.score, "interval": interval, "trend": self.trend, "alert": self.is_alert,
        }  # fmt: skip


@dataclass(eq=False)
class Monitor:
    """A conversation that is going on.

    >>> monitor = Monitor(load("engaged"))                       # doctest: +SKIP
    >>> monitor.hear("Hi! What did you do today?", speaker="A")  # doctest: +SKIP
    Reading(turn=1, score=0.94, interval=(0.71, 1.0), trend=None, is_alert=False)
    """

    predictor: Predictor
    rule: Rule = field(default_factory=Rule)
    scores: list[float] = field(default_factory=list)
    _outputs: deque[Floats] = field(default_factory=deque)  # of the last turns, as far back as the predictor looks
    _texts: deque[str] = field(default_factory=deque)
    _speaker: str | None = None

    def hear(self, text: str, *, speaker: str | None = None) -> Reading:
        """Take a turn. A speaker who goes on adds to the last one; without speakers, every call is a new turn."""
        settings = self.predictor.settings
        if speaker is not None and speaker == self._speaker:
            self.scores.pop()
            self._outputs.pop()
            text = f"{self._texts.pop()} {text}"
        self._speaker = speaker
        self._texts.append(text)
        while len(self._texts) > settings.history + 1:
            self._texts.popleft()
        reading = " ".join(self._texts) if settings.is_flat else text
        self._outputs.append(self.predictor.outputs([reading]))
        while len(self._outputs) > settings.averaged + 1:
            self._outputs.popleft()
        used = np.concatenate(list(self._outputs))
        score = float(self.predictor.scores(used, np.array([0, len(used)]))[-1])
        self.scores.append(score)
        return self._reading(score)

    def _reading(self, score: float) -> Reading:
        last = np.array(self.scores[-TREND_TURNS:])
        trend = float(np.polyfit(np.arange(len(last)), last, 1)[0]) if len(last) > 1 else None
        calibration = self.predictor.calibration
        interval = None if calibration is None else calibration.around(score)
        return Reading(len(self.scores), score, interval, trend, self.rule.is_met(self.scores))


def rank(predictor: Predictor, context: Dialogue, candidates: Sequence[str]) -> list[tuple[float, str]]:
    """Candidate responses to a context with their scores, the most engaging first; the context is encoded once.

    >>> rank(predictor, ["Hi!"], ["Bye.", "What did you do today?"])   # doctest: +SKIP
    [(0.91, 'What did you do today?'), (0.08, 'Bye.')]
    """
    if not candidates:
        raise UsageError("Give at least one candidate to rank.")
    settings = predictor.settings
    known = list(context)[max(0, len(context) - settings.history) :]
    if settings.is_flat:
        found = predictor.outputs([" ".join([*known, one]) for one in candidates])
        scores = predictor.scores(found, np.arange(len(candidates) + 1))
    else:
        outputs = predictor.outputs([*known, *candidates])
        before, each = outputs[: len(known)], outputs[len(known) :]
        dialogues = [np.concatenate([before, one[None]]) for one in each]
        size = len(known) + 1
        scores = predictor.scores(np.concatenate(dialogues), size * np.arange(len(candidates) + 1))[size - 1 :: size]
    return sorted(zip(scores.tolist(), candidates, strict=True), key=lambda one: -one[0])
