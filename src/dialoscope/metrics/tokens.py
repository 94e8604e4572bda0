"""Text into tokens, by name, because a BLEU without its tokenisation is not a number.

=============  ==========================================================================================
name           tokens
=============  ==========================================================================================
``13a``        sacreBLEU's default, the tokenisation of WMT
``intl``       sacreBLEU's, for other alphabets
``char``       sacreBLEU's, single characters
``zh``         sacreBLEU's, for Chinese
``whitespace`` as the text stands: the probe-task paper, whose texts are tokenised already
``nltk``       NLTK's word tokens: BLEU and Dist of the overlap paper
``wordpunct``  runs of word characters and runs of others: the bags of words of the overlap paper
=============  ==========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

from dialoscope.errors import MissingExtraError, unknown_name

Tokens = list[list[str]]  # one list of tokens for each text
Tokeniser = Callable[[str], list[str]]

WITHOUT_PUNKT = "nltk-without-punkt"
WORDPUNCT = re.compile(r"\w+|[^\w\s]+")


def whitespace() -> Tokeniser:
    """Tokens as the text separates them."""
    return str.split


def wordpunct() -> Tokeniser:
    """Runs of word characters and runs of other characters."""
    return WORDPUNCT.findall


def nltk_words() -> Tokeniser:
    """NLTK's `word_tokenize`, as in the overlap paper's public evaluation script.

    It first splits sentences with the Punkt model, a separate download. Where that is missing, a text is taken as
    one sentence: full stops inside it then stay on their words ("Hi. You?" gives "Hi." and not "Hi", "."), which
    makes no difference where they stand apart, as in DailyDialog. `name_of` tells which of the two was used.
    """
    nltk = _nltk()
    words = nltk.tokenize.NLTKWordTokenizer().tokenize
    if not has_punkt():
        return lambda text: list(words(text))
    return lambda text: [token for sentence in nltk.tokenize.sent_tokenize(text) for token in words(sentence)]


def has_punkt() -> bool:
    """Whether NLTK finds its sentence model."""
    try:
        _nltk().data.find("tokenizers/punkt_tab/english/")
    except LookupError:
        return False
    return True


def sacrebleu_tokens(name: str) -> Tokeniser:
    """One of sacreBLEU's tokenisers, as a list of tokens."""
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = BLEU(tokenize=name).tokenizer
    # sacreBLEU strips the right end before it tokenises.
    return lambda text: tokenizer(text.rstrip()).split()


# Tokenisers by name; each is made when it is asked for, so that a missing library hurts only those who need it.
TOKENISERS: Mapping[str, Callable[[], Tokeniser]] = {
    "13a": lambda: sacrebleu_tokens("13a"),
    "intl": lambda: sacrebleu_tokens("intl"),
    "char": lambda: sacrebleu_tokens("char"),
    "zh": lambda: sacrebleu_tokens("zh"),
    "whitespace": whitespace,
    "nltk": nltk_words,
    "wordpunct": wordpunct,
}

# Whose tokens they are; the others are ours.
LIBRARIES = {"13a": "sacrebleu", "intl": "sacrebleu", "char": "sacrebleu", "zh": "sacrebleu", "nltk": "nltk"}


def tokenise(texts: Iterable[str], *, tokeniser: str = "13a", lowercase: bool = False) -> Tokens:
    """Split each text into tokens; lower-casing comes first, as in sacreBLEU."""
    if tokeniser not in TOKENISERS:
        raise unknown_name("tokeniser", tokeniser, TOKENISERS)
    split = TOKENISERS[tokeniser]()
    return [split(text.lower() if lowercase else text) for text in texts]


def name_of(tokeniser: str) -> str:
    """The tokeniser as a signature names it, with what NLTK found."""
    return WITHOUT_PUNKT if tokeniser == "nltk" and not has_punkt() else tokeniser


def settings_of(tokeniser: str, *, lowercase: bool) -> Mapping[str, Any]:
    """What a signature must say of the tokens: case, tokeniser, and the version of the library that has it."""
    library = LIBRARIES.get(tokeniser)
    versions = {library: version(library)} if library else {}
    return {"case": "lc" if lowercase else "mixed", "tok": name_of(tokeniser), **versions}


def ngrams(tokens: list[str], order: int) -> list[tuple[str, ...]]:
    """All runs of so many tokens.

    >>> ngrams(["to", "be", "or"], 2)
    [('to', 'be'), ('be', 'or')]
    """
    return list(zip(*(tokens[shift:] for shift in range(order)), strict=False))


def _nltk() -> Any:
    try:
        import nltk.data
        import nltk.tokenize
    except ImportError as error:
        raise MissingExtraError("NLTK's word tokens", "metrics") from error
    return nltk
