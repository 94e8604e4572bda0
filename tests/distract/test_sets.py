from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.distract import SetsSettings, make_sets, read_sets, write_sets
from dialoscope.distract.names import NINE, SetName, chosen_names
from dialoscope.distract.sets import Case, Maker, put_in, slot_of
from dialoscope.errors import CorpusError, DialoscopeError, OutputError, UsageError


def dialogue(name: str, *texts: str, split: str = "all") -> Dialogue:
    return Dialogue(tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts)), id=name, split=split)


TEST = Corpus.of([dialogue("t1", "a", "b", "c", "d", "e"), dialogue("t2", "x", "y")], name="test")
TRAINING = Corpus.of([dialogue("n1", "k", "l", "a"), dialogue("n2", "m", "n")], name="training")


def test_the_nine_sets_of_the_paper() -> None:
    assert chosen_names(["all"]) == list(NINE)
    assert NINE[:3] == ("random-0.5", "random-0.7", "random-1.0")
    assert set(NINE[3:]) == {
        f"{style}-{place}" for style in ("frequent", "rare") for place in ("begin", "middle", "end")
    }
    assert chosen_names(["rare", "random-1", "given"])[3:] == ["random-1.0", "given-begin", "given-middle", "given-end"]


@pytest.mark.parametrize("name", ["random-0.25", "random-1.0", "frequent-begin", "rare-end-4", "random-0.5-3"])
def test_a_name_says_what_it_is(name: str) -> None:
    assert str(SetName.parse(name)) == name


@pytest.mark.parametrize(
    "name", ["random", "random-0", "random-1.5", "random-x", "rare", "rare-top", "rare-end-0", "x", ""]
)
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"random-0\.7"):
        SetName.parse(name)


def test_where_sentences_go() -> None:
    """Table 2 of the paper: before History, in its middle, and between History and the Query."""
    case = Case("d", 4, ("a", "b", "c", "q"), "r")
    made = {place: put_in(case, ["x", "y"], [slot_of(case, place)] * 2) for place in ("begin", "middle", "end")}
    assert made["begin"].context == ("x", "y", "a", "b", "c", "q")
    assert made["middle"].context == ("a", "x", "y", "b", "c", "q")  # slot ⌊3/2⌋
    assert made["end"].context == ("a", "b", "c", "x", "y", "q")
    assert [one.distractions for one in made.values()] == [(0, 1), (1, 2), (3, 4)]
    assert made["middle"].history == [0, 3, 4]


@given(st.lists(st.text(max_size=2), min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=4))
def test_taking_distractions_out_again_leaves_the_context(context: list[str], slots: list[int]) -> None:
    slots = [slot % len(context) for slot in slots]
    case = put_in(Case("d", 1, tuple(context), "r"), [f"new {n}" for n in range(len(slots))], slots)
    assert [turn for place, turn in enumerate(case.context) if place not in case.distractions] == context
    assert sorted(case.context[place] for place in case.distractions) == [f"new {n}" for n in range(len(slots))]
    assert case.context[-1] == context[-1]  # the Query stays last
    assert all(place < len(case.context) - 1 for place in case.distractions)


def test_random_distractions_come_from_other_dialogues_and_say_something_else() -> None:
    made = Maker(TEST, TRAINING, seed=3).make("random-1.0")
    drawn = [(case.dialogue, case.context[place]) for case in made.cases for place in case.distractions]
    assert len(drawn) == 2 * 5
    assert {text for _, text in drawn} <= {"k", "l", "a", "m", "n"}
    assert ("t1", "a") not in drawn  # is said in t1
    within = Maker(TRAINING, TRAINING, seed=0).make("random-1.0")
    for case in within.cases:
        assert not {case.context[place] for place in case.distractions} & set(
            ("k", "l", "a") if case.dialogue == "n1" else ("m", "n")
        )


def test_the_only_turns_of_others_are_found_among_thousands_of_the_dialogues_own() -> None:
    corpus = Corpus.of(
        [dialogue("long", *(f"own {n}" for n in range(4000))), dialogue("n2", "k", "l")], name="training"
    )
    made = Maker(corpus[:1], corpus, is_last_only=True).make("random-1.0")
    drawn = {case.context[place] for case in made.cases for place in case.distractions}
    assert drawn <= {"k", "l"}
    assert drawn


@pytest.mark.parametrize("name", ["random-0.9996", "random-0.1234", "random-1.0", "random-0.7-4", "random-0.0000001"])
def test_a_set_is_called_what_it_was_asked_for(name: str) -> None:
    assert str(SetName.parse(name)) == name


def test_dialogues_that_share_an_id_never_get_their_own_turns() -> None:
    twice = Corpus.of([dialogue("d", "a", "b", "c"), dialogue("d", "x", "y", "z"), dialogue("n", "k", "l")], name="d")
    for seed in range(5):
        made = Maker(twice[:2], twice, seed=seed).make("random-1.0")
        assert {case.context[place] for case in made.cases for place in case.distractions} <= {"k", "l"}


