from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.overlap import OverlapResult, OverlapSettings, measure, pairs
from dialoscope.record import direction


def corpus_of(*dialogues: tuple[str, ...], split: str = "all") -> Corpus:
    made = [
        Dialogue(tuple(Turn("A", text) for text in texts), f"d{place}", split) for place, texts in enumerate(dialogues)
    ]
    return Corpus.of(made)


def sides(train: Sequence[tuple[str, ...]], test: Sequence[tuple[str, ...]]) -> Corpus:
    return Corpus.of([*corpus_of(*train, split="train"), *corpus_of(*test, split="test")])


def test_a_sample_overlaps_by_the_least_of_its_parts_and_the_most_over_training() -> None:
    corpus = Corpus.of_pairs([("a b", "c d e f"), ("a", "x y")], [("a b", "c d e")])
    # With the first: context 2·2/4 = 1, response 2·3/(3+4) = 6/7. With the second: context 2/3, response 0.
    result = measure(corpus)
    assert (result.ratio.tolist(), result.match.tolist()) == ([6 / 7], [0])


def test_texts_have_one_part_only() -> None:
    result = measure(Corpus.of_texts(["a b c d", "x"], ["a b c e", "y", "X !"]))
    assert result.unit == "dialogue"
    assert (result.ratio.tolist(), result.match.tolist()) == ([0.75, 0.0, 1.0], [0, -1, 1])
    assert result.table["match_id"].to_pylist() == ["train-1", None, "train-2"]


@pytest.mark.parametrize(
    ("unit", "ratios", "partners"),
    [
        # {a b c d} with {a b c e}: 6/8; {x} overlaps with nothing.
        ("dialogue", [0.75, 0.75, 0.0], ["d1", "d0", None]),
        # "a b" twice; "c d" and "c e" share c: 2/4; "x" alone.
        ("turn", [1.0, 0.5, 1.0, 0.5, 0.0], ["d1#1", "d1#2", "d0#1", "d0#2", None]),
        # contexts are the same, responses overlap by 1/2; d2 has no response.
        ("sample", [0.5, 0.5], ["d1#2", "d0#2"]),
    ],
)
def test_within_a_corpus_a_unit_is_compared_with_the_rest(
    unit: str, ratios: list[float], partners: list[str | None]
) -> None:
    result = measure(corpus_of(("a b", "c d"), ("a b", "c e"), ("x",)), unit=unit)
    assert (result.unit, result.is_within, result.ratio.tolist()) == (unit, True, ratios)
    assert result.table["match_id"].to_pylist() == partners


def test_the_limit_cuts_what_is_measured_and_not_what_it_is_compared_with() -> None:
    dialogues = [("a b", "c"), ("d e", "f"), ("d e", "f")]
    cut = measure(sides(dialogues, [("x", "y"), ("d e", "f")]), limit=1)
    assert (cut.parts, len(cut.ratio), cut.counts["units"]["reference"]) == ({"train": 3, "test": 1}, 1, 3)
    within = measure(corpus_of(*dialogues), limit=2)  # the second matches the third, which is not measured
    assert (within.ratio.tolist(), within.match.tolist()) == ([0.0, 1.0], [-1, 2])


def test_a_split_that_is_compared_with_itself_has_no_unit_that_matches_itself() -> None:
    corpus = sides([("a", "b"), ("c", "d"), ("a", "b")], [("a", "b")])
    for options in ({"split": "train"}, {"split": "train", "train_split": "train"}):
        result = measure(corpus, **options)  # type: ignore[arg-type]
        assert (result.is_within, result.parts, result.ratio.tolist()) == (True, {"train": 3}, [1.0, 0.0, 1.0])


def test_units_are_samples_between_splits_and_dialogues_within_one_or_of_single_turns() -> None:
    two = [("a", "b"), ("c", "d")]
    assert (measure(sides(two, two)).unit, measure(corpus_of(*two)).unit) == ("sample", "dialogue")
    assert measure(sides([("a",)], [("a",)])).unit == "dialogue"


