"""Errors and correlations of remaining depth, worked by hand or by scipy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.corpus.split import split_evenly
from dialoscope.engage import DepthResult, DepthSettings, depth
from dialoscope.engage.baselines import lookup_depth
from dialoscope.engage.depth import shared_dialogues
from dialoscope.engage.depth_result import cases_of, turns_table
from dialoscope.engage.depth_section import depth_table, ends_table
from dialoscope.engage.examples import Examples, examples
from dialoscope.engage.predictor import Predictor
from dialoscope.errors import UsageError
from dialoscope.record import Origin, Score, direction


def corpus_of(**splits: Sequence[str]) -> Corpus:
    made = [
        Dialogue(tuple(Turn("AB"[place % 2], turn) for place, turn in enumerate(text.split("/"))), f"{split}{n}", split)
        for split, texts in splits.items()
        for n, text in enumerate(texts)
    ]
    return Corpus.of(made, name="made")


def turns_of(*texts: str) -> Examples:
    return examples(corpus_of(all=texts))


TEXTS = ("a b/c d/e f/a", "b/c/d e f", "f/e/d c/b/a b c", *(f"a {'b ' * k}/c/d {'e ' * k}" for k in range(9)))
HELD_OUT = turns_of(*TEXTS)
TALKS = corpus_of(train=TEXTS, test=TEXTS)


def result_of(
    scores: Mapping[str, Any], turns: Examples, baselines: Mapping[str, Any] | None = None, **more: Any
) -> DepthResult:
    """A result of scores that are there already."""
    given: dict[str, Any] = {
        "settings": DepthSettings(), "parts": {"test": len(turns)}, "used": "", "counts": {"skipped": {}},
        "origin": Origin("made@1"), "turns": turns_table(turns, scores, baselines or {}), "part": "test",
        "models": tuple(scores), "controls": (), "baselines": tuple(baselines or {}), "judged": tuple(scores),
        "n_shared": 0, "cases": {}, "conversation": None,
    }  # fmt: skip
    return DepthResult(**given | more)


def test_numbers_are_those_of_scipy_over_all_turns(predictor: Callable[..., Predictor]) -> None:
    one = predictor(history=1)
    found = depth(TALKS, models={"mine": one})
    scores = np.concatenate(one.predict(list(HELD_OUT.dialogues)))
    mse, pearson, spearman = (found.score("mine", number) for number in ("mse", "pearson", "spearman"))
    assert mse.value == pytest.approx(100 * np.mean((scores - HELD_OUT.targets) ** 2))
    assert pearson.value == pytest.approx(stats.pearsonr(scores, HELD_OUT.targets)[0], abs=1e-6)
    assert spearman.value == pytest.approx(stats.spearmanr(scores, HELD_OUT.targets)[0], abs=1e-6)
    assert mse.n == len(HELD_OUT.texts)


def test_first_and_last_turns_are_those_at_either_end(predictor: Callable[..., Predictor]) -> None:
    found = depth(TALKS, models={"mine": predictor()})
    scores = found.predicted("mine")
    ends = [(place, k) for length in HELD_OUT.lengths for place, k in [(p, length) for p in range(length)]]
    at = [number for number, (place, length) in enumerate(ends) if place < 1 or place >= length - 1]
    for kind, by_scipy in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        score = found.scores()[f"mine/first and last 1/{kind}"]
        assert score.value == pytest.approx(by_scipy(scores[at], HELD_OUT.targets[at])[0], abs=1e-6)
        assert score.n == 2 * len(HELD_OUT)


def width(score: Score) -> float:
    low, high = score.interval or (0.0, 0.0)
    return high - low


def test_intervals_are_over_dialogues(predictor: Callable[..., Predictor], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn four times over, in the dialogue that it is in, makes no interval narrower."""
    repeated = Examples(
        "made", [text for text in HELD_OUT.texts for _ in range(4)], 4 * HELD_OUT.starts, HELD_OUT.targets.repeat(4)
    )
    one = predictor()  # which reads a turn alone
    plain, copied = (
        result_of({"mine": np.concatenate(one.predict(list(turns.dialogues)))}, turns) for turns in (HELD_OUT, repeated)
    )
    before = plain.scores()
    monkeypatch.setattr("dialoscope.engage.depth_result.ENDS", (4, 8, 12))  # four copies of the first and last 1, 2, 3
    after = copied.scores()
    pairs = [(before[f"mine/test/{kind}"], after[f"mine/test/{kind}"]) for kind in ("mse", "pearson", "spearman")]
    pairs += [
        (before[f"mine/first and last {k}/{kind}"], after[f"mine/first and last {4 * k}/{kind}"])
        for k in (1, 2, 3)
        for kind in ("pearson", "spearman")
    ]
    for first, second in pairs:
        assert second.n == 4 * first.n
        assert width(first) > 0.01
        assert width(second) == pytest.approx(width(first), rel=1e-6)


