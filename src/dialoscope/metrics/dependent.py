"""Do two metrics correlate differently with the same human scores? Tests for correlations that share a variable.

Both metrics were measured on the same items, so their correlations with people are not independent, and a test
for independent correlations would be wrong. Williams' t (1959) in the form that Steiger recommends (equation 7
of "Tests for comparing elements of a correlation matrix", Psychological Bulletin 87, 1980), and Steiger's own z
with the pooled correlation (equations 3, 11 and 14 there). Both were derived for Pearson's correlation of
normal variables; for ranks, or where turns come from the same dialogues, `compare_correlations` bootstraps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy.typing as npt

from dialoscope.metrics.bootstrap import DEFAULT, Resampling, unstated
from dialoscope.metrics.correlation import Correlation, correlation, of_kind
from dialoscope.metrics.paired import Comparison, ResampledDifference, score_difference
from dialoscope.metrics.statistic import Ids, columns, fingerprint
from dialoscope.record import Origin

FEWEST = 4  # one degree of freedom for Williams' t


@dataclass(frozen=True)
class Significance:
    """A test statistic and its two-sided p-value, or the reason why there is none."""

    test: str
    statistic: float | None
    p_value: float | None
    n: int
    degrees_of_freedom: int | None = None
    reason: str | None = None
    signature: str = ""


def williams(first: float, second: float, between: float, *, n: int, origin: Origin | None = None) -> Significance:
    """Williams' t for r(x, first) against r(x, second), where `between` is r(first, second); n − 3 degrees of freedom.

    t = (r12 − r13) sqrt((n − 1)(1 + r23) / (2 |R| (n − 1)/(n − 3) + ((r12 + r13)/2)² (1 − r23)³))
    """
    from scipy.stats import t as student

    signature = _sign("williams", first, second, between, n, origin)
    if reason := _refuse(first, second, between, n):
        return Significance("williams", None, None, n, reason=reason, signature=signature)
    determinant = _determinant(first, second, between)
    spread = 2 * (n - 1) / (n - 3) * determinant + ((first + second) / 2) ** 2 * (1 - between) ** 3
    t = (first - second) * math.sqrt((n - 1) * (1 + between) / spread)
    return Significance("williams", t, 2 * float(student.sf(abs(t), n - 3)), n, n - 3, signature=signature)


def steiger(first: float, second: float, between: float, *, n: int, origin: Origin | None = None) -> Significance:
    """Steiger's z for r(x, first) against r(x, second), where `between` is r(first, second).

    z = (Z12 − Z13) sqrt((n − 3) / (2 − 2c)) with Fisher's Z and the covariance c of two such Z, both
    correlations taken as their mean m: c = (r23 (1 − 2m²) − m² (1 − 2m² − r23²)/2) / (1 − m²)².
    """
    from scipy.special import ndtr

    signature = _sign("steiger", first, second, between, n, origin)
    if reason := _refuse(first, second, between, n):
        return Significance("steiger", None, None, n, reason=reason, signature=signature)
    mean = ((first + second) / 2) ** 2
    covariance = (between * (1 - 2 * mean) - mean * (1 - 2 * mean - between**2) / 2) / (1 - mean) ** 2
    z = (math.atanh(first) - math.atanh(second)) * math.sqrt((n - 3) / (2 - 2 * covariance))
    return Significance("steiger", z, 2 * float(ndtr(-abs(z))), n, signature=signature)


def compare_correlations(
    people: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    kind: str = "spearman",
    clusters: Ids | None = None,
    resampling: Resampling = DEFAULT,
    origin: Origin | None = None,
) -> Comparison:
    """Correlation of people with the first metric, minus that with the second, on the same draws of dialogues.

    Items without all three values are left out. Below 10 dialogues there is a difference with its interval, but no
    p-value by the bootstrap, and up to 60 dialogues it is larger than it should be; `williams` gives one where the
    items are independent.
    """
    variables = columns(people, first, second)
    used, skipped = correlation(people, first, kind=kind, given=[second], clusters=clusters)
    sides = [Correlation(used.variables[[0, metric]], used.clusters, kind) for metric in (1, 2)]
    return score_difference(
        ResampledDifference(*sides),
        test="bootstrap",
        resampling=resampling,
        origin=of_kind(origin, kind),
        skipped=skipped,
        systems="/".join(fingerprint(one) for one in variables[1:]),
        people=fingerprint(variables[0]),
    )


def _sign(test: str, first: float, second: float, between: float, n: int, origin: Origin | None) -> str:
    origin = origin or unstated()
    said = {**origin.settings, "test": test, "r": f"{first:.6g}/{second:.6g}/{between:.6g}", "n": n}
    return replace(origin, settings=said).signature


def _refuse(first: float, second: float, between: float, n: int) -> str | None:
    if not all(math.isfinite(r) and abs(r) < 1 for r in (first, second, between)):
        return f"correlations must lie between -1 and 1, found {first:g}, {second:g} and {between:g}"
    if n < FEWEST:
        return f"the test needs at least {FEWEST} items, found {n}"
    if _determinant(first, second, between) <= 0:
        return f"no three variables can correlate by {first:g}, {second:g} and {between:g}"
    return None


def _determinant(first: float, second: float, between: float) -> float:
    return 1 - first**2 - second**2 - between**2 + 2 * first * second * between
