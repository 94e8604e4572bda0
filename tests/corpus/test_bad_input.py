"""Bad input gives one line and nothing is lost: through the command line, as a user meets it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dialoscope.corpus import load
from dialoscope.corpus.formats import FORMATS
from dialoscope.errors import CorpusError, DialoscopeError

File = Callable[[str, str | bytes], Path]
HI = json.dumps({"messages": [{"role": "user", "content": "Hi."}]}).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", HI + HI[:20], ":2: expected one JSON record on a line, found"),
        ("a.jsonl", HI[:20], ":1: expected one JSON record on a line, found"),
        ("a.json", b"[\n" + HI[:-1] + b",\n" + HI[:20], ":3: expected JSON, found the end of the file inside a record"),
        ("a.json", b"[" + HI[:20], ":1: expected JSON, found the end of the file inside a record"),
        ("a.json", b"[]", ":1: expected records that are JSON objects, found none"),
        ("a.json", b"5", ":1: expected records that are JSON objects, found none"),
        ("a.jsonl", HI + HI.replace(b"Hi", b"caf\xe9"), ":2: expected one JSON record on a line, found the byte 0xe9"),
        ("a.txt", b"Hi\n\ncaf\xe9\n", ":3: expected UTF-8 text, found the byte 0xe9"),
        ("a.csv", b"context,response\nHi,caf\xe9\n", ":2: expected UTF-8 text, found the byte 0xe9"),
        ("a.txt", "Hi".encode("utf-16"), ":1: expected UTF-8 text, found UTF-16"),
        ("a.jsonl", HI + b'{"other": 1}\n', ":2: expected a key 'messages', found the keys 'other'"),
        ("a.jsonl", b"", ": expected dialogues, found an empty file"),
        ("a.jsonl", b" \n\n", ": expected dialogues, found an empty file"),
        ("a.jsonl", HI + b'{"messages": []}\n', ":2: expected at least one turn, found none"),
        ("a.jsonl", HI + HI.replace(b"Hi", b"H\0i"), ":2: expected one JSON record on a line, found a NUL character"),
        ("a.jsonl", HI + HI.replace(b"Hi", b"H\\u0000i"), ":2: expected UTF-8 text, found a NUL character"),
        ("a.jsonl", HI + HI.replace(b"Hi", b"\\ud800"), ":2: expected one JSON record on a line, found"),
        ("a.txt", b"Hi\0 __eou__ Yo __eou__\n", ":1: expected UTF-8 text, found a NUL character"),
        ("a.csv", b"context,response\nHi,Hello\nHi\n", ":3: expected 2 columns, found 1"),
        ("a.json.gz", gzip.compress(b"[" + HI * 1000, mtime=0)[:-20], ": expected intact compressed data"),
        ("a.bin", bytes(range(256)), ": expected a known format"),
        ("a.jsonl", b"PK\x03\x04rest", ": expected dialogues, found a zip archive"),
    ],
)
def test_each_kind_of_damage_is_one_line_with_file_and_place(
    file: File, name: str, content: bytes, message: str
) -> None:
    path = file(name, content)
    with pytest.raises(CorpusError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_an_empty_folder_in_place_of_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").mkdir()
    with pytest.raises(CorpusError, match=r"chats\.jsonl: expected dialogue files in this folder, found none"):
        load(tmp_path / "chats.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(file: File) -> None:
    path = file("a.jsonl", HI)
    path.chmod(0)
    with pytest.raises(CorpusError, match="cannot be read"):
        load(path)


def test_a_line_of_fifty_megabytes_is_read(file: File) -> None:
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 50_000_000}]}).encode() + b"\n"
    corpus = load(file("a.jsonl", HI + long + HI))
    assert [len(dialogue.turns[0].text) for dialogue in corpus] == [3, 50_000_000, 3]


def test_fifty_megabytes_of_noise_on_a_line_are_one_bad_record(file: File) -> None:
    corpus = load(file("a.jsonl", HI + b"x" * 50_000_000 + b"\n" + HI), on_error="skip")
    assert (len(corpus), corpus.skipped) == (2, {"expected one JSON record on a line": 1})
    assert len(corpus.problems[0]) < 300


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_mixed_newlines_are_read(file: File, newline: bytes) -> None:
    corpus = load(file("a.jsonl", HI[:-1] + newline + HI[:-1] + b"\n" + HI[:-1]))
    assert len(corpus) == 3


def test_a_bad_file_among_good_ones_is_counted_when_skipping(file: File) -> None:
    file("good.jsonl", HI)
    folder = file("bad.jsonl", b"").parent
    corpus = load(folder, on_error="skip")
    assert (len(corpus), corpus.skipped) == (1, {"expected dialogues": 1})


def test_nothing_but_bad_records_is_an_error_even_when_skipping(file: File) -> None:
    with pytest.raises(CorpusError, match=r"expected dialogues, found none \(1 × expected at least one turn\)"):
        load(file("a.jsonl", b'{"messages": []}\n'), on_error="skip")


ENDINGS = {
    "parquet": ".parquet",
    "pairs": ".csv",
    "ubuntu": ".csv",
    "opensubtitles": ".xml",
    "ubuntu-irc": ".ascii.txt",
}


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.from_regex(rb"[\[{]?[a-z{}\[\]\":, \n\t0-9\\]*", fullmatch=True))
@example(content=b"\xff\xfe\x00")
@example(content=b'{"\\ud800": "\\ud800"}')
def test_arbitrary_bytes_never_crash_a_reader(tmp_path: Path, format: str, content: bytes) -> None:
    path = tmp_path / f"a{ENDINGS.get(format, '.json')}"
    path.write_bytes(content)
    try:
        corpus = load(path, format=format, on_error="skip")
    except DialoscopeError as error:
        assert "\n" not in str(error)
    else:
        assert len(corpus) >= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = """messages role content conversations from value message_tree_id prompt text replies instruction input output
history system goal log metadata dialog_act dialogue_id services turns frames state service slot_values actions speaker
utterance turn_id chosen_topic dialog persona personas meta dialogue dialogId thread userId evaluation context response
annotations id split labels sender"""
KNOWN_KEYS = st.sampled_from(KEYS.split())
SHAPED = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KNOWN_KEYS, inner, max_size=5), max_leaves=15
)


@pytest.mark.parametrize("format", [name for name, form in FORMATS.items() if form.parse])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.dictionaries(KNOWN_KEYS, SHAPED, min_size=1, max_size=5), min_size=1, max_size=3))
def test_records_of_any_shape_never_crash_a_parser(tmp_path: Path, format: str, records: list[object]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    try:
        corpus = load(path, format=format, on_error="skip")
    except DialoscopeError as error:
        assert "\n" not in str(error)
    else:
        whole = len(corpus) + sum(corpus.skipped.values())
        assert whole == len(records) if format != "openassistant" else whole >= len(records)  # a tree is many dialogues
        assert all(dialogue.turns for dialogue in corpus)
