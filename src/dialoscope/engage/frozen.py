"""Fit a predictor in seconds: the encoder stays as it is, its vectors are kept, and only the linear layer is fitted.

For a number, the layer is the ridge regression whose penalty serves the validation turns best: the exact optimum, no
steps and no rate. Sigmoids and classes have none; L-BFGS finds theirs. Different texts have one vector each, in memory
or, with a cache, on disk; what is averaged of them exists for some thousands of turns at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dialoscope.engage.encoder import Encoder, Progress
from dialoscope.engage.examples import Examples, Ints, joined, runs
from dialoscope.engage.live import Calibration
from dialoscope.engage.predictor import Predictor, activated, loss_of, readings, window_means
from dialoscope.engage.protocol import Floats
from dialoscope.engage.shape import Shape
from dialoscope.files import whole_file

PENALTIES = tuple(10.0**power for power in range(-4, 6))  # per turn's squared error
STEPS = 100  # of L-BFGS
TURNS_AT_ONCE = 4_096  # whose averaged vectors are in memory
Fit = Callable[[float], nn.Linear]  # the layer under a penalty


@dataclass(frozen=True, eq=False)
class Features:
    """Vectors of different texts, the turns that have them, and what these should predict."""

    vectors: Floats  # (texts, width)
    places: Ints  # (turns,) which of them is a turn's
    starts: Ints  # (dialogues + 1,) where each dialogue begins, and where the last one ends
    targets: Floats  # (turns,), NaN for a turn that has none
    history: int  # predecessors that a turn is averaged with

    def part(self, first: int, stop: int) -> Features:
        """Only these dialogues; vectors are shared."""
        turns = slice(*self.starts[[first, stop]])
        starts = self.starts[first : stop + 1] - turns.start
        return replace(self, places=self.places[turns], starts=starts, targets=self.targets[turns])

    def averaged(self) -> Features:
        """Each turn with an averaged vector of its own, in memory, for those who go over all of them many times."""
        targets = self.targets[np.isfinite(self.targets)]
        vectors = np.empty((len(targets), self.vectors.shape[1]), np.float32)
        _filled(vectors, (some.float().numpy() for some, _ in self.portions()))
        places = np.arange(len(targets) + 1)
        return Features(vectors, places[:-1], places, targets, 0)  # a dialogue of one turn each

    def portions(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Averaged vectors and targets of the turns that have one, some dialogues at a time: (turns, width), (turns,).

        In float64, which a sum over a million turns needs.
        """
        for first, stop in runs(self.starts, turns=TURNS_AT_ONCE):
            some = self.part(first, stop)
            vectors = torch.from_numpy(self.vectors[some.places]).double()
            averaged = window_means(vectors, torch.from_numpy(some.starts), self.history)
            targets = torch.from_numpy(some.targets).double()
            has_target = targets.isfinite()
            yield averaged[has_target], targets[has_target]