def test_very_many_dialogues_are_resampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"a/b{number}/c" + "/d" * (number % 3) for number in range(31)]
    drawn = []
    for most in (31, 30):
        monkeypatch.setattr("dialoscope.engage.depth_result.MANY_DIALOGUES", most)
        monkeypatch.setattr("dialoscope.metrics.bootstrap.MANY_DIALOGUES", 30)  # above which metrics resample
        score = depth(corpus_of(train=texts, test=texts), models={}).scores()["average/first and last 2/spearman"]
        drawn.append(re.findall(r"resamples:(\d+)", score.signature))
    assert drawn == [["10000"], ["1000"]]


def test_the_page_has_both_correlations_on_the_first_and_last_turns() -> None:
    found = depth(TALKS, models={})
    table = ends_table(found)
    assert [getattr(one, "name", one) for one in table.columns][1:3] == ["Pearson, k = 1", "Spearman, k = 1"]
    (row,) = (row for row in table.rows if row[0] == "average")
    assert list(row[1:3]) == [found.scores()[f"average/first and last 1/{kind}"] for kind in ("pearson", "spearman")]


def test_the_average_baseline_by_hand() -> None:
    """Training dialogues of 4 turns on average; a measured one of 3: (4 + 1 − j)/4 against (3 − j)/2."""
    found = depth(corpus_of(train=["a/b/c", "a/b/c/d/e"], test=["a/b/c"]), models={})
    assert found.predicted("average").tolist() == [1.0, 0.75, 0.5]
    assert found.score("average", "mse").value == pytest.approx(100 * (0 + 0.25**2 + 0.5**2) / 3)
    assert found.predicted("average_literal") == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_dialogues_that_are_in_both_splits_are_counted() -> None:
    """Two of four, one of them spelt in another way; turns that are cut elsewhere are another dialogue."""
    training = ["Do n't go ./why ?", "a/b", "c d/e"]
    found = depth(corpus_of(train=training, test=["don't go/Why", "a/b", "c/d e", "a/b/c"]), models={})
    assert found.to_dict()["counts"]["shared_with_training"] == 2
    assert found.shared_note.startswith("2 of 4 measured dialogues are in the training split as well")
    assert found.shared_note in depth_table(found).notes


def test_splits_that_share_no_dialogue_raise_no_word() -> None:
    found = depth(corpus_of(train=["a/d", "c/b"], test=["a/b", "c/d"]), models={})
    assert (found.counts["shared_with_training"], found.shared_note) == (0, "")
    assert not any("measured dialogues" in note for note in depth_table(found).notes)


@pytest.mark.parametrize("known", ["{}", "{}+0a1b2c", "0a1b2c+{}"])
def test_a_predictor_is_not_measured_on_what_it_learnt(predictor: Callable[..., Predictor], known: str) -> None:
    learnt = known.format(HELD_OUT.dialogue_fingerprint)
    one = replace(predictor(), origin={"learnt": {"other": "3d4e5f", "made": learnt}})
    with pytest.raises(UsageError, match=r"'mine' learnt from the very dialogues .* give another --split"):
        depth(TALKS, models={"fresh": predictor(), "mine": one})


@pytest.mark.parametrize(("limit", "learnt_limit"), [(None, 5), (5, None), (4, 5)])
def test_a_limit_hides_nothing_that_was_learnt(
    predictor: Callable[..., Predictor], limit: int | None, learnt_limit: int | None
) -> None:
    learnt = examples(TALKS.split("train")[:learnt_limit]).dialogue_fingerprint
    cut = {} if learnt_limit is None else {"limit": learnt_limit}
    one = replace(predictor(), origin={"learnt": {"made": learnt}, **cut})
    with pytest.raises(UsageError, match="'mine' learnt from the very dialogues"):
        depth(TALKS, models={"mine": one}, split="train", limit=limit)


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
    for turn, remaining in zip((turn for one in first for turn in one), training.targets.tolist(), strict=True):
        depths.setdefault(turn, []).append(remaining)
    expected = [np.mean(depths.get(turn, training.targets)) for one in second for turn in one]
    guess = lookup_depth(training)
    guessed = np.concatenate([guess(one) for one in held_out.dialogues])
    found, by_loops = (stats.pearsonr(one, held_out.targets)[0] for one in (guessed, expected))
    assert found == pytest.approx(0.529, abs=0.001)
    assert found == pytest.approx(by_loops, abs=0.001)


