from __future__ import annotations

from importlib.metadata import version

import pytest

from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.metrics import tokenise, tokens


@pytest.mark.parametrize(
    ("tokeniser", "expected"),
    [
        ("13a", ["Don't", "!", "It's", "5.2", "km", ",", "no", "?"]),
        ("whitespace", ["Don't!", "It's", "5.2", "km,", "no?"]),
        ("wordpunct", ["Don", "'", "t", "!", "It", "'", "s", "5", ".", "2", "km", ",", "no", "?"]),
        ("nltk", ["Do", "n't", "!", "It", "'s", "5.2", "km", ",", "no", "?"]),
    ],
)
def test_each_tokeniser_splits_in_its_own_way(tokeniser: str, expected: list[str]) -> None:
    assert tokenise(["Don't! It's 5.2 km, no?"], tokeniser=tokeniser) == [expected]


@pytest.mark.parametrize("name", ["13a", "intl", "char", "zh"])
def test_sacrebleus_tokenisers_are_its_own(name: str) -> None:
    from sacrebleu.metrics.bleu import BLEU

    text = "Hello, world! 你好 it's 5.5 "
    assert tokenise([text], tokeniser=name) == [BLEU(tokenize=name).tokenizer(text.rstrip()).split()]


def test_lower_case_comes_first() -> None:
    assert tokenise(["Hello You"], lowercase=True) == [["hello", "you"]]


def test_an_unknown_tokeniser_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'whitespace'"):
        tokenise(["a"], tokeniser="whitespaces")


def test_the_signature_says_when_nltk_had_no_sentence_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "has_punkt", lambda: False)
    assert tokens.name_of("nltk") == "nltk-without-punkt"
    monkeypatch.setattr(tokens, "has_punkt", lambda: True)
    assert tokens.name_of("nltk") == "nltk"


@pytest.mark.parametrize(
    ("tokeniser", "library"), [("13a", "sacrebleu"), ("zh", "sacrebleu"), ("nltk", "nltk"), ("whitespace", None)]
)
def test_the_signature_has_the_version_of_the_library_that_cut_the_words(tokeniser: str, library: str | None) -> None:
    said = dict(tokens.settings_of(tokeniser, lowercase=True))
    versions = {library: version(library)} if library else {}
    assert said == {"case": "lc", "tok": tokens.name_of(tokeniser), **versions}


def test_a_missing_library_gives_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingExtraError, match=r"dialoscope\[metrics\]"):
        tokenise(["a"], tokeniser="nltk")
