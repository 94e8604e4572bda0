from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn, load, write
from dialoscope.corpus.write import MARKER, WRITERS, split_names
from dialoscope.errors import OutputError, UsageError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
KEY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=6,
)
LABELS = st.dictionaries(KEY, JSON, max_size=3)
TURN = st.builds(Turn, TEXT, TEXT, LABELS)
ODD_SPLITS = [
    "a/b",
    "a_b",
    "README",
    "readme",
    "license-x",
    "CHANGELOG",
    "dialogues_train",
    "dialogues_act_test",
    "train_self_original",
    "train_both_original",
    ".hidden",
    "..",
    "../../escaped",
    "/dev/null/escaped",
    "Train",
    "TRAIN",
    "split",
    "split_1",
    "split_2",
    "valListFile",
    "a.ascii",
    "a.annotation",
    "a.dialoscope",
    "state",
    "dataset_dict",
    "été",
    "x" * 300,
    "two\nlines",
]
SPLIT = st.sampled_from(["train", "validation", "test", "all"]) | st.sampled_from(ODD_SPLITS) | KEY
DIALOGUE = st.builds(
    Dialogue,
    st.lists(TURN, min_size=1, max_size=4).map(tuple),
    KEY,
    SPLIT,
    LABELS,
)


@pytest.mark.parametrize("to", WRITERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dialogues=st.lists(DIALOGUE, min_size=1, max_size=5))
def test_what_is_written_is_read_back_whole(tmp_path: Path, to: str, dialogues: list[Dialogue]) -> None:
    if to == "hf":
        pytest.importorskip("datasets", reason="the hub extra is not installed")
    corpus = Corpus.of(dialogues)
    write(corpus, tmp_path / "out", to=to, overwrite=True)
    found = load(tmp_path / "out")
    assert {split: [d for d in found if d.split == split] for split in found.splits} == {
        split: [d for d in dialogues if d.split == split] for split in corpus.splits
    }
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("to", WRITERS)
def test_no_two_splits_share_a_file_and_no_reader_takes_one_for_another_format(tmp_path: Path, to: str) -> None:
    if to == "hf":
        pytest.importorskip("datasets", reason="the hub extra is not installed")
    corpus = Corpus.of([Dialogue((Turn("A", "Hi."),), f"d{n}", split) for n, split in enumerate(ODD_SPLITS)])
    write(corpus, tmp_path / "deep" / "down" / "out", to=to)
    assert {d.id: d.split for d in load(tmp_path / "deep" / "down" / "out")} == {
        f"d{n}": split for n, split in enumerate(ODD_SPLITS)
    }
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_plain_split_names_stay_and_others_are_numbered() -> None:
    assert split_names(["train", "validation", "test", "all", "test_seen", "a/b", "README", "Train"]) == {
        "train": "train",
        "validation": "validation",
        "test": "test",
        "all": "all",
        "test_seen": "test_seen",
        "a/b": "split_6",
        "README": "split_7",
        "Train": "split_8",
    }


SMALL = Corpus.of([Dialogue((Turn("A", "Hi."), Turn("B", "Hello.")), "d", "train", {"topic": "greeting"})])


@pytest.mark.parametrize(("to", "name"), [("messages", "a.jsonl"), ("parquet", "a.parquet")])
def test_a_target_with_the_formats_ending_is_one_file(tmp_path: Path, to: str, name: str) -> None:
    assert write(SMALL, tmp_path / name, to=to) == [tmp_path / name]
    assert load(tmp_path / name).fingerprint == SMALL.fingerprint


def test_plain_text_stays_plain(tmp_path: Path) -> None:
    write(SMALL, tmp_path / "out", to="text")
    assert (tmp_path / "out" / "train.txt").read_text() == "Hi. __eou__ Hello. __eou__\n"


def test_messages_are_what_chat_tools_expect(tmp_path: Path) -> None:
    import json

    write(SMALL, tmp_path / "a.jsonl")
    record = json.loads((tmp_path / "a.jsonl").read_text())
    assert record["messages"] == [{"role": "A", "content": "Hi."}, {"role": "B", "content": "Hello."}]


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    write(SMALL, tmp_path / "out")
    with pytest.raises(OutputError, match=r"this folder is not empty\. Give a new one, or --overwrite"):
        write(SMALL, tmp_path / "out")
    write(SMALL, tmp_path / "a.jsonl")
    with pytest.raises(OutputError, match=r"this file exists\. Give a new name, or --overwrite"):
        write(SMALL, tmp_path / "a.jsonl")


@pytest.mark.parametrize("to", WRITERS)
def test_what_we_wrote_ourselves_is_replaced_where_asked(tmp_path: Path, to: str) -> None:
    if to == "hf":
        pytest.importorskip("datasets", reason="the hub extra is not installed")
    for each in WRITERS if to == "hf" else ("messages", "parquet", "text"):
        write(SMALL, tmp_path / "out", to=each, overwrite=True)
    written = write(SMALL, tmp_path / "out", to=to, overwrite=True)
    assert {path.name for path in written} == {path.name for path in (tmp_path / "out").iterdir()} - {MARKER}
    assert load(tmp_path / "out").fingerprint == SMALL.fingerprint


@pytest.mark.parametrize("name", ["notes.md", "train.jsonl", "in/chats.jsonl", ".git/config"])
def test_a_folder_that_we_did_not_write_is_never_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).parent.mkdir(parents=True)
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(OutputError, match="expected a folder that Dialoscope wrote, found '") as caught:
        write(SMALL, tmp_path / "out", overwrite=True)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["notes.md", "extra.jsonl", "more/chats.jsonl"])
