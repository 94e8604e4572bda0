"""L-BFGS on many logistic problems at once that share their features; `logistic` says what for.

- Features are centred and turned into the axes along which they vary. The penalty does not notice, and the Hessian
  where only the intercept is fitted becomes diagonal, so the first step is Newton's and it preconditions the others.
- L-BFGS (Liu and Nocedal 1989) then runs on a block of problems as two matrix products per iteration. Scores along a
  direction are affine, so a problem's own step length costs no further product.

Features and products are float32, sums over rows and weights float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dialoscope.model.protocol import Floats
from dialoscope.probe.targets import Ints

HISTORY = 10  # steps that L-BFGS remembers; 16 hardly save an iteration, 4 cost three more
FULL_STEP = 0.5  # slope left, as a share, at which the full step will do
SHORT_STEP = 0.1  # and a searched one
LEAST_DOUBT = 1e-7  # that of intercepts without a penalty must not vanish
TRIALS = 40  # of a step length: halving alone finds it to twelve digits
PIECE_CELLS = {"cpu": 2**19, "cuda": 2**25}  # scores worked on at once: a core's cache, or enough to fill a GPU
BLOCK_CELLS = 2**24  # scores held at once, labels × rows: 64 MB each for them and their direction
BLOCK_LABELS = 1024
ROOM = {"cpu": 1, "cuda": 16}  # times as many cells and labels in a block, where launches cost more than numbers
LEAVING = {"cpu": 0.0, "cuda": 0.25}  # share of a block's problems that are done when the others are put together anew


def labels_at_once(device: str, rows: int) -> int:
    """How many labels of so many rows are a block."""
    room = ROOM.get(device, 1)
    return max(1, min(room * BLOCK_LABELS, room * BLOCK_CELLS // rows))


def pieces_of(features: Floats, width: int, device: str) -> Iterator[Tensor]:
    """Rows on the device, so many that rows × width stays bounded."""
    rows = max(1, BLOCK_CELLS // max(1, width))
    for first in range(0, len(features), rows):
        yield torch.from_numpy(np.ascontiguousarray(features[first : first + rows], dtype=np.float32)).to(device)


@dataclass(frozen=True, eq=False)
class Space:
    """Centred features on their principal axes, with a column of ones for the intercept."""

    features: Tensor  # (rows, width + 1)
    scatter: Tensor  # (width + 1,) sums of squares; the columns are orthogonal
    penalty: Tensor  # (width + 1,) 1, and 0 for the intercept
    mean: Tensor  # (width,)
    axes: Tensor  # (width, width)

    @classmethod
    def of(cls, features: Floats, device: str) -> Space:
        """Turn the features. The scatter may be rounded: it only chooses axes, which are orthonormal in any case."""
        mean = torch.from_numpy(features.mean(0, dtype=np.float64)).to(device)
        width = len(mean)
        centred = torch.empty(len(features), width + 1, device=device)
        scatter = torch.zeros(width, width, dtype=torch.float64, device=device)
        first = 0
        for piece in pieces_of(features, 8 * width, device):
            part = centred[first : first + len(piece), :width] = (piece - mean).float()
            scatter, first = scatter + part.T @ part, first + len(piece)
        squares, axes = torch.linalg.eigh(scatter)
        for part in torch.split(centred, 2**13):
            part[:, :width] = part[:, :width] @ axes.float()
        centred[:, width] = 1
        ones = torch.ones(1, dtype=torch.float64, device=device)
        scatter = torch.cat([squares.clamp(min=0), len(features) * ones])
        return cls(centred, scatter, torch.cat([ones.expand(width), 0 * ones]), mean, axes)

    def turned_back(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (problems, width + 1) for the features as they were given: (width, problems), (problems,)."""
        weight = self.axes @ weights[:, :-1].T
        return weight, weights[:, -1] - self.mean @ weight


