from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialoscope.corpus import Turn, load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'context,response,source\n"Hi, you. __eou__ Hello.",Bye.,web\n'),
        ("a.tsv", "context\tresponse\tsource\nHi, you. __eou__ Hello.\tBye.\tweb\n"),
        ("a.jsonl", '{"context": "Hi, you. __eou__ Hello.", "response": "Bye.", "source": "web"}\n'),
    ],
)
def test_pairs_are_dialogues_and_other_columns_are_labels(file: File, name: str, content: str) -> None:
    (dialogue,) = load(file(name, content))
    assert dialogue.turns == (Turn("A", "Hi, you."), Turn("B", "Hello."), Turn("A", "Bye."))
    assert dialogue.labels == {"source": "web"}


@pytest.mark.parametrize("header", ["query,reply", "Question,Answer", "prompt,completion", "source,target"])
def test_pairs_may_be_named_as_others_name_them(file: File, header: str) -> None:
    assert load(file("a.csv", f"{header}\nHi.,Hello.\n"))[0].texts == ["Hi.", "Hello."]


def test_a_table_without_a_response_is_reported(file: File) -> None:
    with pytest.raises(CorpusError, match=r"a\.csv:2: expected a column context or"):
        load(file("a.csv", "context,other\nHi.,Hello.\n"))


def test_lists_of_utterances_take_lists_beside_them_as_turn_labels(file: File) -> None:
    (dialogue,) = load(file("a.jsonl", '{"dialog": ["Hi.", "Hello."], "act": [1, 2], "topic": 3}\n'))
    assert dialogue.turns == (Turn("A", "Hi.", {"act": 1}), Turn("B", "Hello.", {"act": 2}))
    assert dialogue.labels == {"topic": 3}


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        (
            {"messages": [[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]]},
            ["Hi.", "Hello."],
        ),
        ({"conversations": [[{"from": "human", "value": "Hi."}]]}, ["Hi."]),
        ({"prompt": ["Hi."], "completion": ["Hello."]}, ["Hi.", "Hello."]),
        ({"dialog": [["Hi.", "Hello."]], "act": [[1, 2]]}, ["Hi.", "Hello."]),
        ({"instruction": ["Add."], "input": ["1 2"], "output": ["3"]}, ["Add.\n1 2", "3"]),
    ],
)
def test_parquet_of_known_columns_is_read(tmp_path: Path, columns: dict[str, list[object]], texts: list[str]) -> None:
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    (dialogue,) = load(tmp_path)
    assert (dialogue.texts, dialogue.split) == (texts, "train")


def test_parquet_of_unknown_columns_is_an_error_that_names_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match="found the columns x, y"):
        load(tmp_path / "a.parquet")


def test_a_damaged_parquet_file_is_an_error(file: File) -> None:
    with pytest.raises(CorpusError, match="expected a Parquet file, found a damaged one"):
        load(file("a.parquet", b"PAR1 but not really"))


def test_parquet_in_our_form_must_have_turns_everywhere(tmp_path: Path) -> None:
    from dialoscope.corpus.dialogue import SCHEMA

    rows = pa.Table.from_pylist([{"id": "x", "split": "all", "labels": None, "turns": []}], schema=SCHEMA)
    pq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"a\.parquet:1: expected at least one turn, found none"):
        load(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "change",
    [
        {"turns": [{"speaker": "A", "text": None, "labels": None}]},
        {"labels": "no json"},
        {"labels": "[1]"},
        {"id": None},
    ],
)
def test_a_bad_row_in_our_form_is_counted_and_the_others_are_read(tmp_path: Path, change: dict[str, object]) -> None:
    from dialoscope.corpus.dialogue import SCHEMA

    row = {"id": "x", "split": "all", "labels": None, "turns": [{"speaker": "A", "text": "Hi.", "labels": None}]}
    pq.write_table(pa.Table.from_pylist([row, {**row, **change}, row], schema=SCHEMA), tmp_path / "a.parquet")
    corpus = load(tmp_path / "a.parquet", on_error="skip")
    assert (len(corpus), sum(corpus.skipped.values())) == (2, 1)
    assert corpus.problems[0].startswith(f"{tmp_path / 'a.parquet'}:2: ")


def test_our_form_is_recognised_with_large_strings_as_other_tools_write_them(tmp_path: Path) -> None:
    turn = pa.struct([("speaker", pa.large_string()), ("text", pa.large_string()), ("labels", pa.large_string())])
    fields = [(name, pa.large_string()) for name in ("id", "split", "labels")]
    schema = pa.schema([*fields, ("turns", pa.large_list(turn))])
    row = {"id": "x", "split": "all", "labels": None, "turns": [{"speaker": "A", "text": "Hi.", "labels": None}]}
    pq.write_table(pa.Table.from_pylist([row], schema=schema), tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet")[0].texts == ["Hi."]


def test_a_saved_data_set_is_read_by_split(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the hub extra is not installed")
    rows = {"messages": [[{"role": "user", "content": "Hi."}]] * 3}
    datasets.disable_progress_bars()
    saved = datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows), "dev": datasets.Dataset.from_dict(rows)})
    saved.save_to_disk(str(tmp_path / "saved"))
    corpus = load(tmp_path / "saved")
    assert (corpus.format, corpus.splits) == ("hf", {"train": 3, "validation": 3})


def test_a_hub_name_that_cannot_be_loaded_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets", reason="the hub extra is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CorpusError, match=r"hf:.*nowhere: the data set cannot be loaded") as caught:
        load(f"hf:{tmp_path}/nowhere")
    assert "\n" not in str(caught.value)
