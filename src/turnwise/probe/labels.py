"""Labels as numbers: the classes that training has, and how often an answer is right, too much or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from turnwise.probe.examples import Examples
from turnwise.probe.targets import Targets
from turnwise.probe.tasks import NONE, Labeller, Task

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

    @property
    def none(self) -> int | None:
        """The class of the empty set, where there is one."""
        return self.classes.index(NONE) if NONE in self.classes else None


def labels_of(name: str, task: Task, labeller: Labeller, training: Examples, held_out: Examples) -> Labels:
    """Label both splits; the classes are those of the training split."""
    first, second = ([_named(labeller(one), task) for one in part.positions] for part in (training, held_out))
    counts = Counter(label for labels in first for label in labels)
    classes = tuple(sorted(counts, key=lambda label: (-counts[label], label)))
    numbers = {label: number for number, label in enumerate(classes)}
    unseen = np.array([sum(label not in numbers for label in labels) for labels in second], dtype=np.int64)
    learnt, asked = (_targets(rows, numbers, is_multi=task.is_multi) for rows in (first, second))
    return Labels(name, task, classes, learnt, asked, unseen)


def _named(labels: Iterable[str], task: Task) -> list[str]:
    """Labels in a fixed order; the empty set is a label as well, and a value that is spelt like it is put in quotes."""
    found = sorted(f"'{label}'" if label == NONE and task.is_multi else label for label in labels)
    return found or [NONE] if task.is_multi else found[:1]


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
    codes, count = labels.training.codes, len(labels.held_out)
    if not isinstance(codes, np.ndarray):
        sets = np.split(codes.indices, codes.indptr[1:-1])
        rows = Counter(tuple(one.tolist()) for one in sets)
        most = max(rows, key=lambda row: (rows[row], row))
        ends = np.arange(count + 1) * len(most)
        answer = sparse.csr_array((np.ones(ends[-1], dtype=bool), np.tile(most, count).astype(np.int64), ends),
                                  shape=(count, codes.shape[1]))  # fmt: skip
        return Targets(answer, labels.training.classes)
    return Targets(np.full(count, np.bincount(codes).argmax(), dtype=np.int64), labels.training.classes)


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
    truth, said = (sparse.csr_array(one.codes, dtype=np.int64) for one in (labels.held_out, answers))
    if not has_none and labels.none is not None:
        kept = np.flatnonzero(np.arange(len(labels.classes)) != labels.none)
        truth, said = truth[:, kept], said[:, kept]
    right = truth.multiply(said).sum(axis=1)
    parts = right, said.sum(axis=1) - right, truth.sum(axis=1) - right + labels.unseen
    return np.stack([np.asarray(part, dtype=np.float64).ravel() for part in parts], axis=1)


@dataclass(frozen=True, eq=False)
class Hits:
    """Right, too many and missing labels of each held-out position (positions, 3), with and without the empty set."""

    all: Floats
    without_none: Floats | None  # None of single-label tasks


def hits_of(labels: Labels, answers: Targets) -> Hits:
    """How a task was answered."""
    bare = hits(labels, answers, has_none=False) if labels.task.is_multi else None
    return Hits(hits(labels, answers), bare)


def f1_parts(counts: Floats) -> tuple[Floats, Floats]:
    """What each position adds to the numerator and to the denominator of micro-F1."""
    right, more, missing = counts.T
    return 2 * right, 2 * right + more + missing
