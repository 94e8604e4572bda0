"""Every number knows its origin: `Score` carries n, an interval and a signature.

A signature is short enough for a table's footnote and long enough to run the thing again::

    distinct-2 = 0.4127 [0.4051, 0.4203] n=1000 |corpus:dailydialog@3f2a91c07b1e|seed:7|v:0.1.0

In a result, scores are named by paths of three parts, SUBJECT/PART/NUMBER: what was measured, on which part of the
data, and what the number is. `DIRECTION` says for each kind of number which end of it is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from dialoscope.errors import UsageError

SCHEMA_VERSION = 2  # of result.json; raised when a reader of old files would misread a new one
Direction = Literal["high", "low", "neither"]

# The last part of a path, less a number at its end (share_over_0.8), and which end of it is better.
DIRECTION: dict[str, Direction] = {
    # overlap
    "share_over": "low",
    "identical_share": "low",
    "mean_ratio": "low",
    # attention, influence and behaviour
    "das_ratio": "low",
    "das_ratio_of_means": "low",
    "das_ratio_median": "low",
    "distraction_percent": "low",
    "history_percent": "neither",
    "first_percent": "neither",
    "last_percent": "neither",
    "influence_ratio": "low",
    "distraction_fall": "neither",
    "history_fall": "neither",
    "changed_share": "low",
    "kept_words": "high",
    "change_with_das_ratio": "neither",
    "perplexity": "low",
    # probes
    "f1": "high",
    "f1_without_none": "high",
    "f1_deviation": "neither",  # over runs of one model
    "tasks_above_baselines": "high",
    # remaining depth and ratings
    "mse": "low",
    "pearson": "high",
    "spearman": "high",
    "kendall": "high",
    "partial_given_length": "high",
    "share_of_ceiling": "high",
    # metrics of responses
    **dict.fromkeys(("bleu-1", "bleu-2", "bleu-3", "bleu-4"), "high"),
    **dict.fromkeys(("sentence-bleu-1", "sentence-bleu-2", "sentence-bleu-3", "sentence-bleu-4"), "high"),
    **dict.fromkeys(("bleu-2-overlap", "bleu-4-overlap", "bleu-2-probe", "bleu-2-probe-exchanged"), "high"),
    **dict.fromkeys(("distinct-1", "distinct-2", "distinct-responses"), "high"),
    **dict.fromkeys(("distinct-1-overlap", "distinct-2-overlap"), "high"),
    **dict.fromkeys(("rouge-1", "rouge-2", "rouge-l", "meteor", "meteor-stem"), "high"),
    **dict.fromkeys(("embedding-average", "embedding-extrema", "embedding-greedy"), "high"),
    **dict.fromkeys(("length", "length-ratio"), "neither"),
    **dict.fromkeys(("repetition-2", "repetition-4"), "low"),
}


@cache
def version() -> str:
    """The installed version of Dialoscope."""
    from importlib.metadata import version as installed

    return installed("dialoscope")


@dataclass(frozen=True)
class Origin:
    """What has to be repeated to get the same numbers: corpus, settings, seed, version."""

    corpus: str = ""  # name@fingerprint
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    version: str = field(default_factory=version)

    def having(self, **settings: Any) -> Origin:
        """The same origin with these settings besides, or in the place of its own."""
        return replace(self, settings={**self.settings, **settings})

    @property
    def signature(self) -> str:
        """The origin as one line, in the manner of sacreBLEU: ``key:value`` joined by bars."""
        parts = {"corpus": self.corpus or None, "seed": self.seed, **self.settings, "v": self.version}
        return "|".join(f"{key}:{_word(value)}" for key, value in parts.items() if value is not None)


@dataclass(frozen=True)
class Score:
    """A number with its n, its interval and its signature, or the reason why there is none.

    There is no arithmetic on scores: a sum or a difference would lose where they came from. Compute from
    the items again and make a new score.
    """

    value: float | None
    n: int
    interval: tuple[float, float] | None = None
    signature: str = field(default="", compare=False)  # in a result: the origin and the path
    reason: str | None = None  # why value is None
    interval_reason: str | None = None  # why a value has no interval

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a score is a finite number or says why it is not, found {self.value}")
        if (self.value is None) != (self.reason is not None):
            raise ValueError("a score has either a value or a reason why it has none")
        if self.interval is None:
            return
        if self.value is None or self.interval_reason is not None:
            raise ValueError("an interval belongs to a value, and leaves no reason why there is none")
        low, high = self.interval
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"an interval has two finite ends in order, found [{low}, {high}]")

    def within(self, least: float, most: float = math.inf) -> Score:
        """The same, with an interval that does not reach beyond what such a number can be."""
        if self.interval is None:
            return self
        low, high = self.interval
        return replace(self, interval=(max(least, low), min(most, high)))

    @classmethod
    def missing(cls, reason: str, *, n: int = 0, signature: str = "") -> Score:
        """A score that could not be computed, and why."""
        return cls(None, n, signature=signature, reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON has it; the reason says why there is no value or, beside a value, why no interval."""
        interval = list(self.interval) if self.interval else None
        return {"value": self.value, "n": self.n, "interval": interval, "reason": self.reason or self.interval_reason}

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any], *, signature: str = "") -> Score:
        """The score that `to_dict` wrote."""
        value, interval = shown["value"], shown.get("interval")
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        name = "reason" if value is None else "interval_reason"
        return cls(value, int(shown["n"]), ends, signature, **{name: shown.get("reason")})

    def __str__(self) -> str:
        if self.value is None:
            return f"not computed: {self.reason}"
        interval = f" [{self.interval[0]:.4g}, {self.interval[1]:.4g}]" if self.interval else ""
        return f"{self.value:.4g}{interval} n={self.n}" + (f" |{self.signature}" if self.signature else "")


Scores = dict[str, Score]  # path -> score


def path(subject: str, part: str, number: str) -> str:
    """The path of a score. A `/` within a part becomes `_`, so that a path always has three parts.

    >>> path("org/model", "random-0.7", "das_ratio")
    'org_model/random-0.7/das_ratio'
    """
    return "/".join(each.replace("/", "_") for each in (subject, part, number))


def by_path(named: Iterable[tuple[tuple[str, str, str], Score]]) -> Scores:
    """Scores by their paths; two that would share a path are refused."""
    scores: Scores = {}
    for parts, score in named:
        name = path(*parts)
        if name in scores:
            raise UsageError(f"Two numbers would be called '{name}': give the models or labels other names.")
        scores[name] = score
    return scores


def direction(name: str) -> Direction:
    """Which end of a number is better, by its path.

    >>> direction("ratio/test/share_over_0.8")
    'low'
    """
    last = name.rpartition("/")[2]
    kind = last if last in DIRECTION else re.sub(r"_[0-9.]+$", "", last)
    if kind not in DIRECTION:
        raise ValueError(f"record.DIRECTION does not say which end of '{last}' is better")
    return DIRECTION[kind]


def _word(value: Any) -> str:
    """A setting's value in a signature; bars and blanks would break the line's grammar."""
    return "_".join(str(value).replace("|", "/").split())
