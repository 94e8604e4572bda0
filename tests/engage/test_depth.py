"""Errors and correlations of remaining depth, worked by hand or by scipy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.engage.baselines import lookup_depth
from dialoscope.engage.depth import cases, measure_depth, shared_dialogues
from dialoscope.engage.examples import Examples, examples
from dialoscope.engage.output import chosen_cases
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.report import depth_table, ends_table
from dialoscope.errors import UsageError
from dialoscope.record import Score


def dialogues(*texts: str) -> Examples:
    made = [
        Dialogue(tuple(Turn("AB"[place % 2], turn) for place, turn in enumerate(text.split("/"))), id=f"d{number}")
        for number, text in enumerate(texts)
    ]
    return examples(Corpus.of(made, name="made"))


HELD_OUT = dialogues(
    "a b/c d/e f/a", "b/c/d e f", "f/e/d c/b/a b c", *(f"a {'b ' * k}/c/d {'e ' * k}" for k in range(9))
)


def test_numbers_are_those_of_scipy_over_all_turns(predictor: Callable[..., Predictor]) -> None:
    one = predictor(history=1)
    found = measure_depth({"mine": one}, HELD_OUT, training=HELD_OUT).models["mine"]
    scores = np.concatenate(one.predict(list(HELD_OUT.dialogues)))
    assert found.mse.value == pytest.approx(100 * np.mean((scores - HELD_OUT.targets) ** 2))
    assert found.pearson.value == pytest.approx(stats.pearsonr(scores, HELD_OUT.targets)[0], abs=1e-6)
    assert found.spearman.value == pytest.approx(stats.spearmanr(scores, HELD_OUT.targets)[0], abs=1e-6)
    assert found.mse.n == len(HELD_OUT.texts)


def test_first_and_last_turns_are_those_at_either_end(predictor: Callable[..., Predictor]) -> None:
    one = predictor()
    found = measure_depth({"mine": one}, HELD_OUT, training=HELD_OUT).models["mine"]
    ends = [(place, k) for length in HELD_OUT.lengths for place, k in [(p, length) for p in range(length)]]
    at = [number for number, (place, length) in enumerate(ends) if place < 1 or place >= length - 1]
    for kind, by_scipy in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        score = found.ends[1][kind]
        assert score.value == pytest.approx(by_scipy(found.scores[at], HELD_OUT.targets[at])[0], abs=1e-6)
        assert score.n == 2 * len(HELD_OUT)
        assert found.to_dict()["first_and_last"]["1"][kind]["value"] == score.value


def width(score: Score) -> float:
    low, high = score.interval or (0.0, 0.0)
    return high - low


def test_intervals_are_over_dialogues(predictor: Callable[..., Predictor], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn four times over, in the dialogue that it is in, makes no interval narrower."""
    repeated = Examples(
        "made", [text for text in HELD_OUT.texts for _ in range(4)], 4 * HELD_OUT.starts, HELD_OUT.targets.repeat(4)
    )
    one = {"mine": predictor()}  # which reads a turn alone
    plain = measure_depth(one, HELD_OUT, training=HELD_OUT).models["mine"]
    monkeypatch.setattr("dialoscope.engage.depth.ENDS", (4, 8, 12))  # four copies of the first and last 1, 2 and 3
    copied = measure_depth(one, repeated, training=HELD_OUT).models["mine"]
    pairs = [(plain.mse, copied.mse), (plain.pearson, copied.pearson), (plain.spearman, copied.spearman)]
    pairs += [(plain.ends[k][kind], copied.ends[4 * k][kind]) for k in (1, 2, 3) for kind in ("pearson", "spearman")]
    for first, second in pairs:
        assert second.n == 4 * first.n
        assert width(first) > 0.01
        assert width(second) == pytest.approx(width(first), rel=1e-6)


def test_very_many_dialogues_are_resampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dialogues(*(f"a/b{number}/c" + "/d" * (number % 3) for number in range(31)))
    drawn = []
    for most in (31, 30):
        monkeypatch.setattr("dialoscope.engage.depth.MANY_DIALOGUES", most)
        monkeypatch.setattr("dialoscope.metrics.bootstrap.MANY_DIALOGUES", 30)  # above which metrics resample
        score = measure_depth({}, given, training=given).baselines["average"].ends[2]["spearman"]
        drawn.append(re.findall(r"resamples:(\d+)", score.signature))
    assert drawn == [["10000"], ["1000"]]


def test_the_page_has_both_correlations_on_the_first_and_last_turns() -> None:
    found = measure_depth({}, HELD_OUT, training=HELD_OUT)
    table = ends_table(found)
    assert [getattr(one, "name", one) for one in table.columns][1:3] == ["Pearson, k = 1", "Spearman, k = 1"]
    (row,) = (row for row in table.rows if row[0] == "average")
    assert list(row[1:3]) == [found.baselines["average"].ends[1][kind] for kind in ("pearson", "spearman")]


