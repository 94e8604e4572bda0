from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialoscope.corpus import Corpus, Dialogue, Turn, write
from dialoscope.engage.human_sets import (
    HumanSet,
    dialogues_of,
    halves,
    item_key,
    keys_of,
    pair_key,
    read_human,
    selection_keys,
    some_of,
)
from dialoscope.errors import CorpusError, DialoscopeError, UsageError

File = Callable[[str, str | bytes], Path]

FED: list[dict[str, Any]] = [
    {
        "context": "User: Hi!\nUser: Anyone there?",
        "response": "System: Hello.",
        "annotations": {"Engaging": [2, 1, 0], "Fluent": [1, 1, 1]},
    },
    {
        "context": "User: Hi!\nUser: Anyone there?\nSystem: Hello.\nUser: So?",
        "response": "System: What do you like?",
        "annotations": {"Engaging": [2, 2, "N/A"], "Fluent": [0, 1, 1]},
    },
    {"context": "User: Bye.", "response": "System: Oh.", "annotations": {"Fluent": [1, 0, 0]}},
    {"context": "User: Hi!\nSystem: Hello.", "annotations": {"Overall": [3, 4, 5]}},
]
TABLE = "context,response,ann,bob,length\nHi. __eou__ Hello.,How are you?,1,2,3\nBye.,See you.,,4,2\n"
FORM = ["WorkerId", *(f"Input.{what}{k}" for k in range(1, 11) for what in ("query", "response"))]
FORM += [f"Answer.pair{k}" for k in range(1, 11)]


@pytest.fixture
def fed(file: File) -> Path:
    return file("fed_data.json", json.dumps(FED))


def rated(clusters: list[str], *, name: str = "set") -> HumanSet:
    """Items that differ in their last turn, by the dialogues they come from."""
    dialogues = tuple(("Hi.", f"{number} of {cluster}") for number, cluster in enumerate(clusters))
    ratings = np.arange(len(clusters), dtype=np.float64)[:, None]
    return HumanSet(name, dialogues, ratings, tuple(clusters), ("ann",), {"bleu": -ratings[:, 0]})


# --- FED --------------------------------------------------------------------------------------------------------------


def test_fed_turns_are_items_with_their_merged_contexts(fed: Path) -> None:
    found = read_human(fed)
    assert found.dialogues == (
        ("Hi! Anyone there?", "Hello."),
        ("Hi! Anyone there?", "Hello.", "So?", "What do you like?"),
    )
    assert (found.name, found.aspect, found.annotators) == ("fed", "Engaging", ("1", "2", "3"))


def test_an_annotator_who_could_not_say_leaves_a_gap(fed: Path) -> None:
    found = read_human(fed)
    assert found.ratings[0].tolist() == [2, 1, 0]
    assert found.ratings[1].tolist()[:2] == [2, 2]
    assert math.isnan(found.ratings[1, 2])
    assert found.mean.tolist() == [1.0, 2.0]
    assert found.annotators_per_item == 2.5


def test_whole_dialogues_and_turns_without_the_aspect_are_counted(fed: Path) -> None:
    assert read_human(fed).left_out == {"rated as a whole dialogue": 1, "no rating of 'Engaging'": 1}
    assert read_human(fed, aspect="fluent").left_out == {"rated as a whole dialogue": 1}


def test_another_aspect_can_be_asked_for(fed: Path) -> None:
    assert read_human(fed, aspect="Fluent").mean.tolist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_turns_of_one_fed_dialogue_are_known_as_such(fed: Path) -> None:
    first, second, third = read_human(fed, aspect="Fluent").clusters
    assert first == second != third


def test_fed_is_read_compressed(fed: Path, file: File) -> None:
    packed = file("packed/fed_data.json.gz", gzip.compress(fed.read_bytes()))
    assert read_human(packed).fingerprint == read_human(fed).fingerprint


