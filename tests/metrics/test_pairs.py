from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialoscope.errors import CorpusError, UsageError
from dialoscope.metrics import Pairs, read_pairs
from dialoscope.metrics.pairs import read_column


def write_jsonl(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", encoding="utf-8")
    return path


def write_text(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\ntwo", ["one", "two"]),
        ("one\n\nthree\n", ["one", "", "three"]),  # an empty response keeps its place
        ("one\u2028still one\ntwo", ["one\u2028still one", "two"]),
        ("\ufeffone\n", ["one"]),
        ("", []),
    ],
)
def test_a_text_file_holds_one_response_a_line(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert list(read_column(write_text(tmp_path / "said.txt", text)).texts) == expected


def test_a_compressed_text_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "said.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert list(read_column(path).texts) == ["one", "two"]


@pytest.mark.parametrize(
    ("records", "column", "expected"),
    [
        ([{"id": 1, "response": "a"}, {"id": 2, "response": "b"}], None, ["a", "b"]),
        ([{"context": "x", "prediction": "a"}], None, ["a"]),
        ([{"whatever": "a"}], None, ["a"]),  # the only column of text
        ([{"x": "a", "y": "b"}], "y", ["b"]),
        (["a", "b"], None, ["a", "b"]),
    ],
)
def test_the_column_of_a_jsonl_file_is_named_or_found(
    tmp_path: Path, records: list[Any], column: str | None, expected: list[str]
) -> None:
    path = write_jsonl(tmp_path / "said.jsonl", *records)
    assert list(read_column(path, column=column).texts) == expected


def test_a_parquet_column_is_named_or_found(tmp_path: Path) -> None:
    path = tmp_path / "said.parquet"
    pq.write_table(pa.table({"context": ["x", "y"], "response": ["a", "b"], "score": [1, 2]}), path)
    assert list(read_column(path).texts) == ["a", "b"]
    assert list(read_column(path, column="context").texts) == ["x", "y"]


def test_unequal_counts_are_one_line_that_names_both(tmp_path: Path) -> None:
    said, targets = write_text(tmp_path / "h.txt", "a\nb\nc\n"), write_text(tmp_path / "r.txt", "a\nb\n")
    with pytest.raises(UsageError, match=r"h\.txt holds 3 responses and .*r\.txt holds 2") as caught:
        read_pairs(said, targets)
    assert "\n" not in str(caught.value)


def test_pairs_in_memory_must_match_too() -> None:
    with pytest.raises(UsageError, match="2 hypotheses and 1 references"):
        Pairs(["a", "b"], ["a"])


@pytest.mark.parametrize("name", ["dialogues", "log_likelihoods", "token_counts"])
def test_what_stands_beside_the_texts_must_match_too(name: str) -> None:
    with pytest.raises(UsageError, match=f"1 {name} for 2 pairs"):
        Pairs(["a", "b"], ["a", "b"], **{name: [1]})  # type: ignore[arg-type]


def test_a_file_can_hold_both_sides(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "both.jsonl", {"reference": "b", "prediction": "a"})
    pairs = read_pairs(path, path)
    assert (list(pairs.hypotheses), list(pairs.references)) == (["a"], ["b"])


def test_a_column_against_itself_is_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "both.jsonl", {"response": "a"})
    with pytest.raises(UsageError, match="both sides are column 'response'"):
        read_pairs(path, path)


def test_a_named_column_is_looked_for_among_the_references_too(tmp_path: Path) -> None:
    said = write_jsonl(tmp_path / "h.jsonl", {"x": "a", "text": "-"})
    targets = write_jsonl(tmp_path / "r.jsonl", {"x": "b", "text": "-"})
    assert list(read_pairs(said, targets, column="x").references) == ["b"]


@pytest.mark.parametrize("name", ["reference", "target", "gold"])
def test_a_column_of_references_comes_before_the_one_named_for_the_responses(tmp_path: Path, name: str) -> None:
    said = write_jsonl(tmp_path / "h.jsonl", {"response": "a"})
    targets = write_jsonl(tmp_path / "r.jsonl", {"response": "what the other system said", name: "b"})
    assert list(read_pairs(said, targets, column="response").references) == ["b"]


def test_a_part_keeps_what_stands_beside_the_texts() -> None:
    part = Pairs(["a", "b", "c"], ["x", "y", "z"], ["d1", "d2", "d3"], [-1.0, -2.0, -3.0], [1, 2, 3]).select([2, 0])
    assert (part.hypotheses, part.references, part.dialogues) == (["c", "a"], ["z", "x"], ["d3", "d1"])
    assert (part.log_likelihoods, part.token_counts) == ([-3.0, -1.0], [3, 1])


def test_dialogue_ids_come_from_either_file(tmp_path: Path) -> None:
    said = write_text(tmp_path / "h.txt", "a\nb\n")
    targets = write_jsonl(tmp_path / "r.jsonl", *({"dialogue_id": "d1", "response": text} for text in "ab"))
    assert list(read_pairs(said, targets).dialogues or ()) == ["d1", "d1"]


def test_dialogue_ids_of_both_files_must_agree_line_by_line(tmp_path: Path) -> None:
    said = write_jsonl(tmp_path / "h.jsonl", *({"dialogue_id": one, "response": "a"} for one in (1, 1, 2)))
    targets = write_jsonl(tmp_path / "r.jsonl", *({"dialogue": one, "response": "a"} for one in ("1", "2", "2")))
    with pytest.raises(UsageError, match=r"line 2 is dialogue '1' in .*h\.jsonl and '2' in .*r\.jsonl"):
        read_pairs(said, targets)


