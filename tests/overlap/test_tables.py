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
    side = read_texts([path], column="text")
    assert (side.texts[0].to_pylist(), side.ids.to_pylist()) == (["a b", "c"], [f"{path}#1", f"{path}#2"])


def test_numbers_and_blanks_in_a_csv_column_are_texts(file: File) -> None:
    assert read_texts([file("a.csv", "text,n\n17,1\nNA,2\n")], column="text").texts[0].to_pylist() == ["17", "NA"]


def test_several_files_and_folders_are_one_side(file: File, tmp_path: Path) -> None:
    file("in/b.jsonl", JSONL)
    pq.write_table(pa.table({"text": ["x"], "n": [1]}), tmp_path / "in" / "a.parquet")
    side = read_texts([tmp_path / "in", file("c.csv", "text\ny\n")], column="text")
    assert side.texts[0].to_pylist() == ["x", "a b", "c", "y"]
    assert side.name.startswith("a.parquet and 2 more@")


def test_a_limit_takes_the_first_rows_and_a_seed_draws_them(file: File) -> None:
    path = file("a.csv", "text\n" + "".join(f"w{n}\n" for n in range(30)))
    first, drawn, same = (read_texts([path], column="text", limit=3, seed=seed) for seed in (None, 1, 1))
    assert first.texts[0].to_pylist() == ["w0", "w1", "w2"]
    assert drawn.ids.to_pylist() == same.ids.to_pylist() != first.ids.to_pylist()


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