def test_the_average_baseline_by_hand() -> None:
    """Training dialogues of 4 turns on average; a held-out one of 3: (4 + 1 − j)/4 against (3 − j)/2."""
    training, held_out = dialogues("a/b/c", "a/b/c/d/e"), dialogues("a/b/c")
    found = measure_depth({}, held_out, training=training).baselines
    assert found["average"].scores.tolist() == [1.0, 0.75, 0.5]
    assert found["average"].mse.value == pytest.approx(100 * (0 + 0.25**2 + 0.5**2) / 3)
    assert found["average_literal"].scores == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_dialogues_that_are_in_both_splits_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Two of four, one of them spelt in another way; turns that are cut elsewhere are another dialogue."""
    training = dialogues("Do n't go ./why ?", "a/b", "c d/e")
    held_out = dialogues("don't go/Why", "a/b", "c/d e", "a/b/c")
    found = measure_depth({}, held_out, training=training)
    assert found.to_dict()["shared"] == 2
    (line,) = caplog.messages
    assert line.startswith("2 of 4 held-out dialogues are in the training split as well")
    assert line in depth_table(found).notes


def test_splits_that_share_no_dialogue_raise_no_word(caplog: pytest.LogCaptureFixture) -> None:
    found = measure_depth({}, dialogues("a/b", "c/d"), training=dialogues("a/d", "c/b"))
    assert (found.to_dict()["shared"], caplog.messages) == (0, [])
    assert not any("held-out" in note for note in depth_table(found).notes)


@pytest.mark.parametrize("known", ["{}", "{}+0a1b2c", "0a1b2c+{}"])
def test_a_predictor_is_not_measured_on_what_it_learnt(predictor: Callable[..., Predictor], known: str) -> None:
    learnt = known.format(HELD_OUT.dialogue_fingerprint)
    one = replace(predictor(), origin={"learnt": {"other": "3d4e5f", "made": learnt}})
    with pytest.raises(UsageError, match=r"'mine' learnt from the very dialogues .* give another --split"):
        measure_depth({"fresh": predictor(), "mine": one}, HELD_OUT, training=HELD_OUT)


def test_the_leak_of_dailydialog_is_worth_0_53_to_a_table_of_texts(data: Path) -> None:
    """Counted and looked up once more, in loops over runs of letters and digits."""
    corpus = load(data / "dailydialog")
    training, held_out = (examples(corpus.split(name)) for name in ("train", "test"))
    first, second = (
        [tuple("".join(re.findall(r"\w+", turn.lower())) for turn in one) for one in part.dialogues]
        for part in (training, held_out)
    )
    known = set(first)
    assert shared_dialogues(training, held_out) == len([one for one in second if one in known]) == 149
    depths: dict[str, list[float]] = {}
    for turn, depth in zip((turn for one in first for turn in one), training.targets.tolist(), strict=True):
        depths.setdefault(turn, []).append(depth)
    expected = [np.mean(depths.get(turn, training.targets)) for one in second for turn in one]
    guess = lookup_depth(training)
    guessed = np.concatenate([guess(one) for one in held_out.dialogues])
    found, by_loops = (stats.pearsonr(one, held_out.targets)[0] for one in (guessed, expected))
    assert found == pytest.approx(0.529, abs=0.001)
    assert found == pytest.approx(by_loops, abs=0.001)


def test_cases_are_the_extremes_each_text_once(predictor: Callable[..., Predictor]) -> None:
    found = measure_depth({"mine": predictor()}, HELD_OUT, training=HELD_OUT).models["mine"]
    chosen = cases(found, HELD_OUT, most=2)
    assert list(chosen) == ["highest", "lowest", "most mistaken"]
    assert chosen["highest"][0].score == found.scores.max()
    assert chosen["lowest"][0].score == found.scores.min()
    worst = chosen["most mistaken"][0]
    assert abs(worst.score - worst.target) == pytest.approx(np.abs(found.scores - HELD_OUT.targets).max())
    assert all(len({one.text for one in some}) == 2 for some in chosen.values())


def test_the_json_has_the_turns_that_the_page_shows(predictor: Callable[..., Predictor]) -> None:
    found = measure_depth({"mine": predictor(), "other": predictor(history=2)}, HELD_OUT, training=HELD_OUT)
    told, shown = found.to_dict()["cases"], chosen_cases(found)
    assert list(told) == ["mine", "other"]
    assert list(told["mine"]) == ["highest", "lowest", "most mistaken"]
    for kind, some in shown.items():
        assert [one["text"] for one in told["mine"][kind]] == [one.text for one in some]
        assert [one["score"] for one in told["mine"][kind]] == [one.score for one in some]
    json.dumps(told)
