from __future__ import annotations

from dataclasses import replace

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import CorpusError, UsageError
from dialoscope.overlap.sides import Data, corpus_of, left_out, side_of, unit_texts


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


def test_a_list_of_strings_is_one_text_a_unit() -> None:
    side = side_of(["a b", "c"], unit="sample")
    assert (side.unit, side.ids.to_pylist()) == ("text", ["1", "2"])
    assert [column.to_pylist() for column in side.texts] == [["a b", "c"]]


def test_a_list_of_tuples_is_a_context_and_a_response_a_unit() -> None:
    side = side_of([("a", "b"), ("c", "d")], unit="dialogue")
    assert (side.unit, [column.to_pylist() for column in side.texts]) == ("sample", [["a", "c"], ["b", "d"]])


MESSAGES = [[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]]


@pytest.mark.parametrize(
    "columns",
    [{"messages": MESSAGES}, {"dialog": [["Hi.", "Hello."]]}, {"context": ["Hi."], "response": ["Hello."]}],
)
def test_a_data_set_of_dialogues_is_recognised_by_its_columns(columns: dict[str, list[object]]) -> None:
    side = side_of(datasets.Dataset.from_dict(columns), unit="sample")
    assert [column.to_pylist() for column in side.texts] == [["Hi."], ["Hello."]]


def test_a_column_of_a_data_set_is_named() -> None:
    data = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "n": [1, 2, 3]})
    side = side_of(data.select([2, 0]), unit="sample", column="text")
    assert (side.unit, side.texts[0].to_pylist()) == ("text", ["c", "a"])


@pytest.mark.parametrize(
    ("data", "column", "message"),
    [
        ({"text": ["a"]}, None, "To compare one column of texts, name it with column="),
        ({"text": ["a"]}, "txet", "No column 'txet' in the data set. Columns: text."),
        ({"n": [1]}, "n", "column 'n': expected texts, found int64"),
        ({"text": ["a", None]}, "text", "column 'text', row 2: expected a text, found none"),
    ],
)
def test_a_data_set_without_the_texts_says_what_to_do(
    data: dict[str, list[object]], column: str | None, message: str
) -> None:
    with pytest.raises((CorpusError, UsageError), match=message.replace(".", r"\.")):
        side_of(datasets.Dataset.from_dict(data), unit="sample", column=column)


@pytest.mark.parametrize("data", ["a text", [], [1, 2], ["a", 1], [("a",)], [("a", "b"), "c"], ["a", None], ["\0"], 7])
def test_what_is_no_text_is_refused_in_one_line(data: Data) -> None:
    with pytest.raises((CorpusError, UsageError), match=r"[Ee]xpected"):
        side_of(data, unit="sample")


def test_an_unknown_unit_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'turn'"):
        side_of(corpus(), unit="turns")


@given(st.lists(st.lists(st.text("aé\n "), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 5))
def test_a_dialogue_as_one_text_is_its_turns_on_lines(texts: list[list[str]], cut: int) -> None:
    whole = Corpus.of([Dialogue(tuple(Turn("A", text) for text in one)) for one in texts])
    assert unit_texts(whole[cut:]).to_pylist() == ["\n".join(one) for one in texts[cut:]]  # a view, too


def test_lists_become_dialogues_of_one_turn_or_two() -> None:
    assert [dialogue.texts for dialogue in corpus_of(["a", "b"])] == [["a"], ["b"]]
    assert [dialogue.texts for dialogue in corpus_of([("a", "b"), ("c", "d")])] == [["a", "b"], ["c", "d"]]


def test_the_name_of_a_list_tells_its_texts_apart() -> None:
    names = [side_of(data, unit="turn").name for data in (["ab", "c"], ["a", "bc"], ["ab", "c"])]
    assert names[0] == names[2] != names[1]


def test_only_ids_that_several_dialogues_share_are_changed() -> None:
    named = [("train", "a"), ("train", "b"), ("validation", "a"), ("test", "a"), ("test", "a")]
    corpus = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), one, split) for split, one in named])
    side = side_of(corpus, unit="turn")
    assert side.ids.to_pylist()[::2] == ["train/a#1", "b#1", "validation/a#1", "test/a#1", "test/a~2#1"]
    assert side.dialogues.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert side.name == f"corpus@{corpus.fingerprint}"
    assert side_of(corpus.split("train"), unit="dialogue").ids.to_pylist() == ["a", "b"]


def test_what_was_left_out_of_two_splits_of_a_corpus_is_counted_once() -> None:
    whole = replace(Corpus.of([Dialogue((Turn("A", "a"),))]), skipped={"no turns": 2}, ignored={"LICENSE": "no data"})
    other = replace(whole, skipped={"no turns": 1, "no id": 1}, ignored={})
    assert left_out(whole.split("all"), whole, ["a text"]) == {
        "skipped": {"no turns": 2},
        "ignored": {"LICENSE": "no data"},
    }
    assert left_out(whole, other)["skipped"] == {"no turns": 3, "no id": 1}
    assert left_out(Corpus.of([Dialogue((Turn("A", "a"),))]), None) == {}
