from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnwise.corpus import Corpus, Dialogue, Turn, load, write
from turnwise.corpus.write import WRITERS
from turnwise.errors import OutputError, UsageError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
KEY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=6,
)
LABELS = st.dictionaries(KEY, JSON, max_size=3)
TURN = st.builds(Turn, TEXT, TEXT, LABELS)
DIALOGUE = st.builds(
    Dialogue,
    st.lists(TURN, min_size=1, max_size=4).map(tuple),
    KEY,
    st.sampled_from(["train", "validation", "test", "all", "odd name/2"]),
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
    with pytest.raises(OutputError, match=r"exists\. Give a new name, or --overwrite"):
        write(SMALL, tmp_path / "out")


def test_a_companion_that_does_not_fit_its_text_is_reported(tmp_path: Path) -> None:
    write(SMALL, tmp_path / "out", to="text")
    (tmp_path / "out" / "train.txt").write_text("Hi. __eou__\n")
    with pytest.raises(Exception, match=r"train\.txt:1: expected 1 speakers in train\.turnwise\.jsonl, found 2"):
        load(tmp_path / "out")


def test_an_unknown_target_format_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Unknown target format 'parket'\. Did you mean 'parquet'"):
        write(SMALL, tmp_path / "out", to="parket")