def test_fed_says_that_nobody_is_named(fed: Path) -> None:
    assert "not named" in read_human(fed).note
    assert "2.5 annotators per item; the paper says 5" in read_human(fed).note


# --- DailyDialog-Human ------------------------------------------------------------------------------------------------


def form(*workers: tuple[str, int]) -> str:
    """The form of the workers, each of whom gives pair k the rating 1 + (k + shift) modulo 5."""
    texts = [text for k in range(1, 11) for text in (f"Query {k} ?", f"Reply {k} .")]
    lines = [[worker, *texts, *(str(1 + (k + shift) % 5) for k in range(1, 11))] for worker, shift in workers]
    return "\n".join(",".join(line) for line in [FORM, *lines]) + "\n"


def test_workers_of_dailydialog_human_are_named(file: File) -> None:
    found = read_human(file("DailyDialog_annotated.csv", form(("W1", 0), ("W2", 1))))
    assert (len(found), found.annotators, found.name) == (10, ("W1", "W2"), "dailydialog-human")
    assert found.ratings[0].tolist() == [2, 3]
    assert found.dialogues[0] == ("Query 1 ?", "Reply 1 .")
    assert found.note == "The file has 2 annotators per item; the paper says 5."


def test_the_other_file_of_the_folder_brings_earlier_metrics(file: File) -> None:
    file("human/DailyDialog_annotated.csv", form(("W1", 0)))
    scores = "query,response,human_score,Ruber,Eng\nQuery 2 ?,Reply 2 .,3,0.5,0.25\nQuery 2 ?,Other,3,0.1,0.2\n"
    folder = file("human/Eng_Scores_all.csv", scores).parent
    found = read_human(folder)
    assert len(found) == 10
    assert found.metrics["Ruber"][1] == 0.5
    assert np.isnan(np.delete(found.metrics["Ruber"], 1)).all()
    assert list(read_human(folder, metrics=["Eng"]).metrics) == ["Eng"]
    with pytest.raises(UsageError, match=r"Unknown metric 'Rubber'\. Did you mean 'Ruber'\?"):
        read_human(folder, metrics=["Rubber"])


def test_replies_to_one_query_are_of_one_dialogue(file: File) -> None:
    rows = ["query,response,human_score,Eng", "a ?,b .,3,1", "a ?,b .,4,1", "a ?,c .,1,2", "d ?,e .,2,3"]
    found = read_human(file("Eng_Scores_x.csv", "\n".join(rows)))
    assert found.ratings[0].tolist() == [3, 4]
    assert found.clusters[0] == found.clusters[1] != found.clusters[2]


def test_the_words_of_the_reply_reach_0_725_on_the_real_pairs(data: Path) -> None:
    folder = data / "dailydialog_human"
    if not folder.is_dir():
        pytest.skip(f"no DailyDialog-Human in {data} (DIALOSCOPE_DATA)")
    found = read_human(folder)
    words = [len(dialogue[-1].split()) for dialogue in found.dialogues]
    assert (len(found), len(found.annotators), found.annotators_per_item) == (300, 24, 3)
    assert stats.spearmanr(words, found.mean)[0] == pytest.approx(0.725, abs=5e-4)
    assert found.note == "The file has 3 annotators per item; the paper says 5."
    assert set(found.metrics) >= {"Eng_Score_MeanPooling", "Eng_Score_MaxPooling"}
    assert all(np.isfinite(values).all() for values in found.metrics.values())
    assert [len(half) for half in halves(found)] == [150, 150]


