"""The LSTM decoder: equation 2, with the attention of equations 3 to 5.

At step t the input is the embedded token y_{t-1} and, with attention, the context vector c_{t-1}, concatenated; c_0 is
zeros, for nothing was asked yet (static attention has one context vector for all steps, c_0 included). What the output
layer reads is tanh(linear([h_t ; c_t])), or h_t without attention. Dropout, in training: on embedded tokens, between
layers, and on what the output layer reads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dialoscope.model.attention import Scorer
from dialoscope.model.batch import Output
from dialoscope.model.encoder import Encoding
from dialoscope.model.lstm import LSTM, Memory, State
from dialoscope.model.structure import Structure


class Progress(NamedTuple):
    """How far the responses of a batch are written: enough to write the next token."""

    state: State
    memory: Memory
    context: Tensor  # (batch, width) c of the step before; static: of all steps

    def select(self, rows: Tensor) -> Progress:
        """These rows, in this order, one perhaps several times."""
        return Progress(
            State(self.state.hidden[:, rows], self.state.cell[:, rows]),
            Memory(self.memory.values[rows], self.memory.utterance[rows]),
            self.context[rows],
        )


class LSTMDecoder(nn.Module):
    """An LSTM that writes a response, with or without attention."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        width, self.attention = settings.width, settings.attention
        self.steps_attend = settings.attention in ("token", "dynamic")
        self.lstm = LSTM(
            settings.embedding + (width if settings.attention == "static" else 0),
            width,
            layers=settings.layers,
            dropout=settings.dropout,
            attends=self.steps_attend,
        )
        self.dropout = nn.Dropout(settings.dropout)
        if settings.attention != "none":
            self.scorer = Scorer(width, is_additive=settings.scoring == "additive")
            self.combine = nn.Linear(2 * width, width)

    def forward(
        self,
        words: Tensor,
        length: Tensor,
        encoding: Encoding,
        *,
        attention: bool = False,
        steps: tuple[int, ...] | None = None,
    ) -> Output:
        """Over embedded tokens (batch, steps, embedding), from the start token to the last but one.

        `steps` are the numbers in `length`, for a GPU: with them it skips the steps after a response's end.
        """
        output, _ = self._run(words, length, self.start(encoding), steps)
        return output

    def start(self, encoding: Encoding) -> Progress:
        """Before the first token."""
        assert encoding.state is not None
        return Progress(encoding.state, encoding.memory, torch.zeros_like(encoding.summary))

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """One more token (batch, embedding) each: what the output layer reads (batch, width), and the progress."""
        output, progress = self._run(words[:, None], words.new_ones(len(words), dtype=torch.long), progress)
        return output.states[:, 0], progress

    def _run(
        self, words: Tensor, length: Tensor, progress: Progress, steps: tuple[int, ...] | None = None
    ) -> tuple[Output, Progress]:
        if self.steps_attend:
            return self._run_attending(words, length, progress, steps)
        if self.attention == "static":
            return self._run_static(words, length, progress, steps)
        done = self.lstm(words, length, start=progress.state, steps=steps)
        output = Output(self.dropout(done.hidden.transpose(0, 1)), None, None)
        return output, progress._replace(state=State(done.last_hidden, done.last_cell))

    def _run_attending(
        self, words: Tensor, length: Tensor, progress: Progress, steps: tuple[int, ...] | None
    ) -> tuple[Output, Progress]:
        state, memory, context = progress
        done = self.lstm(words, length, start=state, memory=memory, context=context, scorer=self.scorer, steps=steps)
        assert done.context is not None and done.log_attention is not None
        output = Output(self._combined(done.hidden, done.context), done.log_attention.transpose(0, 1), memory.utterance)
        return output, Progress(State(done.last_hidden, done.last_cell), memory, done.context[-1])

    def _run_static(
        self, words: Tensor, length: Tensor, progress: Progress, steps: tuple[int, ...] | None
    ) -> tuple[Output, Progress]:
        state, memory, _ = progress
        last = memory.is_real.sum(1) - 1
        asked = memory.values[torch.arange(len(last), device=last.device), last]  # H_q, the Query
        context, log = self.scorer(asked, memory.values, memory.is_real)
        inputs = torch.cat([words, context.to(words.dtype)[:, None].expand(-1, words.shape[1], -1)], dim=-1)
        done = self.lstm(inputs, length, start=state, steps=steps)
        states = self._combined(done.hidden, context.expand_as(done.hidden))
        output = Output(states, log[:, None], memory.utterance)
        return output, Progress(State(done.last_hidden, done.last_cell), memory, context)

    def _combined(self, hidden: Tensor, context: Tensor) -> Tensor:
        """(steps, batch, width) each, into (batch, steps, width)."""
        together = torch.cat([hidden, context.to(hidden.dtype)], dim=-1).transpose(0, 1)
        states: Tensor = self.dropout(torch.tanh(self.combine(together)))
        return states
