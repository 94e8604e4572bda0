from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dialoscope.metrics import Resampling, Significance, compare_correlations, correlate, steiger, williams
from dialoscope.record import Origin


@pytest.mark.parametrize(
    ("first", "second", "between", "n", "t", "tolerance"),
    [
        # the documentation of R's bruceR: cor_diff(r1=0.20, r2=0.45, n=100, rcov=0.80) gives t(97) = -4.56
        (0.20, 0.45, 0.80, 100, -4.56, 0.005),
        # R's cocor (Diedenhofen and Musch 2015), from correlations it prints with four digits: t = -9.0340, df = 643
        (-0.1741, 0.2015, 0.3734, 646, -9.0340, 0.003),
    ],
)
def test_williams_gives_published_values(
    first: float, second: float, between: float, n: int, t: float, tolerance: float
) -> None:
    found = williams(first, second, between, n=n)
    assert found.statistic == pytest.approx(t, abs=tolerance)
    assert found.degrees_of_freedom == n - 3


@pytest.mark.parametrize(
    ("first", "second", "between", "n", "z"),
    [  # R's cocor, "Steiger's (1980) modification of Dunn and Clark's z (1969) using average correlations"
        (-0.1741, 0.2015, 0.3734, 646, -8.6124),
        (0.0228, 0.3522, 0.3718, 553, -7.1345),
        (0.2493, 0.3395, 0.4082, 553, -2.0660),
    ],
)
def test_steiger_gives_published_values(first: float, second: float, between: float, n: int, z: float) -> None:
    assert steiger(first, second, between, n=n).statistic == pytest.approx(z, abs=0.003)


def test_p_values_are_two_sided() -> None:
    assert williams(0.20, 0.45, 0.80, n=100).p_value == pytest.approx(1e-5, abs=5e-6)
    assert steiger(0.2493, 0.3395, 0.4082, n=553).p_value == pytest.approx(0.0388, abs=5e-4)
    assert williams(0.45, 0.20, 0.80, n=100).p_value == pytest.approx(williams(0.20, 0.45, 0.80, n=100).p_value)


def test_of_four_items_williams_has_one_degree_of_freedom() -> None:
    """Student's t with one is Cauchy's: P(|t| > x) = 1 − 2/π arctan x."""
    found = williams(0.20, 0.45, 0.80, n=4)
    assert found.p_value == pytest.approx(1 - 2 / math.pi * math.atan(abs(found.statistic or 0)))


@pytest.mark.parametrize("test", [williams, steiger])
def test_equal_correlations_do_not_differ(test: object) -> None:
    assert callable(test)
    found = test(0.4, 0.4, 0.2, n=50)
    assert (found.statistic, found.p_value) == (0, 1)


@pytest.mark.parametrize("test", [williams, steiger])
@pytest.mark.parametrize(
    ("correlations", "n", "reason"),
    [
        ((1.0, 0.5, 0.5), 50, "must lie between"),
        ((math.nan, 0.5, 0.5), 50, "must lie between"),
        ((0.3, 0.5, 0.5), 3, "at least 4 items"),
        ((0.9, -0.9, 0.9), 50, "no three variables can correlate"),
    ],
)
def test_what_cannot_be_tested_says_why(
    test: object, correlations: tuple[float, float, float], n: int, reason: str
) -> None:
    assert callable(test)
    found = test(*correlations, n=n)
    assert found.p_value is None
    assert reason in found.reason


@pytest.mark.parametrize("test", [williams, steiger])
def test_size_is_five_percent_where_both_correlations_are_equal(test: object) -> None:
    assert callable(test)
    rng = np.random.default_rng(2)
    truth = np.array([[1, 0.5, 0.5], [0.5, 1, 0.3], [0.5, 0.3, 1]])
    p_values = []
    for _ in range(3000):
        r = np.asarray(np.corrcoef(rng.multivariate_normal(np.zeros(3), truth, size=60).T))
        p_values.append(test(r[0, 1], r[0, 2], r[1, 2], n=60).p_value)
    assert 0.03 <= np.mean(np.array(p_values) <= 0.05) <= 0.07


def test_the_bootstrap_difference_is_that_of_the_two_correlations() -> None:
    rng = np.random.default_rng(0)
    people = rng.normal(size=200)
    good, bad = people + rng.normal(size=200), people + rng.normal(0, 4, size=200)
    found = compare_correlations(people, good, bad)
    apart = [correlate(people, one).value or 0 for one in (good, bad)]
    assert found.difference.value == pytest.approx(apart[0] - apart[1])
    assert found.p_value is not None
    assert found.p_value < 0.01


def test_the_bootstrap_agrees_with_williams_on_normal_variables() -> None:
    rng = np.random.default_rng(4)
    people = rng.normal(size=400)
    first, second = people + rng.normal(0, 1.0, size=400), people + rng.normal(0, 1.2, size=400)
    r = np.asarray(np.corrcoef([people, first, second]))
    expected = williams(r[0, 1], r[0, 2], r[1, 2], n=400).p_value
    found = compare_correlations(people, first, second, kind="pearson", resampling=Resampling(20_000)).p_value
    assert found == pytest.approx(expected, abs=0.03)


def test_few_dialogues_give_a_difference_and_an_interval_but_no_p_value() -> None:
    rng = np.random.default_rng(6)
    people, first, second = rng.normal(size=(3, 9))
    found = compare_correlations(people, first, second)
    assert found.p_value is None
    assert found.reason == "the bootstrap needs at least 10 dialogues, found 9"
    assert found.difference.interval is not None


def test_the_signature_tells_how_to_repeat_the_comparison() -> None:
    people, first, second = np.random.default_rng(6).normal(size=(3, 40))
    people[3] = np.nan
    found = compare_correlations(people, first, second, kind="kendall", resampling=Resampling(300, seed=5))
    parts = dict(part.split(":") for part in found.difference.signature.split("|"))
    expected = {"seed": "5", "correlation": "kendall", "test": "bootstrap", "rounds": "300", "skipped": "1"}
    assert expected.items() <= parts.items()
    assert len({parts["people"], *parts["systems"].split("/")}) == 3


@pytest.mark.parametrize("test", [williams, steiger])
def test_a_test_of_given_correlations_has_a_signature(test: Callable[..., Significance]) -> None:
    origin = Origin(corpus="human@3f2a", version="0.1.0")
    signature = f"corpus:human@3f2a|test:{test.__name__}|r:0.2/0.45/0.8|n:100|v:0.1.0"
    assert test(0.20, 0.45, 0.80, n=100, origin=origin).signature == signature


def test_a_constant_metric_cannot_be_compared() -> None:
    found = compare_correlations([1, 2, 3, 4], [1, 1, 1, 1], [1, 2, 4, 3])
    assert found.p_value is None
    assert found.difference.reason == "the second variable is constant, every value is 1"