def test_a_file_put_beside_ours_keeps_the_folder(tmp_path: Path, name: str) -> None:
    write(SMALL, tmp_path / "out")
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(OutputError, match=f"found '{name}', which it did not"):
        write(SMALL, tmp_path / "out", to="parquet", overwrite=True)
    assert (tmp_path / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("marker", ["", "{}", "[]", '{"files": 3}', "not json"])
def test_a_marker_that_is_not_ours_does_not_give_a_folder_away(tmp_path: Path, marker: str) -> None:
    (tmp_path / MARKER).write_text(marker)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="expected a folder that Dialoscope wrote"):
        write(SMALL, tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_the_input_is_not_replaced_by_its_conversion(tmp_path: Path) -> None:
    write(SMALL, tmp_path / "chats.jsonl")
    with pytest.raises(OutputError, match=r"found 'chats\.jsonl'"):
        write(load(tmp_path / "chats.jsonl"), tmp_path, to="text", overwrite=True)
    assert load(tmp_path / "chats.jsonl").fingerprint == SMALL.fingerprint


@pytest.mark.parametrize(
    ("to", "name", "expected"),
    [
        ("messages", "out.json", "a file name that ends in .jsonl, or the name of a folder, found '.json'"),
        ("messages", "out.jsonl.gz", "a file name that ends in .jsonl, or the name of a folder, found '.gz'"),
        ("messages", "OUT.JSONL", "a file name that ends in .jsonl, or the name of a folder, found '.JSONL'"),
        ("messages", "out.csv", "a file name that ends in .jsonl"),
        ("messages", "x.txt", "a file name that ends in .jsonl"),
        ("parquet", "out.jsonl", "a file name that ends in .parquet"),
        ("text", "out.txt", "the name of a folder, found '.txt'"),
        ("hf", "out.parquet", "the name of a folder, found '.parquet'"),
    ],
)
def test_a_file_name_of_another_format_does_not_become_a_folder(
    tmp_path: Path, to: str, name: str, expected: str
) -> None:
    with pytest.raises(OutputError, match=re.escape(f"{name}: the format {to} expects {expected}")):
        write(SMALL, tmp_path / name, to=to)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_have_a_dot_in_its_name(tmp_path: Path) -> None:
    assert write(SMALL, tmp_path / "corpus.v2") == [tmp_path / "corpus.v2" / "train.jsonl"]


@pytest.mark.parametrize("to", WRITERS)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_device_is_no_place_to_write(to: str, overwrite: bool) -> None:
    with pytest.raises(OutputError, match="found a device, pipe or socket"):
        write(SMALL, "/dev/full", to=to, overwrite=overwrite)


FULL_DISK = """
import resource, sys
from dialoscope.corpus import generate, write
from dialoscope.errors import OutputError
corpus = generate(dialogues=500, seed=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(corpus, sys.argv[1], to=sys.argv[2])
except OutputError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("to", "name"),
    [
        ("messages", "a.jsonl"),
        ("messages", "out"),
        ("parquet", "a.parquet"),
        ("parquet", "out"),
        ("text", "out"),
        ("hf", "out"),
    ],
)
def test_a_disk_that_takes_no_more_is_one_line_and_leaves_nothing(tmp_path: Path, to: str, name: str) -> None:
    if to == "hf":
        pytest.importorskip("datasets", reason="the hub extra is not installed")
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / name), to]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / name}: cannot be written: File too large. {ADVICE}\n"
    assert list(tmp_path.iterdir()) == []


ADVICE = "Make room for it or give another path."


@pytest.mark.parametrize("to", ["messages", "parquet", "text"])
@pytest.mark.parametrize("levels", [10, 300, 800])
def test_labels_however_deep_are_written(tmp_path: Path, to: str, levels: int) -> None:
    deep: dict[str, Any] = {"bottom": 1}
    for _ in range(levels):
        deep = {"a": deep}
    corpus = Corpus.of([Dialogue((Turn("A", "Hi.", deep), Turn("B", "Hello.")), "d", "train", deep)])
    write(corpus, tmp_path / "out", to=to)
    assert load(tmp_path / "out").fingerprint == corpus.fingerprint


@pytest.mark.parametrize("text", ["__eo__eou__u__", "__eou____eou__", "__e__eo__eou__u__ou__ x", "__eou__"])
def test_a_turn_that_hides_an_end_of_turn_is_kept(tmp_path: Path, text: str) -> None:
    corpus = Corpus.of([Dialogue((Turn("A", text), Turn("B", "Hello.")), "d", "train")])
    write(corpus, tmp_path / "out", to="text")
    assert (tmp_path / "out" / "train.txt").read_text().count("__eou__") == 2
    assert load(tmp_path / "out").fingerprint == corpus.fingerprint


def test_a_companion_that_does_not_fit_its_text_is_reported(tmp_path: Path) -> None:
    write(SMALL, tmp_path / "out", to="text")
    (tmp_path / "out" / "train.txt").write_text("Hi. __eou__\n")
    with pytest.raises(Exception, match=r"train\.txt:1: expected 1 speakers in train\.dialoscope\.jsonl, found 2"):
        load(tmp_path / "out")


def test_an_unknown_target_format_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Unknown target format 'parket'\. Did you mean 'parquet'"):
        write(SMALL, tmp_path / "out", to="parket")
