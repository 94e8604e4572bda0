"""What the overlap commands are given: a corpus with splits, training and test data, or a column of texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from dialoscope.cli.console import load_corpus, working
from dialoscope.corpus import Corpus
from dialoscope.corpus.dialogue import in_corpus_order
from dialoscope.corpus.split import SPLIT_NAMES
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.overlap.sides import Side

Given: TypeAlias = "Corpus | Side"


@dataclass(frozen=True)
class Reading:
    """How files are read, as the options say."""

    column: str | None = None
    format: str | None = None
    on_error: str = "fail"
    limit: int | None = None
    seed: int | None = None
    quiet: bool = False

    def read(self, paths: Sequence[str], *, split: str | None = None) -> Given:
        """Dialogues, or the texts of one column."""
        if self.column is None:
            options = {"format": self.format, "on_error": self.on_error, "split": split, "quiet": self.quiet}
            return load_corpus(paths, limit=self.limit, seed=self.seed, **options)  # type: ignore[arg-type]
        if split is not None or self.format is not None:
            raise UsageError("--column reads plain tables, which have no --split and need no --format.")
        from dialoscope.overlap.tables import read_texts

        with working("reading", quiet=self.quiet):
            return read_texts(paths, column=self.column, limit=self.limit, seed=self.seed)


def read_side(paths: Sequence[str], reading: Reading, *, split: str | None, usual: str) -> Given:
    """Training or test data; of a path with several splits only the one that was named, or else the usual one.

    Each path is looked at by itself: of `train.jsonl` and `more.jsonl` neither has several, and both are read whole.
    """
    whole = reading.read(paths, split=split)
    if split is not None or not isinstance(whole, Corpus) or not has_usual(whole.splits, usual):
        return whole
    if len(paths) == 1:
        return _cut(whole, None, usual)
    parts = [part for part in (reading.read([path]) for path in paths) if isinstance(part, Corpus)]
    if not any(has_usual(part.splits, usual) for part in parts):
        return whole
    tables = [_cut(part, None, usual).table for part in parts]
    return replace(whole, table=in_corpus_order(pa.concat_tables(tables)))


def _read_once(
    paths: Sequence[str], reading: Reading, *, train_split: str | None, split: str | None
) -> tuple[Corpus, Corpus]:
    """Both sides of one path, so that what is skipped in it is counted once."""
    whole = reading.read(paths)
    assert isinstance(whole, Corpus)
    return _cut(whole, train_split, "train"), _cut(whole, split, "test")


def _cut(whole: Corpus, split: str | None, usual: str) -> Corpus:
    if split is not None:
        return whole.split(*split_names(split))
    return whole.split(usual) if has_usual(whole.splits, usual) else whole


def split_names(given: str) -> list[str]:
    """Splits as an option names them: `train,dev`."""
    return [SPLIT_NAMES.get(name, name) for name in given.replace(" ", "").split(",")]


def has_usual(splits: Collection[str], usual: str) -> bool:
    """Whether there are several splits, one of them the usual one."""
    return len(splits) > 1 and usual in splits


def read_both(
    corpus: str | None,
    train: Sequence[str] | None,
    test: Sequence[str] | None,
    reading: Reading,
    *,
    train_split: str | None = None,
    split: str | None = None,
) -> tuple[Given, Given]:
    """Training and test data: two splits of one corpus, or files of their own."""
    if train and test and corpus is None:
        if list(train) == list(test) and len(train) == 1 and reading.column is None and reading.seed is None:
            return _read_once(train, reading, train_split=train_split, split=split)
        known = read_side(train, reading, split=train_split, usual="train")
        return known, read_side(test, reading, split=split, usual="test")
    if corpus is None or train or test:
        raise UsageError("Give one corpus with splits, or both --train and --test.")
    if reading.column is not None:
        raise UsageError("A column of texts has no splits: give --train and --test, or --within.")
    whole = reading.read([corpus])
    assert isinstance(whole, Corpus)
    names = [SPLIT_NAMES.get(name, name) for name in (train_split or "train", split or "test")]
    return whole.split(names[0]), whole.split(names[1])