def test_copies_of_the_real_pairs_are_known_and_no_whole_pair_is_lost(data: Path) -> None:
    """Two short replies stand in both halves; only where nobody sees the queries are they taken for selected."""
    folder = data / "dailydialog_human"
    if not folder.is_dir():
        pytest.skip(f"no DailyDialog-Human in {data} (DIALOSCOPE_DATA)")
    selection, reported = halves(read_human(folder))
    kept = selection.selection_keys
    assert all(one.isdisjoint(kept) for one in reported.known_as)
    for change, lost in (
        (lambda turns: turns[-1:], 2),
        (lambda turns: (" ".join(turns),), 0),
        (lambda turns: tuple(f"{who}: {turn}" for who, turn in zip("AB", turns, strict=True)), 0),
    ):
        for half, most in ((selection, 0), (reported, 150 - lost)):
            copy = replace(half, dialogues=tuple(map(change, half.dialogues)))
            assert sum(one.isdisjoint(kept) for one in copy.known_as) == most


# --- Tables -----------------------------------------------------------------------------------------------------------


def test_a_table_has_a_column_for_each_annotator(file: File) -> None:
    found = read_human(file("mine.csv", TABLE), metrics=["length"])
    assert found.dialogues == (("Hi.", "Hello.", "How are you?"), ("Bye.", "See you."))
    assert (found.name, found.annotators) == ("mine", ("ann", "bob"))
    assert found.mean.tolist() == [1.5, 4.0]
    assert found.metrics["length"].tolist() == [3, 2]


