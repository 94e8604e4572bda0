"""Which split a file belongs to, and new splits by whole dialogue."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dialoscope.corpus.dialogue import Corpus, in_corpus_order
from dialoscope.corpus.streams import plain_name
from dialoscope.errors import UsageError

SPLIT_NAMES = {
    "train": "train",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "validation": "validation",
    "test": "test",
}


def split_of(path: Path, root: Path) -> str:
    """The split that a file's name, or else a folder's on the way up to `root`, speaks of; otherwise `all`."""
    folders = [folder for folder in path.parents if folder == root or root in folder.parents]
    # `.` has no name of its own; links keep theirs, for people name links, not what they lead to.
    names = [plain_name(path), *(Path(os.path.normpath(folder.absolute())).name for folder in folders)]
    return next((split for name in names if (split := split_of_name(name))), "all")


def split_of_name(name: str) -> str | None:
    """The split one name speaks of: `dev_dialogues_001.txt` -> `validation`."""
    words = re.findall(r"[a-z]+", name.lower())
    return next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), None)


def resplit(corpus: Corpus, *, validation: int, test: int, seed: int = 0) -> Corpus:
    """New splits by whole dialogue: shuffled with the seed, the first are test, the next validation, the rest train.

    >>> resplit(corpus, validation=1000, test=1000, seed=0).splits      # doctest: +SKIP
    {'train': 11118, 'validation': 1000, 'test': 1000}
    """
    if validation < 0 or test < 0 or validation + test > len(corpus):
        raise UsageError(f"Cannot take {test} test and {validation} validation dialogues from {len(corpus)}.")
    # Whole dialogues move together; turns of one dialogue in two splits would leak.
    order = np.random.default_rng(seed).permutation(len(corpus))
    names = np.full(len(corpus), "train", dtype=object)
    names[:test] = "test"
    names[test : test + validation] = "validation"
    shuffled = corpus.select(order).table
    at = shuffled.schema.get_field_index("split")
    table = shuffled.set_column(at, "split", pa.array(names, pa.string()))
    return replace(corpus, table=in_corpus_order(table))


def sample_dialogues(corpus: Corpus, count: int, *, seed: int) -> Corpus:
    """A seeded draw of at most `count` dialogues from each split, kept in corpus order."""
    rng = np.random.default_rng(seed)
    splits = np.asarray(corpus.table["split"].to_pylist())
    kept = []
    for name in corpus.splits:
        places = np.flatnonzero(splits == name)
        kept.append(rng.choice(places, size=min(count, len(places)), replace=False))
    return corpus.select(np.sort(np.concatenate(kept)))
