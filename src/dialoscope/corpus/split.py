"""The one rule for splits: which split a file belongs to, and which splits answer a question.

A corpus that has the splits a question needs is used as it is. A corpus of one split is compared with itself
(overlap), measured whole (distract), or split by dialogue, 80/10/10, by the seed (whatever fits something).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from dialoscope.corpus.dialogue import Corpus, in_corpus_order
from dialoscope.corpus.shared_ids import named_apart
from dialoscope.corpus.streams import plain_name
from dialoscope.errors import UsageError

SPLIT_NAMES = {
    "train": "train",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "validation": "validation",
    "test": "test",
    "eval": "test",
    "evaluation": "test",
    "holdout": "test",
    "heldout": "test",
}
WHOLE = "all"  # the split of dialogues whose file names none
FEWEST_TO_SPLIT = 10  # dialogues: with fewer, a split of a tenth would be empty
# The options that give the usual split as a file; files for other splits there are none.
FILE_OPTIONS = {("split", "test"): ", or give --test FILE", ("train_split", "train"): ", or give --train FILE"}
SHARE_HELD_OUT = 0.1  # of a corpus of one split, for validation; as much again for the test


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


Alone = Literal["itself", "whole", "split"]  # what a question does with a corpus of one split
VERBS: Mapping[Alone, str] = {"itself": "Compared with", "whole": "Distractions from", "split": "Training"}


@dataclass(frozen=True, eq=False)
class Parts:
    """Which dialogues of a corpus answer a question, and which are compared with or learnt from."""

    measured: Corpus
    uncut: Corpus  # the measured split before the limit: what is decided by its form holds for any limit
    reference: Corpus  # training dialogues; the corpus itself where it has one split only
    validation: Corpus | None
    sizes: Mapping[str, int]  # dialogues by part, as a result has them: {"train": 4000, "test": 500}
    used: str  # one sentence: which dialogues were used for what
    is_same: bool = False  # the measured dialogues are the first ones of `reference`

    @property
    def measured_apart(self) -> Corpus:
        """The measured dialogues with an id of their own each, which the limit does not change."""
        apart = named_apart(self.uncut)
        return self.measured if apart is self.uncut else apart[: len(self.measured)]


def split_for(
    corpus: Corpus,
    *,
    alone: Alone,
    split: str | None = None,
    usual: str = "test",
    train_split: str | None = None,
    validation_split: str | None = None,
    needs_validation: bool = False,
    option: str = "split",
    limit: int | None = None,
    seed: int = 0,
) -> Parts:
    """Choose the dialogues that a question measures and those that it compares with or learns from.

    `split`, `train_split` and `validation_split` name other splits than the usual ones. `limit` cuts the measured split
    only, after splitting. `alone` says what is done with a corpus of one split. `option` is the caller's name for
    `split`, which errors advise.

    >>> split_for(corpus, alone="itself").used                          # doctest: +SKIP
    'Measured: test, 500 dialogues. Compared with: train, 4,000 dialogues.'
    """
    names = {kind: canonical(name) for kind, name in (("measured", split or usual), ("train", train_split or "train"))}
    is_alone = len(corpus.splits) == 1
    if is_alone and alone != "split":
        return _alone(corpus, alone, limit, {option: split, "train_split": train_split})
    rule = ""
    if is_alone and alone == "split" and not set(names.values()) <= set(corpus.splits):
        corpus = split_evenly(corpus, seed=seed)
        rule = f" The corpus has one split: its dialogues were split 80/10/10 with seed {seed}."
    uncut = _named_split(corpus, names["measured"], option)
    measured = uncut if limit is None else uncut[:limit]
    training = _named_split(corpus, names["train"], "train_split")
    name = canonical(validation_split or "validation")
    validation = _named_split(corpus, name, "validation_split") if needs_validation else None
    used = f"Measured: {_sized(names['measured'], measured)}. {VERBS[alone]}: {_sized(names['train'], training)}."
    sizes = {names["train"]: len(training), names["measured"]: len(measured)}
    if validation is not None:
        used += f" Validation: {_sized(name, validation)}."
        sizes = {names["train"]: len(training), name: len(validation)}
        sizes.pop(names["measured"], None)  # the measured split comes last, whatever else it is used for
        sizes[names["measured"]] = len(measured)
    is_same = names["measured"] == names["train"]
    return Parts(measured, uncut, training, validation, sizes, used + rule, is_same=is_same)


def split_to_read(
    corpus: Corpus,
    *,
    split: str | None = None,
    usual: str = "test",
    limit: int | None = None,
    option: str = "split",
    takes_file: bool = True,
) -> tuple[Corpus, str, str]:
    """Choose the one split that is read where nothing is compared or learnt: its dialogues, its name, and a sentence.

    A corpus of one split is read whole, unless `split` names another one. `option` is the caller's name for `split`,
    which errors advise; `takes_file` says whether --train or --test can give this split as a file.
    """
    is_alone = len(corpus.splits) == 1
    name = next(iter(corpus.splits)) if is_alone and split is None else canonical(split or usual)
    chosen = _named_split(corpus, name, option, takes_file=takes_file)
    chosen = chosen if limit is None else chosen[:limit]
    return chosen, name, f"Read: {_sized(name, chosen)}."


def named_splits(corpus: Corpus, names: Sequence[str], *, option: str = "split") -> Corpus:
    """The splits of these names, under any of their usual ones: `eval` reads `test`."""
    wanted = [canonical(name) for name in names]
    for name in wanted:
        if name not in corpus.splits:
            raise _no_split(corpus, name, option, takes_file=False)
    return corpus.split(*wanted)


def split_evenly(corpus: Corpus, *, seed: int) -> Corpus:
    """A corpus of one split as training, validation and test, 80/10/10, by whole dialogue; others unchanged."""
    if len(corpus.splits) > 1:
        return corpus
    if len(corpus) < FEWEST_TO_SPLIT:
        found = f"{corpus.name} has one split of {len(corpus)} dialogues"
        advice = f"Splitting it 80/10/10 takes at least {FEWEST_TO_SPLIT}. Give more dialogues, or --train and --test."
        raise UsageError(f"{found}. {advice}")
    held_out = round(len(corpus) * SHARE_HELD_OUT)
    return resplit(corpus, validation=held_out, test=held_out, seed=seed)


def canonical(name: str) -> str:
    """The usual name of a split: `dev` is `validation`, `eval` is `test`."""
    return SPLIT_NAMES.get(name.lower(), name)


def _alone(corpus: Corpus, alone: Alone, limit: int | None, wanted: Mapping[str, str | None]) -> Parts:
    """One split: measured whole, against itself or with distractions from its other dialogues."""
    name = next(iter(corpus.splits))
    for option, split in wanted.items():
        if split is not None and canonical(split) != name:
            raise _no_split(corpus, canonical(split), option)
    measured = corpus if limit is None else corpus[:limit]
    how = "was compared with itself" if alone == "itself" else "was measured; distractions come from other dialogues"
    used = f"The corpus has one split ({_sized(name, corpus)}) and {how}."
    used += f" Measured: the first {len(measured):,}." if len(measured) < len(corpus) else ""
    return Parts(measured, corpus, corpus, None, {name: len(measured)}, used, is_same=True)


def _named_split(corpus: Corpus, name: str, option: str, *, takes_file: bool = True) -> Corpus:
    if name not in corpus.splits:
        raise _no_split(corpus, name, option, takes_file=takes_file)
    return corpus.split(name)


def _no_split(corpus: Corpus, name: str, option: str, *, takes_file: bool = True) -> UsageError:
    """The splits that are there, and the option that helps: by its name in Python, and by that of the command line."""
    present = ", ".join(corpus.splits) or "none, for the corpus is empty"
    file_option = FILE_OPTIONS.get((option, name), "") if takes_file else ""
    advice = f"Name another with {option} (--{option.replace('_', '-')}){file_option}."
    return UsageError(f"{corpus.name} has no {name} split. Found: {present}. {advice}")


def _sized(name: str, corpus: Corpus) -> str:
    return f"{name}, {len(corpus):,} dialogue{'' if len(corpus) == 1 else 's'}"
