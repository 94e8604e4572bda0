"""Responses with and without distractions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distract.fakes import Fake
from tests.distract.test_measure import CASES

from dialoscope.corpus import generate
from dialoscope.distract import BehaveResult, behave
from dialoscope.distract.behave import CUT, NO_ATTENTION, behave_table, respond, scores_of, unread
from dialoscope.distract.result import NO_DISTRACTION, TOO_LONG
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.errors import UsageError
from dialoscope.model.protocol import Attention, Context
from dialoscope.record import Origin, Score, direction
from dialoscope.report.plain import plain


def compared(
    original: Sequence[str | None],
    distracted: Sequence[str | None],
    cases: Sequence[Case],
    ratios: Sequence[float] | None = None,
) -> dict[str, Score]:
    """The numbers of responses that are given."""
    known = np.asarray([np.nan] * len(cases) if ratios is None else ratios)
    return scores_of(behave_table("m", "mine", cases, original, distracted, known, [0] * len(cases)), Origin())


def test_behaviour_by_hand() -> None:
    found = compared(["a b", "same", "x", "y"], ["b c", "same", "z", "y"], CASES, [0.9, 0.1, 0.0, 0.0])
    assert found["changed_share"].value == 0.5  # of the two that got a distraction
    assert found["kept_words"].value == pytest.approx((2 * 1 / 4 + 1) / 2)


def test_responses_are_compared_where_both_were_written() -> None:
    found = compared(["a b", None, "x", "y"], ["b c", "same", None, "y"], CASES)
    assert (found["changed_share"].value, found["changed_share"].n) == (1.0, 1)  # the third got no distraction


def test_words_lost_are_ranked_against_the_das_ratio_by_hand() -> None:
    """Words lost 0, 1/2, 1, 1/3 have ranks 1, 3, 4, 2; the ratios 1, 4, 3, 2: 1 - 6 · (1 + 1) / (4 · 15)."""
    cases = [Case(f"d{n}", 2, ("x", "a", "q"), "r", (0,) if n else ()) for n in range(5)]
    original = ["a b", "a b", "a b", "a b", "a b c"]
    distracted = ["c d", "a b", "a c", "c d", "a b d"]
    found = compared(original, distracted, cases, [5.0, 0.1, 0.9, 0.5, 0.2])  # the first got none
    assert found["change_with_das_ratio"].value == pytest.approx(0.8)
    assert found["change_with_das_ratio"].n == 4
    assert found["changed_share"].value == 0.75
    assert found["kept_words"].value == pytest.approx((1 + 1 / 2 + 0 + 2 / 3) / 4)


def test_responses_to_distractions_that_are_not_read_are_left_out_and_counted() -> None:
    """A window of two turns reads the second context's later distraction, and none of the first one's."""
    cases = [Case("d1", 4, ("x y", "a", "b", "q"), "r", (0,)), Case("d2", 4, ("x", "a", "z", "q"), "r", (0, 2))]
    cases.append(Case("d3", 2, ("x", "q q q q"), "r", (0,)))  # too long
    sets = [
        DistractingSet("original", [each._replace(context=("a", each.context[-1]), distractions=()) for each in cases]),
        DistractingSet("mine", cases),
    ]
    fake = Fake(window=2, longest=3)
    assert unread(fake, cases) == [2, 2, 0]
    result = behave(sets, models={"fake": fake})
    share = result.scores()["fake/mine/changed_share"]
    assert (share.value, share.n) == (1.0, 1)  # it writes the oldest turn that it reads: a, then z
    assert result.counts["skipped"] == {TOO_LONG: 1, CUT: 1}
    assert result.table["is_changed"].to_pylist() == [None, True, None]
    assert result.table["is_distraction_read"].to_pylist() == [False, True, True]
    assert result.example().endswith('"a"\n  becomes\n"z"')


def test_responses_that_were_written_are_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dialoscope.distract.behave"], "AT_ONCE", 3)
    first, second = Fake(longest=1), Fake(longest=1)
    cases = [*CASES, Case("d4", 3, ("a", "x x", "b", "q"), "yes", (1,))]
    whole = respond(first, cases, work=tmp_path)
    assert whole == [None, None, "q", "a", "a"]  # "q q" is too long
    assert respond(second, cases, work=tmp_path) == whole
    assert second.written == []
    other = Fake(longest=1, name="fake@2")  # other weights
    respond(other, cases, work=tmp_path)
    assert other.written == [1, 2]


def test_a_model_without_attention_is_measured_all_the_same() -> None:
    class Blind(Fake):
        def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
            raise UsageError("This model has no attention.")

    sets = ["random-1.0"]
    result = behave(generate(dialogues=30, seed=3), models={"blind": Blind(), "fake": Fake()}, sets=sets)
    found = result.scores()
    assert found["blind/random-1.0/changed_share"] == found["fake/random-1.0/changed_share"]
    assert found["blind/random-1.0/change_with_das_ratio"].reason == NO_ATTENTION
    assert found["fake/random-1.0/change_with_das_ratio"].value is not None


def test_a_result_is_written_whole_and_read_back(tmp_path: Path) -> None:
    corpus = generate(dialogues=60, seed=3)
    models: dict[str, Any] = {"m": Fake(), "narrow": Fake(name="narrow@1", window=2)}
    result = behave(corpus, models=models, sets=["random-0.7", "rare-begin"], limit=5)
    again = BehaveResult.load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
    assert plain(again.section().blocks) == plain(result.section().blocks)
    assert [direction(name) for name in result.scores()][:3] == ["low", "high", "neither"]
    assert all(each.metadata[b"meaning"] for each in again.table.schema)
    assert {verdict.level for verdict in result.verdicts()} <= {"cannot_tell", "not_measurable"}  # it has no control
    assert result.counts["skipped"][NO_DISTRACTION] > 0
    share = result.items()["m/rare-begin/changed_share"]
    assert np.nanmean(share.above) == result.scores()["m/rare-begin/changed_share"].value


def test_behaviour_needs_the_original_set() -> None:
    with pytest.raises(UsageError, match="original test set"):
        behave([DistractingSet("mine", CASES)], models={"m": Fake()})


def test_one_bar_goes_through_responses_and_attention() -> None:
    sets = [DistractingSet("original", CASES[:2]), DistractingSet("mine", CASES)]
    steps: list[tuple[int, int]] = []
    models = {"a": Fake(), "b": Fake(name="b@1")}
    behave(sets, models=models, progress=lambda *step: steps.append(step))
    assert steps == [(2, 20), (6, 20), (10, 20), (12, 20), (16, 20), (20, 20)]
