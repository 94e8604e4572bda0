from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn, generate, load
from dialoscope.distract.phrases import (
    EDGE,
    ENDS,
    FREQUENT_WORDS,
    PAPER,
    RARE_COUNT,
    Language,
    Style,
    is_the_papers,
    language_of,
    phrases,
)
from dialoscope.distract.sets import Maker
from dialoscope.errors import CorpusError, UsageError


@pytest.fixture(scope="module")
def language() -> Language:
    return language_of(generate(dialogues=200, seed=1).split("train"))


@pytest.mark.parametrize("seed", range(5))
def test_frequent_sentences_use_frequent_words_and_do_not_occur(language: Language, seed: int) -> None:
    made = phrases(language, "frequent", seed=seed, count=3)
    assert len({one.text for one in made}) == 3
    for one in made:
        assert not one.is_in_training
        assert f" {one.text} " not in language.said
        assert all(rank is not None and rank <= FREQUENT_WORDS for rank in one.ranks.values())
        followers = language.after[one.text.split()[-1]]
        assert followers[EDGE] >= ENDS * followers.total()  # it ends as turns do


@pytest.mark.parametrize("seed", range(5))
def test_rare_sentences_end_in_a_rare_word_and_do_not_occur(language: Language, seed: int) -> None:
    for one in phrases(language, "rare", seed=seed):
        assert f" {one.text} " not in language.said
        assert 1 < language.counts[one.text.split()[-1]] <= RARE_COUNT


@pytest.mark.parametrize("style", ["frequent", "rare"])
def test_a_walk_that_was_said_in_training_is_no_sentence(style: Style) -> None:
    """Two beginnings and two ends give four walks; two of them were said, so the other two are all there is."""
    language = Language(["i like red tea", "you like red milk"] * 2)
    for seed in range(8):
        made = phrases(language, style, seed=seed)
        assert {one.text for one in made} == {"i like red milk", "you like red tea"}


def test_words_are_ranked_and_found_across_case_and_punctuation() -> None:
    language = Language(["Do you help me? You, help!", "help"])
    assert language.ranks["help"] == 1  # three times
    assert language.phrase("YOU help lunch").ranks == {"you": 2, "help": 1, "lunch": None}
    assert language.has("you help")
    assert not language.has("me do")
    assert not language.has("help help")  # the end of one turn and the whole of the next
    assert not language.has("")


def test_the_papers_sentences_are_for_ubuntu() -> None:
    turns = tuple(Turn("AB"[n % 2], text) for n, text in enumerate(("why should i help you", "ok", "fine")))
    corpus = Corpus.of([Dialogue(turns, id="d")], name="ubuntu-irc")
    renamed = replace(corpus, name="data", format="ubuntu-irc")
    assert is_the_papers(corpus) and is_the_papers(renamed) and not is_the_papers(replace(corpus, name="data"))
    about = Maker(corpus, corpus).make("frequent-begin").about
    assert [one["text"] for one in about["sentences"]] == list(PAPER["frequent"])
    assert [one["is_in_training"] for one in about["sentences"]] == [True, False]  # told, not hidden
    with pytest.raises(UsageError, match="has 2 rare"):
        phrases(language_of(corpus), "rare", count=3, is_paper=True)


def test_a_corpus_of_few_words_says_so() -> None:
    with pytest.raises(CorpusError, match="--sentence"):
        phrases(Language(["yes", "no"]), "frequent")


def test_lunch_is_common_in_dailydialog(data: Path) -> None:
    """Why the paper's rare sentences are not taken for every corpus."""
    language = language_of(load(data / "dailydialog").split("train"))
    assert language.counts["lunch"] > 100
    made = phrases(language, "rare")
    assert all(not language.has(one.text) for one in made)
