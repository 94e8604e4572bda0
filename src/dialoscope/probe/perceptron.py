"""One hidden layer for each task, all tasks in one pass over the data: the recipe of scikit-learn's `MLPClassifier`.

Glorot's initial weights (2010), ReLU, Adam, an L2 penalty, and a stop where the training loss no longer falls. Every
task draws its weights from the same seed and all see the rows in the same order, so what else is trained in the call
changes no task.

A batch is small, so on a GPU the launches cost more than the numbers. All parameters are one flat tensor, biases are
weights of a column of ones, tasks of about as many classes are one batched product (with classes that never are, to
make them equal), and gradients are written out: some fifty kernels a batch whatever the number of tasks. On CUDA they
are one graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from dialoscope.model.protocol import Floats
from dialoscope.probe.descent import pieces_of
from dialoscope.probe.logistic import answers, full_precision
from dialoscope.probe.targets import Ints, Targets, check_training

Progress = Callable[[int, int], None]  # epochs done, epochs at most

LEAST_GAIN = 1e-4  # of the loss, for an epoch to count as progress
MEAN_DECAY, SQUARE_DECAY, SMALL = 0.9, 0.999, 1e-8  # Adam (Kingma and Ba 2015)
NARROW = 64  # tasks of so many classes and fewer are one product
NEVER = -1e30  # the score of a class that only fills a product up; finite, for 0 · ∞ is no number
LEAVING = 0.25  # share of the tasks that have stopped when the others are put together anew


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
    rows = torch.from_numpy(np.pad(features.astype(np.float32), ((0, 0), (0, 1)), constant_values=1)).to(device)
    group = _Group.drawn(rows, targets, hidden=hidden, seed=seed, decay=decay)
    order = np.random.default_rng([seed, 0])
    found: dict[int, Perceptron] = {}
    for epoch in range(1, epochs + 1):
        with full_precision():
            group.learn(order.permutation(len(rows)), batch_size, rate)
            over = set(group.numbers if epoch == epochs else group.stopped(patience)) - set(found)
            found |= {number: group.fitted(number, epoch) for number in over}
            group = group.without(found)
        if progress is not None:
            progress(epoch if len(found) < len(targets) else epochs, epochs)
        if len(found) == len(targets):
            break
    group.release()
    return [found[number] for number in range(len(targets))]


# --- Tasks side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Task:
    """What one task is taught."""

    number: int
    targets: Targets

    @property
    def kind(self) -> tuple[bool, int]:
        """Tasks of one kind share a product: sets come last, and widths differ by less than a factor of two."""
        return self.targets.is_multi, max(NARROW, 1 << (self.targets.classes - 1).bit_length())


@dataclass(frozen=True)
class _Block:
    """Neighbouring tasks that are one batched product."""

    tasks: slice
    columns: slice
    shape: tuple[int, int]  # tasks, columns of each


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the tasks' parameters lie in one flat tensor: first layers (features + 1, tasks · hidden), then seconds.

    The second layers are (hidden + 1, columns); the last row of each layer is the biases.
    """

    tasks: Sequence[_Task]  # in the order of their kinds
    inputs: int  # features and the column of ones
    hidden: int
    blocks: Sequence[_Block]
    starts: Sequence[int]  # each task's first column

    @classmethod
    def of(cls, tasks: Sequence[_Task], inputs: int, hidden: int) -> _Layout:
        """Tasks of one kind side by side, each as wide as the widest."""
        tasks = sorted(tasks, key=lambda one: (one.kind, one.number))
        blocks: list[_Block] = []
        for kind in sorted({one.kind for one in tasks}):
            some = [place for place, one in enumerate(tasks) if one.kind == kind]
            width = max(1, *(tasks[place].targets.classes for place in some))
            first = blocks[-1].columns.stop if blocks else 0
            own, columns = slice(some[0], some[-1] + 1), slice(first, first + len(some) * width)
            blocks.append(_Block(own, columns, (len(some), width)))
        starts = [one.columns.start + place * one.shape[1] for one in blocks for place in range(one.shape[0])]
        return cls(tasks, inputs, hidden, blocks, starts)

    @property
    def columns(self) -> int:
        """Classes of all tasks, those that fill up included."""
        return int(self.blocks[-1].columns.stop)

    @property
    def single(self) -> int:
        """Columns of tasks with one label; those of sets follow."""
        places = [one.columns.stop for one in self.blocks if not self.tasks[one.tasks.start].targets.is_multi]
        return max(places, default=0)

    def zeros(self, device: torch.device) -> Tensor:
        """A flat tensor of all parameters."""
        count = self.inputs * len(self.tasks) * self.hidden + (self.hidden + 1) * self.columns
        return torch.zeros(count, device=device)

    def layers(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Views of a flat tensor: (features + 1, tasks · hidden) and (hidden + 1, columns)."""
        width = len(self.tasks) * self.hidden
        first, second = flat[: self.inputs * width], flat[self.inputs * width :]
        return first.view(self.inputs, width), second.view(self.hidden + 1, self.columns)

    def parts(self, flat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Each task's own views: (features + 1, hidden) and (hidden + 1, classes)."""
        first, second = self.layers(flat)
        for place, (task, start) in enumerate(zip(self.tasks, self.starts, strict=True)):
            own = slice(place * self.hidden, (place + 1) * self.hidden)
            yield first[:, own], second[:, start : start + task.targets.classes]

    def products(self, values: Tensor) -> list[Tensor]:
        """Views of (rows, columns), one for each block: (tasks, rows, classes)."""
        return [values[:, one.columns].view(len(values), *one.shape).transpose(0, 1) for one in self.blocks]

    def sums(self, values: Tensor) -> Tensor:
        """Of one value for each column, those of each task: (tasks,)."""
        return torch.cat([values[one.columns].view(one.shape).sum(1) for one in self.blocks])

    def truths(self) -> Ints:
        """The columns that are true in each row, (rows, most); a column that is not there fills up."""
        tables = [_table(one.targets) for one in self.tasks]
        counts = np.stack([np.diff(one.indptr) for one in tables], 1)  # (rows, tasks)
        ends = counts.cumsum(1)
        found = np.full((len(counts), ends[:, -1].max(initial=0)), self.columns, dtype=np.int64)
        for place, (table, start) in enumerate(zip(tables, self.starts, strict=True)):
            row = np.repeat(np.arange(len(counts)), counts[:, place])
            within = np.arange(len(row)) - np.repeat(table.indptr[:-1], counts[:, place])
            found[row, (ends[:, place] - counts[:, place])[row] + within] = start + table.indices
        return found


def _table(targets: Targets) -> sparse.csr_array:
    """What is true of each row, (rows, classes)."""
    codes = targets.codes
    if not isinstance(codes, np.ndarray):
        return codes
    ends = np.arange(len(codes) + 1)
    return sparse.csr_array((np.ones(len(codes), dtype=bool), codes, ends), shape=(len(codes), targets.classes))


def _layer(rng: np.random.Generator, width: int, outputs: int) -> Floats:
    """Glorot's uniform weights, and biases as scikit-learn draws them: (width + 1, outputs)."""
    bound = math.sqrt(6 / (width + outputs))
    return np.concatenate([rng.uniform(-bound, bound, (count, outputs)) for count in (width, 1)]).astype(np.float32)


# --- Learning ---------------------------------------------------------------------------------------------------------


class _Group:
    """Tasks that learn together; of those that have stopped nobody asks any more."""

    def __init__(self, rows: Tensor, layout: _Layout, decay: float) -> None:
        self.rows, self.layout, self.decay, self.step = rows, layout, decay, 0  # rows (rows, features + 1)
        self.value, self.mean, self.square, self.gradient = (layout.zeros(rows.device) for _ in range(4))
        layout.layers(self.value)[1][-1] = NEVER
        self.truths = torch.from_numpy(layout.truths()).to(rows.device)  # (rows, most labels)
        self.best, self.waited = (np.full(len(layout.tasks), start) for start in (np.inf, 0.0))
        self.total = torch.zeros(len(layout.tasks), dtype=torch.float64, device=rows.device)
        self.batches: dict[int, _Batch] = {}

    @classmethod
    def drawn(cls, rows: Tensor, targets: Sequence[Targets], *, hidden: int, seed: int, decay: float) -> _Group:
        """All tasks, with weights as they are before training."""
        tasks = [_Task(number, one.canonical()) for number, one in enumerate(targets)]
        group = cls(rows, _Layout.of(tasks, rows.shape[1], hidden), decay)
        for task, (first, second) in zip(group.layout.tasks, group.layout.parts(group.value), strict=True):
            rng = np.random.default_rng([seed, 1])
            first.copy_(torch.from_numpy(_layer(rng, rows.shape[1] - 1, hidden)))
            second.copy_(torch.from_numpy(_layer(rng, hidden, task.targets.classes)))
        return group

    @property
    def numbers(self) -> list[int]:
        """Which tasks these are."""
        return [one.number for one in self.layout.tasks]

    def learn(self, order: Ints, batch_size: int, rate: float) -> None:
        """One epoch over the rows in this order; counts for how many epochs each task's loss has not fallen."""
        places = torch.split(torch.from_numpy(order).to(self.rows.device), batch_size)
        steps = self.step + np.arange(1, len(places) + 1)
        rates = rate * np.sqrt(1 - SQUARE_DECAY**steps) / (1 - MEAN_DECAY**steps)
        self.total.zero_()
        for some, one in zip(places, torch.from_numpy(rates.astype(np.float32)).to(self.rows.device), strict=True):
            if len(some) not in self.batches:
                self.batches[len(some)] = _Batch(self, len(some), is_frequent=len(some) == batch_size)
            self.batches[len(some)].learn(some, one)
        self.step += len(places)
        loss = (self.total / len(order)).cpu().numpy()
        self.waited = np.where(loss > self.best - LEAST_GAIN, self.waited + 1, 0)
        self.best = np.minimum(self.best, loss)

    def stopped(self, patience: int) -> list[int]:
        """Tasks whose loss has not fallen for longer than that."""
        return [number for number, waited in zip(self.numbers, self.waited, strict=True) if waited > patience]

    def fitted(self, number: int, epoch: int) -> Perceptron:
        """A task as it is now."""
        place = self.numbers.index(number)
        first, second = (part.cpu().numpy().copy() for part in list(self.layout.parts(self.value))[place])
        is_multi = self.layout.tasks[place].targets.is_multi
        return Perceptron(first[:-1], first[-1], second[:-1], second[-1], is_multi, epoch)

    def without(self, over: Mapping[int, object]) -> _Group:
        """The same without tasks that are over, once they are worth the work; itself otherwise."""
        kept = [place for place, number in enumerate(self.numbers) if number not in over]
        if not kept or len(kept) > (1 - LEAVING) * len(self.numbers):
            return self
        tasks = [self.layout.tasks[place] for place in kept]
        group = _Group(self.rows, _Layout.of(tasks, self.layout.inputs, self.layout.hidden), self.decay)
        for old, new in ((self.value, group.value), (self.mean, group.mean), (self.square, group.square)):
            parts = list(self.layout.parts(old))
            for place, both in zip(kept, group.layout.parts(new), strict=True):
                for source, target in zip(parts[place], both, strict=True):
                    target.copy_(source)
        group.step, group.best, group.waited = self.step, self.best[kept], self.waited[kept]
        self.release()
        return group

    def release(self) -> None:
        """Give back what batches and graphs hold; they hold the group, so it would wait for the collector."""
        self.batches.clear()


class _Batch:
    """A step of Adam on so many rows, over tensors of its own. A frequent one is a graph on CUDA, once it has run."""

    def __init__(self, group: _Group, count: int, *, is_frequent: bool) -> None:
        self.group, self.count = group, count
        self.is_captured = is_frequent and group.rows.is_cuda
        self.graph: torch.cuda.CUDAGraph | None = None
        layout, new = group.layout, group.rows.new_empty
        tasks, hidden = len(layout.tasks), layout.hidden
        self.places = torch.zeros(count, dtype=torch.int64, device=group.rows.device)
        self.rate = new(())
        self.below = new(count, tasks * hidden)  # the hidden layers before they are rectified, and their gradient
        self.back = new(count, tasks, hidden)
        self.hidden = new(count, tasks, hidden + 1).fill_(1)  # with a one for the bias
        self.scores, self.residual = new(count, layout.columns), new(count, layout.columns)
        self.truth = new(count, layout.columns + 1)
        self._cut()

    def _cut(self) -> None:
        """Views of what the products read and write, (tasks, …) for each block."""
        group, layout = self.group, self.group.layout
        self.first, second = layout.layers(group.value)
        self.first_gradient, second_gradient = layout.layers(group.gradient)
        self.weights, self.gradients = layout.products(second), layout.products(second_gradient)
        self.asked, self.wrong = layout.products(self.scores), layout.products(self.residual)
        self.units = [self.hidden[:, one.tasks].transpose(0, 1) for one in layout.blocks]
        self.backs = [self.back[:, one.tasks].transpose(0, 1) for one in layout.blocks]

    def learn(self, places: Tensor, rate: Tensor) -> None:
        """One step on the rows at these places."""
        self.places.copy_(places)
        self.rate.copy_(rate)
        if self.graph is not None:
            self.graph.replay()
        elif self.is_captured:
            self._run_and_capture()
        else:
            self._run()

    def _run_and_capture(self) -> None:
        """Run once beside, which sets libraries up, then capture, which runs nothing."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._run()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self._run()

    def _run(self) -> None:
        rows = self.group.rows.index_select(0, self.places)
        self._forward(rows)
        self._add_up(self._compare())
        self._backward(rows)
        self._move()

    def _forward(self, rows: Tensor) -> None:
        torch.mm(rows, self.first, out=self.below)
        torch.clamp_min(self.below.view_as(self.back), 0, out=self.hidden[..., :-1])
        for units, weights, scores in zip(self.units, self.weights, self.asked, strict=True):
            torch.bmm(units, weights, out=scores)

    def _compare(self) -> Tensor:
        """Cross-entropy of each column, summed over rows; leaves the gradient of its mean in `residual`."""
        self.truth.zero_().scatter_(1, self.group.truths.index_select(0, self.places), 1)
        truth, single = self.truth[:, :-1], self.group.layout.single
        if single:
            self._softmax()
        scores = self.scores[:, single:]
        torch.sigmoid(scores, out=self.residual[:, single:])
        self.residual.sub_(truth).div_(self.count)
        loss = (self.scores * truth).sum(0).neg_()  # (columns,)
        loss[single:] += functional.softplus(scores).sum(0)
        return loss

    def _softmax(self) -> None:
        """Scores of single-label tasks become logarithms of probabilities; the residual has these."""
        for block, scores, residual in zip(self.group.layout.blocks, self.asked, self.wrong, strict=True):
            if block.columns.stop <= self.group.layout.single:
                scores.copy_(scores.log_softmax(2))
                torch.exp(scores, out=residual)

    def _add_up(self, loss: Tensor) -> None:
        """Each task's loss, with ½ decay ‖w‖²: it counts once for a batch, whose loss is a mean over rows."""
        layout, half = self.group.layout, self.group.decay / 2
        first, second = (layer[:-1].square().sum(0) for layer in layout.layers(self.group.value))
        units = first.view(-1, layout.hidden).sum(1)  # (tasks,)
        self.group.total += layout.sums(loss.add_(second, alpha=half)).add_(units, alpha=half)

    def _backward(self, rows: Tensor) -> None:
        for units, weights, wrong, gradient, back in zip(
            self.units, self.weights, self.wrong, self.gradients, self.backs, strict=True
        ):
            torch.bmm(units.transpose(1, 2), wrong, out=gradient)
            torch.bmm(wrong, weights[:, :-1].transpose(1, 2), out=back)
        self.below.gt_(0).mul_(self.back.view_as(self.below))
        torch.mm(rows.T, self.below, out=self.first_gradient)

    def _move(self) -> None:
        """Down the gradient with its penalty, by Adam."""
        group, layers = self.group, self.group.layout.layers
        for gradient, value in zip(layers(group.gradient), layers(group.value), strict=True):
            gradient[:-1].add_(value[:-1], alpha=group.decay / self.count)
        group.mean.lerp_(group.gradient, 1 - MEAN_DECAY)
        group.square.mul_(SQUARE_DECAY).addcmul_(group.gradient, group.gradient, value=1 - SQUARE_DECAY)
        torch.sqrt(group.square, out=group.gradient).add_(SMALL)
        group.value.addcdiv_(group.mean * -self.rate, group.gradient)
