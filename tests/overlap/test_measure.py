from __future__ import annotations

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.overlap import Settings, measure, pairs


def corpus_of(*dialogues: tuple[str, ...], split: str = "all") -> Corpus:
    made = [
        Dialogue(tuple(Turn("A", text) for text in texts), f"d{place}", split) for place, texts in enumerate(dialogues)
    ]
    return Corpus.of(made)


def test_a_sample_overlaps_by_the_least_of_its_parts_and_the_most_over_training() -> None:
    train = [("a b", "c d e f"), ("a", "x y")]
    # With the first: context 2·2/4 = 1, response 2·3/(3+4) = 6/7. With the second: context 2/3, response 0.
    result = measure(train, [("a b", "c d e")])
    assert (result.ratio.tolist(), result.match.tolist()) == ([6 / 7], [0])


def test_texts_have_one_part_only() -> None:
    result = measure(["a b c d", "x"], ["a b c e", "y", "X !"])
    assert result.unit == "text"
    assert (result.ratio.tolist(), result.match.tolist()) == ([0.75, 0.0, 1.0], [0, -1, 1])
    assert result.partners is not None
    assert result.partners.to_pylist() == ["1", None, "2"]


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
def test_within_a_corpus_a_unit_is_held_against_the_rest(
    unit: str, ratios: list[float], partners: list[str | None]
) -> None:
    result = measure(corpus_of(("a b", "c d"), ("a b", "c e"), ("x",)), unit=unit)
    assert (result.unit, result.is_within, result.ratio.tolist()) == (unit, True, ratios)
    assert result.partners is not None
    assert result.partners.to_pylist() == partners


def test_units_are_samples_against_training_and_dialogues_within() -> None:
    corpus = corpus_of(("a", "b"), ("c", "d"))
    assert (measure(corpus, corpus).unit, measure(corpus).unit) == ("sample", "dialogue")


def test_longer_contexts_are_measured_where_asked() -> None:
    train, test = corpus_of(("a", "b", "c")), corpus_of(("x", "b", "c"))
    # One turn of context: the sample b -> c is identical. Two turns: {a b} and {x b} overlap by 1/2.
    one, two = (measure(train, test, settings=Settings(context_turns=turns)).ratio.tolist() for turns in (1, 2))
    assert (one, two) == ([0.0, 1.0], [0.0, 0.5])


def test_a_data_set_is_measured_like_the_list_of_its_column() -> None:
    train, test = ["a b c d", "x y"], ["a b c e", "x"]
    given_as = [datasets.Dataset.from_dict({"text": texts}) for texts in (train, test)]
    assert measure(*given_as, column="text").ratio.tolist() == measure(train, test).ratio.tolist() == [0.75, 2 / 3]


def test_samples_and_texts_are_not_compared() -> None:
    with pytest.raises(UsageError, match="A sample and a text cannot be compared"):
        measure([("a", "b")], ["a"])


TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5).map(" ".join), min_size=1, max_size=12)


@given(TEXTS, TEXTS, st.sampled_from(["0.5", "0.75", "1"]))
def test_a_text_has_a_pair_over_the_threshold_where_its_best_match_is(
    train: list[str], test: list[str], threshold: str
) -> None:
    best = measure(train, test)
    found = pairs(test, train, threshold=threshold).table
    by_text: dict[str, float] = {}
    for row in found.to_pylist():
        by_text[row["first"]] = max(by_text.get(row["first"], 0.0), row["ratio"])
    reached = best.ratio >= float(threshold)
    assert by_text == {str(place + 1): best.ratio[place] for place in range(len(test)) if reached[place]}


@given(TEXTS)
def test_a_text_matches_its_copy_and_never_itself(texts: list[str]) -> None:
    within = measure(texts)
    assert all(match != place for place, match in enumerate(within.match.tolist()))
    assert (measure(texts, texts).ratio >= within.ratio).all()
