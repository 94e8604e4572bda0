"""Sizes of the published data sets: from the papers, the data's own descriptions, or counted by other means."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dialoscope.corpus import load, samples, summarise


def test_dailydialog_has_the_dialogues_turns_and_words_of_rdep_table_6(data: Path) -> None:
    summary = summarise(load(data / "dailydialog"))
    sizes = {name: (split.dialogues, split.turns, split.words) for name, split in summary.splits.items()}
    assert sizes == {
        "train": (11_118, 87_170, 1_186_046),
        "validation": (1_000, 8_069, 108_933),
        "test": (1_000, 7_740, 106_631),
    }


def test_dailydialog_averages_are_those_of_table_6_with_validation_and_test_exchanged(data: Path) -> None:
    splits = summarise(load(data / "dailydialog")).splits
    assert [round(splits[name].turns_mean, 2) for name in ("train", "test", "validation")] == [7.84, 7.74, 8.07]
    assert [round(splits[name].turns_std, 2) for name in ("train", "test", "validation")] == [4.01, 3.84, 3.88]


@pytest.mark.parametrize(("split", "pairs"), [("train", 76_052), ("validation", 7_069), ("test", 6_740)])
def test_dailydialog_has_the_single_turn_pairs_of_the_overlap_paper(data: Path, split: str, pairs: int) -> None:
    assert len(samples(load(data / "dailydialog").split(split), context_turns=1)) == pairs


def test_empathetic_dialogues_has_its_published_splits(data: Path) -> None:
    assert load(data / "empathetic_dialogues").splits == {"train": 19_541, "validation": 2_770, "test": 2_547}


def test_multiwoz_2_1_has_a_state_on_every_system_turn(data: Path) -> None:
    corpus = load(data / "multiwoz21")
    assert corpus.splits == {"validation": 999, "test": 1_000}
    assert all(("state" in turn.labels) == (turn.speaker == "system") for dialogue in corpus for turn in dialogue.turns)


def test_sgd_has_its_published_splits(data: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(data / "sgd" / "sgd.zip") as archive:
        archive.extractall(tmp_path)
    assert load(tmp_path).splits == {"train": 16_142, "validation": 2_482}


def test_personachat_views_are_one_set_of_a_thousand_dialogues(data: Path) -> None:
    corpus = load(data / "personachat")
    assert len(load(data / "personachat" / "valid_both_original_no_cands.txt.gz")) == 1_000
    assert corpus.splits == {"validation": 2_000}  # and a thousand further ones as json
    assert len(corpus.ignored) == 2


def test_wizard_of_wikipedia_has_the_dialogues_of_table_6(data: Path) -> None:
    assert load(data / "wizard_of_wikipedia").splits == {"validation": 981, "test": 965}


def test_multiwoz_2_2_text_has_its_published_splits(data: Path) -> None:
    assert load(data / "multiwoz22_text").splits == {"train": 8_437, "validation": 1_000, "test": 1_000}


def test_chitchat_has_the_conversations_and_messages_its_authors_count() -> None:
    pytest.importorskip("chitchat_dataset", reason="the demo extra is not installed")
    summary = summarise(load("chitchat"))
    assert (summary.dialogues, summary.turns) == (7_168, 258_145)
