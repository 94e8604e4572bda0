"""One hidden layer for each task, all tasks in one pass over the data: the recipe of scikit-learn's `MLPClassifier`.

Glorot's initial weights (2010), ReLU, Adam, an L2 penalty, and a stop where the training loss no longer falls. Hidden
layers of all tasks are one batched product; a task that stops leaves it. Every task draws its weights from the same
seed and all see the rows in the same order, so what else is trained in the call changes no task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from turnwise.model.protocol import Floats
from turnwise.probe.descent import pieces_of
from turnwise.probe.logistic import answers, full_precision
from turnwise.probe.targets import Ints, Targets, check_training

Progress = Callable[[int, int], None]  # epochs done, epochs at most

LEAST_GAIN = 1e-4  # of the loss, for an epoch to count as progress
MEAN_DECAY, SQUARE_DECAY, SMALL = 0.9, 0.999, 1e-8  # Adam (Kingma and Ba 2015)


@dataclass(frozen=True, eq=False)
class Perceptron:
    """A trained classifier of one task."""

    hidden_weight: Floats  # (features, hidden)
    hidden_bias: Floats  # (hidden,)
    weight: Floats  # (hidden, classes)
    bias: Floats  # (classes,)
    is_multi: bool
    epochs: int  # until it stopped

    def predict(self, features: Floats, *, device: str = "cpu") -> Targets:
        """The class that scores highest, or all labels that score above 0; in pieces, so memory is bounded."""
        parts = self.hidden_weight, self.hidden_bias, self.weight, self.bias
        first, first_bias, second, second_bias = (torch.from_numpy(part).to(device) for part in parts)
        pieces = pieces_of(features, max(len(self.bias), len(self.hidden_bias)), device)
        with full_precision():
            hidden = (torch.addmm(first_bias, piece, first).relu_() for piece in pieces)
            scores = (torch.addmm(second_bias, each, second) for each in hidden)
            return answers(scores, len(self.bias), is_multi=self.is_multi)


def fit_perceptron(
    features: Floats,
    targets: Sequence[Targets],
    *,
    hidden: int = 100,
    epochs: int = 200,
    batch_size: int = 200,
    rate: float = 1e-3,
    decay: float = 1e-4,
    patience: int = 10,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Perceptron]:
    """Train every task, each until its loss has not fallen for more than `patience` epochs."""
    check_training(features, targets)
    if not targets:
        return []
    rows = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)).to(device)
    group = _Group(rows, targets, hidden=hidden, seed=seed, rate=rate, decay=decay)
    order = np.random.default_rng([seed, 0])
    found: dict[int, Perceptron] = {}
    for epoch in range(1, epochs + 1):
        with full_precision():
            group.learn(order.permutation(len(rows)), batch_size)
        over = np.ones(len(group.tasks), bool) if epoch == epochs else group.waited > patience
        found |= {group.tasks[place].number: group.fitted(place, epoch) for place in np.flatnonzero(over).tolist()}
        group.keep(~over)
        if progress is not None:
            progress(epoch if group.tasks else epochs, epochs)
        if not group.tasks:
            break
    return [found[number] for number in range(len(targets))]


class _Parameter:
    """A tensor that learns by Adam."""

    def __init__(self, value: Tensor, decay: float) -> None:
        self.value, self.decay = value.requires_grad_(), decay
        self.mean, self.square = torch.zeros_like(value), torch.zeros_like(value)

    @torch.no_grad()
    def move(self, rate: float, step: int, rows: int) -> None:
        """One step down; the penalty ½ decay ‖w‖² counts once for a batch, whose loss is a mean over rows."""
        gradient = torch.add(_gradient(self.value), self.value, alpha=self.decay / rows)
        self.mean.lerp_(gradient, 1 - MEAN_DECAY)
        self.square.mul_(SQUARE_DECAY).addcmul_(gradient, gradient, value=1 - SQUARE_DECAY)
        rate *= math.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step)
        self.value.addcdiv_(self.mean, self.square.sqrt().add_(SMALL), value=-rate)
        self.value.grad = None

    def penalty(self) -> Tensor:
        """½ decay ‖w‖² of each task, where tasks are stacked (tasks, …); of the whole otherwise."""
        squares = self.value.detach().square()
        return self.decay / 2 * (squares.sum((1, 2)) if squares.ndim == 3 else squares.sum())

    def keep(self, is_kept: Tensor) -> None:
        """Only these tasks of a stack."""
        self.value = self.value.detach()[is_kept].requires_grad_()
        self.mean, self.square = self.mean[is_kept], self.square[is_kept]


def _gradient(value: Tensor) -> Tensor:
    assert value.grad is not None
    return value.grad


@dataclass(frozen=True, eq=False)
class _Task:
    number: int
    targets: Targets
    weight: _Parameter  # (hidden, classes)
    bias: _Parameter


class _Group:
    """The tasks that still learn."""

    def __init__(
        self, rows: Tensor, targets: Sequence[Targets], *, hidden: int, seed: int, rate: float, decay: float
    ) -> None:
        self.rows, self.rate, self.step = rows, rate, 0
        rngs = [np.random.default_rng([seed, 1]) for _ in targets]
        first = [_layer(rng, rows.shape[1], hidden) for rng in rngs]
        weight, bias = (np.stack([one[part] for one in first]) for part in (0, 1))
        self.weight = _Parameter(torch.from_numpy(weight).to(rows.device), decay)  # (tasks, features, hidden)
        self.bias = _Parameter(torch.from_numpy(bias).to(rows.device), 0)  # (tasks, 1, hidden)
        self.tasks = [
            _task(place, one, rng, hidden, decay, rows)
            for place, (one, rng) in enumerate(zip(targets, rngs, strict=True))
        ]
        self.best, self.waited = np.full(len(targets), np.inf), np.zeros(len(targets), dtype=np.int64)

    def learn(self, order: Ints, batch_size: int) -> None:
        """One epoch over the rows in this order; counts for how many epochs each task's loss has not fallen."""
        total = torch.zeros(len(self.tasks), dtype=torch.float64, device=self.rows.device)
        batches = [_Batches(task.targets.take(order), self.rows.device) for task in self.tasks]
        places = torch.from_numpy(order).to(self.rows.device)
        for first in range(0, len(order), batch_size):
            rows = self.rows[places[first : first + batch_size]]
            total += len(rows) * self._learn_batch(rows, [one.loss_from(first, len(rows)) for one in batches])
        loss = (total / len(order)).cpu().numpy()
        self.waited = np.where(loss > self.best - LEAST_GAIN, self.waited + 1, 0)
        self.best = np.minimum(self.best, loss)

    def _learn_batch(self, rows: Tensor, losses: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        hidden = torch.baddbmm(self.bias.value, rows.expand(len(self.tasks), -1, -1), self.weight.value).relu()
        scores = [
            torch.addmm(task.bias.value, each, task.weight.value) for task, each in zip(self.tasks, hidden, strict=True)
        ]
        loss = torch.stack([one(each) for one, each in zip(losses, scores, strict=True)])
        loss.sum().backward()  # type: ignore[no-untyped-call]
        penalty = self.weight.penalty() + torch.stack([task.weight.penalty() for task in self.tasks])
        self.step += 1
        for parameter in self._parameters():
            parameter.move(self.rate, self.step, len(rows))
        return loss.detach() + penalty / len(rows)

    def _parameters(self) -> Iterator[_Parameter]:
        yield from (self.weight, self.bias)
        for task in self.tasks:
            yield from (task.weight, task.bias)

    def keep(self, is_kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Go on with these tasks only."""
        if is_kept.all():
            return
        for parameter in (self.weight, self.bias):
            parameter.keep(torch.from_numpy(is_kept).to(self.rows.device))
        self.tasks = [task for task, is_one in zip(self.tasks, is_kept, strict=True) if is_one]
        self.best, self.waited = self.best[is_kept], self.waited[is_kept]

    def fitted(self, place: int, epoch: int) -> Perceptron:
        """A task as it is now."""
        task = self.tasks[place]
        first, second = self.weight.value[place], task.weight.value
        biases = self.bias.value[place, 0], task.bias.value
        return Perceptron(
            hidden_weight=_numbers(first),
            hidden_bias=_numbers(biases[0]),
            weight=_numbers(second),
            bias=_numbers(biases[1]),
            is_multi=task.targets.is_multi,
            epochs=epoch,
        )


def _numbers(value: Tensor) -> Floats:
    found: Floats = value.detach().cpu().numpy().copy()  # what goes on learning shall not change it
    return found


def _layer(rng: np.random.Generator, width: int, outputs: int) -> tuple[Floats, Floats]:
    """Glorot's uniform weights (width, outputs); biases (1, outputs) as scikit-learn draws them."""
    bound = math.sqrt(6 / (width + outputs))
    weight, bias = (rng.uniform(-bound, bound, (count, outputs)) for count in (width, 1))
    return weight.astype(np.float32), bias.astype(np.float32)


def _task(number: int, targets: Targets, rng: np.random.Generator, hidden: int, decay: float, rows: Tensor) -> _Task:
    weight, bias = (torch.from_numpy(part).to(rows.device) for part in _layer(rng, hidden, targets.classes))
    return _Task(number, targets.canonical(), _Parameter(weight, decay), _Parameter(bias[0], 0))


class _Batches:
    """One task's truths in the order of an epoch; sets of labels stay sparse."""

    def __init__(self, targets: Targets, device: torch.device) -> None:
        codes = targets.codes
        self.ends = None if isinstance(codes, np.ndarray) else codes.indptr
        if self.ends is not None:
            self.rows = torch.from_numpy(np.repeat(np.arange(len(targets)), np.diff(self.ends))).to(device)
        said = codes if isinstance(codes, np.ndarray) else codes.indices.astype(np.int64)
        self.said = torch.from_numpy(said).to(device)

    def loss_from(self, first: int, count: int) -> Callable[[Tensor], Tensor]:
        """The mean loss of scores (rows, classes) of a batch: cross-entropy, over labels summed."""
        if self.ends is None:
            return lambda scores: functional.cross_entropy(scores, self.said[first : first + count])
        own = slice(int(self.ends[first]), int(self.ends[first + count]))
        rows, said = self.rows[own] - first, self.said[own]
        return lambda scores: (functional.softplus(scores).sum() - scores[rows, said].sum()) / count
