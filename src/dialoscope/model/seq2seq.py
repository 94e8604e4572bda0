"""The sequence-to-sequence family as a dialogue model: text in, numbers and text out.

Contexts are sorted by length, computed in batches, and given back in their order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from dialoscope.errors import UsageError
from dialoscope.model.batch import Batch, Output
from dialoscope.model.batching import collate, shapes_for
from dialoscope.model.generation import generate
from dialoscope.model.network import Seq2Seq, parameter_count, real_steps
from dialoscope.model.protocol import Account, Attention, Context, Decoding, Floats, Kind, Likelihood, Reading
from dialoscope.model.vocabulary import UNKNOWN, Vocabulary

__all__ = ["Seq2Seq", "Seq2SeqModel", "parameter_count"]

Found = TypeVar("Found")
Turns = Sequence[Sequence[int]]  # of one context, as token ids


class Seq2SeqModel:
    """A network and its vocabulary, as the rooms see them (`DialogueModel`).

    `context_turns` is how many turns of context it was trained with, None for all: what callers should give it, unless
    they mean to ask something else. `account` counts contexts that were cut, and the responses' unknown words.
    """

    def __init__(
        self,
        network: Seq2Seq,
        vocabulary: Vocabulary,
        *,
        name: str = "seq2seq",
        batch_size: int = 64,
        context_turns: int | None = None,
    ) -> None:
        self.network, self.vocabulary, self.batch_size = network, vocabulary, batch_size
        self.context_turns, self.account = context_turns, Account()
        self._name = name

    @cached_property
    def name(self) -> str:
        """The preset and a fingerprint of settings, words and weights as first asked for: ``static-ui@1f09c2ab``."""
        digest = hashlib.sha256(json.dumps(self.network.settings.to_dict(), sort_keys=True).encode())
        digest.update(self.vocabulary.to_json().encode())  # the same weights read other words otherwise
        for key, weight in self.network.state_dict().items():
            digest.update(key.encode())
            digest.update(weight.cpu().contiguous().view(torch.uint8).numpy())
        return f"{self._name}@{digest.hexdigest()[:8]}"

    @property
    def settings(self) -> dict[str, int]:
        """What, besides the weights, a number depends on: how much of a context is read, where not all of it is."""
        limit = self.network.settings.context_tokens
        return {} if limit is None else {"context_tokens": limit}

    def encode(self, contexts: Sequence[Context]) -> Floats:
        """One vector for each context: see `Seq2Seq.encode`."""
        vectors: list[Floats] = self._each(
            contexts, None, lambda batch: [*self.network.encode(batch).float().cpu().numpy()]
        )
        return np.stack(vectors) if vectors else np.zeros((0, self.network.settings.width), dtype=np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        """Attention on each utterance; one that `context_tokens` cuts away whole has no tokens and no share."""
        found = self._each(contexts, responses, lambda batch: self._attention(batch, *self.network.observe(batch)[1:]))
        return [_with_the_cut(one, len(context)) for one, context in zip(found, contexts, strict=True)]

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        """How likely each response is after its context."""
        return self._each(contexts, responses, lambda batch: self._likelihood(batch, self.network(batch)))

    def read(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Reading]:
        """Attention and likelihood in one pass."""

        def observe(batch: Batch) -> list[Reading]:
            output, log, utterance = self.network.observe(batch)
            both = zip(self._attention(batch, log, utterance), self._likelihood(batch, output), strict=True)
            return [Reading(*each) for each in both]

        found = zip(self._each(contexts, responses, observe), contexts, strict=True)
        return [Reading(_with_the_cut(one.attention, len(context)), one.likelihood) for one, context in found]

    def unread_turns(self, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[int]:
        """How many of each context's oldest turns `context_tokens` cuts away whole, whatever the response."""
        limit = self.network.settings.context_tokens
        if limit is None:
            return [0] * len(contexts)
        return [_turns_before(limit, turns) for turns in self._tokens(contexts, None)[0]]

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        """A response to each context."""
        how = decoding or Decoding()
        written = self._each(contexts, None, lambda batch: generate(self.network, batch, how))
        return [self.vocabulary.decode(tokens) for tokens in written]

    @property
    def kind(self) -> Kind:
        """What its attention is spread over."""
        settings = self.network.settings
        if settings.attention == "none":
            raise UsageError(f"Model '{self._name}' has no attention. Take a preset that has, such as 'lstm-attn'.")
        return "transformer" if settings.encoder == "transformer" else settings.attention

    def _likelihood(self, batch: Batch, output: Output) -> list[Likelihood]:
        totals = self.network.log_likelihood(output, batch)
        pairs = zip(totals.tolist(), batch.response_length.tolist(), strict=True)
        return [Likelihood(total, tokens) for total, tokens in pairs]

    def _attention(self, batch: Batch, log: Tensor, utterance: Tensor) -> list[Attention]:
        kind = self.kind
        shares = utterance_shares(log, utterance, batch).cpu().numpy().astype(np.float32)
        tokens = tokens_of_utterances(batch).cpu().numpy()
        counts = batch.utterances.tolist()
        return [Attention(shares[:, :, row, :n], tokens[row, :n], kind) for row, n in enumerate(counts)]

    def _each(
        self,
        contexts: Sequence[Context],
        responses: Sequence[str] | None,
        compute: Callable[[Batch], Sequence[Found]],
    ) -> list[Found]:
        """What `compute` finds for each context, in their order; computed in batches of like lengths."""
        turns, answers = self._tokens(contexts, responses)
        order = sorted(range(len(turns)), key=lambda row: (_length(turns[row]), row))
        found: dict[int, Found] = {}
        with _at_rest(self.network):
            for first in range(0, len(order), self.batch_size):
                rows = order[first : first + self.batch_size]
                filled = rows + rows[-1:] * self._missing(len(rows))
                batch = self._batch([turns[row] for row in filled], [answers[row] for row in filled])
                found.update(zip(filled, compute(batch), strict=True))
        self._count(turns, answers)
        return [found[row] for row in range(len(turns))]

    def _batch(self, contexts: Sequence[Turns], responses: Turns) -> Batch:
        """On the network's device; on a GPU in few shapes, for every shape that comes twice is captured there."""
        device = next(self.network.parameters()).device
        limit = self.network.settings.context_tokens
        return collate(contexts, responses, context_tokens=limit, shapes=shapes_for(device)).to(device)

    def _missing(self, rows: int) -> int:
        """How many rows fill a batch up to the next power of two on a GPU, where every shape is captured."""
        device = next(self.network.parameters()).device
        return 0 if shapes_for(device) is None else min(self.batch_size, 1 << (rows - 1).bit_length()) - rows

    def _count(self, contexts: Sequence[Turns], responses: Turns) -> None:
        limit = self.network.settings.context_tokens
        if limit is not None:
            cut = [turns for turns in contexts if _length(turns) > limit]
            self.account.contexts += len(cut)
            self.account.turns += sum(_turns_before(limit, turns) for turns in cut)
        self.account.words += sum(map(len, responses))
        self.account.unknown += sum(token == UNKNOWN for response in responses for token in response)

    def _tokens(
        self, contexts: Sequence[Context], responses: Sequence[str] | None
    ) -> tuple[list[list[list[int]]], list[list[int]]]:
        if responses is not None and len(contexts) != len(responses):
            raise UsageError(f"Expected a response to each of {len(contexts)} contexts, found {len(responses)}.")
        flat = iter(self.vocabulary.encode([turn for context in contexts for turn in context]))
        turns = [[next(flat) for _ in context] for context in contexts]
        return turns, self.vocabulary.encode(responses) if responses is not None else [[] for _ in contexts]


