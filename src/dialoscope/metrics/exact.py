"""Intervals of shares, and of means at or beside a bound, where leaving out dialogues shows too little of the error.

Of n values that are 0 or 1, k of them 1, the interval of Clopper and Pearson (*The use of confidence or fiducial
limits illustrated in the case of the binomial*, 1934) holds the share of the population at least as often as it says,
also where k is 0 or n. Of values between two bounds of which all, or all but one, lie at one of them, the same interval
for the share of the others gives the far end (a mean of values from 0 to 1 is at most the share that is not 0), and
the near end is the bound itself: wide, but true. Without these, only samples in which something rare happens to occur
twice would have an interval.

Items of one dialogue are alike, so n of them tell less than n. Of values that are 0 or 1, the interval of Korn and
Graubard (*Confidence intervals for proportions with small expected number of positive counts estimated from survey
data*, 1998) is that of Clopper and Pearson for as many independent items as would err by as much. How alike they are
cannot be seen where the rarer value occurs in two dialogues at most: then every dialogue counts as one item, no more.
Dialogues of uneven length count as fewer (Kish, *Survey Sampling*, 1965): long ones decide the share.
"""

from __future__ import annotations

import math

import numpy as np

from dialoscope.metrics.jackknife import Made
from dialoscope.metrics.statistic import FloatArray, Interval, Mean, Statistic

FEW = 2  # dialogues with the rarer value
ROUNDING = 1e-29  # of n², what squares of rounding errors come to


def clopper_pearson(hits: float, n: float, level: float) -> Interval:
    """The shares of which neither so many hits nor so few would be a surprise.

    >>> [round(end, 3) for end in clopper_pearson(2, 10, 0.95)]
    [0.025, 0.556]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    return low, float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0


def exact(statistic: Statistic, level: float) -> Made | None:
    """The interval of 0/1 values, or of a mean of independent items at or beside a bound; None for all else."""
    if not isinstance(statistic, Mean):
        return None
    low, high = _bounds_of(statistic)
    if not math.isfinite(high - low):
        return None
    if statistic.dialogues != statistic.n:
        return _of_dialogues(statistic, level) if statistic.bounds == (0.0, 1.0) else None
    shares = _shares((statistic.values - low) / (high - low), level)
    ends = shares and (low + (high - low) * shares[0], low + (high - low) * shares[1])
    return Made(ends, how={"interval": f"exact-{level:g}"}) if ends else None


def _of_dialogues(statistic: Mean, level: float) -> Made | None:
    if not np.isin(statistic.values, (0.0, 1.0)).all():
        return None
    hits, sizes = statistic.clusters.drawable().totals(statistic.items[statistic.scored]).T
    ends = korn_graubard(hits, sizes, level)
    return Made(ends, how={"interval": f"korn-graubard-{level:g}"})


def korn_graubard(hits: FloatArray, sizes: FloatArray, level: float) -> Interval:
    """The interval of a share over dialogues, from the hits and the items of each.

    >>> [round(end, 3) for end in korn_graubard(np.array([2.0, 0.0, 1.0, 0.0, 1.0]), np.full(5, 4.0), 0.95)]
    [0.027, 0.548]
    """
    from scipy.special import stdtrit

    n, dialogues, tail = sizes.sum(), len(sizes), (1 - level) / 2
    equal = n**2 / np.square(sizes).sum()  # dialogues of one length that would tell as much
    share = hits.sum() / n
    squares = float(np.square(hits - share * sizes).sum())
    if squares <= ROUNDING * n**2:  # every dialogue has the same share: nothing tells how far another would be from it
        worth = equal
    else:
        error = dialogues / (dialogues - 1) * squares / n**2
        worth = share * (1 - share) / error * (stdtrit(n - 1, tail) / stdtrit(max(equal - 1, 1.0), tail)) ** 2
    is_few = min(np.count_nonzero(hits), np.count_nonzero(hits < sizes)) <= FEW
    worth = min(worth, equal if is_few else n)
    return clopper_pearson(share * worth, worth, level)


def _shares(values: FloatArray, level: float) -> Interval | None:
    """The interval of the mean of values from 0 to 1, if so."""
    n, above, at_top = len(values), int((values > 0).sum()), int((values >= 1).sum())
    if above == at_top:
        return clopper_pearson(above, n, level)
    if above == 1:
        return 0.0, clopper_pearson(1, n, level)[1]
    if at_top == n - 1:
        return clopper_pearson(n - 1, n, level)[0], 1.0
    return None


def _bounds_of(statistic: Mean) -> Interval:
    """Those that the mean declares; without any, 0 and 1 for values that are one or the other and not all alike."""
    values = statistic.values
    if statistic.bounds or values.min() == values.max() or not np.isin(values, (0.0, 1.0)).all():
        return statistic.bounds or (-math.inf, math.inf)
    return 0.0, 1.0