def test_dialogues_that_share_an_id_are_told_apart() -> None:
    texts = [[f"{n} {letter}" for letter in "abcdef"] for n in range(6)]
    alike = Corpus.of([dialogue("d", *said) for said in texts], name="alike")
    names = ["all/d", *(f"all/d~{n}" for n in range(2, 7))]
    apart = Corpus.of([dialogue(name, *said) for name, said in zip(names, texts, strict=True)], name="apart")
    options: dict[str, Any] = {"sets": ["random-1.0"], "limit": 4}
    made, same = (make_sets(corpus, **options)[1] for corpus in (alike, apart))
    assert made.cases == same.cases  # neither the clusters nor the draws depend on how dialogues were numbered
    assert list(dict.fromkeys(case.dialogue for case in made.cases)) == names[:4]
    assert [case.dialogue for case in make_sets(alike, sets=["random-1.0"], limit=1)[0].cases] == ["all/d"] * 5
    for case in made.cases:
        assert not [place for place in case.distractions if case.context[place][0] == case.response[0]]


def test_where_the_training_split_is_measured_distractions_come_from_other_dialogues() -> None:
    said = [dialogue(f"n{n}", f"{n} a", f"{n} b", f"{n} c", split="train") for n in range(4)]
    corpus = Corpus.of([*said, dialogue("t", "x", "y", split="test")], name="two")
    _, made = make_sets(corpus, sets=["random-1.0-9"], split="train")
    assert {case.dialogue for case in made.cases} == {"n0", "n1", "n2", "n3"}
    for case in made.cases:
        assert not [place for place in case.distractions if case.context[place][0] == case.dialogue[1]]


def test_a_split_that_a_corpus_lacks_is_refused() -> None:
    corpus = Corpus.of([dialogue("n1", "k", "l"), dialogue("n2", "m", "n")], name="whole")
    assert [len(each) for each in make_sets(corpus, sets=["random-1.0"])] == [2, 2]
    assert [len(each) for each in make_sets(corpus, sets=["random-1.0"], split="all")] == [2, 2]
    for option, name in (("split", "banana"), ("split", "test"), ("train_split", "train")):
        with pytest.raises(UsageError, match=f"whole has no {name} split. Found: all"):
            make_sets(corpus, None, **{"sets": ["random-1.0"], option: name})
    with pytest.raises(UsageError, match="tset"):
        make_sets(generate(dialogues=60, seed=1), split="tset")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sets": ()}, "at least one distracting set"),
        ({"sets": ("loud",)}, "No distracting set is called 'loud'"),
        ({"sets": ("given-end",), "sentences": ("one",)}, "'given-end' needs 2 sentences, found 1"),
        ({"limit": 0}, "limit takes a whole number of 1 or more, found 0"),
        ({"context_turns": 1.5}, "context_turns takes a whole number, found 1.5"),
    ],
)
def test_wrong_settings_are_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SetsSettings(**options)


def test_sets_say_how_they_were_made() -> None:
    corpus = generate(dialogues=60, seed=2)
    for made in make_sets(corpus, sets=["rare-end"], seed=4, limit=3, context_turns=2):
        about = {key: made.about[key] for key in ("corpus", "seed", "context_turns", "parts")}
        assert about == {
            "corpus": f"{corpus.name}@{corpus.fingerprint}",
            "seed": 4,
            "context_turns": 2,
            "parts": {"train": 48, "test": 3},
        }
        assert made.about["used"] == "Measured: test, 3 dialogues. Distractions from: train, 48 dialogues."


def test_a_turn_without_words_is_no_distraction() -> None:
    training = Corpus.of([dialogue("n1", "  ", "k", ""), dialogue("n2", "\n", "l")], name="training")
    made = Maker(TEST, training, seed=0).make("random-1.0")
    assert {case.context[place] for case in made.cases for place in case.distractions} == {"k", "l"}


def test_what_is_drawn_depends_on_seed_set_and_context_alone() -> None:
    corpus = generate(dialogues=60, seed=2)
    test, training = corpus.split("test"), corpus.split("train")
    whole = Maker(test, training, seed=1).make("random-0.7")
    part = Maker(test[2:4], training, seed=1).make("random-0.7")
    kept = {(case.dialogue, case.turn): case for case in whole.cases}
    assert part.cases == [kept[case.dialogue, case.turn] for case in part.cases]
    assert whole.fingerprint == Maker(test, training, seed=1).make("random-0.7").fingerprint
    assert whole.fingerprint != Maker(test, training, seed=2).make("random-0.7").fingerprint


@pytest.mark.parametrize("names", list(combinations(NINE[:3], 2)), ids="-and-".join)
def test_random_sets_share_no_draws(names: tuple[str, str]) -> None:
    """Two texts of two hundred, each at one of several places: no context gets the same ones in both sets."""
    training = Corpus.of([dialogue("n", *(f"new {k}" for k in range(200)))], name="training")
    test = Corpus.of([dialogue(f"t{n}", *(f"{n} {k}" for k in range(5))) for n in range(50)], name="long")
    one, other = (Maker(test, training, seed=0).make(name).cases for name in names)
    full = [pair for pair in zip(one, other, strict=True) if all(len(case.distractions) == 2 for case in pair)]
    assert len(full) > 10
    assert not [pair for pair in full if pair[0] == pair[1]]


