from __future__ import annotations

import numpy as np
import pytest

from dialoscope.metrics import Resampling
from dialoscope.probe.groups import group_scores, mean_ratio
from dialoscope.probe.labels import Hits
from dialoscope.record import Origin

RNG = np.random.default_rng(0)
DIALOGUES = [str(place // 5) for place in range(200)]  # 40 dialogues of five positions
DIFFICULTY = {"a": "easy", "b": "easy", "c": "hard"}


def hits(share: float) -> Hits:
    """One label a position, right with this probability."""
    is_right = (RNG.random(200) < share).astype(np.float64)
    return Hits(np.stack([is_right, 1 - is_right, 1 - is_right], axis=1), None)


OWN = {"a": hits(0.9), "b": hits(0.5), "c": hits(0.2)}


def test_a_group_is_the_mean_of_its_tasks() -> None:
    shares = {name: one.all[:, 0].mean() for name, one in OWN.items()}
    found = group_scores(OWN, DIFFICULTY, dialogues=DIALOGUES, origin=Origin(), resampling=Resampling())
    assert found["easy"].value == pytest.approx((shares["a"] + shares["b"]) / 2)
    assert found["hard"].value == pytest.approx(shares["c"])


def test_means_of_ratios_are_not_ratios_of_means() -> None:
    assert mean_ratio(np.array([[1.0, 2.0, 1.0, 10.0]])).tolist() == [pytest.approx((1 / 2 + 1 / 10) / 2)]


def test_a_group_without_a_task_says_so() -> None:
    found = group_scores(OWN, DIFFICULTY, dialogues=DIALOGUES, origin=Origin(), resampling=Resampling())
    assert (found["medium"].value, found["medium"].reason) == (None, "no medium task was probed")


def test_intervals_of_groups_are_over_dialogues() -> None:
    """Each position ten times over, in its own dialogue, narrows nothing; two tasks vary less than one."""
    often = {name: Hits(np.repeat(one.all, 10, axis=0), None) for name, one in OWN.items()}
    cases = (OWN, DIALOGUES), (often, [one for one in DIALOGUES for _ in range(10)])
    plain, repeated = (
        group_scores(own, DIFFICULTY, dialogues=ids, origin=Origin(), resampling=Resampling()) for own, ids in cases
    )
    assert repeated["easy"].n == 10 * plain["easy"].n == 2000
    low, high = plain["easy"].interval or (0, 0)
    assert 0.02 < high - low < 0.2
    assert low < (plain["easy"].value or 0) < high
    assert repeated["easy"].interval == pytest.approx((low, high), rel=1e-6)
    assert "dialogues:40" in plain["easy"].signature and "group:easy" in plain["easy"].signature


def test_tasks_of_a_dialogue_are_drawn_together() -> None:
    """The same task twice is no more certain than once: a mean over independent draws would be."""
    twice = {"a": OWN["c"], "b": OWN["c"], "c": OWN["c"]}
    found = group_scores(twice, DIFFICULTY, dialogues=DIALOGUES, origin=Origin(), resampling=Resampling())
    assert found["easy"].interval == pytest.approx(found["hard"].interval)


def test_the_group_of_all_tasks_is_their_mean() -> None:
    shares = [one.all[:, 0].mean() for one in OWN.values()]
    found = group_scores(OWN, DIFFICULTY, dialogues=DIALOGUES, origin=Origin(), resampling=Resampling())
    assert found["all"].value == pytest.approx(np.mean(shares))
