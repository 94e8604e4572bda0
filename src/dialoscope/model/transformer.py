"""The transformer of Vaswani et al.: sinusoidal positions, layers of attention and feed-forward blocks.

`norm` says where a block is normalised: "post" as in the paper, LayerNorm(x + block(x)); "pre" as in Rush's annotated
version, x + block(LayerNorm(x)) with one more LayerNorm at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from dialoscope.model.attention import log_shares
from dialoscope.model.batch import Batch, Output
from dialoscope.model.encoder import Encoding
from dialoscope.model.lstm import Memory
from dialoscope.model.structure import Structure

# Not cuDNN's: with masks that differ by row its gradients became NaN (PyTorch 2.11, bf16) where these agree with fp32.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Places(NamedTuple):
    """Projected keys and values to attend to: (batch, heads, places, width / heads)."""

    keys: Tensor
    values: Tensor

    def followed_by(self, more: Places) -> Places:
        """One more stretch of places behind these."""
        return Places(torch.cat([self.keys, more.keys], dim=2), torch.cat([self.values, more.values], dim=2))

    def select(self, rows: Tensor) -> Places:
        """These rows of the batch."""
        return Places(self.keys[rows], self.values[rows])


class Heads(nn.Module):
    """Attention with several heads."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.heads, self.dropout = settings.heads, settings.dropout
        self.query, self.keys, self.values, self.out = (nn.Linear(settings.width, settings.width) for _ in range(4))

    def places(self, values: Tensor) -> Places:
        """Project what is attended to: (batch, places, width)."""
        return Places(self._split(self.keys(values)), self._split(self.values(values)))

    def forward(self, query: Tensor, places: Places, is_seen: Tensor) -> Tensor:
        """Query is (batch, steps, width); `is_seen` (batch or 1, 1, steps or 1, places)."""
        rate = self.dropout if self.training else 0.0
        with sdpa_kernel(KERNELS):
            mixed = functional.scaled_dot_product_attention(
                self._split(self.query(query)), *places, attn_mask=is_seen, dropout_p=rate
            )
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    def log_attention(self, query: Tensor, places: Places, is_seen: Tensor) -> Tensor:
        """By head, log α: (batch, heads, steps, places)."""
        scores = self._split(self.query(query)) @ places.keys.mT / math.sqrt(places.keys.shape[-1])
        return log_shares(scores, is_seen)

    def _split(self, values: Tensor) -> Tensor:
        return values.view(*values.shape[:2], self.heads, -1).transpose(1, 2)


class Block(nn.Module):
    """A residual connection around something, with its LayerNorm and dropout."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.is_pre = settings.norm == "pre"
        self.norm, self.dropout = nn.LayerNorm(settings.width), nn.Dropout(settings.dropout)

    def forward(self, x: Tensor, inner: Callable[[Tensor], Tensor]) -> Tensor:
        """Around `inner`."""
        out: Tensor = x + self.dropout(inner(self.norm(x))) if self.is_pre else self.norm(x + self.dropout(inner(x)))
        return out


class FeedForward(nn.Sequential):
    """Two linear layers, four times as wide inside."""

    def __init__(self, settings: Structure) -> None:
        inner = 4 * settings.width
        drop = nn.Dropout(settings.dropout)
        super().__init__(nn.Linear(settings.width, inner), nn.ReLU(), drop, nn.Linear(inner, settings.width))


class EncoderLayer(nn.Module):
    """Attention to the context itself, then a feed-forward block."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.itself, self.itself_block = Heads(settings), Block(settings)
        self.wide, self.wide_block = FeedForward(settings), Block(settings)

    def forward(self, x: Tensor, is_real: Tensor) -> Tensor:
        """(batch, tokens, width), of which `is_real` (batch, 1, 1, tokens) are no padding."""
        x = self.itself_block(x, lambda x: self.itself(x, self.itself.places(x), is_real))
        x = self.wide_block(x, self.wide)
        return x


class DecoderLayer(nn.Module):
    """Attention to what is written so far and to the context, then a feed-forward block."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.itself, self.itself_block = Heads(settings), Block(settings)
        self.across, self.across_block = Heads(settings), Block(settings)
        self.wide, self.wide_block = FeedForward(settings), Block(settings)

    def written(self, x: Tensor) -> Places:
        """The places that these new tokens add to what is written."""
        return self.itself.places(self.itself_block.norm(x) if self.itself_block.is_pre else x)

    def forward(self, x: Tensor, past: Places | None, read: Places, is_real: Tensor) -> tuple[Tensor, Places, Tensor]:
        """New tokens (batch, steps, width): their states, all that is written, and what asked the context."""
        new = self.written(x)
        written = new if past is None else past.followed_by(new)
        x = self.itself_block(x, lambda x: self.itself(x, written, causal(x.shape[1], written.keys)))
        asked = self.across_block.norm(x) if self.across_block.is_pre else x
        x = self.across_block(x, lambda x: self.across(x, read, is_real))
        return self.wide_block(x, self.wide), written, asked


class TransformerEncoder(nn.Module):
    """Every token's state is the memory; the summary is their mean over real tokens."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.width) if settings.norm == "pre" else nn.Identity()

    def forward(self, words: Tensor, batch: Batch) -> Encoding:
        """From embedded contexts (batch, tokens, width)."""
        return self.over(words, batch.utterance, batch.length)

    def over(self, words: Tensor, utterance: Tensor, length: Tensor) -> Encoding:
        """The same from what it needs of a batch."""
        is_real = utterance >= 0
        x = words * math.sqrt(words.shape[-1]) + positions(0, words)
        for layer in self.layers:
            x = layer(x, is_real[:, None, None])
        x = self.norm(x)
        summary = (x * is_real[..., None]).sum(1) / length[:, None]
        return Encoding(Memory(x, utterance), None, summary)