def test_tables_of_every_kind_hold_the_same(file: File, tmp_path: Path) -> None:
    rows = [
        {"context": ["Hi.", "Hello."], "response": "How are you?", "ann": 1, "bob": 2, "length": 3},
        {"context": ["Bye."], "response": "See you.", "ann": None, "bob": 4, "length": 2},
    ]
    lines = "\n".join(map(json.dumps, rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "mine.parquet")
    paths = [
        file("mine.csv", TABLE),
        file("lines.csv", TABLE.replace("Hi. __eou__ Hello.", '"Hi.\nHello."')),
        file("mine.tsv", TABLE.replace(",", "\t")),
        file("mine.csv.gz", gzip.compress(TABLE.encode())),
        file("mine.jsonl", lines),
        file("mine.jsonl.gz", gzip.compress(lines.encode())),
        tmp_path / "mine.parquet",
    ]
    assert len({read_human(path, metrics=["length"]).fingerprint for path in paths}) == 1


def test_columns_that_number_or_name_rows_are_no_annotators(file: File) -> None:
    text = ",context,response,dialogue_id,id,system,ann\n0,a,b,7,1,Meena,3\n1,c,d,7,2,Mitsuku,4\n"
    found = read_human(file("mine.csv", text))
    assert (found.annotators, found.clusters) == (("ann",), ("7", "7"))
    assert found.note == "Annotators read: ann. Columns without numbers that were not read: system."


def test_every_column_of_numbers_is_an_annotator_and_the_note_says_so(file: File) -> None:
    found = read_human(file("mine.csv", "context,response,ann,seconds\na,b,1,12\nc,d,5,40\n"))
    assert found.annotators == ("ann", "seconds")
    assert found.note == (
        "Annotators read: ann, seconds. Their ranges differ (ann 1 to 5, seconds 12 to 40): "
        "where a column is no annotator, name the annotators or the metrics."
    )


@pytest.mark.parametrize(
    ("rows", "differ"),
    [
        (["1,2", "5,4"], False),
        (["2,4", "1,2"], False),  # 4 is twice 2, and not more
        (["2,5", "1,2"], True),
        (["1,-80", "5,-20"], True),  # log-likelihoods
        (["-1,-0.9", "-0.5,-0.8"], False),
        (["0,1", "0,0"], True),
        ([",3", "2,"], False),
    ],
)
def test_annotators_on_clearly_different_scales_are_noted(rows: list[str], differ: bool, file: File) -> None:
    text = "\n".join(["context,response,ann,bob", f"a,b,{rows[0]}", f"c,d,{rows[1]}"])
    assert ("ranges differ" in read_human(file("mine.csv", text)).note) == differ


def test_of_many_annotators_ten_are_named(file: File) -> None:
    names = [f"p{number}" for number in range(12)]
    found = read_human(file("mine.csv", f"context,response,{','.join(names)}\na,b{',3' * 12}\n"))
    assert found.note == "Annotators read: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more."


def test_named_annotators_are_the_only_ones(file: File) -> None:
    path = file("mine.csv", TABLE)
    found = read_human(path, annotators=("bob",))
    assert (found.annotators, found.mean.tolist(), dict(found.metrics)) == (("bob",), [2, 4], {})
    assert found.note == "Annotators read: bob. Columns that were not read: ann, length."
    both = read_human(path, annotators=["ann", "bob"], metrics=["length"])
    assert (both.annotators, list(both.metrics)) == (("ann", "bob"), ["length"])


@pytest.mark.parametrize(
    ("annotators", "message"),
    [
        (["ann", "bop"], r"Unknown annotator 'bop'\. Did you mean 'bob'\?"),
        (["response"], r"Unknown annotator 'response'"),
        (["length"], r"mine\.csv: column 'length' was given as an annotator and as a metric"),
        (["system"], r"mine\.csv: expected ratings by annotator 'system', found no numbers"),
    ],
)
def test_annotators_that_cannot_be_read_are_named(annotators: list[str], message: str, file: File) -> None:
    path = file("mine.csv", "context,response,ann,bob,length,system\na,b,1,2,3,Meena\n")
    with pytest.raises(UsageError, match=message):
        read_human(path, annotators=annotators, metrics=["length"])


def test_annotators_are_named_for_tables_alone(fed: Path) -> None:
    with pytest.raises(UsageError, match="annotators can be named for tables"):
        read_human(fed, annotators=["1"])


def test_rows_without_an_id_are_no_dialogue_of_their_own(file: File) -> None:
    rows = [
        {"context": ["a"], "response": "b", "ann": 1},
        {"context": ["c"], "response": "d", "ann": 2, "dialogue_id": None},
        {"context": ["e"], "response": "f", "ann": 3, "dialogue_id": 7},
        {"context": ["g"], "response": "h", "ann": 4, "dialogue_id": 7},
        {"context": ["e", "f", "x"], "response": "y", "ann": 5, "dialogue_id": ""},  # goes on from the third
        {"context": ["c", "d", "x"], "response": "y", "ann": 5},  # and this from the second
    ]
    found = read_human(file("mine.jsonl", "\n".join(map(json.dumps, rows)))).clusters
    assert found[2:5] == ("7", "7", "7")
    assert found[1] == found[5]
    assert len(set(found)) == 3
    assert "None" not in found


def test_rows_without_a_rating_are_left_out_and_counted(file: File) -> None:
    found = read_human(file("mine.csv", "context,response,ann\na,b,1\nc,d,n/a\n"))
    assert (len(found), found.left_out) == (1, {"no rating": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("said,response,ann\na,b,1\n", r"mine\.csv: no column 'context'\. Columns: said, response, ann\."),
        ("context,said,ann\na,b,1\n", r"mine\.csv: no column 'response'"),
        ("context,response,ann\na,b,1\nc,d,good\n", r"mine\.csv:3: column 'ann': expected a number, found 'good'"),
        ("context,response,ann\na,b,inf\n", r"mine\.csv:2: column 'ann': expected a number, found 'inf'"),
        (
            b"context,response,ann\na,caf\xe9,1\n",
            r"mine\.csv:2: expected UTF-8 text in 'response', found the byte 0xe9",
        ),
        ("context,response\na,b\n", r"expected a column of numbers for each annotator\. Columns: context, response"),
        ("context,response,ann\n", "expected rows with a context, a response and ratings, found none"),
    ],
)
def test_bad_tables_say_what_is_missing(text: str | bytes, message: str, file: File) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_human(file("mine.csv", text))
    assert "\n" not in str(caught.value)


def test_a_metric_that_is_no_column_gets_a_suggestion(file: File) -> None:
    with pytest.raises(UsageError, match=r"Unknown column 'lenght'\. Did you mean 'length'"):
        read_human(file("mine.csv", TABLE), metrics=["lenght"])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"context": 3, "response": "b", "ann": 1}, "expected text or a list of turns in 'context', found '3'"),
        ({"context": ["a"], "response": None, "ann": 1}, "expected text in 'response', found 'None'"),
        ({"context": ["a"], "response": "b", "ann": "many"}, "expected a column of numbers"),
    ],
)
def test_bad_records_say_what_was_expected(record: dict[str, Any], message: str, file: File) -> None:
    with pytest.raises(UsageError, match=message):
        read_human(file("mine.jsonl", json.dumps(record) + "\n"))