def test_cases_are_the_extremes_each_text_once(predictor: Callable[..., Predictor]) -> None:
    scores = np.concatenate(predictor().predict(list(HELD_OUT.dialogues)))
    chosen = cases_of(scores, HELD_OUT, most=2)
    assert list(chosen) == ["highest", "lowest", "most mistaken"]
    assert chosen["highest"][0].score == scores.max()
    assert chosen["lowest"][0].score == scores.min()
    worst = chosen["most mistaken"][0]
    assert abs(worst.score - worst.target) == pytest.approx(np.abs(scores - HELD_OUT.targets).max())
    assert all(len({one.text for one in some}) == 2 for some in chosen.values())


# --- One result -------------------------------------------------------------------------------------------------------


def test_a_saved_result_is_the_same_when_it_is_loaded(predictor: Callable[..., Predictor], tmp_path: Path) -> None:
    found = depth(TALKS, models={"mine": predictor(), "org/other": predictor(history=2)}, limit=9)
    loaded = DepthResult.load(found.save(tmp_path / "out"))
    assert loaded.to_dict() == found.to_dict() == json.loads(json.dumps(found.to_dict()))
    assert loaded.section().blocks == found.section().blocks
    assert loaded.example() == found.example() != ""
    assert loaded.parts == {"train": 12, "test": 9}
    assert repr(loaded).startswith("<DepthResult made: mine predicts remaining depth with a squared error")


def test_every_score_has_a_direction_and_every_column_a_meaning(predictor: Callable[..., Predictor]) -> None:
    found = depth(TALKS, models={"org/mine": predictor()})
    assert all(len(name.split("/")) == 3 and direction(name) for name in found.scores())
    assert "org_mine/test/mse" in found.scores()
    assert all(field.metadata[b"meaning"] for field in found.table.schema)


@pytest.mark.parametrize("name", ["random", "average", "ours"])
def test_a_model_called_as_a_baseline_keeps_its_scores(name: str) -> None:
    turns = Examples("toy", ["hello", "i like tea", "bye", "hi", "see you"], np.asarray([0, 3, 5]),
                     np.asarray([1, 0.5, 0, 1, 0], np.float32), ids=("a", "b"))  # fmt: skip
    baselines = {"average": np.full(5, 0.25), "random": np.full(5, 0.125)}
    found = result_of({name: np.full(5, 0.5)}, turns, baselines)
    row = found.table.to_pylist()[0]
    assert {key: value for key, value in row.items() if " " in key} == {
        f"score {name}": 0.5,
        "baseline average": 0.25,
        "baseline random": 0.125,
    }
    # Depths are 1, 0.5, 0 and 1, 0: a half errs by 0.25 four times of five.
    assert found.score(name, "mse").value == pytest.approx(100 * 4 * 0.25 / 5)
    others = [f"baseline {other}" if other == name else other for other in baselines]
    assert list(found.subjects) == [name, *others]
    assert found.verdict.against == f"{others[0]}/test/mse"
    items = found.items()
    assert list(items) == [f"{name}/test/mse"]
    assert items[f"{name}/test/mse"].above.tolist() == [25, 0, 25, 25, 25]
    assert list(items[f"{name}/test/mse"].keys) == [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("error", "level"), [(0.0, "good"), (0.5, "concern"), (None, "cannot_tell")], ids=["better", "worse", "as good"]
)
def test_a_verdict_needs_an_interval_on_one_side_of_counting_turns(error: float | None, level: str) -> None:
    turns = turns_of(*(f"a/b{n}/c" for n in range(20)))
    noise = np.random.default_rng(0).normal(0, 0.2, (2, 60))
    counted = np.clip(turns.targets + noise[0], 0, 1)
    own = np.clip(turns.targets + noise[1], 0, 1) if error is None else np.abs(turns.targets - error)
    found = result_of({"mine": own}, turns, {"average": counted})
    assert found.verdict.level == level
    assert "counting turns, without reading a word" in found.verdict.text
    assert "engag" not in found.section().lead.lower().replace("not engagement", "")