def test_longer_contexts_are_measured_where_asked() -> None:
    corpus = sides([("a", "b", "c")], [("x", "b", "c")])
    # One turn of context: the sample b -> c is identical. Two turns: {a b} and {x b} overlap by 1/2.
    one, two = (measure(corpus, context_turns=turns).ratio.tolist() for turns in (1, 2))
    assert (one, two) == ([0.0, 1.0], [0.0, 0.5])


def test_benchmarks_are_compared_with_the_training_split() -> None:
    corpus = sides([("a b", "c d")], [("x", "y")])
    own, other = corpus_of(("a b", "c d"), ("a b", "c e")), sides([("a b", "c d")], [("q", "r")])
    result = measure(corpus, against={"own": own, "org/other": other})
    assert result.parts == {"train": 1, "own": 2, "org_other": 1}  # of a benchmark with splits, the test split
    assert result.table["part"].to_pylist() == ["own", "own", "org_other"]
    assert result.ratio.tolist() == [1.0, 0.5, 0.0]
    assert result.share_over(0.8, "own").value == 0.5
    assert [verdict.scores[0] for verdict in result.verdicts()] == [
        "ratio/own/share_over_0.8",
        "ratio/org_other/share_over_0.8",
    ]


def test_a_benchmark_without_a_test_split_is_refused_and_not_measured_whole() -> None:
    corpus = sides([("a b", "c d")], [("x", "y")])
    turns = (Turn("", "a b"), Turn("", "c d"))
    unmeasured = Corpus.of([Dialogue(turns, split=split) for split in ("train", "validation")], name="bench")
    with pytest.raises(UsageError, match=r"^bench has no test split\. Found: train, validation\. .* \(--split\)\.$"):
        measure(corpus, against={"bench": unmeasured})
    assert measure(corpus, against={"bench": unmeasured}, split="dev").parts == {"train": 1, "bench": 1}


def test_a_missing_training_split_names_the_option_that_helps() -> None:
    corpus = Corpus.of([Dialogue((Turn("", "a"),), split=split) for split in ("validation", "test")])
    with pytest.raises(UsageError, match=r"has no train split.*\(--train-split\), or give --train FILE\.$"):
        measure(corpus, against={"own": Corpus.of_texts(["a"])})


def test_a_limit_does_not_change_the_unit() -> None:
    measured = [(Turn("", "a"),), (Turn("", "a"), Turn("", "b"))]
    rows = [("train", (Turn("", "a"),)), *(("test", turns) for turns in measured)]
    corpus = Corpus.of([Dialogue(turns, split=split) for split, turns in rows])
    assert [measure(corpus, limit=limit).unit for limit in (None, 1)] == ["sample", "sample"]
    assert measure(corpus.split("train"), against={"own": corpus}, limit=1).unit == "sample"


