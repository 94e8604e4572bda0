"""Easy, medium and hard tasks: the mean of their scores tells more than one task does (Table 8 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialoscope.metrics import Resampling
from dialoscope.metrics.bootstrap import score
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, ratio
from dialoscope.probe.labels import Answered, f1_parts
from dialoscope.record import Origin, Score

GROUPS = ("easy", "medium", "hard")
ALL = "all"  # the group of all tasks


def group_scores(
    own: Answered, difficulty: Mapping[str, str], *, dialogues: Sequence[str], origin: Origin, resampling: Resampling
) -> dict[str, Score]:
    """The mean F1 of each group's tasks. All tasks of a dialogue are drawn, or left out, together."""
    scores: dict[str, Score] = {}
    for group in (*GROUPS, ALL):
        names = [name for name in own if group in (ALL, difficulty.get(name)) and own[name].all.any()]
        where = origin.having(group=group, tasks=len(names), metric="mean-micro-f1")
        if not names:
            reason = "no task was probed" if group == ALL else f"no {group} task was probed"
            scores[group] = Score.missing(reason, signature=where.signature)
            continue
        items = np.concatenate([np.stack(f1_parts(own[name].all), axis=1) for name in names], axis=1)  # (n, 2 · tasks)
        clusters = Clusters.of(dialogues, n=len(items))
        mean = Sums.over(items, mean_ratio, clusters=clusters, undefined="nothing was asked", bounds=(0.0, 1.0))
        scores[group] = score(mean, resampling=resampling, origin=where)
    return scores


def mean_ratio(sums: FloatArray) -> FloatArray:
    """The mean of several ratios whose parts stand side by side: (rows, 2 · ratios).

    >>> mean_ratio(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([0.625])
    """
    parts = sums.reshape(len(sums), -1, 2)
    return np.asarray(np.mean([ratio(parts[:, column]) for column in range(parts.shape[1])], axis=0))
