"""How far the log-likelihood of a response falls without each turn of its context."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distract.fakes import Fake
from tests.distract.test_measure import CASES

from dialoscope.corpus import generate
from dialoscope.distract import InfluenceResult, influence
from dialoscope.distract.influence import CUT, TURNS_CUT
from dialoscope.distract.result import NO_DISTRACTION, NO_HISTORY, TOO_LONG
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.model.protocol import Context, Likelihood
from dialoscope.record import Score, direction
from dialoscope.report.plain import plain


def result_of(model: Fake, cases: Sequence[Case] = CASES, **options: Any) -> InfluenceResult:
    return influence([DistractingSet("mine", cases)], models={"m": model}, **options)


def scores_on(result: InfluenceResult) -> dict[str, Score]:
    """The numbers by their last parts."""
    return {key.removeprefix("m/mine/"): score for key, score in result.scores().items()}


def test_influence_by_hand() -> None:
    """Leaving a turn out raises log p, minus the words of the context, by its words: falls are below 0."""
    result = result_of(Fake())
    found = scores_on(result)
    assert found["distraction_fall"].value == pytest.approx(-(1 + 3) / 2)
    assert found["history_fall"].value == pytest.approx(-(1.5 + 1) / 2)
    assert found["influence_ratio"].value == pytest.approx((1 + 3) / (1.5 + 1))
    assert found["influence_ratio"].n == 2
    assert result.counts["skipped"] == {NO_HISTORY: 1, NO_DISTRACTION: 1}
    assert [direction(name) for name in result.scores()] == ["low", "neither", "neither"]


def test_influence_leaves_out_what_is_not_read_and_counts_it() -> None:
    cases = [
        # Three turns are read: x, c and the Query, 1 + 1 + 2 words. Without x or c, "a b" comes back in their place:
        # 2 + 1 + 2 words, a fall of 1. "a b" itself is not read; as a turn without influence it would halve the mean.
        Case("d1", 3, ("a b", "x", "c", "q q"), "yes", (1,)),
        Case("d2", 3, ("a", "b b", "x x x", "q"), "no", (2,)),  # 6 words are read; without b b 5, without x x x 4
        Case("d3", 4, ("x y", "a", "b", "q"), "r", (0,)),  # its distraction is not read
        Case("d4", 2, ("a", "x", "q"), "r", (1,)),  # all is read: without a or x one word less
        Case("d5", 2, ("a", "x", "q q q q"), "r", (1,)),  # too long
    ]
    fake = Fake(window=3, longest=3)
    result = result_of(fake, cases)
    found = scores_on(result)
    assert found["distraction_fall"].value == pytest.approx((1 - 2 - 1) / 3)
    assert found["history_fall"].value == pytest.approx((1 - 1 - 1) / 3)
    assert found["influence_ratio"].value == pytest.approx((1 + 2 + 1) / (1 + 1 + 1))
    assert found["influence_ratio"].n == 3
    assert result.counts["skipped"] == {TOO_LONG: 1, CUT: 1, TURNS_CUT: 3}
    assert fake.scored == [3 + 3 + 3 + 3]  # a whole context, and two turns that can be left out, of each that fits
    assert result.table["unread_turns"].to_pylist() == [1, 1, 1, 0, 0]
    assert result.table["is_too_long"].to_pylist() == [False] * 4 + [True]


def test_influence_shares_what_contexts_begin_with_where_a_model_can() -> None:
    @dataclass
    class Sharing(Fake):
        groups: list[int] = field(default_factory=list)

        def log_likelihood_sharing(
            self, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
        ) -> list[Likelihood]:
            self.groups += groups
            assert [contexts[groups.index(group)] for group in sorted(set(groups))] == [
                case.context for case in CASES[:2]
            ]
            return super().log_likelihood(contexts, responses)

    fake = Sharing()
    assert result_of(fake).to_dict() == result_of(Fake()).to_dict()
    assert fake.groups == [0] * 4 + [1] * 3  # a whole context first, then without each turn before the Query


def test_influence_of_nothing_that_is_read_says_why_there_is_none() -> None:
    result = result_of(Fake(longest=0))
    found = scores_on(result)["influence_ratio"]
    assert (found.value, found.reason) == (None, "no context has both History and a distraction that the model reads")
    assert result.verdict.level == "not_measurable"
    assert "has both History and a distraction that the model reads" in result.verdict.text
    assert result.counts["skipped"][TOO_LONG] == 2


def test_influence_that_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dialoscope.distract.influence"], "AT_ONCE", 1)
    first, second = Fake(longest=1), Fake(longest=1)
    cases = [*CASES, Case("d4", 3, ("a", "x x", "b", "q"), "yes", (1,))]
    whole = result_of(first, cases, work=tmp_path)
    assert whole.counts["skipped"] == {NO_HISTORY: 1, NO_DISTRACTION: 1, TOO_LONG: 2}
    assert scores_on(whole)["influence_ratio"].value == pytest.approx(2 / 1)
    again = result_of(second, cases, work=tmp_path)
    assert (second.scored, again.to_dict()) == ([], whole.to_dict())
    next(tmp_path.glob("*.parquet")).unlink()  # as if interrupted in between
    assert result_of(Fake(longest=1), cases, work=tmp_path).to_dict() == whole.to_dict()


def test_intervals_are_over_dialogues() -> None:
    """Each dialogue's contexts three times over tell nothing new: no interval narrows."""
    rng = np.random.default_rng(0)

    def said(most: int) -> str:
        return " ".join(["w"] * int(rng.integers(1, most)))

    once = [
        Case(f"d{place // 2}", place, (said(6), said(9), said(4), "q"), said(5), (int(rng.integers(0, 3)),))
        for place in range(24)
    ]
    copies = [case._replace(turn=case.turn + 100 * copy) for case in once for copy in range(3)]
    alone, thrice = (scores_on(result_of(Fake(), cases)) for cases in (once, copies))
    for key, score in alone.items():
        assert score.interval is not None
        assert thrice[key].interval == pytest.approx(score.interval), key


def test_items_are_the_sizes_of_the_change_by_distractions_and_by_history() -> None:
    items = result_of(Fake()).items()["m/mine/influence_ratio"]
    assert (list(items.keys), items.above.tolist(), items.below.tolist()) == (
        [("d1", "3"), ("d2", "2")],
        [1.0, 3.0],
        [1.5, 1.0],
    )


def test_a_result_is_written_whole_and_read_back(tmp_path: Path) -> None:
    corpus = generate(dialogues=60, seed=3)
    models = {"m": Fake(), "narrow": Fake(name="narrow@1", window=2)}
    result = influence(corpus, models=models, sets=["random-1.0", "rare-end"], limit=5)
    again = InfluenceResult.load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
    assert plain(again.section().blocks) == plain(result.section().blocks)
    assert result.scores()["m/rare-end/influence_ratio"].value
    assert all(each.metadata[b"meaning"] for each in again.table.schema)
    assert "(1 = cannot tell them apart, 0 = not at all)" in result.verdict.text


def test_one_bar_goes_over_all_models_and_sets() -> None:
    steps: list[tuple[int, int]] = []
    models = {"a": Fake(), "b": Fake(name="b@1")}
    sets = [DistractingSet("one", CASES), DistractingSet("other", CASES[1:])]
    influence(sets, models=models, progress=lambda *step: steps.append(step))
    assert steps == [(2, 6), (3, 6), (5, 6), (6, 6)]  # contexts with both kinds of turns
