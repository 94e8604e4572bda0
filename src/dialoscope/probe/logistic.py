"""Logistic regression for all labels of all tasks at once: the optimum of scikit-learn's `LogisticRegression`.

Each problem minimises ½‖w‖² + C · Σ log loss, without a penalty on the intercept. All problems share their features,
and are taken down together (`descent`).

One-against-rest problems that have equal rows are solved once. With C beyond 100 or so separable labels may stop at
float32's rounding, and say that they did not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from dialoscope.model.protocol import Floats
from dialoscope.probe import descent
from dialoscope.probe.descent import Descent, Space, pieces_of
from dialoscope.probe.targets import Ints, Targets, check_training

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Progress = Callable[[int, int], None]  # labels told from the rest so far, and in all; equal ones count once

TOLERANCE = 1e-6  # of the objective; held-out answers no longer change from there on
PATIENCE = 50  # iterations without progress: rounding is all that is left


@dataclass(frozen=True, eq=False)
class Linear:
    """A fitted linear classifier of one task. Two classes are one problem: the first class scores 0."""

    weight: Floats  # (features, classes)
    bias: Floats  # (classes,); infinite for an answer that is always or never given
    is_multi: bool
    is_converged: Bools  # (classes,)

    def predict(self, features: Floats, *, device: str = "cpu") -> Targets:
        """The class that scores highest, or all labels that score above 0; in pieces, so memory is bounded."""
        weight, bias = (torch.from_numpy(part).to(device) for part in (self.weight, self.bias))
        with full_precision():
            scores = (torch.addmm(bias, piece, weight) for piece in pieces_of(features, len(bias), device))
            return answers(scores, len(bias), is_multi=self.is_multi)


def answers(scores: Iterator[Tensor], classes: int, *, is_multi: bool) -> Targets:
    """Answers from scores (rows, classes) that come piece by piece."""
    if not is_multi:
        return Targets(np.concatenate([one.argmax(1).cpu().numpy() for one in scores] or [np.zeros(0, int)]), classes)
    found = [sparse.csr_array((0, classes), dtype=bool), *(sparse.csr_array((one > 0).cpu().numpy()) for one in scores)]
    return Targets(sparse.csr_array(sparse.vstack(found, format="csr")), classes)


def fit_logistic(
    features: Floats,
    targets: Sequence[Targets],
    *,
    strength: float = 1.0,
    tolerance: float = TOLERANCE,
    most_iterations: int = 1000,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Linear]:
    """Fit every task; `strength` is scikit-learn's C. What else is fitted in the call changes no task's answers.

    A problem has converged when the decrease that a Newton step still promises is below `tolerance` of its objective.

    >>> knowing = fit_logistic(np.array([[-1.0], [1.0]], dtype=np.float32), [Targets(np.array([1, 0]), 2)])
    >>> knowing[0].predict(np.array([[5.0], [-5.0]], dtype=np.float32)).codes
    array([0, 1])
    """
    check_training(features, targets)
    tasks = [_columns(one) for one in targets]
    with full_precision():
        solver = _Solver(Space.of(features, device), strength, tolerance, most_iterations)
        pairs = solver.solve_each([one for one in tasks if _is_binary(one)], progress)
        joint = solver.solve_jointly({place: one for place, one in enumerate(tasks) if not _is_binary(one)})
        return [
            _joined(one, target, pairs if _is_binary(one) else joint[place])
            for place, (one, target) in enumerate(zip(tasks, targets, strict=True))
        ]


@contextmanager
def full_precision() -> Iterator[None]:
    """Products without TF32, whose three digits cannot tell a converged problem from others."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# --- Tasks as problems ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Columns:
    """The rows of each class that is to be told from others; `classes` are their numbers."""

    rows: Sequence[Ints]
    classes: Ints
    always: Ints  # classes that no weights are needed for: always on, or the first of at most two
    is_multi: bool


def _columns(targets: Targets) -> _Columns:
    return _of_sets(targets.canonical().codes) if targets.is_multi else _of_classes(np.asarray(targets.codes))


def _of_sets(codes: sparse.csr_array) -> _Columns:
    """Labels that some rows have and some do not."""
    table = sparse.csc_array(codes)
    counts = np.diff(table.indptr)
    chosen = np.flatnonzero((counts > 0) & (counts < table.shape[0]))
    rows = [table.indices[table.indptr[one] : table.indptr[one + 1]].astype(np.int64) for one in chosen]
    return _Columns(rows, chosen, np.flatnonzero(counts == table.shape[0]), is_multi=True)


def _of_classes(codes: Ints) -> _Columns:
    """All classes that occur; of two, only the second, whose score says which it is."""
    found = np.unique(codes)
    first, asked = (found[:1], found[1:]) if len(found) <= 2 else (found[:0], found)
    return _Columns([np.flatnonzero(codes == one) for one in asked], asked, first, is_multi=False)