# --- A score over nothing is null -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("corpus", "options", "reason"),
    [
        # Single prompts that stand word for word in training have no response.
        (sides([("a b", "c")], [("a b",)]), {}, "no measured dialogue has a response; --unit turn compares every turn"),
        (sides([("a b",)], [("a b", "c")]), {}, "no dialogue to compare with has a response; --unit turn compares"),
        (sides([("a b",)], [("a b",)]), {"unit": "sample"}, "no measured dialogue has a response"),
        (Corpus.of_texts(["a b"], ["!", ""]), {}, "no measured dialogue has words"),
        (Corpus.of_texts([".", "?"], ["a", "b"]), {}, "no dialogue to compare with has words"),
        (Corpus.of_pairs([("a", "b")], [("a", "!")]), {}, "no measured sample has words"),
        (corpus_of(("a",), ("b",)), {"unit": "sample"}, "no measured dialogue has a response"),
    ],
)
def test_what_cannot_be_compared_has_no_number_and_a_reason(
    corpus: Corpus, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    result = measure(corpus, **options)
    assert {score.value for score in result.scores().values()} == {None}
    assert all((score.reason or "").startswith(reason) for score in result.scores().values())
    assert result.verdict.level == "not_measurable"
    again = OverlapResult.load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
    assert all(row[2] is None for row in result.summary().rows)


def test_single_prompts_are_compared_turn_by_turn_where_asked() -> None:
    result = measure(sides([("a b", "c")], [("a b",)]), unit="turn")
    assert result.ratio.tolist() == [1.0]


def test_one_part_that_is_not_measurable_leaves_the_other() -> None:
    corpus = corpus_of(("a b", "c"), ("d", "e"))
    result = measure(corpus, against={"prompts": corpus_of(("a b",)), "chats": corpus_of(("a b", "c"))})
    assert [verdict.level for verdict in result.verdicts()] == ["not_measurable", "cannot_tell"]
    assert result.counts["skipped"] == {"a dialogue without a response": 1}


def test_everything_that_was_not_measured_is_counted_by_reason() -> None:
    corpus = sides([("a", "b")], [("a", "b"), ("c",), ("!", "d")])
    read = replace(corpus, skipped={"expected a list": 2}, ignored={"LICENSE": "not a data file"})
    counts = measure(read).counts
    assert counts["skipped"] == {
        "expected a list": 2,
        "a file was not read: not a data file": 1,
        "a dialogue without a response": 1,
    }
    assert counts["units"] == {"test": 2, "reference": 1}
    assert counts["without_words"] == {"test": 1}


# --- Mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"a": 1}, {}, "overlap compares corpora, found dict. Load it with dialoscope.load, or make one of lists"),
        (corpus_of(("a", "b")), {"models": {"m": "x"}}, "overlap asks no models"),
        (corpus_of(("a", "b")), {"against": corpus_of(("a", "b"))}, "against takes corpora by name"),
        (corpus_of(("a", "b")), {"against": {"train": corpus_of(("a",))}}, "Give benchmarks different names"),
        (corpus_of(("a", "b")), {"unit": "trun"}, "unit is one of dialogue, turn, sample; found 'trun'."),
        (corpus_of(("a", "b")), {"leak": True}, "leak takes a number, found true."),
        (corpus_of(("a", "b")), {"metrics": ["bleu-2"]}, "metrics is for scoring a model's responses"),
        (corpus_of(("a", "b")), {"split": "validation"}, "corpus has no validation split. Found: all."),
    ],
)
def test_a_mistake_is_one_line(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        measure(data, **options)
    assert str(raised.value).startswith(message)


def test_settings_and_keywords_give_the_same_result() -> None:
    corpus = sides([("a", "b", "c")], [("x", "b", "c")])
    settings = OverlapSettings(context_turns=2, leak=0.4)
    assert measure(corpus, settings=settings).to_dict() == measure(corpus, context_turns=2, leak=0.4).to_dict()


# --- The result -------------------------------------------------------------------------------------------------------


def mixed() -> Corpus:
    """Test dialogues with ratios 0.75, 2/3, 0 and 1."""
    return Corpus.of_texts(["a b c d", "x y"], ["a b c e", "x", "z", "a b c d"])


def test_a_saved_result_comes_back_and_can_be_thresholded_again(tmp_path: Path) -> None:
    result = measure(mixed())
    again = OverlapResult.load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
    assert again.table.equals(result.table)
    sections = [each.section() for each in (again, result)]
    first, second = ([type(block) for block in section.blocks] for section in sections)
    assert first == second
    assert [table.to_csv() for table in sections[0].tables] == [table.to_csv() for table in sections[1].tables]
    assert sections[0].lead == sections[1].lead
    assert [again.count_over(threshold) for threshold in (0.6, 0.7, 0.75, 0.99)] == [3, 2, 1, 1]
    assert again.at(0.7).to_dict() == measure(mixed(), leak=0.7).to_dict()


def test_every_score_has_a_direction_and_every_column_a_meaning() -> None:
    result = measure(mixed(), leak=0.33)
    assert {direction(name) for name in result.scores()} == {"low"}
    assert "ratio/test/share_over_0.33" in result.scores()
    assert all(column.metadata[b"meaning"] for column in result.table.schema)


@pytest.mark.parametrize(("leak", "name"), [(0.8, "0.8"), (0.8000001, "0.8000001"), (1.0, "1"), (0.00001, "0.00001")])
def test_a_threshold_has_a_name_of_its_own(leak: float, name: str) -> None:
    result = measure(mixed(), leak=leak)
    assert f"ratio/test/share_over_{name}" in result.scores() and "ratio/test/share_over_0.8" in result.scores()
    assert result.verdict.scores == (f"ratio/test/share_over_{name}",)
    assert result.verdict.scores[0] in result.items() and direction(result.verdict.scores[0]) == "low"
    labels = [row[1] for row in result.summary().rows]
    assert f"over {name}" in labels and len(labels) == len(set(labels))


def test_items_give_the_scores_back() -> None:
    result = measure(sides([("a b", "c"), ("d", "e f")], [("a b", "c"), ("q", "r", "s"), ("d", "e")]))
    for name, items in result.items().items():
        assert items.above.sum() / items.below.sum() == pytest.approx(result.scores()[name].value)
        assert list(items.dialogues) == ["d0", "d1", "d1", "d2"]
        assert list(items.keys) == [("d0#2",), ("d1#2",), ("d1#3",), ("d2#2",)]


def test_the_closest_come_first_and_equals_in_order() -> None:
    result = measure(Corpus.of_texts(["a b"], ["a", "a b", "c", "b a"]), leak=0.5)
    assert result.closest()["id"].to_pylist() == ["test-2", "test-4", "test-1"]
    assert result.closest(1)["id"].to_pylist() == ["test-2"]


def test_a_seed_changes_intervals_only() -> None:
    one, other = (measure(mixed(), seed=seed) for seed in (0, 1))
    assert np.array_equal(one.ratio, other.ratio)
    assert (one.origin.seed, other.origin.seed) == (0, 1)


TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5).map(" ".join), min_size=1, max_size=12)


