from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Turn, load
from dialoscope.corpus.readers import parsed
from dialoscope.corpus.readers.chat import parse_messages, read_messages
from dialoscope.corpus.streams import Source, json_records
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]


def jsonl(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def chat(*contents: Any, **others: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": c} for i, c in enumerate(contents)], **others}


# --- messages ---------------------------------------------------------------------------------------------------------


def test_messages_keep_roles_and_contents(file: File) -> None:
    (dialogue,) = load(file("a.jsonl", jsonl(chat("Hi.", "Hello."))))
    assert dialogue.turns == (Turn("user", "Hi."), Turn("assistant", "Hello."))


def test_system_and_tool_roles_are_kept(file: File) -> None:
    roles = ["system", "user", "assistant", "tool"]
    record = {"messages": [{"role": role, "content": role} for role in roles]}
    (dialogue,) = load(file("a.jsonl", jsonl(record)))
    assert [turn.speaker for turn in dialogue.turns] == roles


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "text", "value": "one"}], "one"),
        ([{"type": "input_text", "text": "one"}, {"type": "output_text", "text": "two"}], "one\ntwo"),
        (["one", "two"], "one\ntwo"),
        ([], ""),
    ],
)
def test_content_parts_become_text(file: File, content: Any, text: str) -> None:
    (dialogue,) = load(file("a.jsonl", jsonl(chat(content))))
    assert dialogue.turns[0].text == text


def test_parts_that_are_no_text_are_kept_as_a_label(file: File) -> None:
    image = {"type": "image_url", "image_url": {"url": "cat.png"}}
    (dialogue,) = load(file("a.jsonl", jsonl(chat([{"type": "text", "text": "Look:"}, image]))))
    assert dialogue.turns == (Turn("user", "Look:", {"parts": [image]}),)


@pytest.mark.parametrize("content", [{}, {"content": None}])
@pytest.mark.parametrize("key", ["tool_calls", "function_call", "refusal"])
def test_a_message_that_only_calls_a_tool_has_no_text_and_keeps_the_call(
    file: File, key: str, content: dict[str, None]
) -> None:
    call = [{"id": "1", "function": {"name": "search"}}]
    record = {"messages": [{"role": "assistant", key: call, **content}, {"role": "user", "content": "Thanks."}]}
    (dialogue,) = load(file("a.jsonl", jsonl(record)))
    assert dialogue.turns[0] == Turn("assistant", "", {key: call})


def test_every_other_key_is_kept_as_a_label(file: File) -> None:
    record = chat("Hi.", source="forum", label=True)
    record["messages"][0]["weight"] = 0.5
    (dialogue,) = load(file("a.jsonl", jsonl(record)))
    assert dialogue.labels == {"source": "forum", "label": True}
    assert dialogue.turns[0].labels == {"weight": 0.5}


@pytest.mark.parametrize(("given_id", "found"), [("x", "x"), (7, "7"), (None, "a-1"), ("", "a-1")])
def test_an_id_is_kept_and_a_missing_one_is_made_from_the_file(file: File, given_id: Any, found: str) -> None:
    assert load(file("a.jsonl", jsonl(chat("Hi.", id=given_id))))[0].id == found


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT})
RECORD = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=4)},
    optional={
        "id": TEXT | st.integers(0, 9),
        "split": st.sampled_from(["train", "test"]),
        "extra": st.none() | st.integers(0, 9),
        "labels": st.none() | st.dictionaries(st.sampled_from(["a", "extra"]), st.integers(0, 9)),
    },
)


@given(st.lists(RECORD, min_size=1, max_size=6), st.booleans())
def test_the_fast_and_the_careful_path_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], as_ascii: bool
) -> None:
    path = tmp_path_factory.mktemp("m") / "a.jsonl"
    path.write_text("".join(json.dumps(r, ensure_ascii=as_ascii) + "\n" for r in records), encoding="utf-8")
    careful = [item[1] for item in parsed(json_records(Source(path)), parse_messages) if isinstance(item, tuple)]
    if any("\0" in text for dialogue in careful for text in [dialogue.id, *dialogue.texts]):
        with pytest.raises(CorpusError, match="NUL"):
            load(path)
    else:
        ids = [dialogue.id or f"a-{number}" for number, dialogue in enumerate(careful, 1)]
        expected = Corpus.of([d._replace(id=i, split=d.split or "all") for d, i in zip(careful, ids, strict=True)])
        assert sorted(load(path), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("record", "is_columns"),
    [(chat("Hi."), True), (chat("Hi.", source="x"), True), (chat(["Hi."]), False), (chat("Hi.", split=5), False)],
)
def test_plain_messages_are_read_by_columns_and_others_record_by_record(
    file: File, record: dict[str, Any], is_columns: bool
) -> None:
    (item,) = read_messages(Source(file("a.jsonl", jsonl(record))))
    assert isinstance(item, pa.RecordBatch) == is_columns


