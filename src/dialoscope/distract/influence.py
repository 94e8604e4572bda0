"""What utterances do to a response, since attention need not be what a model acts on.

**Influence**: how far the log-likelihood of the given response falls when one utterance is left out of the context. It
needs no attention, so it can be had of any model that scores responses. The influence ratio is the mean size of that
change for distractions over that for History: 0 for a model that reads past what was put in.

**Behaviour**: whether a model writes something else once distractions are put in, and how much else.

Turns that a model does not read, because they are older than its window, have no influence that could be measured: they
are left out and counted, not taken for turns that change nothing. So are contexts that do not fit at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dialoscope.distract.phrases import words_of
from dialoscope.distract.portions import Portion, kept, portions
from dialoscope.distract.sets import Case
from dialoscope.metrics import Resampling, correlate, mean_score, ratio_score
from dialoscope.model.answers import enough_memory
from dialoscope.model.protocol import Context, DialogueModel, TooLong, log_likelihood_sharing, unread_turns
from dialoscope.record import Origin, Score

AT_ONCE = 256  # cases whose shortened contexts are scored together, and kept as one portion
WRITTEN_AT_ONCE = 512  # cases that are answered together
Progress = Callable[[int, int], None]
Values = np.ndarray[Any, np.dtype[np.float64]]
Found = TypeVar("Found")
Falls = list[float | None]  # of each utterance before the Query; None: the model does not read it


@dataclass(frozen=True, eq=False)
class Influence:
    """How much leaving out a distraction, or a turn of History, changes log p of the response."""

    ratio: Score  # of the mean sizes of the change
    distraction_fall: Score  # nats; below 0 where the response is likelier without
    history_fall: Score
    too_long: int = 0  # contexts that do not fit into the model's window
    cut: int = 0  # contexts whose distractions or History all lie before what the model reads
    turns_cut: int = 0  # turns before what the model reads, of all contexts

    @property
    def left_out(self) -> dict[str, int]:
        """What could not be measured, by name."""
        counts = {"too_long": self.too_long, "cut": self.cut, "turns_cut": self.turns_cut}
        return {f"influence_{name}": count for name, count in counts.items()}

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
    work: Path | None = None,
    progress: Progress | None = None,
) -> Influence:
    """Leave out every utterance before the Query in turn; contexts without both kinds are left out whole.

    With a `work` folder, what was done there before is not done again.
    """
    where, how = origin or Origin(), resampling or Resampling()
    used = _with_both(cases)
    falls: list[Falls | None] = []
    for portion in influence_portions(cases):
        falls += kept(work, model, portion, _fall_table)["falls"].to_pylist()
        if progress is not None:
            progress(len(falls), len(used))
    read = [(case, fall) for case, fall in zip(used, falls, strict=True) if fall is not None]
    both = [(case.dialogue, *_split(case, fall)) for case, fall in read]
    whole = [one for one in both if len(one[1]) and len(one[2])]
    dialogues = [one[0] for one in whole]
    sizes = np.array([[np.abs(part).mean() for part in one[1:]] for one in whole]).reshape(-1, 2)
    means = np.array([[part.mean() for part in one[1:]] for one in whole]).reshape(-1, 2)
    shared: dict[str, Any] = {"clusters": dialogues, "resampling": how}
    return Influence(
        ratio_score(sizes[:, 0], sizes[:, 1], origin=where.having(metric="influence-ratio"), **shared).within(0),
        mean_score(means[:, 0], origin=where.having(metric="distraction-fall"), **shared),
        mean_score(means[:, 1], origin=where.having(metric="history-fall"), **shared),
        too_long=len(used) - len(read),
        cut=len(read) - len(whole),
        turns_cut=sum(one is None for _, fall in read for one in fall),
    )


def influence_portions(cases: Sequence[Case]) -> Iterator[Portion]:
    """The portions that influence is measured in."""
    return portions(_with_both(cases), AT_ONCE, {"what": "influence"})


def _with_both(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.distractions and case.history]


def _fall_table(model: DialogueModel, cases: Sequence[Case]) -> pa.Table:
    return pa.table({"falls": pa.array(_falls(model, cases), pa.list_(pa.float64()))})


def _falls(model: DialogueModel, cases: Sequence[Case]) -> list[Falls | None]:
    """Of each case, how far log p falls without each utterance before the Query; None for one that does not fit."""
    try:
        unread = unread_turns(model, [case.context for case in cases], [case.response for case in cases])
    except TooLong as error:
        return _around(error.parts, cases, partial(_falls, model), None)
    contexts, owners = [], []
    for place, (case, first) in enumerate(zip(cases, unread, strict=True)):
        mine = [case.context, *_shortened(case.context, first)]
        contexts += mine
        owners += [place] * len(mine)
    try:
        with enough_memory(model):
            found = log_likelihood_sharing(model, contexts, [cases[place].response for place in owners], owners)
    except TooLong as error:
        return _around({owners[place] for place in error.parts}, cases, partial(_falls, model), None)
    totals = iter([one.total for one in found])
    return [_fall(len(case.context) - 1, first, totals) for case, first in zip(cases, unread, strict=True)]


def _fall(utterances: int, unread: int, totals: Iterator[float]) -> Falls:
    """From log p after the whole context, and after it without each utterance that is read."""
    whole = next(totals)
    return [None] * unread + [whole - next(totals) for _ in range(utterances - unread)]


def _around(
    long: Collection[int], cases: Sequence[Case], find: Callable[[list[Case]], Sequence[Found]], instead: Found
) -> list[Found]:
    """What is found of each case, once it is known which do not fit: something else for those."""
    rest = iter(find([case for place, case in enumerate(cases) if place not in long]))
    return [instead if place in long else next(rest) for place in range(len(cases))]


def _shortened(context: Context, first: int) -> Iterator[Context]:
    """The context without its turn `first`, without the next, and so on; never without the Query."""
    return (tuple(context[:place]) + tuple(context[place + 1 :]) for place in range(first, len(context) - 1))


def _split(case: Case, falls: Falls) -> tuple[Values, Values]:
    """Falls of the distractions and of History that are read."""
    distraction, history = (
        np.array([fall for place in places if (fall := falls[place]) is not None], dtype=np.float64)
        for places in (case.distractions, case.history)
    )
    return distraction, history


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What distractions do to the responses a model writes."""

    changed: Score  # share of responses that are not the same any more
    kept_words: Score  # overlap of words between the two responses, 1 for the same words
    with_ratio: Score | None  # rank correlation of words lost with the DAS ratio, over contexts
    too_long: int = 0  # contexts that do not fit into the model's window, without or with distractions
    cut: int = 0  # contexts whose distractions all lie before what the model reads

    @property
    def left_out(self) -> dict[str, int]:
        """What could not be measured, by name."""
        return {"behaviour_too_long": self.too_long, "behaviour_cut": self.cut}

    @property
    def scores(self) -> dict[str, Score]:
        """By name."""
        found = {"changed_share": self.changed, "kept_words": self.kept_words}
        return found if self.with_ratio is None else {**found, "change_with_das_ratio": self.with_ratio}


