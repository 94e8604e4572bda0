from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics import Pairs, meteor, score_pairs
from dialoscope.metrics.options import Options

GUIDE = "It is a guide to action which ensures that the military always obeys the commands of the party"
REFERENCE = "It is a guide to action that ensures that the military will forever heed Party commands"


@pytest.fixture
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meteor, "has_wordnet", lambda: False)


class Synonyms:
    """A WordNet of one synonym set."""

    def synsets(self, word: str) -> list[Any]:
        lemmas = [SimpleNamespace(name=lambda: "car"), SimpleNamespace(name=lambda: "auto")]
        return [SimpleNamespace(lemmas=lambda: lemmas)] if word in ("car", "auto") else []


def test_stem_matches_alone_give_the_value_in_nltks_documentation() -> None:
    scored = score_pairs(Pairs([GUIDE], [REFERENCE]), metrics=["meteor-stem"]).scores["meteor-stem"]
    assert scored.value == pytest.approx(0.6944, abs=5e-5)


def test_stem_matches_count_without_wordnet() -> None:
    # "cats" and "cat" match by stem: precision, recall and their mean are 1, in one chunk: 1 - 0.5 (1/2)³
    scored = score_pairs(Pairs(["the cats"], ["the cat"]), metrics=["meteor-stem"]).scores["meteor-stem"]
    assert scored.value == pytest.approx(1 - 0.5 / 8)


@pytest.mark.usefixtures("without_wordnet")
def test_without_wordnet_meteor_becomes_meteor_stem_and_says_so() -> None:
    result = score_pairs(Pairs(["the cat"], ["the cat"]), metrics=["meteor", "bleu-2"])
    assert list(result.scores) == ["meteor-stem", "bleu-2"]
    assert "matches:exact+stem|" in result.scores["meteor-stem"].signature
    assert result.notes[0].startswith("meteor: NLTK does not find WordNet")


def test_with_wordnet_meteor_matches_synonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meteor, "_wordnet", Synonyms)
    pairs = Pairs(["the car is big"], ["the auto is big"])
    # Four matches in one chunk: 1 - 0.5 (1/4)³. Without synonyms three matches in two: 3/4 (1 - 0.5 (2/3)³).
    assert meteor.meteor_scores(pairs, Options(), has_synonyms=True) == pytest.approx([1 - 0.5 / 64])
    assert meteor.meteor_scores(pairs, Options(), has_synonyms=False) == pytest.approx([0.75 * (1 - 4 / 27)])


@pytest.mark.usefixtures("without_wordnet")
def test_asking_for_synonyms_without_wordnet_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="meteor-stem"):
        meteor.meteor_scores(Pairs(["a"], ["a"]), Options(), has_synonyms=True)


def test_meteor_equals_nltk_on_the_same_tokens() -> None:
    from nltk.translate.meteor_score import meteor_score

    said, targets = ["I am going home now", "what ?"], ["we go home", "who ?"]
    each = [
        meteor_score([b.split()], a.split(), wordnet=meteor.NoSynonyms()) for a, b in zip(said, targets, strict=True)
    ]
    scored = score_pairs(Pairs(said, targets), metrics=["meteor-stem"]).scores["meteor-stem"]
    assert scored.value == pytest.approx(sum(each) / 2)


def test_the_signature_says_which_nltk_and_which_matches() -> None:
    from importlib.metadata import version

    signature = score_pairs(Pairs(["a"], ["a"]), metrics=["meteor-stem"]).scores["meteor-stem"].signature
    assert f"|matches:exact+stem|stem:porter|nltk:{version('nltk')}|" in signature


@pytest.fixture
def nltk_data(tmp_path: Path) -> Path:
    """Debian's WordNet where NLTK looks for it."""
    found = Path("/usr/share/wordnet")
    if not (found / "index.sense").is_file():
        pytest.skip("WordNet is not installed: apt-get install wordnet-base wordnet-sense-index")
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for file in found.glob("*.*"):
        shutil.copy(file, folder)  # NLTK follows no links out of its folder
    names = "".join(f"{number:02d}\tname{number}\t1\n" for number in range(45))  # Debian leaves this file out
    (folder / "lexnames").write_text(names)
    return tmp_path


def test_the_real_wordnet_matches_synonyms(nltk_data: Path, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("a auto\n")
    (tmp_path / "wanted.txt").write_text("a car\n")
    command = [
        sys.executable,
        "-m",
        "dialoscope",
        "metrics",
        "measure",
        "said.txt",
        "wanted.txt",
        "--metrics",
        "meteor,meteor-stem",
    ]
    environment = {**os.environ, "NLTK_DATA": str(nltk_data)}
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    scores = json.loads(done.stdout)["scores"]
    # Two of two words in one piece: 1 - 0.5 (1/2)^3. By stem one of two: a mean of 0.5, and 1 - 0.5 (1/1)^3.
    assert scores["said.txt/all/meteor"]["value"] == pytest.approx(0.9375)
    assert scores["said.txt/all/meteor-stem"]["value"] == pytest.approx(0.25)
    signature = json.loads(done.stdout)["origin"]["settings"]["meteor"]
    assert "matches=exact+stem+wordnet,stem=porter,wordnet=3.0" in signature
