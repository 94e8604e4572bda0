"""Labels as numbers: the classes that training has, and how often an answer is right, too much or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dialoscope.probe.examples import Examples
from dialoscope.probe.targets import Targets
from dialoscope.probe.tasks import NONE, Labeller, Task

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Labels:
    """One task on two splits. Labels that training never had cannot be answered: they count as misses."""

    name: str
    task: Task
    classes: tuple[str, ...]  # of the training split, the most frequent first
    training: Targets
    held_out: Targets  # of a single-label task, -1 where training never had the label
    unseen: Ints  # (held-out positions,) labels that training never had
    unseen_none: Ints  # (held-out positions,) 1 where one of them is that of the empty set

    @property
    def none(self) -> int | None:
        """The class of the empty set, where there is one."""
        return self.classes.index(NONE) if NONE in self.classes else None

    def names(self, answers: Targets, row: int) -> tuple[str, ...]:
        """The labels of one answer by name."""
        codes = answers.codes
        if isinstance(codes, np.ndarray):
            return (self.classes[codes[row]],)
        return tuple(self.classes[code] for code in sorted(codes.indices[codes.indptr[row] : codes.indptr[row + 1]]))


def labels_of(name: str, task: Task, labeller: Labeller, training: Examples, held_out: Examples) -> Labels:
    """Label both splits; the classes are those of the training split."""
    first, second = ([_named(labeller(position), task) for position in part.positions] for part in (training, held_out))
    counts = Counter(label for labels in first for label in labels)
    classes = tuple(sorted(counts, key=lambda label: (-counts[label], label)))
    numbers = {label: number for number, label in enumerate(classes)}
    unseen = np.array([sum(label not in numbers for label in labels) for labels in second], dtype=np.int64)
    lacks_none = task.is_multi and NONE not in numbers
    unseen_none = np.array([lacks_none and labels == [NONE] for labels in second], dtype=np.int64)
    learnt, asked = (_targets(rows, numbers, is_multi=task.is_multi) for rows in (first, second))
    return Labels(name, task, classes, learnt, asked, unseen, unseen_none)


def _named(labels: Iterable[str], task: Task) -> list[str]:
    """Labels in a fixed order; the empty set is a label as well, and a value that is spelt like it is put in quotes."""
    ordered = sorted(f"'{label}'" if label == NONE and task.is_multi else label for label in labels)
    return ordered or [NONE] if task.is_multi else ordered[:1]


def _targets(rows: Sequence[Sequence[str]], numbers: dict[str, int], *, is_multi: bool) -> Targets:
    if not is_multi:
        return Targets(np.array([numbers.get(labels[0], -1) for labels in rows], dtype=np.int64), len(numbers))
    known = [[numbers[label] for label in labels if label in numbers] for labels in rows]
    ends = np.cumsum([0, *map(len, known)])
    columns = np.array([number for labels in known for number in labels], dtype=np.int64)
    shape = (len(rows), len(numbers))
    return Targets(sparse.csr_array((np.ones(len(columns), dtype=bool), columns, ends), shape=shape), len(numbers))


def majority(labels: Labels) -> Targets:
    """The answer that training gives most often, whole sets for multi-label tasks, to every held-out position."""
    codes = labels.training.codes
    if isinstance(codes, np.ndarray):
        return Targets(np.full(len(labels.held_out), np.bincount(codes).argmax(), dtype=np.int64), len(labels.classes))
    sets = np.split(codes.indices, codes.indptr[1:-1])
    rows = Counter(tuple(answer.tolist()) for answer in sets)
    most = max(rows, key=lambda row: (rows[row], row))
    return _always(most, labels)


def constant(labels: Labels) -> Targets:
    """The best answer that never changes: the k most frequent labels, k by micro-F1 on the training split.

    With k labels of which training has r, and n positions of t labels in all, micro-F1 is 2r / (kn + t). The most
    frequent set is often small and seldom right; this is what a classifier gets that looks at nothing.
    """
    codes = labels.training.codes
    if isinstance(codes, np.ndarray):
        return majority(labels)
    right = np.cumsum(np.bincount(codes.indices, minlength=len(labels.classes)))  # the most frequent class is the first
    named = len(labels.training) * np.arange(1, len(labels.classes) + 1)
    return _always(range(1 + int((2 * right / (named + codes.nnz)).argmax())), labels)


def _always(answer: Sequence[int], labels: Labels) -> Targets:
    """The same set to every held-out position."""
    count, classes = len(labels.held_out), len(labels.classes)
    ends, columns = np.arange(count + 1) * len(answer), np.tile(np.array(answer, dtype=np.int64), count)
    sets = sparse.csr_array((np.ones(len(columns), dtype=bool), columns, ends), shape=(count, classes))
    return Targets(sets, classes)


def shuffled(targets: Targets, rng: np.random.Generator) -> Targets:
    """The same answers for other positions: what a classifier learns from these, the features did not know."""
    return targets.take(rng.permutation(len(targets)))


def hits(labels: Labels, answers: Targets, *, has_none: bool = True) -> Floats:
    """Right, too many and missing labels of each held-out position: (positions, 3). Micro-F1 is 2r / (2r + t + m)."""
    if labels.task.is_multi:
        return _hits_of_sets(labels, answers, has_none=has_none)
    is_right = np.asarray(labels.held_out.codes == answers.codes, dtype=np.float64)
    return np.stack([is_right, 1 - is_right, 1 - is_right], axis=1)


def _hits_of_sets(labels: Labels, answers: Targets, *, has_none: bool) -> Floats:
    truth, named = (sparse.csr_array(targets.codes, dtype=np.int64) for targets in (labels.held_out, answers))
    unseen = labels.unseen if has_none else labels.unseen - labels.unseen_none
    if not has_none and labels.none is not None:
        kept = np.flatnonzero(np.arange(len(labels.classes)) != labels.none)
        truth, named = truth[:, kept], named[:, kept]
    right = truth.multiply(named).sum(axis=1)
    parts = right, named.sum(axis=1) - right, truth.sum(axis=1) - right + unseen
    return np.stack([np.asarray(part, dtype=np.float64).ravel() for part in parts], axis=1)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """How the labels of a task are spread over training positions (Figure 3 of the paper)."""

    labels: int
    positions: int
    leading: tuple[tuple[str, int], ...]  # the most frequent labels, with the number of positions that have them
    entropy: float  # bits
    unseen: int  # held-out labels that training never had


def count_labels(labels: Labels, *, most: int) -> LabelCounts:
    """Count the labels of the training split, and name the most frequent."""
    codes = labels.training.codes
    numbers = np.bincount(codes if isinstance(codes, np.ndarray) else codes.indices, minlength=len(labels.classes))
    shares = numbers[numbers > 0] / numbers.sum()
    counted = Counter(dict(zip(labels.classes, numbers.tolist(), strict=True)))
    return LabelCounts(
        len(labels.classes),
        len(labels.training),
        tuple(counted.most_common(most)),
        float(-(shares * np.log2(shares)).sum()),
        int(labels.unseen.sum()),
    )


@dataclass(frozen=True, eq=False)
class Hits:
    """Right, too many and missing labels of each held-out position (positions, 3), with and without the empty set."""

    all: Floats
    without_none: Floats | None  # None of single-label tasks


Answered = Mapping[str, Hits]  # by task


def hits_of(labels: Labels, answers: Targets) -> Hits:
    """How a task was answered."""
    bare = hits(labels, answers, has_none=False) if labels.task.is_multi else None
    return Hits(hits(labels, answers), bare)


def f1_parts(counts: Floats) -> tuple[Floats, Floats]:
    """What each position adds to the numerator and to the denominator of micro-F1."""
    right, more, missing = counts.T
    return 2 * right, 2 * right + more + missing
