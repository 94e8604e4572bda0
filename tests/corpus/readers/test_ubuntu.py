from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import Turn, load
from dialoscope.errors import CorpusError

File = Callable[[str, str | bytes], Path]


def test_ubuntu_rows_hold_messages_and_turns(file: File) -> None:
    rows = "Context,Utterance,Label\nhi __eou__ help ? __eou__ __eot__ sure __eou__ __eot__ ,thanks __eou__,1\nx,y,0\n"
    corpus = load(file("train.csv", rows))
    assert corpus[0].turns == (Turn("A", "hi"), Turn("A", "help ?"), Turn("B", "sure"), Turn("A", "thanks"))
    assert corpus.skipped == {"negative sample (Label 0): its response belongs to another dialogue": 1}


def test_ubuntu_test_rows_keep_their_distractors(file: File) -> None:
    rows = "Context,Ground Truth Utterance,Distractor_0,Distractor_1\nhi __eou__ __eot__ ,hello,no,never\n"
    (dialogue,) = load(file("test.csv", rows))
    assert (dialogue.texts, dialogue.labels) == (["hi", "hello"], {"distractors": ["no", "never"]})


LOG = """[10:00] <ann> can I ask?
=== bob has joined #ubuntu
[10:01] <bob> ann: go on
[10:01]  * ann thinks
[10:02] <cat> unrelated
[10:03] <ann> how do I print?
[10:04] <dan> nobody answers me
"""


def test_messages_joined_by_links_are_one_conversation(file: File) -> None:
    # 0-2 and 2-3 and 5-2 are one conversation, 4 and 6 stand alone, 1 is a notice.
    file("day.annotation.txt", "0 2 -\n2 3 -\n2 5 -\n4 4 -\n1 1 -\n6 6 -\n")
    corpus = load(file("day.ascii.txt", LOG))
    (dialogue,) = corpus
    assert [(turn.speaker, turn.text) for turn in dialogue.turns] == [
        ("ann", "can I ask?"),
        ("bob", "ann: go on"),
        ("ann", "* thinks"),
        ("ann", "how do I print?"),
    ]
    assert corpus.skipped == {"a message that nobody answered": 2, "server notices only": 1}


def test_a_log_without_links_is_an_error_that_names_the_file_missing(file: File) -> None:
    with pytest.raises(CorpusError, match=r"expected reply links in day\.annotation\.txt, found no such file"):
        load(file("day.ascii.txt", LOG))


@pytest.mark.parametrize("link", ["x y -", "0 99 -", "3"])
def test_a_link_that_leads_nowhere_is_reported(file: File, link: str) -> None:
    file("day.annotation.txt", f"0 2 -\n{link}\n")
    with pytest.raises(CorpusError, match=r"on line 2 of day\.annotation\.txt"):
        load(file("day.ascii.txt", LOG))


def test_real_irc_logs_give_the_published_number_of_conversations(data: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(data / "ubuntu_irc" / "ubuntu_irc.zip") as archive:
        archive.extractall(tmp_path)
    splits = load(tmp_path).splits
    # The data's description says about 5,700 / 235 / 367; it counts notices among the messages.
    published = {"train": 5700, "validation": 235, "test": 367}
    assert all(abs(splits[name] - count) <= 0.01 * count for name, count in published.items())


WORDS = '<document><s><time id="T1S"/><w id="1.1">Hello</w><w id="1.2">.</w></s><s id="2"><w>Hi</w></s></document>'
RUNNING = '<document id="1"><s id="1">\n<time id="T1S"/>Hello there.</s><s id="2">Hi\n you.</s></document>'


@pytest.mark.parametrize(("xml", "texts"), [(WORDS, ["Hello .", "Hi"]), (RUNNING, ["Hello there.", "Hi you."])])
def test_a_movie_is_one_dialogue_of_its_sentences(file: File, xml: str, texts: list[str]) -> None:
    assert load(file("1999/123/456.xml", xml))[0].texts == texts


def test_broken_xml_is_reported_with_its_line(file: File) -> None:
    with pytest.raises(CorpusError, match=r"456\.xml:2: expected well-formed XML"):
        load(file("456.xml", '<document>\n<s id="1">Hello</document>'))