def test_each_distraction_is_put_in_with_its_probability_at_any_place() -> None:
    long = Corpus.of([dialogue(f"t{n}", *(f"{n} {k}" for k in range(5))) for n in range(500)], name="long")
    cases = [case for case in Maker(long, TRAINING, seed=0).make("random-0.7").cases if case.turn == 4]
    share = sum(len(case.distractions) for case in cases) / (2 * len(cases))
    assert share == pytest.approx(0.7, abs=4 * (0.7 * 0.3 / 1000) ** 0.5)
    alone = Counter(case.distractions[0] for case in cases if len(case.distractions) == 1)
    assert sorted(alone) == [0, 1, 2, 3]  # slots 0 … |History|, |History| = 3
    assert min(alone.values()) > 0.6 * max(alone.values())


def test_the_last_response_of_each_dialogue() -> None:
    cases = Maker(TEST, TRAINING, is_last_only=True).cases
    assert [(case.dialogue, case.turn, case.response) for case in cases] == [("t1", 4, "e"), ("t2", 1, "y")]


@pytest.mark.parametrize("has_splits", [True, False])
def test_of_a_limited_test_split_distractions_still_come_from_all_of_training(has_splits: bool) -> None:
    said = [dialogue(f"n{n}", f"{n} a", f"{n} b", split="train" if has_splits else "all") for n in range(6)]
    asked = [dialogue(f"t{n}", *"abcdefgh", split="test" if has_splits else "all") for n in range(2)]
    _, made = make_sets(Corpus.of([*asked, *said], name="six"), sets=["random-1.0-9"], limit=1)
    assert {case.dialogue for case in made.cases} == {"t0"}
    drawn = {case.context[place] for case in made.cases for place in case.distractions}
    assert drawn == {f"{n} {letter}" for n in range(6) for letter in "ab"}


def test_sentences_that_a_user_gives() -> None:
    made = Maker(TEST, TRAINING, sentences=["one", "two"]).make("given-end")
    assert made.cases[3].context == ("a", "b", "c", "one", "two", "d")
    with pytest.raises(UsageError, match="needs 2 sentences"):
        Maker(TEST, TRAINING, sentences=["one"]).make("given-end")


def test_sets_are_written_and_read_back(tmp_path: Path) -> None:
    sets = make_sets(generate(dialogues=60, seed=2), sets=["all"], seed=1)
    assert [one.name for one in sets] == ["original", *NINE]
    write_sets(sets, tmp_path / "sets")
    again = read_sets(tmp_path / "sets")
    assert [(one.name, one.fingerprint, one.about) for one in again] == [
        (one.name, one.fingerprint, one.about) for one in sets
    ]
    assert list(again[3].cases) == list(sets[3].cases)
    assert [case.speakers for case in again[3].cases] == [case.speakers for case in sets[3].cases]
    assert again[3].cases[0].speakers.count("") == 2  # what was put in
    with pytest.raises(OutputError, match="--overwrite"):
        write_sets(sets, tmp_path / "sets")
    write_sets(sets[:2], tmp_path / "sets", overwrite=True)
    assert len(read_sets(tmp_path / "sets")) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "expected a case"),
        ("[]", "a list"),
        (
            '{"dialogue": "d", "turn": 1, "context": [], "response": "r", "distractions": [], "speakers": [""]}',
            "context",
        ),
        (
            '{"dialogue": "d", "turn": 1, "context": ["q"], "response": "", "distractions": [0], "speakers": ["", ""]}',
            "distractions",
        ),
        (
            '{"dialogue": "d", "turn": 1, "context": ["q"], "response": 3, "distractions": [], "speakers": ["", ""]}',
            "response",
        ),
        (
            '{"dialogue": "d", "turn": 1, "context": ["q"], "response": "r", "distractions": [], "speakers": ["a"]}',
            "speakers",
        ),
        (
            '{"dialogue": "d", "turn": 1, "context": ["q"], "response": "r", "distractions": [], "speakers": ["", ""]}',
            "fingerprint",
        ),
    ],
)
def test_a_changed_file_is_refused_by_line(line: str, words: str, tmp_path: Path) -> None:
    write_sets([Maker(TEST, TRAINING).original()], tmp_path / "sets")
    (tmp_path / "sets" / "original.jsonl").write_text(line + "\n")
    with pytest.raises(CorpusError, match=words):
        read_sets(tmp_path / "sets")


def test_a_folder_of_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DialoscopeError, match=r"sets\.json"):
        write_sets([Maker(TEST, TRAINING).original()], tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="distract sets"):
        read_sets(tmp_path)


def test_one_dialogue_alone_has_no_others() -> None:
    one = Corpus.of([dialogue("only", "a", "b", "c")], name="one")
    with pytest.raises(CorpusError, match="other dialogues"):
        Maker(one, one).make("random-1.0")