def _length(turns: Turns) -> int:
    """Tokens of a context, with a mark at the end of each turn."""
    return sum(map(len, turns)) + len(turns)


def _turns_before(tokens: int, turns: Turns) -> int:
    """How many turns are wholly older than the last so many tokens."""
    follow = np.cumsum([0, *(len(turn) + 1 for turn in reversed(turns[1:]))])  # each turn's later tokens, Query first
    return int((follow >= tokens).sum())


@contextmanager
def _at_rest(network: Seq2Seq) -> Iterator[None]:
    """Without dropout and gradients; afterwards as before."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


def utterance_shares(log: Tensor, utterance: Tensor, batch: Batch) -> Tensor:
    """Log of each utterance's share, a mean over the response's own steps.

    From log α (layers, batch, heads, steps or 1, places) to (layers, heads, batch, utterances).
    """
    log = log.transpose(1, 2)  # (layers, heads, batch, steps, places)
    if log.shape[3] > 1:
        real = real_steps(batch)
        log = log.masked_fill(~real[..., None], -math.inf).logsumexp(3) - batch.response_length.log()[:, None]
    else:
        log = log[:, :, :, 0]
    numbers = range(batch.end.shape[1])
    return torch.stack([log.masked_fill(utterance != k, -math.inf).logsumexp(-1) for k in numbers], dim=-1)


def tokens_of_utterances(batch: Batch) -> Tensor:
    """How many tokens of each utterance are read: (batch, utterances)."""
    numbers = torch.arange(batch.end.shape[1], device=batch.end.device)
    return (batch.utterance[:, None] == numbers[:, None]).sum(-1)


def _with_the_cut(attention: Attention, utterances: int) -> Attention:
    missing = utterances - attention.log_share.shape[-1]
    shares = np.pad(attention.log_share, ((0, 0), (0, 0), (missing, 0)), constant_values=-np.inf)
    return Attention(shares, np.pad(attention.tokens, (missing, 0)), attention.kind)
