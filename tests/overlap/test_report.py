from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binomtest

from dialoscope.corpus import Corpus
from dialoscope.overlap import OverlapResult, OverlapSettings, clean, filter, measure
from dialoscope.overlap.engine import Matches
from dialoscope.overlap.result import matches_table
from dialoscope.record import Origin
from dialoscope.report import Chart, Section, Transcript

PAIRS = Corpus.of_pairs(
    [("how are you", "fine thanks a lot"), ("where to", "home <b>now</b>")],
    [("How are you ?", "Fine , thanks a lot !"), ("who", "me")],
)


def result_of(ratio: list[float], ids: list[str], unit: str = "sample") -> OverlapResult:
    """A result with these ratios; ids of samples are DIALOGUE#TURN."""
    count = len(ratio)
    nothing = pa.chunked_array([pa.nulls(count, pa.string())])
    names = pa.chunked_array([pa.array(ids, pa.string())])
    matches = Matches(names, np.array(ratio), np.full(count, -1), nothing, 0, 100, 0)
    return OverlapResult(
        settings=OverlapSettings(),
        parts={"train": 100, "test": 50},
        used="",
        counts={"units": {"test": count, "reference": 100}, "without_words": {}, "skipped": {}},
        origin=Origin("c"),
        matches=matches_table("test", matches, unit),
        measured=("test",),
        unit=unit,
        is_within=False,
    )


def test_the_section_says_how_many_samples_leak() -> None:
    section = measure(PAIRS).section()
    assert section.lead.startswith("50.0% of the test samples nearly repeat a training sample.")
    assert "A sample counts as leaked over a ratio of 0.8." in section.lead


def test_that_nothing_leaked_has_an_interval_too() -> None:
    """None of 50 dialogues of five samples each: at most what 50 throws without a hit leave open."""
    result = result_of([0.0] * 250, [f"c{place // 5}#{place % 5}" for place in range(250)])
    assert result.share_over(0.8).interval == pytest.approx((0, binomtest(0, 50).proportion_ci().high))


def test_a_share_that_has_no_interval_says_why_and_cannot_be_judged() -> None:
    result = result_of([0.0, 0.0], ["c0#0", "c1#0"])
    reason = "an interval needs at least 3 dialogues, found 2"
    assert result.to_dict()["scores"]["ratio/test/share_over_0.8"]["reason"] == reason
    assert result.verdict.level == "cannot_tell"


def test_a_share_has_an_interval_over_dialogues() -> None:
    """Ten of twenty dialogues leaked, all five samples of each: as sure as twenty coins, not as a hundred."""
    ids = [f"c#{place // 5}#{place % 5}" for place in range(100)]
    ratio = np.repeat(np.arange(20) % 2 == 0, 5).astype(float).tolist()
    share = result_of(ratio, ids).share_over(0.8)
    low, high = share.interval or (0.0, 0.0)
    coins = binomtest(10, 20).proportion_ci()
    assert [low, high] == pytest.approx([coins.low, coins.high], abs=0.03)
    assert share.n == 100
    dialogues = result_of(ratio, ids, unit="dialogue")  # each is one of its own, whatever it is called
    assert dialogues.share_over(0.8).interval == pytest.approx(binomtest(50, 100).proportion_ci())


@pytest.mark.parametrize(("leaked", "level"), [(0, "cannot_tell"), (1, "cannot_tell"), (20, "concern")])
def test_a_verdict_needs_the_whole_interval(leaked: int, level: str) -> None:
    result = result_of([1.0] * leaked + [0.0] * (100 - leaked), [f"d{place}" for place in range(100)], "dialogue")
    assert result.verdict.level == level
    assert result.verdict.text.startswith(f"{leaked:.1f}% of the test dialogues nearly repeat a training dialogue.")


def test_no_leak_in_many_dialogues_is_good() -> None:
    result = result_of([0.0] * 1000, [f"d{place}" for place in range(1000)], "dialogue")
    assert result.verdict.level == "good"  # at most 0.37 % by the interval


def marked(section: Section) -> list[list[str]]:
    (shown,) = [block for block in section.blocks if isinstance(block, Transcript)]
    return [[piece for piece, is_marked in turn.pieces if is_marked] for turn in shown.turns]