# --- Other bad input --------------------------------------------------------------------------------------------------


def test_an_unknown_aspect_gets_a_suggestion(fed: Path) -> None:
    with pytest.raises(UsageError, match=r"Unknown aspect 'Engagin'\. Did you mean 'Engaging'"):
        read_human(fed, aspect="Engagin")


def test_a_rating_that_is_no_number_is_named(file: File) -> None:
    bad = [{"context": "User: a", "response": "System: b", "annotations": {"Engaging": [1, "very"]}}]
    with pytest.raises(UsageError, match=r"the rating by '2': expected a number, found 'very'"):
        read_human(file("fed.json", json.dumps(bad)))


def test_dialogues_rated_as_a_whole_are_no_rated_turns(file: File) -> None:
    with pytest.raises(UsageError, match="expected turns with ratings, found 1 dialogues rated as a whole"):
        read_human(file("fed.json", json.dumps(FED[3:])))


def test_several_aspects_without_engagingness_have_to_be_chosen(file: File) -> None:
    two = [{"context": "User: a", "response": "System: b", "annotations": {"Fluent": [1], "Correct": [2]}}]
    with pytest.raises(UsageError, match=r"which aspect\? Rated are Fluent, Correct"):
        read_human(file("fed.json", json.dumps(two)))


def test_a_table_has_no_aspects(file: File) -> None:
    with pytest.raises(UsageError, match="Leave out --aspect"):
        read_human(file("mine.csv", TABLE), aspect="Engaging")


