"""Hashes that recognise a rated turn in any file, even if its spelling or its context differs."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

WORDS = re.compile(r"[^\W_]+")  # letters and digits
# A:  Speaker 1:  [User]:  and several of them, so that one more in front changes nothing
LABEL = re.compile(r"^(?:[^\w\n]{0,3}[^\W\d_]\w{0,19}(?: \w{1,2})?[^\w\n:]{0,3}:[^\S\n]*)+(?=\S)", re.MULTILINE)
LONGEST_QUERY = 200  # words before a rated turn that the guard of selections looks through
ALONE, AS_ONE = "reply:", "both:"  # other kinds of keys: no normalised text has a colon and letters


def item_key(turns: Iterable[str]) -> str:
    """The sha256 of some turns exactly as they stand, which tells ``["a", "b"]`` from ``["ab"]``."""
    digest = hashlib.sha256()
    for turn in turns:
        data = turn.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def normalised(text: str) -> str:
    """Letters and digits alone, casefolded, so that neither case, punctuation nor spacing tells two texts apart.

    >>> normalised("Do n't  YOU ?") == normalised("don’t you")
    True
    """
    return "".join(_words(text)) or text.strip()  # a turn of nothing but marks stays what it is


def _words(text: str) -> list[str]:
    return WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


def pair_key(turns: Sequence[str]) -> str:
    """The key of a rated turn with the turn before it, both normalised: earlier context does not change it."""
    return item_key(map(normalised, turns[-2:]))


def unlabelled(turns: Iterable[str]) -> list[str]:
    """Turns without the names of speakers in front of them.

    >>> unlabelled(["A: Hi.", "Speaker 2: Hello.", "At noon?"])
    ['Hi.', 'Hello.', 'At noon?']
    """
    return [LABEL.sub("", unicodedata.normalize("NFKC", turn)) for turn in turns]


def selection_keys(turns: Sequence[str]) -> Iterator[str]:
    """What is kept of a rated turn that was selected on, for copies of it to be known by (`keys_of`).

    Its `pair_key`, and that without speakers' labels; the reply alone, against which only copies without a context are
    held, for short replies answer many a query; and query and reply as one text.
    """
    yield pair_key(turns)
    bare = unlabelled(turns)
    yield pair_key(bare)
    yield item_key([ALONE, normalised(bare[-1])])
    if len(bare) > 1:
        yield item_key([AS_ONE, "".join(map(normalised, bare[-2:]))])


def keys_of(turns: Sequence[str]) -> Iterator[str]:
    """All keys under which a rated turn may have been used, here or in another copy of its set.

    Its `pair_key`; the keys that it has where its context is cut to its last words, however these are divided into
    turns; both also without speakers' labels; and the hash of the turns as they stand. A text without a context may be
    a reply alone, or end with a query and its reply. A copy whose query lost words is not known by any of them.
    """
    yield item_key(turns)
    bare = unlabelled(turns)
    for some in (turns, bare) if bare != list(turns) else (turns,):
        yield from _pair_keys(some)
    if not any(map(str.strip, bare[:-1])):
        yield from _text_keys(bare[-1])


def _pair_keys(turns: Sequence[str]) -> Iterator[str]:
    yield pair_key(turns)
    said = normalised(turns[-1])
    yield item_key([said])
    before = [word for turn in turns[:-1] for word in _words(turn)][-LONGEST_QUERY:]
    for place in range(len(before)):
        yield item_key(["".join(before[place:]), said])


def _text_keys(text: str) -> Iterator[str]:
    yield item_key([ALONE, normalised(text)])
    yield item_key([AS_ONE, normalised(text)])
    words = _words(text)[-2 * LONGEST_QUERY :]
    for place in range(len(words)):
        yield item_key([AS_ONE, "".join(words[place:])])
