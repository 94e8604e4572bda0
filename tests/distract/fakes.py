"""Models whose attention and likelihood can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from turnwise.model.protocol import Attention, Context, Decoding, Floats, Kind, Likelihood


def words(context: Context) -> list[float]:
    """A weight for each turn: its number of words."""
    return [float(len(turn.split())) for turn in context]


@dataclass
class Fake:
    """Looks at turns by given weights; log p of a response is minus the number of words of its context."""

    weigh: Callable[[Context], Sequence[float]] = words
    kind: Kind = "static"
    name: str = "fake@1"
    shape: tuple[int, int] = (1, 1)  # layers, heads
    window: int | None = None  # turns that are read
    calls: list[int] = field(default_factory=list)

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.zeros((len(contexts), 1), dtype=np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        self.calls.append(len(contexts))
        return [self._attention(context) for context in contexts]

    def _attention(self, context: Context) -> Attention:
        weights, tokens = np.array(self.weigh(context)), np.array([len(turn.split()) + 1 for turn in context])
        if self.window is not None:
            weights[: -self.window], tokens[: -self.window] = 0, 0
        with np.errstate(divide="ignore"):
            log = np.log(weights / weights.sum()).astype(np.float32)
        return Attention(np.broadcast_to(log, (*self.shape, len(context))).copy(), tokens, self.kind)

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        return [
            Likelihood(-sum(words(context)), len(said.split()) + 1) for context, said in self._both(contexts, responses)
        ]

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        return [context[0] for context in contexts]

    def _both(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[tuple[Context, str]]:
        return list(zip(contexts, responses, strict=True))