def test_what_is_missing_or_damaged_is_one_line(file: File, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No file or folder"):
        read_human(tmp_path / "none.csv")
    with pytest.raises(CorpusError, match=r"mine\.csv:2: expected 3 columns, found 2"):
        read_human(file("mine.csv", "context,response,ann\na,b\n"))
    with pytest.raises(DialoscopeError, match="Parquet"):
        read_human(file("mine.parquet", b"no parquet"))


# --- Sets -------------------------------------------------------------------------------------------------------------


def test_keys_tell_where_a_turn_ends() -> None:
    keys = {item_key(turns) for turns in (["a", "b"], ["ab"], ["a", "", "b"], ["b", "a"])}
    assert len(keys) == 4
    assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize(
    "other",
    [
        ("What's up?", "I don't know ."),
        ("WHAT ’ S UP", "i do n't know!"),
        ("\uff37hat's up", "I don't know..."),  # a full-width W
        ("Hi.", "Hello.", "What's up?", "I don't know."),
    ],
)
def test_the_key_of_a_pair_is_that_of_its_words(other: tuple[str, ...]) -> None:
    assert pair_key(other) == pair_key(("Hey!", "What's up?", "I don't know."))


@pytest.mark.parametrize(
    "other", [("What's up?", "I do know."), ("What's this?", "I don't know."), ("What's upI", "don't know."), ("I",)]
)
def test_other_words_have_another_key(other: tuple[str, ...]) -> None:
    assert pair_key(other) != pair_key(("What's up?", "I don't know."))


def test_turns_without_words_are_told_apart() -> None:
    assert len({pair_key(("Hi.", said)) for said in ("?", "!", "\U0001f600", "\U0001f389")}) == 4


@pytest.mark.parametrize(
    "copy",
    [
        ("hi anyone there", "hello"),
        ("Anyone there?", "Hello."),  # the context begins later
        ("So!", "Hi!", "Anyone there?", "Hello."),  # another beginning
    ],
)
def test_a_pair_is_known_whatever_its_context_was_divided_into(copy: tuple[str, ...]) -> None:
    assert pair_key(copy) in set(keys_of(("So!", "Hi! Anyone there?", "Hello.")))


def test_another_query_or_response_is_not_known() -> None:
    known = set(keys_of(("So!", "Hi! Anyone there?", "Hello.")))
    for other in (("Hi! Anyone here?", "Hello."), ("Anyone there?", "Hello you."), ("Hello.", "Anyone there?")):
        assert pair_key(other) not in known


def test_a_long_query_is_known_as_a_whole() -> None:
    turns = ("Hi.", " ".join(f"word{number}" for number in range(1000)), "Hello.")
    assert pair_key(turns) in set(keys_of(turns))
    assert len(set(keys_of(turns))) < 300


PAIR = ("Hi there!", "What's up?", "I don't know.")


@pytest.mark.parametrize(
    "copy",
    [
        ("I don't know.",),  # the reply alone
        ("", "I don't know."),
        ("B: i do n't know",),
        ("What's up? I don't know.",),  # query and reply as one text
        ("Hi there! What's up? I don't know.",),
        ("A: What's up?\nB: I don't know.",),
        ("A: What's up?", "B: I don't know."),  # with labels
        ("Speaker 1: What's up?", "Speaker 2: I don't know."),
        ("[User]: Hi there!", "[System] : What's up?", "[User]: I don't know."),
        ("A: Hi there!", "A: What's", "A: up?", "B: I don't know."),
    ],
)
def test_copies_of_a_pair_that_was_selected_on_are_known(copy: tuple[str, ...]) -> None:
    kept = set(selection_keys(PAIR))
    assert not kept.isdisjoint(keys_of(copy))
    labelled = set(selection_keys([f"B: {turn}" for turn in PAIR]))  # whichever of the two has labels
    assert not labelled.isdisjoint(keys_of(copy))


@pytest.mark.parametrize(
    "other",
    [
        ("How old are you?", "I don't know."),  # the same reply to another query
        ("Who is it?", "What's up? I know."),
        ("Know.",),
        ("What's up? I don't know. Bye.",),
        ("So I don't know.",),
        ("A: How old are you?", "B: I don't know."),
        ("up?", "I don't know."),  # a query that lost words
    ],
)
def test_other_pairs_are_not_taken_for_what_was_selected_on(other: tuple[str, ...]) -> None:
    assert set(selection_keys(PAIR)).isdisjoint(keys_of(other))


def test_a_word_before_a_colon_does_not_hide_a_pair() -> None:
    said = ("What's up?", "Listen: I don't know.")
    assert not set(selection_keys(said)).isdisjoint(keys_of(("A: What's up?", "B: Listen: I don't know.")))
    assert (
        len({pair_key(("a", said)) for said in ("Listen: no", "Look: no")}) == 2
    )  # keys that halve sets have all words


def test_an_item_belongs_to_the_longest_dialogue_that_begins_with_it() -> None:
    one, two, other = dialogues_of([("a", "b"), ("a", "b", "c", "d"), ("x", "y")], whole=[("a", "b", "c", "d", "e")])
    assert one == two != other


def test_dialogues_that_open_alike_stay_apart() -> None:
    first, second = dialogues_of([("Hi!", "a", "b", "c"), ("Hi!", "x", "y", "z")])
    assert first != second


def test_a_set_can_be_cut_to_some_items() -> None:
    some = rated(["a", "b", "c"]).select([2, 0])
    assert some.mean.tolist() == [2, 0]
    assert some.clusters == ("c", "a")
    assert some.metrics["bleu"].tolist() == [-2, 0]


def test_some_items_are_the_first() -> None:
    whole = rated(list("abcdefgh"))
    assert some_of(whole, 3).mean.tolist() == [0, 1, 2]
    assert some_of(whole, 9) is whole


def test_a_prompt_is_no_context_but_a_rated_turn_stays(tmp_path: Path) -> None:
    stars = {"ratings": {"engagement": {"ann": 1}}}
    made = [
        Dialogue((Turn("system", "Be kind."), Turn("user", "Hi."), Turn("assistant", "Hello.", stars))),
        Dialogue((Turn("system", "Welcome."), Turn("user", "A taxi.", stars), Turn("system", "Where to?"))),
        Dialogue((Turn("user", "Hi."), Turn("assistant", "Hm."), Turn("tool", "Three.", stars))),
    ]
    write(Corpus.of(made), tmp_path / "rated.parquet", to="parquet")
    assert read_human(tmp_path / "rated.parquet").dialogues == (
        ("Hi.", "Hello."), ("Welcome.", "A taxi."), ("Hi.", "Hm.", "Three."),
    )  # fmt: skip


def test_only_one_split_of_a_rated_corpus_is_read(file: File, tmp_path: Path) -> None:
    made = [
        Dialogue((Turn("A", "Hi."), Turn("B", text, {"ratings": {"engagement": {"ann": 1}}})), split=split)
        for text, split in (("Hello.", "validation"), ("Bye.", "test"))
    ]
    write(Corpus.of(made), tmp_path / "rated.parquet", to="parquet")
    path = tmp_path / "rated.parquet"
    assert [one[-1] for one in read_human(path).dialogues] == ["Hello.", "Bye."]
    for name in ("test", "eval"):
        assert [one[-1] for one in read_human(path, splits=[name]).dialogues] == ["Bye."]
    with pytest.raises(UsageError, match="a table has no splits"):
        read_human(file("mine.csv", TABLE), splits=["test"])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 dialogues: expected as many rows"):
        HumanSet("x", (("a",), ("b",)), np.ones((3, 1)), ("1", "2"), ("ann",))


def test_the_fingerprint_follows_ratings() -> None:
    one = rated(["a", "b"])
    other = HumanSet(one.name, one.dialogues, one.ratings + 1, one.clusters, one.annotators, one.metrics)
    assert one.fingerprint == rated(["a", "b"]).fingerprint != other.fingerprint


@given(st.lists(st.sampled_from("abcdefgh"), max_size=25), st.randoms(use_true_random=False))
def test_halves_are_equal_whole_and_independent_of_order(clusters: list[str], shuffle: Any) -> None:
    whole = rated(clusters)
    order = list(range(len(whole)))
    shuffle.shuffle(order)
    first, second = halves(whole)
    assert len(second) - len(first) in (0, 1)
    assert sorted(first.keys + second.keys) == sorted(whole.keys)
    assert [set(half.keys) for half in halves(whole.select(order))] == [set(first.keys), set(second.keys)]
    assert len(set(first.clusters) & set(second.clusters)) <= 1  # the dialogue on the cut


def test_halves_do_not_depend_on_case_marks_or_earlier_context() -> None:
    one = rated(list("aabbcdefgh"))
    spelt = tuple(("Well ...", before.upper(), said.replace(" ", "  ") + " !") for before, said in one.dialogues)
    other = HumanSet(one.name, spelt, one.ratings, one.clusters, one.annotators, one.metrics)
    assert [half.mean.tolist() for half in halves(one)] == [half.mean.tolist() for half in halves(other)]
    assert one.fingerprint != other.fingerprint


def test_halves_keep_the_order_of_their_items() -> None:
    for half in halves(rated(list("abcdefgh"))):
        assert half.mean.tolist() == sorted(half.mean.tolist())