def fit_frozen(
    training: Examples,
    validation: Examples,
    *,
    encoder: Encoder,
    settings: Shape,
    calibration: Examples | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Predictor:
    """Fit the linear layer on vectors of an encoder that does not change.

    `validation` chooses the penalty, `calibration` gives the intervals around scores; both are encoded together, once.
    """
    both = [validation] if calibration is None else [validation, calibration]
    learnt, apart = (_features(one, encoder, settings, cache, progress) for one in (training, joined(both)))
    held_out = apart.part(0, len(validation))
    is_exact = settings.classes is None and settings.activation == "clamp"
    fit = _ridge(learnt) if is_exact else partial(_descend, learnt.averaged(), settings)
    tried = [(_error(layer, held_out, settings), layer, penalty) for penalty in PENALTIES for layer in [fit(penalty)]]
    error, head, penalty = min(tried, key=lambda found: found[0])
    origin = {
        "training": training.label,
        "validation": validation.label,
        "encoder": f"{encoder.name}@{encoder.fingerprint}",
        "is_frozen": True,
        "penalty": penalty,
        "validation_mse": 100 * error,
        "mean_mse": 100 * _error_of_mean(learnt, held_out),
    }
    if calibration is None:
        return Predictor(encoder, head.to(encoder.device), settings, origin)
    # Before the layer moves to the encoder's device, for features are on the CPU.
    scores = _scores(head, apart.part(len(validation), len(apart.starts) - 1), settings)
    intervals = Calibration.of(*scores, calibration.positions[np.isfinite(calibration.targets)])
    origin |= {"calibration": calibration.label}
    return Predictor(encoder, head.to(encoder.device), settings, origin, intervals)


def _features(
    examples: Examples, encoder: Encoder, settings: Shape, cache: Path | None, progress: Progress | None
) -> Features:
    texts = [text for dialogue in examples.dialogues for text in readings(dialogue, settings)]
    unique = sorted(set(texts))  # sorted, so that another split finds the kept vectors again
    known = {text: place for place, text in enumerate(unique)}
    places = np.fromiter((known[text] for text in texts), np.int64, len(texts))
    vectors = _vectors(unique, encoder, settings, cache, progress)
    return Features(vectors, places, examples.starts, examples.targets, settings.averaged)


def _vectors(
    texts: Sequence[str], encoder: Encoder, settings: Shape, cache: Path | None, progress: Progress | None
) -> Floats:
    """One for each text; with a cache they are kept on disk, and those that were kept before are read from there."""
    shape, portions = (len(texts), encoder.width), encoder.portions(texts, settings, progress)
    if cache is None:
        return _filled(np.empty(shape, np.float32), portions)
    path = cache / f"{_key(texts, encoder, settings)}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            _filled(np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.float32, shape=shape), portions)
    found: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def _filled(vectors: Floats, portions: Iterator[Floats]) -> Floats:
    first = 0
    for one in portions:
        vectors[first : first + len(one)] = one
        first += len(one)
    return vectors


def _key(texts: Sequence[str], encoder: Encoder, settings: Shape) -> str:
    """Of what vectors depend on: neither targets nor a history that is averaged, so controls find them as well."""
    digest = hashlib.blake2b(digest_size=6)
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    flat = "-flat" if settings.is_flat else ""  # the history is in the texts, but they are cut on the other side
    return f"{encoder.fingerprint}-{digest.hexdigest()}-{settings.pooling}-{settings.tokens}{flat}"


def _ridge(learnt: Features) -> Fit:
    """The optimum of ‖targets − Xw − b‖² + penalty ‖w‖² with no penalty on b, from sums that are made once."""
    count, total, middle = 0, torch.zeros(learnt.vectors.shape[1], dtype=torch.float64), torch.zeros(()).double()
    for vectors, targets in learnt.portions():
        count, total, middle = count + len(targets), total + vectors.sum(0), middle + targets.sum()
    mean, middle = total / count, middle / count
    gram, moment = torch.zeros(len(mean), len(mean), dtype=torch.float64), torch.zeros_like(mean)
    for vectors, targets in learnt.portions():
        centred = vectors - mean
        gram += centred.T @ centred
        moment += centred.T @ (targets - middle)

    def fit(penalty: float) -> nn.Linear:
        weight = torch.linalg.solve(gram + penalty * torch.eye(len(mean), dtype=torch.float64), moment)
        return _layer(weight[None], (middle - mean @ weight)[None])

    return fit


def _descend(learnt: Features, settings: Shape, penalty: float) -> nn.Linear:
    weight = torch.zeros(settings.outputs, learnt.vectors.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(settings.outputs, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")
    count = len(learnt.targets)

    def closure() -> float:
        optimiser.zero_grad()
        total = penalty / count * weight.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        found = float(total.detach())
        for vectors, targets in learnt.portions():
            error = loss_of(vectors @ weight.T + bias, targets, settings) * (len(targets) / count)
            error.backward()  # type: ignore[no-untyped-call]
            found += float(error.detach())
        return found

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return _layer(weight.detach(), bias.detach())


def _layer(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], len(weight))
    layer.load_state_dict({"weight": weight.float(), "bias": bias.float()})
    return layer


@torch.no_grad()
def _scores(head: nn.Linear, held_out: Features, settings: Shape) -> tuple[Floats, Floats]:
    """Scores of turns that have a target, and these targets: (turns,) each."""
    found = [(activated(head(vectors.float()), settings), targets) for vectors, targets in held_out.portions()]
    scores, targets = (torch.cat(some).float().numpy() for some in zip(*found, strict=True))
    return scores, targets


def _error_of_mean(learnt: Features, held_out: Features) -> float:
    """That of one score for all turns, the mean of what was learnt from."""
    mean = float(np.nanmean(learnt.targets, dtype=np.float64))
    return float(np.nanmean(np.square(held_out.targets.astype(np.float64) - mean)))


def _error(head: nn.Linear, held_out: Features, settings: Shape) -> float:
    """The mean squared error of scores on validation turns, whatever was minimised."""
    scores, targets = _scores(head, held_out, settings)
    return float(np.square(scores.astype(np.float64) - targets).mean())
