"""The models of the distraction paper as one writes them first: the library's layers and cells, step by step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dialoscope.model.batch import Batch
from dialoscope.model.lstm import LSTM
from dialoscope.model.structure import Structure


class Plain(nn.Module):
    """The same model, written with the library's own layers and cells; `copy` gives it the weights of ours."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        width, layers, drop = settings.width, settings.layers, settings.dropout
        self.settings = settings
        self.words = nn.Embedding(settings.vocabulary, settings.embedding)
        self.encoder = nn.LSTM(settings.embedding, width, layers, batch_first=True, dropout=drop)
        self.integration = nn.LSTM(width, width, layers, batch_first=True, dropout=drop)
        sizes = [settings.embedding + width] + [width] * (layers - 1)
        self.cells = nn.ModuleList(nn.LSTMCell(size, width) for size in sizes)
        self.combine, self.out = nn.Linear(2 * width, width), nn.Linear(width, settings.vocabulary)
        self.dropout = nn.Dropout(drop)

    def loss(self, batch: Batch) -> Tensor:
        """Mean cross-entropy of the responses."""
        tokens, (hidden, cell) = self.encoder(self.dropout(self.words(batch.context)))
        utterances = tokens[torch.arange(len(tokens), device=tokens.device)[:, None], batch.end]
        if self.settings.integration:
            _, (hidden, cell) = self.integration(utterances)
        memory = tokens if self.settings.attention == "token" else utterances
        states = self.decode(self.dropout(self.words(batch.response[:, :-1])), list(hidden), list(cell), memory)
        logits = self.out(states)
        return functional.cross_entropy(logits.flatten(0, 1), batch.response[:, 1:].flatten())

    def decode(self, words: Tensor, hidden: list[Tensor], cell: list[Tensor], memory: Tensor) -> Tensor:
        """Equation 2, one step and one layer after the other."""
        is_static = self.settings.attention == "static"
        fixed = attend(memory, memory[:, -1]) if is_static else None
        context = torch.zeros_like(memory[:, 0]) if fixed is None else fixed
        states = []
        for step in range(words.shape[1]):
            x = torch.cat([words[:, step], context.to(words.dtype)], dim=-1)
            for layer, lstm in enumerate(self.cells):
                hidden[layer], cell[layer] = lstm(x if layer == 0 else self.dropout(x), (hidden[layer], cell[layer]))
                x = hidden[layer]
            context = attend(memory, x) if fixed is None else fixed
            states.append(torch.tanh(self.combine(torch.cat([x, context], dim=-1))))
        dropped: Tensor = self.dropout(torch.stack(states, dim=1))
        return dropped

    @torch.no_grad()
    def copy(self, ours: Any) -> None:
        """Take the weights of ours; the first layer of a decoder reads [E(y) ; c]."""
        for name in ("words", "out"):
            getattr(self, name).load_state_dict(getattr(ours, name).state_dict())
        self.combine.load_state_dict(ours.decoder.combine.state_dict())
        _copy_layers(self.encoder, ours.encoder.forth)
        if self.settings.integration:
            _copy_layers(self.integration, ours.encoder.integration)
        for layer, cell in enumerate(self.cells):
            _copy_cell(cell, ours.decoder.lstm, layer, "")


def attend(memory: Tensor, query: Tensor) -> Tensor:
    """A context vector by equation 3: memory (batch, places, width), query (batch, width)."""
    share = torch.softmax(torch.bmm(memory, query[..., None]), dim=1)
    return torch.bmm(share.transpose(1, 2), memory)[:, 0]


def _copy_layers(library: nn.LSTM, ours: LSTM) -> None:
    for layer in range(ours.layers):
        _copy_cell(library, ours, layer, f"_l{layer}")


def _copy_cell(library: nn.Module, ours: LSTM, layer: int, suffix: str) -> None:
    recurrent = ours.first if ours.upper is None or layer == 0 else ours.upper[layer - 1]
    before, after = recurrent[:, : -ours.width], recurrent[:, -ours.width :]
    getattr(library, f"weight_ih{suffix}").copy_(torch.cat([ours.inputs, before], dim=1) if layer == 0 else before)
    getattr(library, f"weight_hh{suffix}").copy_(after)
    getattr(library, f"bias_ih{suffix}").copy_(ours.bias[layer])
    getattr(library, f"bias_hh{suffix}").zero_()
