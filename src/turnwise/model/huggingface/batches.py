"""Sequences of different lengths as padded batches, and the network they go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from turnwise.model.huggingface.samples import ModelKind, Sample

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Network:
    """A loaded network and what has to be known to feed it."""

    model: Any
    kind: ModelKind
    pad: int  # fills batches; always masked
    opening: list[int]  # what a decoder reads before a response; a causal model's opening is its prompt

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    def padded(
        self, sequences: Sequence[Sequence[int]], *, width: int = 0, is_left: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Ids and mask, (batch, places) each; padding is on the right, where a causal model cannot see it."""
        width = max(width, *(len(each) for each in sequences))
        ids = torch.full((len(sequences), width), self.pad)
        mask = torch.zeros((len(sequences), width), dtype=torch.long)
        for row, each in enumerate(sequences):
            place = slice(width - len(each), width) if is_left else slice(0, len(each))
            ids[row, place] = torch.tensor(each, dtype=torch.long)
            mask[row, place] = 1
        return ids.to(self.device), mask.to(self.device)

    def written(self, samples: Sequence[Sample]) -> tuple[list[list[int]], list[list[int]]]:
        """What the writing side reads (opening, then the response but its last token), and the places that predict.

        Token t of a response is predicted at the place before it: the first one at the prompt's last token.
        """
        openings = [each.source if self.kind == "causal" else self.opening for each in samples]
        pairs = list(zip(openings, samples, strict=True))
        rows = [list(range(len(opening) - 1, len(opening) - 1 + len(each.target))) for opening, each in pairs]
        return [[*opening, *each.target[:-1]] for opening, each in pairs], rows


def in_batches(
    samples: Sequence[Sample], size: int, work: Callable[[Sequence[Sample]], Sequence[Result]]
) -> list[Result]:
    """Work on batches of similar length; results come back in the order of the samples."""
    results: dict[int, Result] = {}
    for chosen in _by_length(samples, size):
        results.update(zip(chosen, work([samples[k] for k in chosen]), strict=True))
    return [results[k] for k in range(len(samples))]


def _by_length(samples: Sequence[Sample], size: int) -> Iterator[list[int]]:
    lengths = [len(each.source) + len(each.target) for each in samples]
    order = sorted(range(len(samples)), key=lambda k: -lengths[k])  # the longest first: it shows at once what fits
    yield from (order[start : start + size] for start in range(0, len(order), size))


def indices(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of places as (batch, most) with a mask of those that count."""
    most = max(1, *(len(row) for row in rows))
    places = torch.zeros((len(rows), most), dtype=torch.long)
    counts = torch.zeros((len(rows), most), dtype=torch.bool)
    for k, row in enumerate(rows):
        places[k, : len(row)] = torch.tensor(row, dtype=torch.long)
        counts[k, : len(row)] = True
    return places.to(device), counts.to(device)