@dataclass(frozen=True, eq=False)
class State:
    """Problems on their way down, (problems, heads, …) each; softmax is one problem of many heads."""

    number: Tensor  # (problems,) place in the block
    share: Tensor  # (problems, heads) of the rows that have the label
    weights: Tensor  # (problems, heads, width + 1)
    gradient: Tensor
    scores: Tensor  # (problems, heads, rows)
    truths: Tensor  # (problems, heads, rows) 1 where a row has the label
    loss: Tensor  # (problems,) log loss, summed over rows
    doubt: Tensor  # (problems,) Σ p(1 − p) over rows and heads, as a share of what it was at the start
    best: Tensor  # the weights that promised the least further decrease
    best_decrease: Tensor  # (problems,)
    best_at: Tensor  # (problems,) iteration

    def kept(self, places: Tensor) -> State:
        """The problems at these places only."""
        return replace(self, **{one.name: getattr(self, one.name)[places] for one in fields(self)})


class Descent:
    """L-BFGS on a block of problems; each has its own step length, and leaves when it is done."""

    def __init__(self, space: Space, strength: float, state: State) -> None:
        self.space, self.strength, self.state = space, strength, state
        self.history: list[tuple[Tensor, Tensor, Tensor]] = []  # step, change of gradient, 1 / their product
        self.buffer = torch.empty_like(state.scores).flatten()
        self.is_going = np.ones(len(state.number), dtype=np.bool_)  # those done wait for others to leave with

    @classmethod
    def start(cls, space: Space, rows: Sequence[Ints], *, heads: int, strength: float) -> Descent:
        """Begin where the intercept alone is fitted: at the labels' frequencies."""
        truths = _table(rows, space.features.device, len(space.features)).view(-1, heads, len(space.features))
        share = truths.sum(2) / float(len(space.features))
        weights = space.mean.new_zeros(*share.shape, len(space.penalty))
        weights[..., -1] = share.logit() if heads == 1 else share.log()
        scores = weights[..., -1:].float().repeat(1, 1, len(space.features))
        number, none = torch.arange(len(share), device=share.device), weights.new_zeros(len(share))
        state = State(
            number=number,
            share=share,
            weights=weights,
            gradient=weights,
            scores=scores,
            truths=truths,
            loss=none,
            doubt=none + 1,
            best=weights,
            best_decrease=none + torch.inf,
            best_at=torch.zeros_like(number),
        )
        descent = cls(space, strength, state)
        excess, loss, _ = descent._visit(slice(None), None)
        descent.state = replace(state, gradient=descent._gradient(weights, excess), loss=loss)
        return descent

    def look(self, iteration: int, tolerance: float) -> Tensor:
        """Which problems have converged; remembers where each was best."""
        state = self.state
        decrease = _dot(state.gradient, self._preconditioned(state.gradient)) / 2
        is_better = decrease < state.best_decrease
        self.state = replace(
            state,
            best=torch.where(_wide(is_better), state.weights, state.best),
            best_decrease=torch.where(is_better, decrease, state.best_decrease),
            best_at=torch.where(is_better, iteration, state.best_at),
        )
        return decrease <= tolerance * self._objective()

    def leave(self, over: Ints) -> None:
        """Go on without the problems at these places. They are put aside when they are many: until then they idle."""
        self.is_going[over] = False
        kept, share = np.flatnonzero(self.is_going), LEAVING.get(self.state.scores.device.type, 0.0)
        if not len(over) or len(kept) > (1 - share) * len(self.is_going):
            return
        places = torch.from_numpy(kept).to(self.state.scores.device)
        self.state, self.is_going = self.state.kept(places), self.is_going[kept]
        self.history = [(step[places], change[places], inverse[places]) for step, change, inverse in self.history]

    def step(self) -> None:
        """One iteration: a direction, a length for each problem, the gradient there."""
        state, direction = self.state, -self._quasi_newton(self.state.gradient)
        slope = _dot(direction, state.gradient)
        change = self.buffer[: state.scores.numel()].view_as(state.scores)
        torch.mm(direction.flatten(0, 1).float(), self.space.features.T, out=change.flatten(0, 1))
        length = torch.ones_like(slope)
        excess, loss, doubt = self._visit(slice(None), (change, length))
        left = _dot(direction, self._gradient(state.weights + direction, excess))
        if len(which := self._going(~(left.abs() <= FULL_STEP * slope.abs()))):
            length[which] = self._searched(direction, change, slope, which)
            excess[which], loss[which], doubt[which] = self._visit(which, (change, length[which]))
        self._move(direction * _wide(length), change.mul_(_wide(length).float()), excess)
        self.state = replace(self.state, loss=loss, doubt=doubt)

    def _going(self, is_asked: Tensor) -> Tensor:
        """The places of those that are asked for and go on."""
        places = np.flatnonzero(is_asked.cpu().numpy() & self.is_going)
        return torch.from_numpy(places).to(is_asked.device)

    def _move(self, step: Tensor, change: Tensor, excess: Tensor) -> None:
        state, weights = self.state, self.state.weights + step
        gradient = self._gradient(weights, excess)
        turn = gradient - state.gradient
        product = _dot(step, turn)  # positive but for rounding: the objective is strictly convex
        inverse = torch.where(product > 0, 1 / product, 0)
        self.history = [*self.history, (step.float(), turn.float(), inverse.float())][-HISTORY:]
        scores = state.scores.add_(change)
        self.state = replace(state, weights=weights, gradient=gradient, scores=scores)

    def _searched(self, direction: Tensor, change: Tensor, slope: Tensor, which: Tensor) -> Tensor:
        """Step lengths at which the slope is nearly gone: Newton's method, between bounds where it would leave them."""
        direction, weights = direction[which], self.state.weights[which]
        bent = _dot(self.space.penalty * direction, direction)
        begin = _dot(self.space.penalty * weights, direction)
        low, length, most = torch.zeros_like(begin), torch.ones_like(begin), SHORT_STEP * slope[which].abs()
        high = torch.full_like(low, torch.inf)
        for _ in range(TRIALS):
            first, second = self._along(change, which, length)
            left, curvature = begin + length * bent + self.strength * first, bent + self.strength * second
            if (is_done := left.abs() <= most).all():
                break
            low, high = torch.where(left < 0, length, low), torch.where(left > 0, length, high)
            newton, middle = length - left / curvature, torch.where(high.isinf(), 4 * length, (low + high) / 2)
            is_inside = (newton > low) & (newton < high)
            length = torch.where(is_done, length, torch.where(is_inside, newton, middle))
        return length

    def _along(self, change: Tensor, which: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """First and second derivative of the loss along the direction, at these lengths."""
        first, second = torch.zeros_like(length), torch.zeros_like(length)
        for piece in _pieces(change[which[:1]], len(which)):
            toward = change[which, :, piece]
            probability = _probabilities(self.state.scores[which, :, piece] + _wide(length).float() * toward)
            second += ((probability * toward.square()).sum(1) - (probability * toward).sum(1).square()).sum(1)
            first += _dot(probability.sub_(self.state.truths[which, :, piece]), toward)
        return first, second

    def _visit(self, which: Tensor | slice, moved: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
        """Excess (features summed by how much more probable than true a label is), loss and doubt, after a move."""
        features, count = self.space.features, len(self.state.number[which])
        excess = torch.zeros_like(self.state.weights[which])
        loss, doubt = excess.new_zeros(count), excess.new_zeros(count)
        for piece in _pieces(self.state.scores[:1], count):
            scores, truths = self.state.scores[which, :, piece], self.state.truths[which, :, piece]
            if moved is not None:
                scores = torch.addcmul(scores, moved[0][which, :, piece], _wide(moved[1]).float())
            loss += _loss(scores, truths)
            # Not Σ p·x − Σ y·x: where labels are separable, rounding would be all that is left of the difference.
            probabilities = _probabilities(scores)
            doubt += _dot(probabilities, 1 - probabilities)
            residual = probabilities.sub_(truths)
            excess += (residual.flatten(0, 1) @ features[piece]).view_as(excess)
        share = self.state.share[which]
        return excess, loss, (doubt / (len(features) * (share * (1 - share)).sum(1))).clamp(min=LEAST_DOUBT)

    def _gradient(self, weights: Tensor, excess: Tensor) -> Tensor:
        return self.space.penalty * weights + self.strength * excess

    def _objective(self) -> Tensor:
        weights = self.state.weights
        return self.strength * self.state.loss + _dot(self.space.penalty * weights, weights) / 2

    def _quasi_newton(self, gradient: Tensor) -> Tensor:
        """The inverse Hessian times the gradient, as the last steps know it: the two loops of L-BFGS."""
        found, taken = gradient.float(), []
        for step, turn, inverse in reversed(self.history):
            taken.append(inverse * _dot(step, found))
            found = torch.addcmul(found, turn, _wide(taken[-1]), value=-1)
        found = self._preconditioned(found).float() * self._scale()
        for (step, turn, inverse), share in zip(self.history, reversed(taken), strict=True):
            found = torch.addcmul(found, step, _wide(share - inverse * _dot(turn, found)))
        return found.double()

    def _scale(self) -> Tensor | float:
        """How much flatter the last step found the objective than the preconditioner thinks."""
        if not self.history:
            return 1.0
        _, turn, inverse = self.history[-1]
        product = inverse * _dot(turn, self._preconditioned(turn).float())
        return _wide(torch.where(product > 0, 1 / product, 1))

    def _preconditioned(self, vector: Tensor) -> Tensor:
        """Divide by the Hessian at the start: penalty + C · scatter · (diag(p) − p pᵀ), for each axis alone.

        Its second part shrinks as rows become certain. Without `doubt` separable classes need six times the iterations.
        """
        share, scatter = self.state.share[..., None], self.strength * _wide(self.state.doubt) * self.space.scatter
        if share.shape[1] == 1:
            return vector / (self.space.penalty + scatter * share * (1 - share))
        diagonal = self.space.penalty + scatter * share
        found = vector / diagonal
        # Sherman and Morrison (1950). Equal changes of all intercepts change nothing: 0 / 0, and none is made.
        rest = (share * self.space.penalty / diagonal).sum(1, keepdim=True)
        joint = scatter * (share * found).sum(1, keepdim=True) / rest
        return found + torch.where(rest > 0, joint, 0) * share / diagonal


def _table(rows: Sequence[Ints], device: torch.device, count: int) -> Tensor:
    """Ones where a label has a row: (labels, rows)."""
    table = torch.zeros(len(rows), count, dtype=torch.uint8, device=device)
    flat = np.concatenate([one + place * count for place, one in enumerate(rows)])
    table.view(-1)[torch.from_numpy(flat).to(device)] = 1
    return table


def _pieces(scores: Tensor, problems: int) -> Iterator[slice]:
    """Cut the rows of so many problems like this one (1, heads, rows) into pieces that fit."""
    rows = max(64, PIECE_CELLS.get(scores.device.type, PIECE_CELLS["cpu"]) // (problems * scores.shape[1]))
    return (slice(first, first + rows) for first in range(0, scores.shape[2], rows))


def _probabilities(scores: Tensor) -> Tensor:
    return scores.sigmoid() if scores.shape[1] == 1 else scores.softmax(1)


def _loss(scores: Tensor, truths: Tensor) -> Tensor:
    """Log loss summed over rows: log(1 + e^score), or log Σ e^score, less the score of what is true."""
    each = functional.softplus(scores[:, 0]) if scores.shape[1] == 1 else scores.logsumexp(1)
    return (each - (scores * truths).sum(1)).sum(1, dtype=torch.float64)


def _dot(first: Tensor, second: Tensor) -> Tensor:
    return (first * second).sum((1, 2))


def _wide(values: Tensor) -> Tensor:
    return values[:, None, None]
