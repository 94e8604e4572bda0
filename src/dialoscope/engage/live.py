"""Live use: a score for each turn as it comes, one encoding each, however long the conversation is."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dialoscope.corpus import Dialogue, Turn
from dialoscope.corpus.turns import INSTRUCTIONS, PROMPTS, conversation
from dialoscope.engage.examples import Ints
from dialoscope.engage.predictors import open_predictor
from dialoscope.engage.protocol import Dialogue as Texts
from dialoscope.engage.protocol import Floats
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor

Errors = np.ndarray[Any, np.dtype[np.float64]]

TREND_TURNS = 5
TOOLS = frozenset(INSTRUCTIONS) - frozenset(PROMPTS)
BINS = 10  # ranges of scores, at most, each with an interval of its own
GROUPS = (1, 2, 3, 4, 6, 9)  # the turns with which groups begin; errors of an opening are not those of a farewell


@dataclass(frozen=True)
class Ranges:
    """What to add to a score, by range of scores, for turns from a number on."""

    turn: int  # the first of the group
    edges: Sequence[float]  # (ranges − 1,) of scores
    low: Sequence[float]  # (ranges,)
    high: Sequence[float]

    @classmethod
    def of(cls, turn: int, scores: Errors, errors: Errors, *, share: float, bins: int) -> Ranges:
        """From the scores of a group's turns and their errors."""
        count = max(1, min(bins, len(scores) // _enough(share)))
        edges = np.unique(np.quantile(scores, np.linspace(0, 1, count + 1)[1:-1]))
        place = np.searchsorted(edges, scores, side="right")
        ends = [_ends(np.sort(errors[place == one]), share) for one in range(len(edges) + 1)]
        return cls(turn, edges.tolist(), [low for low, _ in ends], [high for _, high in ends])

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Ranges:
        """As JSON held it."""
        edges, low, high = (list(map(float, given[key])) for key in ("edges", "low", "high"))
        is_sound = len(low) == len(high) == len(edges) + 1 and sorted(edges) == edges and np.isfinite(low + high).all()
        if not is_sound or type(given["turn"]) is not int:
            raise ValueError
        return cls(given["turn"], edges, low, high)


@dataclass(frozen=True)
class Calibration:
    """How far remaining depth lies from a score, on held-out dialogues: quantiles by the turn's number and its score.

    Within each group of turns and each range of scores, the errors' quantiles are those of split conformal prediction
    (Vovk et al. 2005): an interval holds the remaining depth of a new turn in about that share of cases. It is no
    guarantee, for turns of one dialogue are not independent. The dialogues had no part in choosing the checkpoint or
    the penalty (`fitting.halved`).
    """

    groups: Sequence[Ranges]  # by their first turns, from 1
    share: float = 0.9

    @classmethod
    def of(
        cls, scores: Floats, targets: Floats, positions: Ints, *, share: float = 0.9, bins: int = BINS
    ) -> Calibration:
        """From scores, remaining depths and numbers of held-out turns, the first of a dialogue being 1."""
        if not 0 < share < 1:
            raise UsageError(f"A share of cases lies between 0 and 1, found {share:g}.")
        has_target = np.isfinite(targets)
        # Doubles: in single precision, a score and its own error may add up to a little less than the target.
        exact, wanted = (one[has_target].astype(np.float64) for one in (scores, targets))
        positions, errors = positions[has_target], wanted - exact
        firsts = _firsts(positions, fewest=2 * _enough(share))
        group = np.searchsorted(firsts, positions, side="right") - 1
        parts = [(first, group == place) for place, first in enumerate(firsts)]
        return cls(
            [Ranges.of(first, exact[part], errors[part], share=share, bins=bins) for first, part in parts], share
        )

    def around(self, score: float, turn: int) -> tuple[float, float]:
        """Where the remaining depth is to be expected after a turn of this number and score."""
        ranges = self.groups[bisect_right([one.turn for one in self.groups], turn) - 1]
        place = bisect_right(ranges.edges, score)
        low, high = (min(1.0, max(0.0, score + by[place])) for by in (ranges.low, ranges.high))
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"groups": [asdict(one) for one in self.groups], "share": self.share}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Calibration:
        """As JSON held it."""
        if "edges" in given:
            raise UsageError("Its calibration is of an older form, without the turn's number: fit the predictor anew.")
        try:
            groups = [Ranges.from_dict(one) for one in given["groups"]]
            turns = [one.turn for one in groups]
            if turns[:1] != [1] or turns != sorted(set(turns)):
                raise ValueError
            return cls(groups, float(given["share"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"Expected a calibration with groups and share, found {given!r:.80}.") from error


def _enough(share: float) -> int:
    """Twice the turns of which one lies beyond each end, so that the ends are no extremes: 40 for a share of 0.9."""
    return round(4 / (1 - share))


def _firsts(positions: Ints, *, fewest: int) -> list[int]:
    """Where groups begin; one with too few turns joins the one before it, or as the first one, the next."""
    found: list[int] = []
    count = 0
    for first, after in reversed([*pairwise(GROUPS), (GROUPS[-1], np.inf)]):
        count += int(((first <= positions) & (positions < after)).sum())
        if count >= fewest:
            found.append(first)
            count = 0
    return [GROUPS[0], *reversed(found[:-1])]


def _ends(errors: Errors, share: float) -> tuple[float, float]:
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
class _Talk:
    """The turns of a conversation that is going on, each encoded once."""

    predictor: Predictor
    scores: list[float] = field(default_factory=list)
    outputs: deque[Floats] = field(default_factory=deque)  # of the last turns, as far back as the predictor looks
    texts: deque[str] = field(default_factory=deque)
    speaker: str | None = None

    def take(self, text: str, speaker: str | None) -> None:
        """A speaker who goes on adds to the last turn. A turn that cannot be read changes nothing."""
        settings, goes_on = self.predictor.settings, speaker is not None and speaker == self.speaker
        before = list(self.texts)[: -1 if goes_on else None]
        texts = [*before, f"{self.texts[-1]} {text}" if goes_on else text][-(settings.history + 1) :]
        found = self.predictor.outputs([" ".join(texts) if settings.is_flat else texts[-1]])
        if goes_on:
            self.scores.pop()
            self.outputs.pop()
        self.speaker, self.texts = speaker, deque(texts)
        self.outputs.append(found)
        while len(self.outputs) > settings.averaged + 1:
            self.outputs.popleft()
        used = np.concatenate(list(self.outputs))
        self.scores.append(float(self.predictor.scores(used, np.array([0, len(used)]))[-1]))


class Monitor:
    """A conversation that is going on.

    `predictor` is a path or a loaded predictor.

    >>> monitor = Monitor("engaged")                             # doctest: +SKIP
    >>> monitor.hear("Hi! What did you do today?", speaker="A")  # doctest: +SKIP
    Reading(turn=1, score=0.94, interval=(0.71, 1.0), trend=None, is_alert=False)
    """

    def __init__(self, predictor: Predictor | str | Path, rule: Rule | None = None) -> None:
        self.predictor = open_predictor(predictor)
        self.rule = rule or Rule()
        self._heard: list[tuple[str, str | None]] = []  # texts and speakers, instructions as well
        self._aside: frozenset[str] = frozenset()  # who gave instructions
        self._talk = _Talk(self.predictor)

    @property
    def scores(self) -> list[float]:
        """Of all turns so far."""
        return self._talk.scores

    @overload
    def hear(self, text: str, *, speaker: None = None) -> Reading: ...
    @overload
    def hear(self, text: str, *, speaker: str | None) -> Reading | None: ...
    def hear(self, text: str, *, speaker: str | None = None) -> Reading | None:
        """Take a turn; instructions are none and have no reading (`instructing`).

        A speaker who goes on adds to the last turn; without speakers, every call is a new turn. A turn that cannot be
        read changes nothing. Where it shows that earlier ones were instructions, or were none, these are read again.
        """
        if not isinstance(text, str):
            raise UsageError(f"A turn is a text, found {type(text).__name__}.")
        text = text.encode(errors="replace").decode()  # half a character, where a stream was cut
        aside = instructing([*(name for _, name in self._heard), speaker])
        before = {name for _, name in self._heard}
        talk = self._talk if aside & before == self._aside else self._again(aside)
        if speaker not in aside:
            talk.take(text, speaker)
        self._talk, self._aside = talk, aside
        self._heard.append((text, speaker))
        return None if speaker in aside else self._reading()

    def _again(self, aside: frozenset[str]) -> _Talk:
        talk = _Talk(self.predictor)
        for text, speaker in self._heard:
            if speaker not in aside:
                talk.take(text, speaker)
        return talk

    def _reading(self) -> Reading:
        scores, calibration = self.scores, self.predictor.calibration
        last = np.array(scores[-TREND_TURNS:])
        trend = float(np.polyfit(np.arange(len(last)), last, 1)[0]) if len(last) > 1 else None
        interval = None if calibration is None else calibration.around(scores[-1], len(scores))
        return Reading(len(scores), scores[-1], interval, trend, self.rule.is_met(scores))


def instructing(speakers: Sequence[str | None]) -> frozenset[str]:
    """Who gives instructions, among those who have spoken so far: by the rule of `conversation`, as in every command.

    A conversation that is going on has somebody yet to speak, so that its prompt is one before it is answered, and
    where tools speak, an assistant, who may not have said a word.

    >>> sorted(instructing(["system", "user", "tool"])), sorted(instructing(["user", "system"]))
    (['system', 'tool'], [])
    """
    names = [name or "" for name in speakers]
    roles = {name.lower() for name in set(names)}
    if roles.isdisjoint(INSTRUCTIONS):
        return frozenset()
    to_come = "" if roles.isdisjoint(TOOLS) else "assistant"
    talk = conversation(Dialogue(tuple(Turn(name, "") for name in (*names, to_come))))
    return frozenset(names) - {turn.speaker for turn in talk.turns}


def rank(predictor: Predictor | str | Path, context: Texts, candidates: Sequence[str]) -> list[tuple[float, str]]:
    """Order candidate responses to a context by their scores, the highest first; the context is encoded once.

    `predictor` is a path or a loaded predictor.

    >>> rank("engaged", ["Hi!"], ["Bye.", "What did you do today?"])   # doctest: +SKIP
    [(0.91, 'What did you do today?'), (0.08, 'Bye.')]
    """
    if not candidates:
        raise UsageError("Give at least one candidate to rank.")
    predictor = open_predictor(predictor)
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
