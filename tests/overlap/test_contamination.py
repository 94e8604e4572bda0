from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from dialoscope.overlap.contamination import read_hypotheses

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.metrics import Pairs, Resampling
from dialoscope.overlap import OverlapResult, contamination, hypothesis_pairs, measure
from dialoscope.record import Origin

FEW = Resampling(resamples=200)


def result(*ratios: float) -> OverlapResult:
    return OverlapResult(np.array(ratios), np.zeros(len(ratios), dtype=np.int64), n_train=9, origin=Origin())


# Leaked responses are remembered word for word, clean ones are not: "a b" for "a b", "a x" for "a y".
PAIRS = Pairs(["a b"] * 4 + ["a x"] * 6, ["a b"] * 4 + ["a y"] * 6, [f"d{place // 2}" for place in range(10)])
LEAKED = result(*[0.9] * 4, *[0.8] * 6)


def test_each_part_has_the_score_worked_by_hand() -> None:
    found = contamination(LEAKED, PAIRS, metrics=["bleu-1"], threshold=0.8, resampling=FEW)
    scores = {part: score.value for part, score in found.scores["bleu-1"].items()}
    # Words that match: 8 + 6 of 20, 6 of 12, 8 of 8. At exactly 0.8 an item is clean.
    assert scores == pytest.approx({"full": 70.0, "clean": 50.0, "leaked": 100.0})
    assert found.counts == {"full": 10, "clean": 6, "leaked": 4}


def test_whole_dialogues_are_resampled() -> None:
    found = contamination(LEAKED, PAIRS, metrics=["bleu-1"], resampling=FEW)
    assert "|dialogues:5|" in found.scores["bleu-1"]["full"].signature
    assert "[overlap<=0.8]@" in found.scores["bleu-1"]["clean"].signature
    assert "|dialogues:3|" in found.scores["bleu-1"]["clean"].signature


def test_a_part_that_is_too_small_for_an_interval_says_why() -> None:
    found = contamination(LEAKED, PAIRS, metrics=["bleu-1"], resampling=FEW)
    leaked = found.scores["bleu-1"]["leaked"]
    assert leaked.value == pytest.approx(100)
    assert leaked.interval is None
    assert leaked.interval_reason is not None
    assert any(note.startswith("bleu-1, leaked: no interval, for ") for note in found.remarks)


@pytest.mark.parametrize(
    ("ratio", "part", "reason"),
    [(0.5, "leaked", "no sample is over 0.8"), (0.9, "clean", "no sample is at or under 0.8")],
)
def test_an_empty_part_says_so(ratio: float, part: str, reason: str) -> None:
    found = contamination(result(*[ratio] * 10), PAIRS, metrics=["bleu-1", "distinct-1"], resampling=FEW)
    assert [scores[part].reason for scores in found.scores.values()] == [reason, reason]


def test_the_json_has_each_metric_on_each_part() -> None:
    shown = contamination(LEAKED, PAIRS, metrics=["bleu-1", "length"], resampling=FEW).to_dict()
    assert list(shown) == ["threshold", "n", "metrics"]
    assert list(shown["metrics"]) == ["bleu-1", "length"]
    assert list(shown["metrics"]["length"]) == ["full", "clean", "leaked"]
    assert shown["metrics"]["length"]["leaked"]["value"] == 2
    assert shown["metrics"]["length"]["leaked"]["n"] == 4


def test_the_table_has_a_row_for_each_metric_and_a_column_for_each_part() -> None:
    table = contamination(LEAKED, PAIRS, metrics=["bleu-1"], resampling=FEW).table()
    assert [head.name for head in table.heads] == ["metric", "unit", "full (n=10)", "clean (n=6)", "leaked (n=4)"]
    assert table.rows[0][:2] == ("bleu-1", "percent")


def test_shares_of_distinct_words_are_scored_only_where_they_are_asked_for_and_with_a_note() -> None:
    assert set(contamination(LEAKED, PAIRS, resampling=FEW).scores) == {
        "bleu-1",
        "bleu-2",
        "bleu-3",
        "bleu-4",
        "length",
    }
    found = contamination(LEAKED, PAIRS, metrics=["distinct-1", "length"], resampling=FEW)
    note = "distinct-1: falls as responses are added, so parts of different size do not compare."
    assert note in found.notes
    assert note in found.to_dict()["notes"]
    assert note in found.table().notes


def test_dialogues_that_share_an_id_are_resampled_apart() -> None:
    chats = [Dialogue((Turn("A", f"a{n}"), Turn("B", f"b{n}"), Turn("A", "c")), "d1", "test") for n in range(3)]
    pairs = hypothesis_pairs(Corpus.of(chats), ["said"] * 6)
    assert pairs.dialogues is not None
    assert list(pairs.dialogues) == [0, 0, 1, 1, 2, 2]


def test_one_hypothesis_is_needed_for_each_item() -> None:
    with pytest.raises(UsageError, match="3 test samples and 10 hypotheses: expected one for each, in order"):
        contamination(result(0, 0, 0), PAIRS)


def test_hypotheses_stand_beside_the_responses_of_the_test_set() -> None:
    pairs = hypothesis_pairs([("how", "fine"), ("who", "me")], ["good", "you"])
    assert (list(pairs.hypotheses), list(pairs.references)) == (["good", "you"], ["fine", "me"])


def test_texts_have_no_responses_to_score_against() -> None:
    with pytest.raises(UsageError, match="A text has no response to score against: give references"):
        hypothesis_pairs(["a"], ["b"])
    assert list(hypothesis_pairs(["a"], ["b"], references=["c"]).references) == ["c"]


def test_hypotheses_come_from_a_file_in_the_order_of_the_test_set(tmp_path: Path) -> None:
    train, test = [("how are you", "fine thanks")], [("how are you", "fine thanks"), ("who", "me")]
    (tmp_path / "said.txt").write_text("fine thanks\nyou\n")
    pairs = read_hypotheses(test, tmp_path / "said.txt")
    found = contamination(measure(train, test), pairs, metrics=["bleu-1"], resampling=FEW)
    scores = {part: score.value for part, score in found.scores["bleu-1"].items()}
    assert scores == pytest.approx({"full": 100 * 2 / 3, "clean": 0.0, "leaked": 100.0})
    assert not math.isnan(scores["clean"] or 0.0)
