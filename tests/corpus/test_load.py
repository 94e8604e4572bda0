from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn, load
from dialoscope.corpus.formats import FORMATS, detect
from dialoscope.corpus.streams import Source
from dialoscope.errors import CorpusError, DialoscopeError, UsageError

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


# --- Records, and two sides -------------------------------------------------------------------------------------------


def said(*texts: str, **more: object) -> dict[str, object]:
    """A record of the `messages` format."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)], **more}


def turns(corpus: Corpus) -> list[list[tuple[str, str]]]:
    return [[(turn.speaker, turn.text) for turn in dialogue.turns] for dialogue in corpus]


RECORDS = [said("Hi.", "Hello."), said("Where?", "There.", "Thanks."), said("Bye."), said("a b c", "a b d")]


def test_records_are_read_as_the_lines_of_a_file_are(file: File) -> None:
    path = file("in/records.jsonl", "".join(json.dumps(record) + "\n" for record in RECORDS))
    records, lines = load(RECORDS), load(path)
    assert turns(records) == turns(lines)
    assert (records.splits, records.format, records.name) == (lines.splits, lines.format, "records")
    assert records.fingerprint == lines.fingerprint


def test_records_and_their_file_give_the_same_scores(file: File) -> None:
    from dialoscope.overlap import measure

    records = [said(f"text {n % 7}", f"answer {n % 5} to it") for n in range(40)]
    path = file("in/chats.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    scores = [measure(load(source)).to_dict()["scores"] for source in (records, path)]
    assert scores[0] == scores[1]


def test_records_name_their_splits_and_ids() -> None:
    corpus = load([said("Hi.", "Ho.", split="train", id="x"), said("Hi.", "Ho.", split="test")])
    assert corpus.splits == {"train": 1, "test": 1}
    assert [dialogue.id for dialogue in corpus] == ["x", "records-2"]


def test_a_bad_record_is_named_by_its_number() -> None:
    records = [said("Hi."), {"messages": []}]
    with pytest.raises(CorpusError, match=r"^mine, record 2: expected at least one turn, found none$"):
        load(records, name="mine")
    heard: list[str] = []
    corpus = load(records, on_error="skip", on_problem=heard.append)
    assert (len(corpus), corpus.bad_records, heard) == (1, 1, list(corpus.problems))
    assert heard == ["records, record 2: expected at least one turn, found none"]


@pytest.mark.parametrize("name", ["test-set", "dev/set", "a.jsonl"])
def test_the_name_of_records_is_no_split(name: str) -> None:
    corpus = load(RECORDS, name=name)
    assert (corpus.name, corpus.splits) == (name, {"all": 4})


def test_dialogues_in_memory_are_a_corpus() -> None:
    made = [Dialogue((Turn("A", "Hi."), Turn("B", "Ho.")), "x", "train")]
    assert turns(load(made)) == [[("A", "Hi."), ("B", "Ho.")]]


def test_a_list_of_paths_is_read_like_paths(file: File) -> None:
    paths = [file("a.jsonl", HI), file("b.jsonl", HI * 2)]
    assert load(paths).fingerprint == load(*paths).fingerprint


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "The list of records is empty."),
        ([{1, 2}], "A record holds what JSON can hold; Type is not JSON serializable: set."),
        (3, "load takes paths, names or a list of records, found int."),
        ({"messages": []}, "load takes paths, names or a list of records, found dict."),
        ((each for each in RECORDS), "load takes paths, names or a list of records, found generator."),
    ],
)
def test_what_is_no_corpus_is_refused_in_one_line(source: object, message: str) -> None:
    with pytest.raises(DialoscopeError) as caught:
        load(source)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_limit_below_one_is_refused() -> None:
    for limit in (0, 1.5, True):
        with pytest.raises(UsageError, match=r"^limit takes a whole number of 1 or more, found "):
            load(RECORDS, limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(("split", "expected"), [("test", {"test": 1}), ("eval", {"test": 1})])
def test_one_split_can_be_loaded_by_any_of_its_names(file: File, split: str, expected: dict[str, int]) -> None:
    file("train.jsonl", HI * 2)
    folder = file("eval.jsonl", HI).parent
    assert load(folder, split=split).splits == expected


def test_several_splits_can_be_loaded() -> None:
    assert load("concierge", split="test, dev").splits == {"validation": 500, "test": 500}
    with pytest.raises(UsageError, match=r"^No split 'tset' in records\. Splits present: all\."):
        load(RECORDS, split="tset")


@pytest.mark.parametrize("name", ["eval", "evaluation", "holdout", "heldout", "test"])
def test_an_evaluation_file_is_the_test_split(file: File, name: str) -> None:
    file("train.jsonl", HI)
    assert load(file(f"{name}.jsonl", HI).parent).splits == {"train": 1, "test": 1}


def test_two_files_are_one_corpus_whatever_they_are_called(file: File) -> None:
    train, test = file("chats.jsonl", HI * 3), file("train_new.jsonl", HI * 2)
    corpus = load(train=train, test=test)
    assert corpus.splits == {"train": 3, "test": 2}
    assert corpus.name == "chats and train_new"
    assert [dialogue.id for dialogue in corpus][2:4] == ["chats-3", "train_new-1"]


def test_two_sides_may_be_records_or_a_corpus(file: File) -> None:
    path = file("b.jsonl", HI)
    assert load(train=RECORDS, test=path).splits == {"train": 4, "test": 1}
    assert load(train=load(RECORDS), test=RECORDS[:2]).splits == {"train": 4, "test": 2}


def test_several_files_of_a_side_are_read_whole(file: File) -> None:
    train, test = [file("train.jsonl", HI), file("valid.jsonl", HI * 2)], [file("x.jsonl", HI)]
    assert load(train=train, test=test).splits == {"train": 3, "test": 1}


def test_of_a_folder_with_splits_a_side_takes_its_own(file: File) -> None:
    file("one/train.jsonl", HI * 3)
    one = file("one/test.jsonl", HI).parent
    assert load(train=one, test=one).splits == {"train": 3, "test": 1}
    file("two/train.jsonl", HI)
    two = file("two/valid.jsonl", HI).parent
    with pytest.raises(UsageError, match=r"No split 'test' in two\. Splits present: train, validation"):
        load(train=one, test=two)


def test_ids_of_two_sides_are_distinct(file: File) -> None:
    corpus = load(train=file("a/chats.jsonl", HI * 2), test=file("b/chats.jsonl", HI))
    assert [dialogue.id for dialogue in corpus] == ["train/chats-1", "train/chats-2", "test/chats-1"]


def test_what_two_sides_skipped_is_added(file: File) -> None:
    bad = HI + "broken\n"
    corpus = load(train=file("a.jsonl", bad), test=file("b.jsonl", bad), on_error="skip")
    assert corpus.skipped == {"expected one JSON record on a line": 2}
    assert (corpus.bad_records, len(corpus.problems)) == (2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": RECORDS}, "Give both train and test; test is missing."),
        ({"test": RECORDS}, "Give both train and test; train is missing."),
    ],
)
def test_one_side_is_not_enough(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(**options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_corpus_and_two_sides_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"^Give one corpus, or training and test data"):
        load("concierge", train=RECORDS, test=RECORDS)