@given(TEXTS, TEXTS, st.sampled_from([0.5, 0.75, 1.0]))
def test_a_text_has_a_pair_over_the_threshold_where_its_best_match_is(
    train: list[str], test: list[str], threshold: float
) -> None:
    best = measure(Corpus.of_texts(train, test))
    found = pairs(Corpus.of_texts(test), against=Corpus.of_texts(train), threshold=threshold).table
    by_text: dict[str, float] = {}
    for row in found.to_pylist():
        by_text[row["first"]] = max(by_text.get(row["first"], 0.0), row["ratio"])
    reached = best.ratio >= threshold
    assert by_text == {f"all-{place + 1}": best.ratio[place] for place in range(len(test)) if reached[place]}


@given(TEXTS)
def test_a_text_matches_its_copy_and_never_itself(texts: list[str]) -> None:
    within = measure(Corpus.of_texts(texts))
    assert all(match != place for place, match in enumerate(within.match.tolist()))
    assert (measure(Corpus.of_texts(texts, texts)).ratio >= within.ratio).all()


def test_two_lists_of_texts_are_a_corpus_of_training_and_test() -> None:
    lists, corpus = (
        measure(*data) for data in ((["a b c d"], ["a b c e"]), (Corpus.of_texts(["a b c d"], ["a b c e"]),))
    )
    assert lists.to_dict() == corpus.to_dict() and lists.ratio.tolist() == [0.75]
    with pytest.raises(UsageError, match="one corpus, or two lists of texts"):
        measure(Corpus.of_texts(["a"]), ["b"])
