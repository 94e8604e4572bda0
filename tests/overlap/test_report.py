from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from dialoscope.overlap.ledger_report import cleaned_section, filtered_section
from dialoscope.overlap.report import chosen_examples, section_of
from scipy.stats import binomtest

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.overlap import Settings, clean, filter
from dialoscope.overlap.measure import measure_with_examples
from dialoscope.overlap.result import OverlapResult
from dialoscope.record import Origin
from dialoscope.report import Chart, Section, Transcript


def corpus_of(*pairs: tuple[str, str], name: str) -> Corpus:
    dialogues = [
        Dialogue((Turn("A", one), Turn("B", other)), f"{name}{n}", name) for n, (one, other) in enumerate(pairs)
    ]
    return Corpus.of(dialogues, name=name)


TRAIN = corpus_of(("how are you", "fine thanks a lot"), ("where to", "home <b>now</b>"), name="train")
TEST = corpus_of(("How are you ?", "Fine , thanks a lot !"), ("who", "me"), name="test")


def test_the_section_says_how_many_samples_leak() -> None:
    section = section_of(measure_with_examples(TRAIN, TEST, choose=chosen_examples))
    assert section.lead.startswith(
        "1 of 2 test samples overlap with a training sample by more than 0.8; 1 are identical"
    )
    assert section.verdict is not None
    assert (section.verdict.written.text, section.verdict.level) == ("50.0%", "bad")


def test_where_nothing_could_be_compared_nothing_is_said() -> None:
    alone = Corpus.of([Dialogue((Turn("A", "hello"),), "one", "test")], name="test")
    section = section_of(measure_with_examples(TRAIN, alone, choose=chosen_examples))
    assert section.verdict is not None
    assert (section.verdict.number, section.verdict.level) == (None, "info")


def test_that_nothing_leaked_has_an_interval_too() -> None:
    """None of 50 dialogues of five samples each: at most what 50 throws without a hit leave open."""
    ids = pa.chunked_array([pa.array([f"c#{place // 5}#{place % 5}" for place in range(250)])])
    result = OverlapResult(np.zeros(250), np.zeros(250, dtype=np.int64), 100, Origin("c"), ids=ids)
    assert result.share(0.8).interval == pytest.approx((0, binomtest(0, 50).proportion_ci().high))
    assert "share_over 0.8" not in result.to_dict()["reasons"]


def test_a_share_that_has_no_interval_says_why() -> None:
    ids = pa.chunked_array([pa.array(["c#0#0", "c#1#0"])])
    result = OverlapResult(np.zeros(2), np.zeros(2, dtype=np.int64), 100, Origin("c"), ids=ids)
    assert result.to_dict()["reasons"]["share_over 0.8"] == "an interval needs at least 3 dialogues, found 2"


def test_a_share_has_an_interval_over_dialogues() -> None:
    """Ten of twenty dialogues leaked, all five samples of each: as sure as twenty coins, not as a hundred."""
    ids = pa.chunked_array([pa.array([f"c#{place // 5}#{place % 5}" for place in range(100)])])
    ratio = np.repeat(np.arange(20) % 2 == 0, 5).astype(float)
    result = OverlapResult(ratio, np.zeros(100, dtype=np.int64), 100, Origin("c"), ids=ids)
    low, high = result.share(0.8).interval or (0.0, 0.0)
    coins = binomtest(10, 20).proportion_ci()
    assert [low, high] == pytest.approx([coins.low, coins.high], abs=0.03)
    assert result.to_dict()["share_over_intervals"]["0.8"] == (low, high)
    assert result.share(0.8).n == 100
    rows = replace(result, unit="text")  # of a table: each is one of its own, whatever it is called
    assert rows.share(0.8).interval == pytest.approx(binomtest(50, 100).proportion_ci())


def test_shared_words_are_marked_in_both_texts() -> None:
    section = section_of(measure_with_examples(TRAIN, TEST, choose=chosen_examples))
    (shown,) = [block for block in section.blocks if isinstance(block, Transcript)]
    marked = [[piece for piece, is_marked in turn.pieces if is_marked] for turn in shown.turns]
    assert marked[0] == ["How", "are", "you"]
    assert marked[3] == ["fine", "thanks", "a", "lot"]


