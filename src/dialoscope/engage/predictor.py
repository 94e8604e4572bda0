"""A fitted predictor of engagement: an encoder, a linear layer, and how far back it looks.

Turns are encoded on their own, averaged with their predecessors, and a linear layer gives a number (equations 2 and 3).
The layer of a mean is the mean of the layers, so each turn is encoded and multiplied **once**, and a history of any
length costs an addition: in training, in scoring and live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dialoscope.engage.encoder import Encoder, Progress, distinct
from dialoscope.engage.examples import Ints
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.engage.shape import Shape

if TYPE_CHECKING:
    from dialoscope.engage.live import Calibration


@dataclass(frozen=True, eq=False)
class Predictor:
    """Gives every turn the share of the conversation that it expects to remain, from 0 to 1."""

    encoder: Encoder
    head: nn.Linear
    settings: Shape
    origin: Mapping[str, Any] = field(default_factory=dict)  # what it learnt from, how, and what it was selected on
    calibration: Calibration | None = None  # how far off it is, on dialogues that were held out

    @classmethod
    def untrained(cls, encoder: Encoder, settings: Shape, *, seed: int = 0) -> Predictor:
        """With a linear layer drawn at random: the control RDEP-U, and where training begins."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            head = nn.Linear(encoder.width, settings.outputs)
        return cls(encoder, head.to(encoder.device), settings, {"untrained": True, "seed": seed})

    @cached_property
    def name(self) -> str:
        """What it is called in tables: its encoder, its history and a fingerprint of all weights and settings."""
        import hashlib

        digest = hashlib.blake2b(f"{self.encoder.fingerprint}{self.settings.words}".encode(), digest_size=4)
        for value in self.head.state_dict().values():
            digest.update(value.cpu().numpy().tobytes())
        return f"rdep-{self.encoder.name}@{digest.hexdigest()}"

    def using(self, *, dtype: str | None = None, batch_size: int | None = None) -> Predictor:
        """The same predictor in another precision or with smaller passes; the precision is part of its name."""
        return replace(self, encoder=self.encoder.using(dtype=dtype, batch_size=batch_size))

    @property
    def selected_on(self) -> frozenset[str]:
        """Keys of the human-rated items that it was chosen by: numbers on those would flatter it."""
        return frozenset(self.origin.get("selected_on", ()))

    @property
    def is_shuffled(self) -> bool:
        """Whether it learnt from shuffled labels: the control RDEP-S."""
        return bool(self.origin.get("is_shuffled"))

    def predict(self, dialogues: Sequence[Dialogue], *, progress: Progress | None = None) -> list[Floats]:
        """A score for every turn of every dialogue; turns are merged, so speakers alternate."""
        starts = np.cumsum([0, *map(len, dialogues)])
        texts = [text for dialogue in dialogues for text in readings(dialogue, self.settings)]
        scores = self.scores(self.outputs(texts, progress=progress), starts)
        return [scores[first:stop] for first, stop in pairwise(starts)]

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        """The score of each dialogue's last turn; earlier turns than its history are not read."""
        if self.settings.is_flat:
            texts = [readings(dialogue, self.settings)[-1] for dialogue in dialogues]
            return self.scores(self.outputs(texts), np.arange(len(texts) + 1))
        ends = [list(dialogue)[-1 - self.settings.history :] for dialogue in dialogues]
        found = [scores[-1] for scores in self.predict(ends)]
        return np.array(found, dtype=np.float32)

    def outputs(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """What the linear layer gives for each text on its own: (texts, outputs). Equal texts are encoded once."""
        unique, places = distinct(texts)
        weight, bias = (one.detach().cpu().numpy() for one in (self.head.weight, self.head.bias))
        found = [np.zeros((0, self.settings.outputs), np.float32)]
        found += [one @ weight.T + bias for one in self.encoder.portions(unique, self.settings, progress)]
        return np.asarray(np.concatenate(found)[places], dtype=np.float32)

    def scores(self, outputs: Floats, starts: Ints) -> Floats:
        """Scores in [0, 1] of turns from their own outputs: (turns,)."""
        averaged = window_means(torch.from_numpy(outputs), torch.from_numpy(starts), self.settings.averaged)
        return np.asarray(activated(averaged, self.settings).numpy())


def readings(dialogue: Dialogue, settings: Shape) -> list[str]:
    """What is encoded for each turn: the turn, or with a flat history, it and its predecessors as one text."""
    if not settings.is_flat:
        return list(dialogue)
    return [" ".join(dialogue[max(0, place - settings.history) : place + 1]) for place in range(len(dialogue))]


def window_means(values: Tensor, starts: Tensor, history: int) -> Tensor:
    """The mean of each turn's values and its predecessors', as far as its dialogue goes back: like `values`.

    >>> window_means(torch.tensor([[1.0], [3.0], [8.0]]), torch.tensor([0, 3]), 1)[:, 0].tolist()
    [1.0, 2.0, 5.5]
    """
    if not history:
        return values
    lengths = starts.diff()
    place = torch.arange(len(values)) - starts[:-1].repeat_interleave(lengths)  # in its dialogue, from 0
    place = place.to(values.device)
    total, count = values, torch.ones(len(values), 1, device=values.device)
    for back in range(1, history + 1):
        has = (place >= back)[:, None]
        total = total + torch.where(has, values.roll(back, 0), 0)
        count = count + has
    return total / count


def activated(outputs: Tensor, settings: Shape) -> Tensor:
    """Outputs as scores: clamped (equation 4), through a sigmoid, or the expected middle of the classes: (turns,)."""
    if settings.classes is not None:
        middles = (torch.arange(settings.classes, device=outputs.device) + 0.5) / settings.classes
        return outputs.softmax(1) @ middles.to(outputs)
    return outputs[:, 0].clamp(0, 1) if settings.activation == "clamp" else outputs[:, 0].sigmoid()


def loss_of(outputs: Tensor, targets: Tensor, settings: Shape) -> Tensor:
    """The mean squared error (equation 5), or the cross-entropy of the class that a target falls into.

    A clamp has no slope beyond 0 and 1, and a turn whose output lies there would teach nothing. So the error is that of
    the clamped output, and its gradient goes to the output as if it had not been clamped.
    """
    has_target = targets.isfinite()
    outputs, targets = outputs[has_target], targets[has_target]
    if settings.classes is not None:
        return functional.cross_entropy(outputs, class_of(targets, settings.classes))
    if settings.activation == "sigmoid":
        return functional.mse_loss(outputs[:, 0].sigmoid(), targets)
    given = outputs[:, 0]
    return functional.mse_loss(given + (given.clamp(0, 1) - given).detach(), targets)


def class_of(targets: Tensor, classes: int) -> Tensor:
    """Which of the classes of equal width holds each target; an edge belongs to the one above it.

    >>> class_of(torch.tensor([0.0, 0.2, 0.5, 1.0]), 5).tolist()
    [0, 1, 2, 4]
    """
    # In hundred-thousandths: 0.6 as a float32 lies above 3/5, 0.7 below 7/10.
    return ((targets.double() * 1e5).round() * classes / 1e5).floor().long().clamp(0, classes - 1)
