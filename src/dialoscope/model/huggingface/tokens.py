"""A text as tokens, each knowing the utterance it belongs to, and no utterance able to write a control token.

Fast tokenizers read the whole text at once, as they would in a chat, and their character offsets give each token its
utterance. Where an utterance holds the words of a control token ("<|im_end|>"), one of its characters is covered
while the tokenizer looks, and put back as plain text. Slow tokenizers have no offsets: they read piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from dialoscope.model.huggingface.conversation import Passage
from dialoscope.model.protocol import Ints

COVER = "⍰"  # a printable symbol that no normaliser drops and no control token contains
NOBODY = -1  # owner of a token outside all utterances
Offsets = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids and the utterance each belongs to."""

    ids: list[int]
    owner: list[int]  # index of the utterance, or NOBODY


@dataclass(frozen=True, eq=False)
class Reader:
    """One tokenizer, reading passages."""

    tokenizer: Any

    def read(self, passages: Sequence[Passage]) -> list[Tokens]:
        """The tokens of each passage, without any that the tokenizer would add around them."""
        if not passages or not self.tokenizer.is_fast:
            return [self._read_pieces(passage) for passage in passages]
        encoded = self._encode([passage.text for passage in passages])
        return [self._read_whole(*each) for each in zip(passages, *encoded, strict=True)]

    @cached_property
    def control(self) -> frozenset[int]:
        """Tokens that no utterance may write: special ones, and those that the chat template is written with."""
        template = str(self.tokenizer.chat_template or "")
        added = self.tokenizer.added_tokens_decoder.items()
        return frozenset(
            index
            for index, token in added
            if token.special or (token.content in template and not token.content.isspace())
        )

    @cached_property
    def around(self) -> tuple[list[int], list[int]]:
        """What the tokenizer puts before and after a text by itself, such as [CLS] and [SEP]."""
        bare = self.tokenizer.encode("a", add_special_tokens=False)
        full = self.tokenizer.encode("a", add_special_tokens=True)
        places = [k for k in range(len(full)) if full[k : k + len(bare)] == bare]
        return (full[: places[0]], full[places[0] + len(bare) :]) if places and bare else ([], [])

    def first_token(self, text: str) -> int | None:
        """The token that a text begins with when it follows a word."""
        bare, full = (self.tokenizer.encode(each, add_special_tokens=False) for each in ("a", "a" + text))
        return full[len(bare)] if len(full) > len(bare) else None

    def _encode(self, texts: Sequence[str]) -> tuple[list[list[int]], list[Offsets]]:
        found = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )
        return found["input_ids"], found["offset_mapping"]

    def _read_whole(self, passage: Passage, ids: list[int], offsets: Offsets) -> Tokens:
        covered: set[int] = set()
        while places := self._written_control(passage, ids, offsets) - covered:
            covered |= places
            text = "".join(COVER if k in covered else character for k, character in enumerate(passage.text))
            (ids,), (offsets,) = self._encode([text])
        if covered:
            ids, offsets = self._uncovered(passage.text, ids, offsets, covered)
        return Tokens(list(ids), self._owners(passage, ids, offsets))

    def _written_control(self, passage: Passage, ids: Sequence[int], offsets: Offsets) -> set[int]:
        """The first character of an utterance in every control token that one has a part in.

        Whitespace is no such part: a template's token may swallow it.
        """
        if self.control.isdisjoint(ids):
            return set()
        _, following = _owner_of_characters(passage)
        found = set()
        for index, (start, end) in zip(ids, offsets, strict=True):
            if (
                index in self.control
                and following[start] < end
                and not self._is_unknown(index, passage.text[start:end])
            ):
                own = [k for k in range(following[start], end) if following[k] == k and not passage.text[k].isspace()]
                found.update(own[:1])
        return found

    def _is_unknown(self, index: int, text: str) -> bool:
        """Whether a token stands for a word that the vocabulary lacks, rather than for its own name."""
        return bool(index == self.tokenizer.unk_token_id and text.strip() != self.tokenizer.unk_token)

    def _uncovered(
        self, text: str, ids: Sequence[int], offsets: Offsets, covered: set[int]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Read the covered places again, as they are written but with no control token."""
        pairs: list[tuple[int, tuple[int, int]]] = []
        redone = 0  # the text up to here has been read again
        for index, (start, end) in zip(ids, offsets, strict=True):
            if covered.isdisjoint(range(start, end)):
                pairs.append((index, (start, end)))
            elif end > redone:
                pairs += [(plain, (start, end)) for plain in self._plain(text[max(start, redone) : end])]
                redone = end
        return [index for index, _ in pairs], [place for _, place in pairs]

    def _plain(self, text: str) -> list[int]:
        """A text's tokens by the tokenizer's model alone, which knows no added tokens."""
        vocabulary, backend = self.tokenizer.get_vocab(), self.tokenizer.backend_tokenizer
        if len(text) == 1 and text in vocabulary:  # looked up: a SentencePiece model would put a space before it
            ids = [vocabulary[text]]
        else:
            normal = backend.normalizer.normalize_str(text) if backend.normalizer else text
            words = (
                [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normal)]
                if backend.pre_tokenizer
                else [normal]
            )
            ids = [token.id for word in words for token in backend.model.tokenize(word)]
        return [index for index in ids if index not in self.control or index == self.tokenizer.unk_token_id]

    def _owners(self, passage: Passage, ids: Sequence[int], offsets: Offsets) -> list[int]:
        """A token belongs to the utterance of the first own character it covers; a control token to nobody."""
        owner, following = _owner_of_characters(passage)
        places = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
        # Some tokenizers trim the whitespace that a token stands for from its offsets, and nothing is left.
        start = np.where(places[:, 0] == places[:, 1], np.maximum(places[:, 0] - 1, 0), places[:, 0])
        first = following[start]
        found = np.where(first < places[:, 1], owner[np.minimum(first, len(owner) - 1)], NOBODY)
        is_control = [index in self.control and index != self.tokenizer.unk_token_id for index in ids]
        return [int(each) for each in np.where(is_control, NOBODY, found)]

    def _read_pieces(self, passage: Passage) -> Tokens:
        pieces = [(self._piece(text, owner), owner) for text, owner in _pieces(passage) if text]
        owners = [[owner] * len(ids) for ids, owner in pieces]
        return Tokens(list(chain.from_iterable(ids for ids, _ in pieces)), list(chain.from_iterable(owners)))

    def _piece(self, text: str, owner: int) -> list[int]:
        is_own = owner != NOBODY
        ids = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=is_own)
        unknown = self.tokenizer.unk_token_id
        return [index for index in ids if not is_own or index not in self.control or index == unknown]


def _owner_of_characters(passage: Passage) -> tuple[Ints, Ints]:
    """The utterance of each character, and for each place the next character that has one."""
    length = len(passage.text)
    owner = np.full(length + 1, NOBODY, dtype=np.int64)
    for utterance, (start, end) in enumerate(passage.spans):
        owner[start:end] = utterance
    places = np.where(owner == NOBODY, length + 1, np.arange(length + 1))
    return owner, np.minimum.accumulate(places[::-1])[::-1]


def _pieces(passage: Passage) -> Iterator[tuple[str, int]]:
    """The passage in order: template text and utterances in turn."""
    done = 0
    for utterance, (start, end) in enumerate(passage.spans):
        yield passage.text[done:start], NOBODY
        yield passage.text[start:end], utterance
        done = end
    yield passage.text[done:], NOBODY
