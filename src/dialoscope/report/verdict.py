"""What a number means: the only place that decides between good, concern, cannot tell and not measurable.

A verdict is good or a concern only where the whole interval lies on one side of the limit. Everything else says why it
cannot be told, and a gate on it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dialoscope.record import Score

Level = Literal["good", "concern", "cannot_tell", "not_measurable"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Verdict:
    """A finding in one sentence, with the scores behind it and the baseline that it was held against."""

    level: Level
    text: str
    scores: Sequence[str] = ()  # paths; the first is the number that the sentence is about
    against: str | None = None  # the path of the baseline or control

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"the level of a verdict is one of {', '.join(LEVELS)}; found {self.level!r}")
        object.__setattr__(self, "scores", tuple(self.scores))

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {"level": self.level, "text": self.text, "scores": list(self.scores), "against": self.against}


def judge(
    score: Score,
    name: str,
    *,
    text: str,
    concern_over: float | None = None,
    concern_under: float | None = None,
    margin: float = 0.0,
    against: str | None = None,
) -> Verdict:
    """Judge a number by a limit: a concern where its whole interval is beyond it, good where none of it is.

    An interval that ends within `margin` of the limit, on either side, decides nothing.

    >>> judge(Score(0.2, 100, (0.15, 0.25)), "ratio/test/share_over_0.8", text="20 % leak.", concern_over=0.01).level
    'concern'
    """
    if score.value is None:
        return Verdict("not_measurable", _sentence(score.reason), [name], against)
    if score.interval is None:
        return Verdict("cannot_tell", f"{text} {_without_interval(score)}", [name], against)
    limit = concern_over if concern_over is not None else concern_under
    if limit is None:
        raise ValueError("give concern_over or concern_under")
    low, high = score.interval if concern_over is not None else (-score.interval[1], -score.interval[0])
    limit = limit if concern_over is not None else -limit
    if low > limit + margin:
        return Verdict("concern", text, [name], against)
    if high <= limit - margin:
        return Verdict("good", text, [name], against)
    is_near = low > limit or high <= limit
    limit = concern_over if concern_over is not None else concern_under
    where = f"the limit of {limit:g}"
    reason = _beside(score, where, margin) if is_near else _on_both_sides(score, where)
    return Verdict("cannot_tell", f"{text} {reason}", [name], against)


def undecided(score: Score, name: str, *, text: str, reason: str) -> Verdict:
    """Report a number for which no limit and no control says what is good, and why."""
    if score.value is None:
        return Verdict("not_measurable", _sentence(score.reason), [name])
    return Verdict("cannot_tell", f"{text} {_sentence(reason)}", [name])


def judge_difference(
    difference: Score, name: str, *, better: Literal["high", "low"], text: str, against: str, margin: float = 0.0
) -> Verdict:
    """Judge a number against its baseline, by the difference (number minus baseline) and its interval.

    Good is a difference that lies wholly beyond the margin on the better side. One that lies wholly at or below the
    margin is a concern: the number is not better than its baseline.
    """
    if difference.value is None:
        return Verdict("not_measurable", _sentence(difference.reason), [name], against)
    if difference.interval is None:
        return Verdict("cannot_tell", f"{text} {_without_interval(difference)}", [name], against)
    low, high = difference.interval if better == "high" else (-difference.interval[1], -difference.interval[0])
    if low > margin:
        return Verdict("good", text, [name], against)
    if high <= margin:
        return Verdict("concern", text, [name], against)
    return Verdict("cannot_tell", f"{text} {_on_both_sides(difference, 'no difference')}", [name], against)


def _without_interval(score: Score) -> str:
    reason = score.interval_reason or "none could be computed"
    return f"The number has no interval, which a judgement needs: {reason}."


def _on_both_sides(score: Score, limit: str) -> str:
    assert score.interval is not None
    low, high = score.interval
    return f"Its interval, from {low:.3g} to {high:.3g}, lies on both sides of {limit}."


def _beside(score: Score, limit: str, margin: float) -> str:
    assert score.interval is not None
    low, high = score.interval
    return f"Its interval, from {low:.4g} to {high:.4g}, ends within {margin:g} of {limit}."


def _sentence(reason: str | None) -> str:
    text = (reason or "nothing was measured").rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def judge_count(count: Score, name: str, *, text: str, against: str | None = None, doubt: str | None = None) -> Verdict:
    """Judge on how many of `count.n` tests something succeeds: good is more than half, a concern half or fewer.

    The interval reaches from the tests that surely succeed to those that may. `doubt` is another reason for failing,
    for which nothing is a concern.

    >>> judge_count(Score(11, 18, (11, 14)), "mine/all tasks/tasks_above_baselines", text="11 of 18 tasks.").level
    'good'
    """
    if count.value is None:
        return Verdict("not_measurable", _sentence(count.reason), [name], against)
    if count.interval is None:
        raise ValueError("a count of tests has an interval: those that surely succeed, and those that may")
    surely, perhaps = count.interval
    if surely > count.n / 2:
        return Verdict("good", text, [name], against)
    reason = doubt or f"No test decides on {perhaps - surely:g} tasks"
    if doubt is None and perhaps <= count.n / 2:
        return Verdict("concern", text, [name], against)
    return Verdict("cannot_tell", f"{text} {_sentence(reason)}", [name], against)
