"""Sequences of different lengths as padded batches, and the network they go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from dialoscope.model.huggingface.samples import ModelKind, Sample

Item = TypeVar("Item", bound=Sized)
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
    items: Sequence[Item],
    size: int,
    work: Callable[[Sequence[Item]], Sequence[Result]],
    *,
    length: Callable[[Item], int] = len,
    least: float = 0.0,
) -> list[Result]:
    """Work on batches of similar length; results come back in the order of the items.

    least: how long the shortest of a batch has to be, as a share of the longest. More than 0 saves padding, by more and
    smaller batches.
    """
    results: dict[int, Result] = {}
    for chosen in _batches([length(each) for each in items], size, least):
        results.update(zip(chosen, work([items[k] for k in chosen]), strict=True))
    return [results[k] for k in range(len(items))]


def _batches(lengths: Sequence[int], size: int, least: float) -> Iterator[list[int]]:
    chosen: list[int] = []
    for k in sorted(range(len(lengths)), key=lambda k: -lengths[k]):  # the longest first: it shows at once what fits
        if chosen and (len(chosen) == size or lengths[k] < least * lengths[chosen[0]]):
            yield chosen
            chosen = []
        chosen.append(k)
    if chosen:
        yield chosen


def indices(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of places as (batch, most) with a mask of those that count."""
    most = max(1, *(len(row) for row in rows))
    places = torch.zeros((len(rows), most), dtype=torch.long)
    counts = torch.zeros((len(rows), most), dtype=torch.bool)
    for k, row in enumerate(rows):
        places[k, : len(row)] = torch.tensor(row, dtype=torch.long)
        counts[k, : len(row)] = True
    return places.to(device), counts.to(device)
