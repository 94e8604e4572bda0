"""By what rated turns are known wherever they stand: hashes of their words, whatever their spelling and context."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

WORDS = re.compile(r"[^\W_]+")  # letters and digits
LONGEST_QUERY = 200  # words before a rated turn that the guard of selections looks through


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


def keys_of(turns: Sequence[str]) -> Iterator[str]:
    """All keys under which a rated turn may have been used, here or in another copy of its set.

    Its `pair_key`; the keys that it has where its context is cut to its last words, however these are divided into
    turns; and the hash of the turns as they stand. A copy whose query lost words is not known by any of them.
    """
    yield pair_key(turns)
    yield item_key(turns)
    said = normalised(turns[-1])
    yield item_key([said])
    before = [word for turn in turns[:-1] for word in _words(turn)][-LONGEST_QUERY:]
    for place in range(len(before)):
        yield item_key(["".join(before[place:]), said])
