"""The sequence-to-sequence network: one for all twelve presets."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dialoscope.errors import UsageError
from dialoscope.model import replayed
from dialoscope.model.batch import Batch, Output
from dialoscope.model.cross_entropy import mean_cross_entropy
from dialoscope.model.decoder import LSTMDecoder, Progress
from dialoscope.model.encoder import Encoding, HierarchicalEncoder, LSTMEncoder
from dialoscope.model.structure import Structure
from dialoscope.model.transformer import TransformerDecoder, TransformerEncoder, TransformerLayers, Written

ROWS_AT_ONCE = 512  # of states whose scores of all words are held
ENCODERS = {
    "lstm": LSTMEncoder,
    "bilstm": LSTMEncoder,
    "hierarchical": HierarchicalEncoder,
    "transformer": TransformerEncoder,
}


class Seq2Seq(nn.Module):
    """Reads contexts, writes responses."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.settings = settings
        self.words = nn.Embedding(settings.vocabulary, settings.embedding)
        self.response_words = None if settings.shared_embedding else nn.Embedding(*self.words.weight.shape)
        self.dropout = nn.Dropout(settings.dropout)
        self.encoder = ENCODERS[settings.encoder](settings)
        is_transformer = settings.encoder == "transformer"
        self.decoder = (TransformerDecoder if is_transformer else LSTMDecoder)(settings)
        self.out = nn.Linear(settings.width, settings.vocabulary)
        _initialise(self)

    def forward(self, batch: Batch, *, attention: bool = False) -> Output:
        """Over the true responses (teacher forcing); a transformer gives its attention only if asked for it."""
        words = self._response(batch.response[:, :-1])
        if isinstance(self.decoder, TransformerDecoder) and not attention and replayed.is_worth_it(self, words):
            return self._replayed(self.dropout(self.words(batch.context)), words, batch)
        encoding = self.read(batch)
        output: Output = self.decoder(words, batch.response_length, encoding, attention=attention, steps=batch.steps)
        return output

    def _replayed(self, context: Tensor, response: Tensor, batch: Batch) -> Output:
        layers = TransformerLayers(self.encoder, self.decoder)  # type: ignore[arg-type]
        return Output(replayed.replay(layers, context, response, batch.utterance, batch.length), None, None)

    def read(self, batch: Batch) -> Encoding:
        """The contexts, as the decoder is given them."""
        encoding: Encoding = self.encoder(self.dropout(self.words(batch.context)), batch)
        return encoding

    def encode(self, batch: Batch) -> Tensor:
        """One vector for each context (batch, width).

        The top layer's last state; with integration that of the LSTM over utterances, H_m; of a hierarchical encoder
        its context LSTM's; of a transformer the mean over tokens.
        """
        return self.read(batch).summary

    def logits(self, states: Tensor) -> Tensor:
        """Scores of all words (…, vocabulary) from what the decoder gives (…, width)."""
        scores: Tensor = self.out(states)
        return scores

    def loss(self, output: Output, batch: Batch) -> Tensor:
        """Mean cross-entropy over the responses' real tokens."""
        states = output.states.flatten(0, 1).index_select(0, batch.real_places)
        targets = batch.response[:, 1:].flatten().index_select(0, batch.real_places)
        is_real = torch.ones_like(targets, dtype=torch.bool)
        return mean_cross_entropy(states, self.out.weight, self.out.bias, targets, is_real)

    def log_likelihood(self, output: Output, batch: Batch) -> Tensor:
        """The responses' log p(response | context), end tokens included: (batch,)."""
        is_real = real_steps(batch)
        states, targets = output.states[is_real], batch.response[:, 1:][is_real]
        found = torch.empty(len(targets), device=states.device)
        for first in range(0, len(targets), ROWS_AT_ONCE):  # all at once would hold (rows, vocabulary)
            some = slice(first, first + ROWS_AT_ONCE)
            scores = self.logits(states[some]).float()
            found[some] = -functional.cross_entropy(scores, targets[some], reduction="none")
        return torch.zeros(is_real.shape, device=states.device).masked_scatter(is_real, found).sum(1)

    def observe(self, batch: Batch) -> tuple[Output, Tensor, Tensor]:
        """Output, attention, and the utterance of each place, over the true responses.

        Attention is log α by layer and head: (layers, batch, heads, steps or 1, places).
        """
        if isinstance(self.decoder, TransformerDecoder):
            return self.decoder.observe(self._response(batch.response[:, :-1]), self.read(batch))
        output = self(batch)
        if output.log_attention is None:
            raise UsageError("This model has no attention. Take a preset that has, such as 'lstm-attn'.")
        return output, output.log_attention[None, :, None], output.memory_utterance

    def start(self, batch: Batch) -> Progress | Written:
        """Before the first token of the responses."""
        progress: Progress | Written = self.decoder.start(self.read(batch))
        return progress

    def step(self, tokens: Tensor, progress: Progress | Written) -> tuple[Tensor, Progress | Written]:
        """One more token (batch,) of each response: scores of the next (batch, vocabulary), and the progress."""
        states, progress = self.decoder.step(self._response(tokens), progress)  # type: ignore[arg-type]
        return self.logits(states), progress

    def _response(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.dropout((self.response_words or self.words)(tokens))
        return embedded


def real_steps(batch: Batch) -> Tensor:
    """Which steps of the responses are no padding: (batch, steps)."""
    steps = torch.arange(batch.response.shape[1] - 1, device=batch.response.device)
    return steps < batch.response_length[:, None]


def _initialise(network: Seq2Seq) -> None:
    """PyTorch's own start but for word vectors, and for transformers, which start as Vaswani et al. and Rush have it.

    Where word vectors start decides what is learnt: from within ±0.1 what reaches the top of four layers of LSTM is too
    faint to learn from by SGD; from a deviation of 1, two layers learn by Adam at half the pace. A transformer's are
    scaled up by the root of its width where they are read.
    """
    settings = network.settings
    is_transformer = settings.encoder == "transformer"
    for table in (network.words, network.response_words):
        if table is not None and is_transformer:
            nn.init.normal_(table.weight, std=settings.width**-0.5)
        elif table is not None and settings.words_within is not None:
            nn.init.uniform_(table.weight, -settings.words_within, settings.words_within)
    for part in network.modules() if is_transformer else ():
        if isinstance(part, nn.Linear) and part is not network.out:
            nn.init.xavier_uniform_(part.weight)


def parameter_count(settings: Structure) -> int:
    """How many weights a model of these settings has; nothing is allocated."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in Seq2Seq(settings).parameters())
