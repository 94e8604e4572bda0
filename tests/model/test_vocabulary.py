from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.errors import DialoscopeError, ModelError
from dialoscope.model.vocabulary import END, MARKS, PAD, START, TURN, UNKNOWN, Vocabulary

TEXTS = ["Is it far?", "No, it's near.", "Is it?"]
# it 3, "?" 2, is 2, then once each: "'" "," "." far near no s


def words(size: int = 100) -> Vocabulary:
    return Vocabulary.of(TEXTS, size=size)


def pieces() -> Vocabulary:
    return Vocabulary.of(TEXTS * 3, size=280, kind="bpe")


def test_marks_come_first_and_frequent_words_before_rare_ones() -> None:
    assert (PAD, UNKNOWN, START, END, TURN) == (0, 1, 2, 3, 4)
    assert words().encode(["it ? is ' , . far near no s"]) == [[5, 6, 7, 8, 9, 10, 11, 12, 13, 14]]


def test_words_beyond_the_size_are_unknown_and_ties_go_by_spelling() -> None:
    small = words(4)  # it, ?, is and, of those seen once, the apostrophe
    assert len(small) == 9
    assert small.encode(["it ' far"]) == [[5, 8, UNKNOWN]]


def test_case_is_folded_and_punctuation_split_off() -> None:
    assert words().encode(["IT'S FAR."]) == [[5, 8, 14, 11, 10]]


@pytest.mark.parametrize("vocabulary", [words(), pieces()], ids=["words", "bpe"])
@pytest.mark.parametrize("mark", MARKS)
def test_no_text_can_write_a_mark(vocabulary: Vocabulary, mark: str) -> None:
    [ids] = Vocabulary.of([f"{mark} {mark}"] * 9, size=300, kind=vocabulary.kind).encode([mark])
    assert len(ids) > 1
    assert not {PAD, START, END, TURN} & {*ids, *vocabulary.encode([f"a {mark} b"])[0]}


def test_decoding_leaves_marks_out_and_writes_signs_where_people_do() -> None:
    assert words().decode([START, 13, 9, 5, 8, 14, 12, 10, END, PAD]) == "no, it's near."
    assert words().decode([5, UNKNOWN]) == "it <unknown>"


def test_a_reference_is_written_as_a_response_would_be() -> None:
    assert words().normalise("It 's FAR , Zoë .") == "it's far, zoë."
    assert pieces().normalise("It 's FAR") == "It 's FAR"


@given(st.lists(st.sampled_from(["it", "far", "s", "no", "?", ".", ",", "'", "...", "?!"]), max_size=8))
def test_words_written_and_read_again_are_the_same(tokens: list[str]) -> None:
    vocabulary = Vocabulary.of([*TEXTS, "... ?!"], size=100)
    ids = vocabulary.encode([" ".join(tokens)])[0]
    assert vocabulary.encode([vocabulary.decode(ids)])[0] == ids


BPE = pieces()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_bytes_bring_every_text_back(text: str) -> None:
    assert BPE.decode(BPE.encode([text])[0]) == text


def test_a_batch_is_encoded_as_its_texts_are() -> None:
    texts = [*TEXTS, "", "zebra"]
    assert words().encode(texts) == [words().encode([text])[0] for text in texts]


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_another_process_finds_the_same_vocabulary(kind: str) -> None:
    size = 280
    code = (
        "import sys, json; from dialoscope.model.vocabulary import Vocabulary;"
        f"sys.stdout.write(Vocabulary.of(json.loads(sys.argv[1]), size={size}, kind={kind!r}).to_json())"
    )
    texts = [f"word{i % 7} other{i % 5} ünd" for i in range(200)]
    done = subprocess.run([sys.executable, "-c", code, json.dumps(texts)], capture_output=True, check=True)
    assert done.stdout.decode() == Vocabulary.of(texts, size=size, kind=kind).to_json()


@pytest.mark.parametrize("vocabulary", [words(), pieces()], ids=["words", "bpe"])
def test_a_saved_vocabulary_is_read_back(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path / "v.json")
    read = Vocabulary.read(tmp_path / "v.json")
    assert (read.to_json(), read.kind, len(read)) == (vocabulary.to_json(), vocabulary.kind, len(vocabulary))


def _renumbered(text: str) -> str:
    whole = json.loads(text)
    whole["model"]["vocab"]["it"] = 10**6
    return json.dumps(whole)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda text: "{",
        lambda text: "[]",
        lambda text: text.replace("<start>", "<begin>"),
        lambda text: json.dumps({**json.loads(text), "model": {"type": "WordLevel", "vocab": {}, "unk_token": "x"}}),
        _renumbered,
    ],
)
def test_a_tampered_vocabulary_is_one_line(tamper: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(tamper(words().to_json()))
    with pytest.raises(ModelError, match=r"v\.json: expected") as caught:
        Vocabulary.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("size", "kind"), [(0, "words"), (255, "bpe"), (10, "letters")])
def test_what_cannot_be_a_vocabulary_is_refused(size: int, kind: str) -> None:
    with pytest.raises(DialoscopeError):
        Vocabulary.of(TEXTS, size=size, kind=kind)
