"""Models whose attention and likelihood can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dialoscope.model.protocol import Attention, Context, Decoding, Floats, Kind, Likelihood, TooLong


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
    longest: int | None = None  # words of a Query that fits
    calls: list[int] = field(default_factory=list)  # contexts in each call of `attend`
    scored: list[int] = field(default_factory=list)  # of `log_likelihood`
    written: list[int] = field(default_factory=list)  # of `generate`

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.zeros((len(contexts), 1), dtype=np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        self._all_fit(contexts)
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
        self._all_fit(contexts)
        self.scored.append(len(contexts))
        return [
            Likelihood(-sum(words(self._read(context))), len(said.split()) + 1)
            for context, said in self._both(contexts, responses)
        ]

    def unread_turns(self, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[int]:
        self._all_fit(contexts)
        return [len(context) - len(self._read(context)) for context in contexts]

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        self._all_fit(contexts)
        self.written.append(len(contexts))
        return [self._read(context)[0] for context in contexts]

    def _read(self, context: Context) -> Context:
        return context if self.window is None else context[-self.window :]

    def _all_fit(self, contexts: Sequence[Context]) -> None:
        sizes = {place: len(context[-1].split()) for place, context in enumerate(contexts)}
        long = {place: "Query" for place, size in sizes.items() if self.longest is not None and size > self.longest}
        if long:
            raise TooLong("A Query is too long.", long)

    def _both(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[tuple[Context, str]]:
        return list(zip(contexts, responses, strict=True))
