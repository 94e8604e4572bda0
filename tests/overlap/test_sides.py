from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.overlap.sides import left_out, side_of, unit_texts


def corpus() -> Corpus:
    return Corpus.of(
        [
            Dialogue((Turn("A", "Hi."), Turn("B", "Hello."), Turn("A", "Bye.")), "p", "train"),
            Dialogue((Turn("A", "Yes."), Turn("B", "No.")), "q", "test"),
        ]
    )


@pytest.mark.parametrize(
    ("unit", "ids", "texts"),
    [
        ("dialogue", ["p", "q"], [["Hi.\nHello.\nBye.", "Yes.\nNo."]]),
        ("turn", ["p#1", "p#2", "p#3", "q#1", "q#2"], [["Hi.", "Hello.", "Bye.", "Yes.", "No."]]),
        ("sample", ["p#2", "p#3", "q#2"], [["Hi.", "Hi.\nHello.", "Yes."], ["Hello.", "Bye.", "No."]]),
    ],
)
def test_a_corpus_gives_units_with_names_and_texts(unit: str, ids: list[str], texts: list[list[str]]) -> None:
    side = side_of(corpus(), unit=unit, context_turns=2)
    assert (side.unit, side.ids.to_pylist()) == (unit, ids)
    assert [column.to_pylist() for column in side.texts] == texts
    assert len(side.dialogues) == len(side)


def test_an_unknown_unit_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'turn'"):
        side_of(corpus(), unit="turns")


@given(st.lists(st.lists(st.text("aé\n "), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 5))
def test_a_dialogue_as_one_text_is_its_turns_on_lines(texts: list[list[str]], cut: int) -> None:
    whole = Corpus.of([Dialogue(tuple(Turn("A", text) for text in one)) for one in texts])
    assert unit_texts(whole[cut:]).to_pylist() == ["\n".join(one) for one in texts[cut:]]  # a view, too


def test_the_name_of_a_side_tells_its_texts_apart() -> None:
    lists = (["ab", "c"], ["a", "bc"], ["ab", "c"])
    names = [side_of(Corpus.of_texts(texts), unit="turn").name for texts in lists]
    assert names[0] == names[2] != names[1]


def test_only_ids_that_several_dialogues_share_are_changed() -> None:
    named = [("train", "a"), ("train", "b"), ("validation", "a"), ("test", "a"), ("test", "a")]
    corpus = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), one, split) for split, one in named])
    side = side_of(corpus, unit="turn")
    assert side.ids.to_pylist()[::2] == ["train/a#1", "b#1", "validation/a#1", "test/a#1", "test/a~2#1"]
    assert side.dialogues.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert side.name == f"corpus@{corpus.fingerprint}"
    assert side_of(corpus.split("train"), unit="dialogue").ids.to_pylist() == ["a", "b"]


def test_what_was_not_read_is_counted_by_reason() -> None:
    one = replace(Corpus.of_texts(["a"]), skipped={"no turns": 2}, ignored={"LICENSE": "no data", "README": "no data"})
    other = replace(one, skipped={"no turns": 1, "no id": 1}, ignored={})
    assert left_out(one, other) == {"no turns": 3, "no id": 1, "a file was not read: no data": 2}
    assert left_out(Corpus.of_texts(["a"])) == {}
