"""Encoders of LSTMs: contexts into a memory to attend to, a state to start the decoder, and one vector to probe."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dialoscope.model.batch import Batch
from dialoscope.model.lstm import LSTM, Memory, State
from dialoscope.model.structure import Structure


class Encoding(NamedTuple):
    """What a decoder is given of a context."""

    memory: Memory
    state: State | None  # where an LSTM decoder starts; None for a transformer
    summary: Tensor  # (batch, width) the context in one vector, which probes read


class LSTMEncoder(nn.Module):
    """One LSTM over all tokens; with integration (equation 6), a second one over the utterances' states.

    An utterance's state H_k is the top layer's at its last token. The summary is the top layer's last state: of the
    second LSTM where there is one (H_m), else of the first.
    """

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.forth = lstm_over(settings.embedding, settings)
        self.back = lstm_over(settings.embedding, settings) if settings.encoder == "bilstm" else None
        self.integration = lstm_over(settings.width, settings) if settings.integration else None
        self.keeps_tokens = settings.attention == "token"

    def forward(self, words: Tensor, batch: Batch) -> Encoding:
        """From embedded contexts (batch, tokens, embedding)."""
        tokens, state = self._read(words, batch.length)
        utterances = at_places(tokens, batch.end)
        if self.integration is not None:
            whole = self.integration(utterances, batch.utterances)
            state = State(whole.last_hidden, whole.last_cell)
        memory = Memory(tokens, batch.utterance) if self.keeps_tokens else Memory(utterances, utterance_numbers(batch))
        return Encoding(memory, state, state.hidden[-1])

    def _read(self, words: Tensor, length: Tensor) -> tuple[Tensor, State]:
        read = self.forth(words, length)
        tokens, state = read.hidden.transpose(0, 1), State(read.last_hidden, read.last_cell)
        if self.back is None:
            return tokens, state
        turned = backwards(length, words.shape[1])
        again = self.back(at_places(words, turned), length)
        tokens = tokens + at_places(again.hidden.transpose(0, 1), turned)
        return tokens, State(state.hidden + again.last_hidden, state.cell + again.last_cell)


class HierarchicalEncoder(nn.Module):
    """HRED: one LSTM reads each utterance by itself, another the utterances' vectors; its states are the memory."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.utterance = lstm_over(settings.embedding, settings)
        self.context = lstm_over(settings.width, settings)

    def forward(self, words: Tensor, batch: Batch) -> Encoding:
        """From embedded contexts (batch, tokens, embedding)."""
        start = torch.cat([torch.zeros_like(batch.end[:, :1]), batch.end[:, :-1] + 1], dim=1)
        length = (batch.end - start + 1) * (utterance_numbers(batch) >= 0)  # (batch, utterances)
        longest = -(-int(length.max()) // 8) * 8  # few different shapes
        places = (start[..., None] + torch.arange(longest, device=start.device)).clamp(max=words.shape[1] - 1)
        turns = at_places(words, places.flatten(1)).reshape(length.numel(), longest, -1)
        read = self.context(self._said(turns, length.flatten()).view(*length.shape, -1), batch.utterances)
        memory = Memory(read.hidden.transpose(0, 1), utterance_numbers(batch))
        return Encoding(memory, State(read.last_hidden, read.last_cell), read.last_hidden[-1])

    def _said(self, turns: Tensor, length: Tensor) -> Tensor:
        """The last state of each turn (turns, width); whatever it is of those that are padding."""
        if turns.is_cuda:  # which would have to wait for the number of the others
            last: Tensor = self.utterance(turns, length).last_hidden[-1]
            return last
        real = length.nonzero()[:, 0]
        last = self.utterance(turns[real], length[real]).last_hidden[-1]
        return last.new_zeros(len(length), last.shape[1]).index_copy(0, real, last)


def lstm_over(inputs: int, settings: Structure) -> LSTM:
    """An LSTM of these settings' size over vectors of that width."""
    return LSTM(inputs, settings.width, layers=settings.layers, dropout=settings.dropout)


def at_places(values: Tensor, places: Tensor) -> Tensor:
    """Rows of (batch, n, width) at places (batch, m): (batch, m, width)."""
    return values.gather(1, places[..., None].expand(-1, -1, values.shape[-1]))


def utterance_numbers(batch: Batch) -> Tensor:
    """0, 1, … for the utterances of each context, -1 for padding: (batch, utterances)."""
    numbers = torch.arange(batch.end.shape[1], device=batch.end.device)
    return torch.where(numbers < batch.utterances[:, None], numbers, -1)


def backwards(length: Tensor, width: int) -> Tensor:
    """Places that turn each row's real part round and leave its padding: (batch, width)."""
    places = torch.arange(width, device=length.device)
    return torch.where(places < length[:, None], length[:, None] - 1 - places, places)
