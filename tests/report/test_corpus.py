from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus.dialogue import Corpus, Dialogue, Turn
from dialoscope.corpus.summary import summarise
from dialoscope.instruments import load_result
from dialoscope.report import Chart, Facts, Section, Table, Transcript
from dialoscope.report.corpus import EXAMPLE_TURNS, CorpusResult, describe, examples_of, length_bins, section_of

IGNORED = {"/home/ada/demo/readme.txt": "not a dialogue file", "/home/ada/demo/notes/todo.txt": "empty"}


def _dialogue(number: int, split: str, turns: int) -> Dialogue:
    said = tuple(Turn("AB"[place % 2], "two words", {"act": "inform"}) for place in range(turns))
    return Dialogue(said, id=f"d{number}", split=split, labels={"topic": "travel"})


@pytest.fixture
def corpus() -> Corpus:
    made = Corpus.of([_dialogue(1, "train", 2), _dialogue(2, "train", 4), _dialogue(3, "test", 3)], name="demo")
    return replace(made, skipped={"empty turn": 3, "no speaker": 5}, ignored=IGNORED)


@pytest.fixture
def shown(corpus: Corpus) -> Section:
    return section_of(summarise(corpus), examples=list(examples_of(corpus)))


def _table(section: Section, name: str) -> Table:
    return next(table for table in section.tables if table.name == name)


def test_a_description_judges_nothing_and_says_how_much_there_is(shown: Section) -> None:
    assert shown.verdict is None
    assert shown.lead.startswith("3 dialogues, 9 turns in 2 splits, read as ")


def test_a_description_is_a_result_that_is_saved_and_loaded_whole(corpus: Corpus, tmp_path: Path) -> None:
    described = describe(corpus)
    loaded = load_result(described.save(tmp_path / "d"))
    assert isinstance(loaded, CorpusResult)
    assert loaded.to_dict() == described.to_dict()
    assert loaded.section().blocks == described.section().blocks
    assert (described.scores(), described.verdicts(), dict(described.parts)) == ({}, [], dict(corpus.splits))
    assert repr(described) == f"<CorpusResult {described.section().lead}>"


def test_the_tiles_count_dialogues_turns_speakers_and_words(shown: Section) -> None:
    tiles = next(block for block in shown.blocks if isinstance(block, Facts))
    assert [(fact.label, fact.value) for fact in tiles.facts] == [
        ("Dialogues", 3),
        ("Turns", 9),
        ("Speakers", 2),
        ("Words", 18),
    ]


def test_there_is_a_row_for_each_split(shown: Section) -> None:
    assert _table(shown, "splits").rows == (("train", 2, 6, 3.0, 1.0, 4, 12, 2.0), ("test", 1, 3, 3.0, 0.0, 3, 6, 2.0))


def test_lengths_are_two_histograms(shown: Section) -> None:
    pictures = [block for block in shown.blocks if isinstance(block, Chart)]
    assert [(chart.title, chart.figure["data"][0]["y"]) for chart in pictures] == [
        ("Turns per dialogue", [1, 1, 1]),
        ("Words per turn", [9]),
    ]


def test_labels_are_counted_where_they_stand(shown: Section) -> None:
    assert _table(shown, "labels").rows == (("act", 9), ("topic", 3))


def test_what_was_left_out_is_shown_with_its_reason(shown: Section) -> None:
    assert _table(shown, "skipped").rows == (("no speaker", 5), ("empty turn", 3))
    assert _table(shown, "ignored").rows == (("notes/todo.txt", "empty"), ("readme.txt", "not a dialogue file"))


def test_the_first_dialogue_of_the_first_and_the_last_split_is_an_example(shown: Section) -> None:
    titles = [block.title for block in shown.blocks if isinstance(block, Transcript)]
    assert titles == ["d1, train", "d3, test"]


def test_a_turn_of_an_example_is_tagged_with_its_labels(shown: Section) -> None:
    example = next(block for block in shown.blocks if isinstance(block, Transcript))
    assert example.turns[0].tag == "inform"


def test_a_long_example_is_cut_and_says_so() -> None:
    corpus = Corpus.of([_dialogue(1, "train", 40)])
    shown = section_of(summarise(corpus), examples=list(examples_of(corpus)))
    example = next(block for block in shown.blocks if isinstance(block, Transcript))
    assert len(example.turns) == EXAMPLE_TURNS
    assert example.title == "d1, train, the first 12 of 40 turns"


def test_the_origin_names_the_corpus_and_its_fingerprint(corpus: Corpus, shown: Section) -> None:
    assert shown.origin is not None
    assert shown.origin.corpus == f"demo@{corpus.fingerprint}"


def test_a_corpus_without_dialogues_has_a_section_too() -> None:
    shown = section_of(summarise(Corpus.of([])))
    assert shown.lead == "0 dialogues, 0 turns in 0 splits, read as python."


def test_a_long_tail_shares_the_last_bin() -> None:
    edges, counts, is_open = length_bins({1: 500, 2: 499, 900: 1})
    assert (edges, counts, is_open) == ([0.5, 1.5, 2.5, 3.5], [500, 499, 1], True)


@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 100), min_size=1))
def test_no_length_is_lost_in_the_bins(lengths: dict[int, int]) -> None:
    edges, counts, _ = length_bins(lengths)
    assert sum(counts) == sum(lengths.values())
    assert len(edges) == len(counts) + 1 <= 38