def test_shared_words_are_marked_in_both_texts() -> None:
    words = marked(measure(PAIRS).section())
    assert words[0] == ["How", "are", "you"]
    assert words[3] == ["fine", "thanks", "a", "lot"]


@pytest.mark.parametrize(
    ("words", "shared"),
    [
        ("reference", ["Well", "...", "five", "o", "clock"]),
        ("words", ["Well", "five", "o", "clock"]),
        ("blanks", ["...", "five"]),
    ],
)
def test_marks_follow_the_words_that_were_compared(words: str, shared: list[str]) -> None:
    texts = Corpus.of_texts(["well ... five o clock"], ["Well ... five o'clock !"])
    assert marked(measure(texts, words=words, leak=0.3).section())[0] == shared


def test_a_corpus_measured_within_is_named_so() -> None:
    section = measure(Corpus.of_texts(["a b c", "a b c", "x"])).section()
    assert section.question == "Does the corpus repeat itself?"
    assert section.lead.startswith("66.7% of the dialogues nearly repeat another dialogue.")
    assert [turn.speaker for block in section.blocks if isinstance(block, Transcript) for turn in block.turns] == [
        "one",
        "other",
    ]


def test_the_closest_matches_are_listed_by_name() -> None:
    result = measure(Corpus.of_texts(["a b c d", "x"], ["a b c e", "y", "x"]), leak=0.7)
    (table,) = [table for table in result.section().tables if table.caption == "Closest matches"]
    assert table.rows == (("test-3", "train-2", 1.0), ("test-1", "train-1", 0.75))


def test_units_without_words_are_told_below_the_table() -> None:
    section = measure(Corpus.of_texts(["a"], ["a", "b", "!"])).section()
    (table,) = [table for table in section.tables if table.caption == "Dialogues by their best overlap"]
    assert "1 dialogues have a text without words; their overlap is 0." in table.notes


def test_the_cumulative_shares_reach_one() -> None:
    lines = measure(PAIRS).figures()[1].figure["data"][0]
    assert (lines["y"][0], lines["y"][-1], len(lines["y"])) == (0.5, 1.0, 20)


def test_several_benchmarks_have_a_part_each() -> None:
    result = measure(Corpus.of_texts(["a b"]), against={"one": Corpus.of_texts(["a"]), "two": Corpus.of_texts(["b"])})
    blocks = result.section().blocks
    assert len([block for block in blocks if isinstance(block, Chart)]) == 4
    assert [row[0] for row in result.summary().rows][::7] == ["one", "two"]


def test_a_cleaning_shows_what_is_kept_and_dropped() -> None:
    section = clean(Corpus.of_texts(["a b c d", "a b c d", "e f"]), validation_size=0, test_size=1).section()
    assert section.lead.startswith("2 of 3 dialogues are kept: no two of them overlap by more than 0.75.")
    assert [table.rows for table in section.tables if table.caption == "Dropped"] == [
        (("all-1", "all-2", 1.0, "over the threshold"),)
    ]
    assert marked(section) == [["a", "b", "c", "d"]] * 2


def test_a_filtering_shows_what_is_kept_and_dropped() -> None:
    section = filter(Corpus.of_texts(["a b"], ["b a", "c"])).section()
    assert section.lead.startswith(
        "1 of 2 test dialogues are kept: none overlaps with a training dialogue by more than 0.8."
    )
    assert marked(section) == [["b", "a"], ["a", "b"]]


def test_nothing_dropped_is_no_table() -> None:
    assert filter(Corpus.of_texts(["a b"], ["c"])).section().tables == []


@pytest.fixture
def result() -> OverlapResult:
    ratio = [0.0, 0.75, 0.8, 0.81, 1.0, 1.0, 0.52]
    return result_of(ratio, [f"d{place}" for place in range(7)], "dialogue")


def test_shares_over_a_threshold_are_strict(result: OverlapResult) -> None:
    assert [result.count_over(threshold) for threshold in (0.5, 0.75, 0.8, 0.99)] == [6, 4, 3, 2]
    assert result.count_identical() == 2


def test_the_histogram_counts_every_unit_once(result: OverlapResult) -> None:
    edges, counts = result.histogram()
    assert (len(edges), len(counts), sum(counts)) == (21, 20, 7)
    assert [counts[0], counts[10], counts[15], counts[16], counts[19]] == [1, 1, 1, 2, 2]
