from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dialoscope.corpus import load
from dialoscope.corpus.formats import FORMATS, detect
from dialoscope.corpus.streams import Source
from dialoscope.errors import CorpusError, UsageError

File = Callable[[str, str | bytes], Path]
HI = json.dumps({"messages": [{"role": "user", "content": "Hi."}]}) + "\n"


def test_a_folder_gives_a_split_for_each_file_name(file: File) -> None:
    file("train.jsonl", HI * 3)
    file("dev.jsonl.gz", gzip.compress(HI.encode() * 2))
    folder = file("test/part.jsonl", HI).parents[1]
    assert load(folder).splits == {"train": 3, "validation": 2, "test": 1}


def test_ids_made_by_us_say_where_a_dialogue_came_from(file: File) -> None:
    file("test/chats.jsonl", HI)
    folder = file("train/chats.jsonl.gz", gzip.compress(HI.encode() * 2)).parents[1]
    assert [dialogue.id for dialogue in load(folder)] == ["train/chats-1", "train/chats-2", "test/chats-1"]


def test_several_paths_make_one_corpus(file: File) -> None:
    assert len(load(file("a.jsonl", HI), file("b/c.jsonl", HI * 2))) == 3


def test_files_are_read_in_natural_order(file: File) -> None:
    for n in (10, 9, 1):
        folder = file(f"part_{n}.jsonl", HI).parent
    assert [dialogue.id for dialogue in load(folder)] == ["part_1-1", "part_9-1", "part_10-1"]


def test_files_that_are_no_data_are_listed_as_ignored(file: File) -> None:
    file("README.md", "Read me.")
    folder = file("chats.jsonl", HI).parent
    assert {Path(path).name: reason for path, reason in load(folder).ignored.items()} == {
        "README.md": "not a data file"
    }


def test_a_limit_counts_dialogues_of_each_split(file: File) -> None:
    file("train.jsonl", HI * 5)
    folder = file("test.jsonl", HI * 2).parent
    assert load(folder, limit=3).splits == {"train": 3, "test": 2}


def test_a_limit_counts_the_splits_that_records_name(file: File) -> None:
    record = {"messages": [{"role": "user", "content": "Hi."}]}
    lines = [json.dumps({**record, "split": split}) for split in ["train", "test", "train", "train"]]
    assert load(file("a.jsonl", "\n".join(lines)), limit=2).splits == {"train": 2, "test": 1}


@pytest.mark.parametrize("extra", [{}, {"source": "web"}, {"parts": True}])
def test_a_limit_reads_on_where_records_name_their_splits(file: File, extra: dict[str, object]) -> None:
    content = ["Hi."] if extra.pop("parts", False) else "Hi."
    record = {"messages": [{"role": "user", "content": content}], **extra}
    lines = [json.dumps({**record, "split": split}) for split in ["train"] * 5 + ["test"] * 5]
    assert load(file("train.jsonl", "\n".join(lines)), limit=2).splits == {"train": 2, "test": 2}


def test_what_is_hidden_is_not_read(file: File) -> None:
    file(".dialoscope-partial-abc/train.jsonl", HI)
    folder = file("chats.jsonl", HI).parent
    assert len(load(folder)) == 1


def test_ids_made_by_us_differ_where_file_names_do(file: File) -> None:
    file("part.000.jsonl", HI)
    folder = file("part.001.jsonl", HI).parent
    assert [dialogue.id for dialogue in load(folder)] == ["part.000-1", "part.001-1"]


def test_a_link_keeps_its_own_name(file: File, tmp_path: Path) -> None:
    file("blobs/abc123", HI)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test.jsonl").symlink_to(tmp_path / "blobs" / "abc123")
    corpus = load(tmp_path / "data" / "test.jsonl")
    assert (corpus.name, corpus.splits) == ("test", {"test": 1})


def test_linked_folders_are_read_once(file: File, tmp_path: Path) -> None:
    file("elsewhere/chats.jsonl", HI)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "round").symlink_to(tmp_path / "data")
    assert load(tmp_path / "data").splits == {"test": 1}


def test_what_is_no_file_is_listed_and_not_waited_for(file: File) -> None:
    folder = file("chats.jsonl", HI).parent
    os.mkfifo(folder / "pipe.jsonl")
    assert load(folder).ignored == {str(folder / "pipe.jsonl"): "not a file"}
    with pytest.raises(CorpusError, match="expected a file or a folder, found something else"):
        load(folder / "pipe.jsonl")