def _is_binary(columns: _Columns) -> bool:
    return columns.is_multi or len(columns.rows) < 2


def _key(rows: Ints) -> bytes:
    return rows.tobytes()


@dataclass(frozen=True, eq=False)
class _Solved:
    """Optima of many problems, found by the rows that have the label."""

    places: dict[bytes, int]
    weight: Floats  # (features, problems)
    bias: Floats
    is_converged: Bools


def _joined(columns: _Columns, targets: Targets, solved: _Solved) -> Linear:
    """One task's classifier. Where nothing was to be solved, weights are 0 and the bias alone answers."""
    places = np.array([solved.places[_key(rows)] for rows in columns.rows], dtype=np.int64)
    weight = np.zeros((len(solved.weight), targets.classes), dtype=np.float32)
    bias = np.full(targets.classes, -np.inf, dtype=np.float32)
    is_converged = np.ones(targets.classes, dtype=np.bool_)
    bias[columns.always] = np.inf if columns.is_multi else 0
    weight[:, columns.classes], bias[columns.classes] = solved.weight[:, places], solved.bias[places]
    is_converged[columns.classes] = solved.is_converged[places]
    return Linear(weight, bias, columns.is_multi, is_converged)


# --- Many problems at once --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Solver:
    space: Space
    strength: float
    tolerance: float
    most_iterations: int

    def solve_each(self, tasks: Sequence[_Columns], progress: Progress | None) -> _Solved:
        """Every label against the rest. Equal frequencies are neighbours: they need about as many iterations."""
        problems = {_key(rows): rows for task in tasks for rows in task.rows}
        keys = sorted(problems, key=lambda key: (len(key), key))  # not by place, so that the order of labels is nothing
        size = self._size()
        parts = []
        for first in range(0, len(keys), size):
            parts.append(self._minimised([problems[key] for key in keys[first : first + size]], heads=1))
            if progress is not None:
                progress(min(first + size, len(keys)), len(keys))
        return self._solved(keys, parts)

    def solve_jointly(self, tasks: Mapping[int, _Columns]) -> dict[int, _Solved]:
        """All classes of a task as a single problem, softmax; tasks of as many classes side by side."""
        found: dict[int, _Solved] = {}
        for heads in sorted({len(task.rows) for task in tasks.values()}):
            alike = [place for place, task in tasks.items() if len(task.rows) == heads]
            count = max(1, self._size() // heads)
            for first in range(0, len(alike), count):
                some = {place: tasks[place] for place in alike[first : first + count]}
                weights, is_there = self._minimised([rows for task in some.values() for rows in task.rows], heads=heads)
                parts = zip(torch.split(weights, heads), torch.split(is_there, heads), strict=True)
                for (place, task), part in zip(some.items(), parts, strict=True):
                    found[place] = self._solved(list(map(_key, task.rows)), [part])
        return found

    def _size(self) -> int:
        """Labels that are a block."""
        return descent.labels_at_once(self.space.features.device.type, len(self.space.features))

    def _solved(self, keys: Sequence[bytes], parts: Sequence[tuple[Tensor, Tensor]]) -> _Solved:
        none = self.space.mean.new_zeros(0, len(self.space.penalty)), torch.zeros(0, dtype=torch.bool)
        weights, is_converged = (torch.cat(both) for both in zip(none, *parts, strict=True))
        weight, bias = (part.float().cpu().numpy() for part in self.space.turned_back(weights))
        return _Solved({key: place for place, key in enumerate(keys)}, weight, bias, is_converged.numpy())

    def _minimised(self, rows: Sequence[Ints], *, heads: int) -> tuple[Tensor, Tensor]:
        """Weights (labels, width + 1) and whether they converged (labels,)."""
        going = Descent.start(self.space, rows, heads=heads, strength=self.strength)
        weights = torch.zeros_like(going.state.weights)
        is_converged = torch.zeros(len(weights), dtype=torch.bool)
        for iteration in range(self.most_iterations + 1):
            is_there = going.look(iteration, self.tolerance)
            is_late = (iteration - going.state.best_at >= PATIENCE) | (iteration == self.most_iterations)
            is_over, is_good = torch.stack([is_there | is_late, is_there]).cpu().numpy()  # the GPU is asked once
            if len(over := np.flatnonzero(is_over & going.is_going)):
                places = torch.from_numpy(over).to(weights.device)
                number = going.state.number[places]
                weights[number], is_converged[number.cpu()] = going.state.best[places], torch.from_numpy(is_good[over])
            if len(over) == going.is_going.sum():
                break
            going.leave(over)
            going.step()
        return weights.flatten(0, 1), is_converged.repeat_interleave(heads)