def respond(
    model: DialogueModel, cases: Sequence[Case], *, work: Path | None = None, progress: Progress | None = None
) -> list[str | None]:
    """What a model writes to each context; None for one that does not fit into its window."""
    found: list[str | None] = []
    for portion in response_portions(cases):
        found += kept(work, model, portion, _response_table)["response"].to_pylist()
        if progress is not None:
            progress(len(found), len(cases))
    return found


def response_portions(cases: Sequence[Case]) -> Iterator[Portion]:
    """The portions that responses are written in."""
    return portions(cases, WRITTEN_AT_ONCE, {"what": "responses"})


def _response_table(model: DialogueModel, cases: Sequence[Case]) -> pa.Table:
    return pa.table({"response": pa.array(_written(model, cases), pa.string())})


def _written(model: DialogueModel, cases: Sequence[Case]) -> list[str | None]:
    try:
        with enough_memory(model):
            return [*model.generate([case.context for case in cases])]
    except TooLong as error:
        return _around(error.parts, cases, partial(_written, model), None)


def unread(model: DialogueModel, cases: Sequence[Case]) -> list[int]:
    """How many of each context's oldest turns a model does not read where it answers; none of one too long."""
    try:
        return unread_turns(model, [case.context for case in cases], None)
    except TooLong as error:
        return _around(error.parts, cases, partial(unread, model), 0)


def behaviour(
    original: Sequence[str | None],
    distracted: Sequence[str | None],
    cases: Sequence[Case],
    *,
    unread: Sequence[int] | None = None,
    ratios: npt.ArrayLike | None = None,
    resampling: Resampling | None = None,
    origin: Origin | None = None,
) -> Behaviour:
    """Compare responses to the same contexts without and with distractions; those that got none do not count.

    A response that is None could not be written, and of a context with so many `unread` turns no distraction may be
    read: such contexts are left out and counted.
    """
    where = origin or Origin()
    given = [place for place, case in enumerate(cases) if case.distractions]
    written = {
        place: (one, other)
        for place in given
        if (one := original[place]) is not None and (other := distracted[place]) is not None
    }
    first = unread or [0] * len(cases)
    pairs = {place: pair for place, pair in written.items() if max(cases[place].distractions) >= first[place]}
    dialogues = [cases[place].dialogue for place in pairs]
    shared = np.array([_shared(*pair) for pair in pairs.values()])
    is_changed = np.array([one != other for one, other in pairs.values()], dtype=bool)
    how: dict[str, Any] = {"clusters": dialogues, "resampling": resampling or Resampling()}
    related = None
    if ratios is not None:
        found = np.asarray(ratios, dtype=float)[list(pairs)]
        related = correlate(1 - shared, found, origin=where.having(metric="change-with-das-ratio"), **how)
    return Behaviour(
        mean_score(is_changed, origin=where.having(metric="changed-share"), **how),
        mean_score(shared, origin=where.having(metric="kept-words"), **how).within(0, 1),
        related,
        too_long=len(given) - len(written),
        cut=len(written) - len(pairs),
    )


def _shared(one: str, other: str) -> float:
    """2 |u ∩ v| / (|u| + |v|) of the words; 1 where both have none."""
    mine, theirs = set(words_of(one)), set(words_of(other))
    return 2 * len(mine & theirs) / (len(mine) + len(theirs)) if mine or theirs else 1.0
