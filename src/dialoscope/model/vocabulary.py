"""Text into numbers and back: the most frequent words, or byte-pair pieces trained on the corpus.

Five marks stand before all words. They are entries of the model and never of the text: a turn that holds the letters
``<end>`` is read as three ordinary tokens, so no dialogue can end a response, or pretend to be a turn, by its words.
A vocabulary is kept as the JSON of the `tokenizers` library, which is read without unpickling anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialoscope.errors import ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNKNOWN, START, END, TURN = range(5)
MARKS = ("<pad>", "<unknown>", "<start>", "<end>", "<turn>")
AT_ONCE = 8192  # texts encoded in one call: each leaves an object behind until its ids are taken out
BYTES = 256  # pieces that a byte-pair vocabulary cannot do without

Kind = Literal["words", "bpe"]
KINDS = ("words", "bpe")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Which token has which number.

    >>> vocabulary = Vocabulary.of(["Hi, you!", "Hi there!"], size=3)
    >>> len(vocabulary), vocabulary.encode(["hi, there!"])
    (8, [[6, 7, 1, 5]])
    >>> vocabulary.decode([START, 6, 5, END])
    'hi!'
    """

    tokenizer: Tokenizer

    @classmethod
    def of(cls, texts: Iterable[str], *, size: int, kind: str = "words") -> Vocabulary:
        """Count or train a vocabulary of at most `size` tokens beside the marks; the same texts give the same one.

        `words`: lower-case, runs of letters and digits, runs of other signs; the most frequent ones, and of equally
        frequent ones those first in spelling. `bpe`: pieces of bytes, case kept, so that nothing is unknown.
        """
        if kind not in KINDS:
            raise unknown_name("kind of tokens", kind, KINDS)
        least = BYTES if kind == "bpe" else 1
        if size < least:
            raise UsageError(f"A vocabulary of {kind} has at least {least} tokens, found {size}.")
        tokenizer, trainer = _words(size) if kind == "words" else _pieces(size)
        tokenizer.train_from_iterator(iter(texts), trainer)
        return cls(_without_added(tokenizer))

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @property
    def kind(self) -> Kind:
        """Whether tokens are words or byte-pair pieces."""
        return "bpe" if type(self.tokenizer.model).__name__ == "BPE" else "words"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without marks."""
        return list(self.encode_each(texts))

    def encode_each(self, texts: Iterable[str]) -> Iterator[list[int]]:
        """The tokens of one text after the other, some thousands at a time on all cores."""
        waiting = iter(texts)
        while some := list(islice(waiting, AT_ONCE)):
            yield from (found.ids for found in self.tokenizer.encode_batch_fast(some, add_special_tokens=False))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; marks are left out, except that of an unknown word."""
        kept = [int(one) for one in ids if int(one) >= len(MARKS) or int(one) == UNKNOWN]
        if self.kind == "bpe":
            return str(self.tokenizer.decode(kept, skip_special_tokens=False))
        return _written([self.tokenizer.id_to_token(one) or MARKS[UNKNOWN] for one in kept])

    def normalise(self, text: str) -> str:
        """A text as `decode` would write it if every word were known: what a generated response is held against."""
        if self.kind == "bpe":
            return text
        lowered = self.tokenizer.normalizer.normalize_str(text)
        return _written([word for word, _ in self.tokenizer.pre_tokenizer.pre_tokenize_str(lowered)])

    def to_json(self) -> str:
        """The vocabulary as the `tokenizers` library writes it."""
        return str(self.tokenizer.to_str())

    @classmethod
    def from_json(cls, text: str, *, path: str | Path = "vocabulary") -> Vocabulary:
        """Read what `to_json` wrote, or say in one line what is wrong with it."""
        from tokenizers import Tokenizer

        try:
            read = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing more precise
            raise ModelError(f"{path}: expected a vocabulary as JSON, found {_one_line(error)}") from error
        marks = [read.id_to_token(place) for place in range(len(MARKS))]
        if marks != list(MARKS) or read.get_added_tokens_decoder():
            raise ModelError(f"{path}: expected the marks {', '.join(MARKS)} first and no added tokens, found {marks}.")
        if max(read.get_vocab().values()) >= read.get_vocab_size():
            raise ModelError(f"{path}: expected tokens numbered without gaps.")
        return cls(read)

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a JSON file."""
        from dialoscope.files import whole_file

        with whole_file(path) as unfinished:
            unfinished.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary from a JSON file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: expected a vocabulary as JSON, found {_one_line(error)}") from error
        return cls.from_json(text, path=path)


def _words(size: int) -> tuple[Tokenizer, Any]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=MARKS[UNKNOWN]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # \w+|[^\w\s]+, so that no mark can be one token
    # The trainer itself breaks ties by spelling.
    return tokenizer, trainers.WordLevelTrainer(
        vocab_size=size + len(MARKS), special_tokens=list(MARKS), show_progress=False
    )


def _pieces(size: int) -> tuple[Tokenizer, Any]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # GPT-2's: letters and signs apart
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return tokenizer, trainers.BpeTrainer(
        vocab_size=size + len(MARKS), special_tokens=list(MARKS), initial_alphabet=alphabet, show_progress=False
    )


def _without_added(tokenizer: Tokenizer) -> Tokenizer:
    """Training makes the marks part of the text's language; take them out of it, and leave them in the model."""
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps({**json.loads(tokenizer.to_str()), "added_tokens": []}))


def _written(words: Sequence[str]) -> str:
    """Words as people write them: signs stand at the word before them. Reading it again gives the same words."""
    text = re.sub(r"(?<=\w) ([.,!?;:])(?= |$)", r"\1", " ".join(words))
    return re.sub(r"(?<=\w) ' (?=\w)", "'", text)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