class Written(NamedTuple):
    """How far the responses of a batch are written."""

    past: tuple[Places | None, ...]  # by layer: the tokens written so far
    read: tuple[Places, ...]  # by layer: the context
    utterance: Tensor  # (batch, tokens) of the context
    steps: int

    def select(self, rows: Tensor) -> Written:
        """These rows, in this order, one perhaps several times."""
        past = tuple(None if one is None else one.select(rows) for one in self.past)
        return Written(past, tuple(one.select(rows) for one in self.read), self.utterance[rows], self.steps)


class TransformerDecoder(nn.Module):
    """Writes a response with attention to the context in every layer."""

    def __init__(self, settings: Structure) -> None:
        super().__init__()
        layers = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.layers))
        self.layers = cast("Sequence[DecoderLayer]", layers)
        self.norm = nn.LayerNorm(settings.width) if settings.norm == "pre" else nn.Identity()

    def forward(
        self,
        words: Tensor,
        length: Tensor,
        encoding: Encoding,
        *,
        attention: bool = False,
        steps: tuple[int, ...] | None = None,
    ) -> Output:
        """Over embedded tokens (batch, steps, width); with `attention`, the shares' mean over layers and heads.

        `steps` is for LSTMs: a transformer computes all steps at once.
        """
        written = self.start(encoding)
        states, _, asked = self._run(words, written)
        if not attention:
            return Output(states, None, None)
        log = self._log_attention(asked, written)
        mean = torch.logsumexp(log, dim=(0, 2)) - math.log(log.shape[0] * log.shape[2])
        return Output(states, mean, written.utterance)

    def observe(self, words: Tensor, encoding: Encoding) -> tuple[Output, Tensor, Tensor]:
        """The output; by layer and head, log α (layers, batch, heads, steps, places); the utterance of each place."""
        written = self.start(encoding)
        states, _, asked = self._run(words, written)
        return Output(states, None, None), self._log_attention(asked, written), written.utterance

    def start(self, encoding: Encoding) -> Written:
        """Before the first token."""
        read = tuple(layer.across.places(encoding.memory.values) for layer in self.layers)
        return Written((None,) * len(read), read, encoding.memory.utterance, 0)

    def step(self, words: Tensor, written: Written) -> tuple[Tensor, Written]:
        """One more token (batch, width) each: what the output layer reads, and what is written."""
        states, written, _ = self._run(words[:, None], written)
        return states[:, 0], written

    def _log_attention(self, asked: list[Tensor], written: Written) -> Tensor:
        is_real = (written.utterance >= 0)[:, None, None]
        by_layer = zip(self.layers, asked, written.read, strict=True)
        return torch.stack([layer.across.log_attention(query, read, is_real) for layer, query, read in by_layer])

    def _run(self, words: Tensor, written: Written) -> tuple[Tensor, Written, list[Tensor]]:
        x = words * math.sqrt(words.shape[-1]) + positions(written.steps, words)
        is_real = (written.utterance >= 0)[:, None, None]
        grown, asked = [], []
        for layer, past, read in zip(self.layers, written.past, written.read, strict=True):
            x, places, query = layer(x, past, read, is_real)
            grown.append(places)
            asked.append(query)
        return self.norm(x), written._replace(past=tuple(grown), steps=written.steps + words.shape[1]), asked


@dataclass(frozen=True)
class TransformerLayers:
    """All layers as one function of tensors alone; two are the same where they hold the same modules."""

    encoder: TransformerEncoder
    decoder: TransformerDecoder

    def parameters(self) -> list[nn.Parameter]:
        """The weights of both."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def __call__(self, weights: Sequence[Tensor], *given: Tensor) -> Tensor:
        """What the output layer reads, with these in place of the weights."""
        both = _Both(self.encoder, self.decoder)
        names = (name for name, _ in both.named_parameters())
        states: Tensor = functional_call(both, dict(zip(names, weights, strict=True)), given)
        return states


class _Both(nn.Module):
    """Encoder and decoder under one roof, for weights to be exchanged."""

    def __init__(self, encoder: TransformerEncoder, decoder: TransformerDecoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, context: Tensor, response: Tensor, utterance: Tensor, length: Tensor) -> Tensor:
        """States, from embedded contexts and responses and a batch's `utterance` and `length`."""
        output: Output = self.decoder(response, length, self.encoder.over(context, utterance, length))
        return output.states


def positions(first: int, words: Tensor) -> Tensor:
    """Sines and cosines of the places from `first` on, at wavelengths from 2π to 20000π: (steps, width)."""
    steps, width = words.shape[-2:]
    place = torch.arange(first, first + steps, device=words.device, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=words.device) * (-math.log(10_000) / width))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=-1).flatten(1).to(words.dtype)


def causal(steps: int, written: Tensor) -> Tensor:
    """Each of the last `steps` tokens sees itself and all before: (1, 1, steps, written)."""
    total = written.shape[2]
    return torch.ones(steps, total, dtype=torch.bool, device=written.device).tril(total - steps)[None, None]