# --- ShareGPT, instructions, trees, chitchat --------------------------------------------------------------------------


def test_sharegpt_turns_have_the_speaker_they_are_from(file: File) -> None:
    record = {"id": "x", "system": "Be brief.", "conversations": [{"from": "human", "value": "Hi."}], "tools": "none"}
    (dialogue,) = load(file("a.json", json.dumps([record])))
    assert dialogue.turns == (Turn("system", "Be brief."), Turn("human", "Hi."))
    assert (dialogue.id, dialogue.labels) == ("x", {"tools": "none"})


def test_an_instruction_is_a_question_with_its_input_and_an_answer(file: File) -> None:
    record = {"instruction": "Add.", "input": "1 2", "output": "3", "history": [["Hi.", "Hello."]]}
    (dialogue,) = load(file("a.json", json.dumps([record])))
    assert dialogue.texts == ["Hi.", "Hello.", "Add.\n1 2", "3"]
    assert [turn.speaker for turn in dialogue.turns] == ["user", "assistant", "user", "assistant"]


def test_every_path_of_a_tree_is_a_dialogue(file: File) -> None:
    def message(text: str, *replies: Any) -> dict[str, Any]:
        return {"text": text, "role": "prompter", "replies": list(replies)}

    tree = {"message_tree_id": "t", "prompt": message("a", message("b", message("c")), message("d"))}
    dialogues = list(load(file("a.jsonl", jsonl(tree))))
    assert [(dialogue.id, dialogue.texts) for dialogue in dialogues] == [("t-1", ["a", "b", "c"]), ("t-2", ["a", "d"])]


def test_chitchat_bursts_are_flattened_into_messages(file: File) -> None:
    message = {"text": "Hello", "sender": "s1", "timestamp": "t"}
    path = file(
        "a.json", json.dumps({"c1": {"messages": [[message, message], [{**message, "sender": "s2"}]], "start": "t"}})
    )
    (dialogue,) = load(path)
    assert (dialogue.id, [turn.speaker for turn in dialogue.turns]) == ("c1", ["s1", "s1", "s2"])
    assert dialogue.turns[0].labels == {"timestamp": "t"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"messages": 5}, "expected 'messages' to be a list, found the number 5"),
        ({"messages": [{"content": "Hi."}]}, "expected a key 'role', found the keys 'content'"),
        ({"messages": [{"role": "user"}]}, "expected 'content' to be a string or a list of parts, found none"),
        (
            {"messages": [{"role": "user", "content": 5}]},
            "expected 'content' to be a string or a list of parts, found the",
        ),
        ({"messages": []}, "expected at least one turn, found none"),
        ({"messages": ["Hi."]}, "expected a record to be an object, found the string 'Hi.'"),
        ({"conversations": [{"from": "human"}]}, "expected a key 'value', found the keys 'from'"),
        (
            {"instruction": "Add.", "output": None},
            "expected a key 'output'|expected 'output' to be a string, found null",
        ),
        ({"instruction": "a", "output": "b", "history": [["x"]]}, "expected pairs in 'history', found a list of 1"),
    ],
)
def test_a_malformed_record_is_reported_with_its_line(file: File, record: Any, message: str) -> None:
    good = {key: value for key, value in SOUND.items() if key in record} or chat("Hi.")
    path = file("a.jsonl", jsonl(good, record))
    with pytest.raises(CorpusError, match=rf"a\.jsonl:2: ({message})"):
        load(path)


SOUND = {
    "messages": [{"role": "user", "content": "Hi."}],
    "conversations": [{"from": "human", "value": "Hi."}],
    "instruction": "Add.",
    "output": "3",
}


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format", "dialogues", "turns"),
    [
        # Counted with a few lines of plain Python over each file's JSON.
        ("fastchat_dummy_conversation.json", "sharegpt", 500, 2000),
        ("llamafactory_glaive_toolcall_en_demo.json", "sharegpt", 300, 1914),
        ("llamafactory_kto_en_demo.json", "messages", 300, 974),
        ("llamafactory_lima.json", "instruction", 1029, 2164),
        ("llamafactory_v1_sft_demo.jsonl", "messages", 500, 1000),
    ],
)
def test_real_chat_files_are_read_whole(data: Path, name: str, format: str, dialogues: int, turns: int) -> None:
    corpus = load(data / "chat_formats" / name)
    assert (corpus.format, len(corpus), int(corpus.turns_per_dialogue.sum())) == (format, dialogues, turns)


def test_a_real_openassistant_file_gives_a_dialogue_for_every_leaf(data: Path) -> None:
    def leaves(message: dict[str, Any]) -> int:
        return sum(map(leaves, message["replies"])) or 1

    path = data / "chat_formats" / "oasst_en_100_tree.jsonl"
    trees = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(load(path)) == sum(leaves(tree["prompt"]) for tree in trees)
