from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialoscope.errors import CorpusError, UsageError
from dialoscope.overlap.tables import read_texts

File = Callable[[str, str | bytes], Path]
JSONL = '{"text": "a b", "meta": {"n": [1]}}\n{"text": "c"}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", JSONL),
        ("a.ndjson", JSONL),
        ("a.csv", 'n,text\n1,a b\n2,"c"\n'),
        ("a.tsv", "n\ttext\n1\ta b\n2\tc\n"),
        ("a.jsonl.gz", gzip.compress(JSONL.encode(), mtime=0)),
    ],
)
def test_a_column_is_read_from_any_table(file: File, name: str, content: str | bytes) -> None:
    path = file(name, content)
    read = read_texts([path], column="text")
    assert [(dialogue.id, dialogue.texts) for dialogue in read.corpus] == [(f"{path}#1", ["a b"]), (f"{path}#2", ["c"])]
    assert read.rows["all"]["text"].to_pylist() == ["a b", "c"]


def test_numbers_and_blanks_in_a_csv_column_are_texts(file: File) -> None:
    read = read_texts([file("a.csv", "text,n\n17,1\nNA,2\n")], column="text")
    assert [dialogue.texts for dialogue in read.corpus] == [["17"], ["NA"]]


def test_several_files_and_folders_are_one_corpus(file: File, tmp_path: Path) -> None:
    file("in/b.jsonl", JSONL)
    pq.write_table(pa.table({"text": ["x"], "n": [1]}), tmp_path / "in" / "a.parquet")
    read = read_texts([tmp_path / "in", file("c.csv", "text\ny\n")], column="text")
    assert [dialogue.texts[0] for dialogue in read.corpus] == ["x", "a b", "c", "y"]
    assert read.rows["all"].to_pylist()[:2] == [
        {"text": "x", "n": 1, "meta": None},
        {"text": "a b", "n": None, "meta": {"n": [1]}},
    ]
    assert read.corpus.name == "in and 1 more"


def test_training_and_test_tables_are_splits_of_one_corpus(file: File) -> None:
    train, test = file("a.csv", "text\nx\ny\n"), file("b.csv", "text\nz\n")
    read = read_texts(column="text", train=[train], test=[test])
    assert read.corpus.splits == {"train": 2, "test": 1}
    assert {split: rows["text"].to_pylist() for split, rows in read.rows.items()} == {
        "train": ["x", "y"],
        "test": ["z"],
    }


@pytest.mark.parametrize(("paths", "sides"), [((), {}), (["a.csv"], {"train": ["a.csv"]}), ((), {"test": ["a.csv"]})])
def test_one_table_or_both_sides_are_read(paths: list[str], sides: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match="Give one table, or both --train and --test"):
        read_texts(paths, column="text", **sides)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"txt": "a"}\n', "no column 'text'. Columns: txt."),
        ("a.jsonl", '{"text": 1}\n', "column 'text': expected texts, found int64"),
        ("a.jsonl", '{"text": "a"}\n{"text": null}\n', "column 'text', row 2: expected a text, found none"),
        ("a.jsonl", "broken\n", "expected a .jsonl table, found something else"),
        ("a.parquet", "broken\n", "expected a .parquet table, found something else"),
        ("a.txt", "a\n", "a column is read from .parquet, .jsonl, .ndjson, .csv, .tsv files"),
    ],
)
def test_a_table_without_the_texts_is_one_line(file: File, name: str, content: str, message: str) -> None:
    path = file(name, content)
    with pytest.raises((CorpusError, UsageError)) as raised:
        read_texts([path], column="text")
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_an_empty_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no such file"):
        read_texts([tmp_path / "none.csv"], column="text")
    with pytest.raises(CorpusError, match="files in this folder, found none"):
        read_texts([tmp_path], column="text")
