from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import streams
from dialoscope.corpus.streams import BadRecord, Record, Source, csv_records, json_records, lines, why_not_text

File = Callable[[str, str | bytes], Path]
RECORDS = [{"a": 1}, {"b": "x\ny"}, {"c": {"d": [1, 2]}}]


def read(path: Path) -> list[Record | BadRecord]:
    return list(json_records(Source(path)))


def values(path: Path) -> list[object]:
    return [record.value for record in read(path) if isinstance(record, Record)]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.txt", bytes), ("a.txt.gz", gzip.compress), ("a.txt.zst", lambda b: pa.compress(b, "zstd", asbytes=True))],
)
def test_compressed_files_are_read_as_they_are(file: File, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = file(name, pack(b"one\ntwo\n"))
    assert list(lines(Source(path))) == [(1, "one"), (2, "two")]


def test_a_truncated_compressed_file_is_a_bad_record(file: File) -> None:
    path = file("a.txt.gz", gzip.compress(b"hello\n" * 10_000)[:-10])
    with pytest.raises(BadRecord, match="expected intact compressed data"):
        list(lines(Source(path)))


def test_all_kinds_of_line_ends_are_line_ends(file: File) -> None:
    path = file("a.txt", b"one\r\ntwo\rthree\nfour")
    assert list(lines(Source(path))) == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]


def test_a_unicode_line_separator_is_text_not_a_line_end(file: File) -> None:
    assert [line for _, line in lines(Source(file("a.txt", "one\u2028two\x0bthree\n")))] == ["one\u2028two\x0bthree"]


def test_a_byte_order_mark_is_no_text(file: File) -> None:
    assert list(lines(Source(file("a.txt", b"\xef\xbb\xbfone\n")))) == [(1, "one")]


def test_utf16_is_refused_with_the_command_that_converts_it(file: File) -> None:
    with pytest.raises(BadRecord, match="iconv"):
        list(lines(Source(file("a.txt", "one".encode("utf-16")))))


def test_lines_keep_their_numbers_across_blocks(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BLOCK_BYTES", 7)
    path = file("a.txt", "".join(f"line {n}\n" for n in range(1, 50)))
    assert list(lines(Source(path))) == [(n, f"line {n}") for n in range(1, 50)]


def test_a_line_beyond_all_measure_is_refused(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_RECORD_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1 << 18)
    with pytest.raises(BadRecord, match="a line of at most 1 MB"):
        list(lines(Source(file("a.txt", b"x" * (3 << 20)))))


@pytest.mark.parametrize(
    "layout",
    [
        "\n".join(json.dumps(record) for record in RECORDS),
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=2),
    ],
)
def test_json_is_read_in_every_layout(file: File, layout: str) -> None:
    assert values(file("a.json", layout)) == RECORDS


def test_an_object_of_records_gives_each_its_key(file: File) -> None:
    path = file("a.json", json.dumps({"x": {"n": 1}, "y": {"n": 2}}, indent=1))
    found = [record for record in read(path) if isinstance(record, Record)]
    assert [(record.key, record.value, record.line) for record in found] == [("x", {"n": 1}, 2), ("y", {"n": 2}, 5)]


def test_an_object_spread_over_lines_is_one_record(file: File) -> None:
    assert values(file("a.json", json.dumps({"messages": [1], "id": 3}, indent=1))) == [{"messages": [1], "id": 3}]


def test_a_bad_line_does_not_spoil_its_neighbours(file: File) -> None:
    good, bad, after = read(file("a.jsonl", '{"a": 1}\n{"a": \n{"a": 3}\n'))
    assert isinstance(good, Record)
    assert isinstance(bad, BadRecord)
    assert bad.line == 2
    assert isinstance(after, Record)
    assert after.value == {"a": 3}


def test_a_truncated_array_gives_its_whole_records_and_then_the_line_it_breaks_on(file: File) -> None:
    *whole, bad = read(file("a.json", '[\n{"a": 1},\n{"a": 2},\n{"a": [3,'))
    assert [record.value for record in whole if isinstance(record, Record)] == [{"a": 1}, {"a": 2}]
    assert isinstance(bad, BadRecord)
    assert (bad.line, bad.found) == (4, "the end of the file inside a record")


def test_nan_is_not_json(file: File) -> None:
    (bad,) = read(file("a.json", '[{"a": NaN}]'))
    assert isinstance(bad, BadRecord)
    assert "NaN" in bad.found


def test_deeply_nested_brackets_are_refused(file: File) -> None:
    (bad,) = read(file("a.json", "[" + "[" * 100_000))
    assert isinstance(bad, BadRecord)


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
                lambda inner: st.lists(inner, max_size=3),
                max_leaves=5,
            ),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 40),
    st.sampled_from([None, 0, 2]),
)
def test_arrays_are_read_alike_whatever_the_size_of_a_block(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]], block: int, indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source.blocks, "__defaults__", (block,))
        assert [r.value for r in streams._json_members(Source(path)) if isinstance(r, Record)] == records


def test_csv_rows_are_keyed_by_the_header_and_know_their_lines(file: File) -> None:
    path = file("a.csv", 'a,b\n1,"two\nlines"\n3,4\n')
    assert list(csv_records(Source(path))) == [
        Record({"a": "1", "b": "two\nlines"}, 2),
        Record({"a": "3", "b": "4"}, 4),
    ]


def test_a_csv_row_of_another_width_is_bad_and_the_next_is_read(file: File) -> None:
    bad, good = csv_records(Source(file("a.csv", "a,b\n1\n3,4\n")))
    assert isinstance(bad, BadRecord)
    assert (bad.line, bad.expected, bad.found) == (2, "2 columns", "1")
    assert good == Record({"a": "3", "b": "4"}, 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("plain", None),
        ("naïve 😀", None),
        ("a\0b", "a NUL character"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "the byte 0xe9"),
        ("\ud800", "the lone surrogate U+D800"),
    ],
)
def test_what_is_not_text_is_named(text: str, problem: str | None) -> None:
    assert why_not_text(text) == problem