def test_splits_may_be_interleaved(file: File) -> None:
    record = {"messages": [{"role": "user", "content": "Hi."}]}
    lines = [json.dumps({**record, "id": f"d{n}", "split": ["test", "train"][n % 2]}) for n in range(6)]
    corpus = load(file("a.jsonl", "\n".join(lines)))
    assert [dialogue.id for dialogue in corpus] == ["d1", "d3", "d5", "d0", "d2", "d4"]


def test_what_was_read_before_a_file_breaks_off_is_kept(file: File) -> None:
    rng = np.random.default_rng(0)
    lines = [HI.replace("Hi.", rng.bytes(200).hex()) for _ in range(40_000)]
    whole = gzip.compress("".join(lines).encode(), compresslevel=1)
    path = file("a.jsonl.gz", whole[: len(whole) * 4 // 5])
    corpus = load(path, on_error="skip")
    assert 0.7 * 40_000 < len(corpus) < 0.81 * 40_000
    assert corpus.skipped == {"expected intact compressed data": 1}


def test_skipped_records_are_counted_by_reason_and_the_first_are_quoted(file: File) -> None:
    path = file("a.jsonl", HI + '{"messages": []}\n' * 2 + "broken\n" + HI)
    corpus = load(path, on_error="skip")
    assert len(corpus) == 2
    assert corpus.skipped == {"expected at least one turn": 2, "expected one JSON record on a line": 1}
    assert corpus.problems[0] == f"{path}:2: expected at least one turn, found none"


def test_progress_ends_at_the_whole(file: File) -> None:
    calls: list[tuple[int, int]] = []
    path = file("a.jsonl", HI * 100)
    load(path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)


def test_the_built_in_corpus_needs_no_file() -> None:
    corpus = load("concierge", limit=5)
    assert (corpus.name, corpus.format, corpus.splits) == (
        "concierge",
        "concierge",
        {"train": 5, "validation": 5, "test": 5},
    )


@pytest.mark.parametrize(
    ("given", "hint"),
    [("conciege", "Did you mean 'concierge'?"), ("nowhere/at/all", "Built in: concierge, chitchat")],
)
def test_an_unknown_name_gets_a_suggestion(given: str, hint: str) -> None:
    with pytest.raises(CorpusError, match=hint.replace("?", r"\?")):
        load(given)


def test_a_misspelt_path_gets_its_neighbour_as_a_suggestion(file: File) -> None:
    path = file("chats.jsonl", HI)
    with pytest.raises(CorpusError, match=r"Did you mean '.*chats\.jsonl'\?"):
        load(path.with_name("chat.jsonl"))


def test_an_unknown_format_gets_a_suggestion(file: File) -> None:
    with pytest.raises(UsageError, match=r"Unknown format 'mesages'\. Did you mean 'messages'\?"):
        load(file("a.jsonl", HI), format="mesages")


def test_no_path_at_all_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least one path"):
        load()


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("dailydialog/test/dialogues_test.txt.gz", "dailydialog"),
        ("dailydialog_human/DailyDialog_groungtruth_annotated.csv", "dailydialog-human"),
        ("dailydialog_human/Eng_Scores_queries_gen_gtruth_replies.csv", "dailydialog-human"),
        ("empathetic_dialogues/test.csv.gz", "empathetic-dialogues"),
        ("multiwoz21/val.json.gz", "multiwoz"),
        ("multiwoz22_text/dev_dialogues_001.txt.gz", "text"),
        ("personachat/valid_self_original_no_cands.txt.gz", "personachat"),
        ("personachat/fsb_persona_valid.json.gz", "meta-dialogue"),
        ("wizard_of_wikipedia/test.json.gz", "meta-dialogue"),
        ("chat_formats/oasst_en_100_tree.jsonl", "openassistant"),
    ],
)
def test_real_files_are_recognised(data: Path, name: str, format: str) -> None:
    assert detect(Source(data / name)) == format


def test_every_format_has_a_title_and_an_example() -> None:
    assert all(form.title and form.example and (form.parse or form.read) for form in FORMATS.values())