def marked(section: Section) -> list[list[str]]:
    (shown,) = [block for block in section.blocks if isinstance(block, Transcript)]
    return [[piece for piece, is_marked in turn.pieces if is_marked] for turn in shown.turns]


@pytest.mark.parametrize(
    ("tokeniser", "words"),
    [
        ("reference", ["Well", "...", "five", "o", "clock"]),
        ("words", ["Well", "five", "o", "clock"]),
        ("blanks", ["...", "five"]),
    ],
)
def test_marks_follow_the_tokens_that_were_compared(tokeniser: str, words: list[str]) -> None:
    measured = measure_with_examples(
        ["well ... five o clock"],
        ["Well ... five o'clock !"],
        choose=lambda result: [0],
        settings=Settings(tokeniser=tokeniser),
    )
    assert marked(section_of(measured, threshold=0.3))[0] == words


def test_a_corpus_measured_within_is_spoken_of_as_such() -> None:
    measured = measure_with_examples(["a b c", "a b c", "x"], choose=chosen_examples)
    section = section_of(measured)
    assert section.question == "Does the corpus repeat itself?"
    assert section.lead == "2 of 3 texts overlap with another text by more than 0.8; 2 are identical to one."
    assert [turn.speaker for block in section.blocks if isinstance(block, Transcript) for turn in block.turns] == [
        "one",
        "other",
    ]


def test_the_closest_matches_are_listed_by_name() -> None:
    measured = measure_with_examples(["a b c d", "x"], ["a b c e", "y", "x"], choose=lambda result: [])
    (table,) = [table for table in section_of(measured, threshold=0.7).tables if table.caption == "Closest matches"]
    assert table.rows == (("3", "2", 1.0), ("1", "1", 0.75))


def test_the_cumulative_shares_reach_one() -> None:
    section = section_of(measure_with_examples(TRAIN, TEST, choose=lambda result: []))
    lines = [block for block in section.blocks if isinstance(block, Chart)][1].figure["data"][0]
    assert (lines["y"][0], lines["y"][-1], len(lines["y"])) == (0.5, 1.0, 20)


def test_a_cleaning_shows_what_is_left_and_what_went() -> None:
    section = cleaned_section(clean(["a b c d", "a b c d", "e f"], threshold="0.75", validation=0, test=1))
    assert section.lead.startswith("2 of 3 dialogues are left: no two of them overlap by more than 0.75.")
    assert [table.rows for table in section.tables if table.caption == "Dropped"] == [
        (("1", "2", 1.0, "over the threshold"),)
    ]
    assert marked(section) == [["a", "b", "c", "d"]] * 2


def test_a_filtering_shows_what_is_left_and_what_went() -> None:
    section = filtered_section(filter(["a b"], ["b a", "c"]))
    assert section.lead == "1 of 2 test texts are left: none overlaps with a training text by more than 0.8."
    assert marked(section) == [["b", "a"], ["a", "b"]]


def test_nothing_dropped_is_no_table() -> None:
    assert filtered_section(filter(["a b"], ["c"])).tables == []


@pytest.fixture
def result() -> OverlapResult:
    ratio = np.array([0.0, 0.75, 0.8, 0.81, 1.0, 1.0, 0.52])
    return OverlapResult(ratio, np.zeros(7, dtype=np.int64), n_train=3, origin=Origin())


def test_shares_over_a_threshold_are_strict(result: OverlapResult) -> None:
    assert [result.count_over(threshold) for threshold in (0.5, 0.75, 0.8, 0.99)] == [6, 4, 3, 2]
    assert result.identical == 2


def test_the_histogram_counts_every_sample_once(result: OverlapResult) -> None:
    edges, counts = result.histogram()
    assert (len(edges), len(counts), sum(counts)) == (21, 20, 7)
    assert [counts[0], counts[10], counts[15], counts[16], counts[19]] == [1, 1, 1, 2, 2]


def test_an_empty_test_set_has_no_shares_and_does_not_crash() -> None:
    empty = OverlapResult(np.zeros(0), np.zeros(0, dtype=np.int64), n_train=3, origin=Origin())
    assert empty.to_dict()["identical_share"] == 0.0
