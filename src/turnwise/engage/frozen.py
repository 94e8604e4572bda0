"""A predictor in seconds: the encoder stays as it is, its vectors are kept, and only the linear layer is fitted.

For a number, the layer is the ridge regression whose penalty serves the validation turns best: the exact optimum, no
steps and no rate. Sigmoids and classes have none; L-BFGS finds theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from turnwise.atomic import whole_file
from turnwise.engage.encoder import Encoder, Progress
from turnwise.engage.examples import Examples
from turnwise.engage.predictor import Predictor, activated, loss_of, readings, window_means
from turnwise.engage.protocol import Floats
from turnwise.engage.settings import Settings

PENALTIES = tuple(10.0**power for power in range(-4, 6))  # per turn's squared error
STEPS = 100  # of L-BFGS


@dataclass(frozen=True, eq=False)
class Features:
    """Averaged vectors of turns, and what they should predict."""

    vectors: Tensor  # (turns, width) float64
    targets: Tensor  # (turns,)


def fit_frozen(
    training: Examples,
    validation: Examples,
    *,
    encoder: Encoder,
    settings: Settings,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Predictor:
    """Fit the linear layer on vectors of an encoder that does not change."""
    both = (_features(one, encoder, settings, cache, progress) for one in (training, validation))
    learnt, held_out = both
    fit = _ridge if settings.classes is None and settings.activation == "clamp" else _descend
    head, penalty = min(
        ((fit(learnt, penalty, settings), penalty) for penalty in PENALTIES),
        key=lambda found: _error(found[0], held_out, settings),
    )
    origin = {
        "training": f"{training.name}@{training.fingerprint}",
        "validation": f"{validation.name}@{validation.fingerprint}",
        "encoder": f"{encoder.name}@{encoder.fingerprint}",
        "is_frozen": True,
        "penalty": penalty,
    }
    return Predictor(encoder, head.to(encoder.device), settings, origin)


def _features(
    examples: Examples, encoder: Encoder, settings: Settings, cache: Path | None, progress: Progress | None
) -> Features:
    texts = [text for dialogue in examples.dialogues for text in readings(dialogue, settings)]
    vectors = kept(cache, _key(texts, encoder, settings), lambda: encoder.vectors(texts, settings, progress))
    starts = torch.from_numpy(examples.starts)
    averaged = window_means(torch.from_numpy(np.array(vectors)).double(), starts, settings.averaged)
    has_target = torch.from_numpy(np.isfinite(examples.targets))
    return Features(averaged[has_target], torch.from_numpy(examples.targets).double()[has_target])


def _key(texts: Sequence[str], encoder: Encoder, settings: Settings) -> str:
    """Of what vectors depend on: neither targets nor a history that is averaged, so controls find them as well."""
    digest = hashlib.blake2b(digest_size=6)
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    flat = "-flat" if settings.is_flat else ""  # the history is in the texts, but they are cut on the other side
    return f"{encoder.fingerprint}-{digest.hexdigest()}-{settings.pooling}-{settings.tokens}{flat}"


def kept(cache: Path | None, key: str, make: Callable[[], Floats]) -> Floats:
    """What was made before under this key, from disk; otherwise made now, and kept."""
    if cache is None:
        return make()
    path = cache / f"{key}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.save(file, make(), allow_pickle=False)
    found: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def _ridge(learnt: Features, penalty: float, settings: Settings) -> nn.Linear:
    """The optimum of ‖targets − Xw − b‖² + penalty ‖w‖², with no penalty on b."""
    mean, middle = learnt.vectors.mean(0), learnt.targets.mean()
    centred = learnt.vectors - mean
    gram = centred.T @ centred + penalty * torch.eye(len(mean), dtype=torch.float64)
    weight = torch.linalg.solve(gram, centred.T @ (learnt.targets - middle))
    return _layer(weight[None], (middle - mean @ weight)[None])


def _descend(learnt: Features, penalty: float, settings: Settings) -> nn.Linear:
    weight = torch.zeros(settings.outputs, learnt.vectors.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(settings.outputs, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimiser.zero_grad()
        error = loss_of(learnt.vectors @ weight.T + bias, learnt.targets, settings)
        total = error + penalty / len(learnt.targets) * weight.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return float(total.detach())

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return _layer(weight.detach(), bias.detach())


def _layer(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], len(weight))
    layer.load_state_dict({"weight": weight.float(), "bias": bias.float()})
    return layer


def _error(head: nn.Linear, held_out: Features, settings: Settings) -> float:
    """The mean squared error of scores on validation turns, whatever was minimised."""
    with torch.no_grad():
        found = activated(head(held_out.vectors.float()), settings)
    return float((found - held_out.targets).square().mean())