def test_dialogue_ids_may_be_numbers_in_one_file_and_text_in_the_other(tmp_path: Path) -> None:
    said = write_jsonl(tmp_path / "h.jsonl", *({"dialogue_id": one, "response": "a"} for one in (1, 2)))
    targets = write_jsonl(tmp_path / "r.jsonl", *({"dialogue_id": one, "response": "a"} for one in ("1", "2")))
    assert list(read_pairs(said, targets).dialogues or ()) == [1, 2]


def test_a_column_that_holds_no_ids_is_not_taken_for_one(tmp_path: Path) -> None:
    records = [{"dialogue": ["Hi.", "Hello."], "conversation_id": place, "response": "a"} for place in (7, 8)]
    column = read_column(write_jsonl(tmp_path / "h.jsonl", *records))
    assert (column.dialogue_name, list(column.dialogues or ())) == ("conversation_id", [7, 8])


@pytest.mark.parametrize(
    ("ids", "column", "message"),
    [
        (["d1", None], None, "record 2: expected a dialogue id in 'dialogue_id', found None"),
        ([["Hi."], ["Ho."]], "dialogue_id", r"record 1: expected a dialogue id in 'dialogue_id', found \['Hi\.'\]"),
    ],
)
def test_a_missing_id_and_a_named_column_without_ids_are_reported(
    tmp_path: Path, ids: list[Any], column: str | None, message: str
) -> None:
    path = write_jsonl(tmp_path / "h.jsonl", *({"dialogue_id": one, "response": "a"} for one in ids))
    with pytest.raises(CorpusError, match=message):
        read_column(path, dialogue_column=column)


def test_a_missing_likelihood_is_not_a_number(tmp_path: Path) -> None:
    records = [{"response": "a", "log_likelihood": one, "tokens": 2} for one in (-1.5, None)]
    found = read_column(write_jsonl(tmp_path / "h.jsonl", *records)).log_likelihoods
    assert found == pytest.approx([-1.5, math.nan], nan_ok=True)


def test_a_column_of_token_lists_is_no_token_count(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "h.jsonl", {"response": "a b", "tokens": ["a", "b"]})
    assert read_column(path).token_counts is None


@pytest.mark.parametrize(
    ("said", "targets", "expected"),
    [
        ("h.jsonl", "r.jsonl", "prediction/reference/dialogue_id"),
        ("h.jsonl", "r.txt", "prediction/-/dialogue_id"),
        ("h.txt", "r.txt", None),
    ],
)
def test_the_pairs_remember_the_columns_they_were_read_from(
    tmp_path: Path, said: str, targets: str, expected: str | None
) -> None:
    write_jsonl(tmp_path / "h.jsonl", {"prediction": "a", "text": "-", "dialogue_id": 1})
    write_jsonl(tmp_path / "r.jsonl", {"reference": "a", "text": "-"})
    write_text(tmp_path / "h.txt", "a\n")
    write_text(tmp_path / "r.txt", "a\n")
    assert read_pairs(tmp_path / said, tmp_path / targets).columns == expected


def test_likelihoods_and_token_counts_come_along(tmp_path: Path) -> None:
    said = write_jsonl(tmp_path / "h.jsonl", {"response": "a", "log_likelihood": -1.5, "tokens": 2})
    pairs = read_pairs(said, write_text(tmp_path / "r.txt", "a\n"))
    assert (pairs.log_likelihoods, pairs.token_counts) == ([-1.5], [2])


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("h.jsonl", '{"x": "a", "y": "b"}', None, "which column holds the text.*x, y"),
        ("h.jsonl", '{"x": "a"}', "z", "no column 'z'. Columns: x"),
        ("h.txt", "a", "z", "has no column 'z'"),
    ],
)
def test_a_column_that_cannot_be_told_is_a_usage_error(
    tmp_path: Path, name: str, content: str, column: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_column(write_text(tmp_path / name, content), column=column)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("h.jsonl", b'{"text": "a"}\n{"text": \n', "h.jsonl:2: expected one JSON record"),
        ("h.jsonl", b'{"text": "a"}\n[1]\n', "h.jsonl:2: expected a JSON object or a string"),
        ("h.jsonl", b'{"text": "a"}\n{"text": 5}\n', "record 2: expected text in 'text', found 5"),
        ("h.txt", b"fine\nbad \xff\n", "h.txt:2: expected UTF-8 text"),
        ("h.parquet", b"not parquet", "expected a Parquet file"),
    ],
)
def test_a_bad_record_is_reported_with_its_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        read_column(path)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_column(tmp_path / "none.txt")


def test_the_fingerprint_changes_with_all_that_a_number_may_depend_on() -> None:
    texts = ["ab", "c"], ["", ""]
    others: list[Pairs] = [
        Pairs(*texts),
        Pairs(["a", "bc"], ["", ""]),
        Pairs(["ab", "c"], ["", "x"]),
        Pairs(*texts, dialogues=["1", "2"]),
        Pairs(*texts, dialogues=["1", "1"]),
        Pairs(*texts, dialogues=[1, 2]),
        Pairs(*texts, log_likelihoods=[1.0, 2.0]),
        Pairs(*texts, token_counts=[1.0, 2.0]),
        Pairs(*texts, log_likelihoods=[1.0, math.nan]),
    ]
    assert len({one.fingerprint for one in others}) == len(others)


def test_the_fingerprint_takes_equal_numbers_alike() -> None:
    whole, broken = (Pairs(["a"], ["a"], token_counts=[count]) for count in (2, 2.0))
    assert whole.fingerprint == broken.fingerprint


def test_ids_of_conversations_are_never_taken_for_responses(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text('{"id": "p0", "messages": [{"role": "user", "content": "Hi."}]}\n')
    with pytest.raises(UsageError, match=r"chats\.jsonl: expected a file of responses, .* found conversations"):
        read_column(chats)