def test_nothing_to_measure_is_no_score() -> None:
    found = depth(corpus_of(train=["a/b", "c/d"], test=["a", "b"]), models={})
    assert found.verdict.level == "not_measurable"
    assert all(score.value is None and score.reason for score in found.scores().values())
    assert found.counts["skipped"] == {"a dialogue of fewer than two turns": 2}
    assert not found.section().blocks


# --- One call ---------------------------------------------------------------------------------------------------------


def many_talks(count: int = 60) -> Corpus:
    """Talks that open and end in words of their own."""
    texts = [f"hello there/{'i see, tell me more/' * (n % 4)}{'n ' * (n % 7)}thank you, bye" for n in range(count)]
    return corpus_of(all=texts)


def test_without_models_two_heads_are_fitted_on_the_training_split(bert: Path, tmp_path: Path) -> None:
    corpus = many_talks()
    options: dict[str, Any] = {"encoder": str(bert), "history": 1, "seed": 3}
    found = depth(corpus, work=tmp_path / "vectors", **options)
    assert (found.models, found.controls) == (("history 1", "turn alone"), ("untrained",))
    assert found.parts == {"train": 48, "validation": 6, "test": 6}
    assert [verdict.scores[0] for verdict in found.verdicts()] == ["history 1/test/mse"]
    again = depth(split_evenly(corpus, seed=3), **options)
    assert {name: score.value for name, score in again.scores().items()} == {
        name: score.value for name, score in found.scores().items()
    }
    assert list((tmp_path / "vectors").iterdir())


def test_predictors_are_chosen_by_another_split_where_there_is_no_validation(bert: Path) -> None:
    talks = split_evenly(many_talks(), seed=3)
    corpus = Corpus.of([each._replace(split="mine") if each.split == "validation" else each for each in talks])
    with pytest.raises(UsageError, match=r"has no validation split.* with validation_split \(--validation-split\)\."):
        depth(corpus, encoder=str(bert))
    found = depth(corpus, encoder=str(bert), validation_split="mine", train_limit=4)
    assert found.parts == {"train": 4, "mine": 4, "test": 6}


def test_dialogues_that_share_an_id_are_told_apart(predictor: Callable[..., Predictor]) -> None:
    alike = Corpus.of([each._replace(id="d") for each in TALKS], name="alike")
    found = depth(alike, models={"mine": predictor()}, limit=3)
    names = ["test/d", "test/d~2", "test/d~3"]
    assert list(dict.fromkeys(found.table["dialogue"].to_pylist())) == names
    (items,) = found.items().values()
    assert len(set(items.keys)) == len(items.keys) == len(found.table)


def test_train_and_depth_agree_on_the_fitted_predictor(bert: Path) -> None:
    from dialoscope.engage import train

    corpus = many_talks()
    made = train(corpus, encoder=str(bert), frozen=True, history=1)
    fitted = depth(corpus, encoder=str(bert), history=1).score("history 1", "mse")
    assert depth(corpus, models={"mine": made}).score("mine", "mse").value == pytest.approx(fitted.value)


def test_limits_cut_one_side_each(predictor: Callable[..., Predictor]) -> None:
    found = depth(TALKS, models={"mine": predictor()}, limit=4, train_limit=5)
    assert found.parts == {"train": 5, "test": 4}
    assert "Of training and validation, only the first 5 dialogues each were used." in found.used
    short = depth(TALKS, models={}, most_turns=3)
    assert short.parts == {"train": 10, "test": 10}
    assert short.counts["skipped"] == {"a dialogue of more than 3 messages": 4}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: depth("talks"), "depth measures a Corpus, found str"),  # type: ignore[arg-type]
        (lambda: depth(TALKS, against={"other": TALKS}), "leave out against"),
        (lambda: depth(TALKS, models=["engaged"]), "Give predictors by name"),  # type: ignore[arg-type]
        (lambda: depth(TALKS, models={"mine": 3}), "found int"),
        (lambda: depth(TALKS, histori=3), "Did you mean 'history'"),
        (lambda: depth(TALKS, limit=1.5), "limit takes a whole number"),
        (lambda: depth(TALKS, models={}, split="dev"), "made has no validation split"),
    ],
)
def test_a_wrong_call_is_one_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
