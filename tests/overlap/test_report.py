from __future__ import annotations

import numpy as np
import pytest

from turnwise.corpus import Corpus, Dialogue, Turn
from turnwise.overlap.measure import measure_with_examples
from turnwise.overlap.report import chosen_examples, section_of
from turnwise.overlap.result import OverlapResult
from turnwise.record import Origin
from turnwise.report import Transcript


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


def test_shared_words_are_marked_in_both_texts() -> None:
    section = section_of(measure_with_examples(TRAIN, TEST, choose=chosen_examples))
    (shown,) = [block for block in section.blocks if isinstance(block, Transcript)]
    marked = [[piece for piece, is_marked in turn.pieces if is_marked] for turn in shown.turns]
    assert marked[0] == ["How", "are", "you"]
    assert marked[3] == ["fine", "thanks", "a", "lot"]


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
