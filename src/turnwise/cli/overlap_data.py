"""What the overlap commands are given: a corpus with splits, training and test data, or a column of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from turnwise.cli.console import load_corpus, working
from turnwise.corpus import Corpus
from turnwise.corpus.split import SPLIT_NAMES
from turnwise.errors import UsageError

if TYPE_CHECKING:
    from turnwise.overlap.sides import Side

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
        from turnwise.overlap.tables import read_texts

        with working("reading", quiet=self.quiet):
            return read_texts(paths, column=self.column, limit=self.limit, seed=self.seed)


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
        return reading.read(train, split=train_split), reading.read(test, split=split)
    if corpus is None or train or test:
        raise UsageError("Give one corpus with splits, or both --train and --test.")
    if reading.column is not None:
        raise UsageError("A column of texts has no splits: give --train and --test, or --within.")
    whole = reading.read([corpus])
    assert isinstance(whole, Corpus)
    known, probes = (SPLIT_NAMES.get(name, name) for name in (train_split or "train", split or "test"))
    return whole.split(known), whole.split(probes)
