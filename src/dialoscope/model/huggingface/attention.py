"""Attention from a response's places to the utterances of its context, without a layers × heads × T × T tensor.

A network's attention is exchanged for one that gives the same output by its usual kernel (which returns no weights,
transformers issue 39547) and besides asks the model's own eager formula for the few rows that matter. They are summed
over utterances at once, so what is kept is layers × heads × utterances. The eager formula knows whatever the model
adds: grouped heads, sliding windows, position biases, soft caps, sinks. Models that keep their attention to themselves
(GPT-J, BLOOM, …) give all their eager weights instead.

Rows are the places that predict the response: token t is predicted at the place before it. In each row the weights on
utterances are scaled to sum to 1; a row that sees no utterance (out of a sliding window) is left out of the mean.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.batches import Network, indices
from dialoscope.model.huggingface.likelihood import OutputLayer
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.huggingface.tokens import NOBODY
from dialoscope.model.protocol import Attention, Floats, Reading

Rows = Literal["auto", "eager", "recompute"]
IMPLEMENTATIONS = {"sdpa": "dialoscope_rows_sdpa", "eager": "dialoscope_rows_eager"}


@dataclass(frozen=True, eq=False)
class Recorder:
    """Gathers the shares of utterances, layer by layer."""

    rows: Tensor  # (batch, rows) places whose attention counts
    counts: Tensor  # (batch, rows) False: padding
    members: Tensor  # (batch, places, utterances) 1 where a token belongs to an utterance
    shares: list[Tensor] = field(default_factory=list)  # of each layer: (batch, heads, utterances)

    def wants(self, query: Tensor, key: Tensor) -> bool:
        """Is this the attention over the context? Its keys are the context's places (cross-attention: the source's)."""
        return query.shape[2] > int(self.rows.max()) and key.shape[2] == self.members.shape[1]

    def add(self, weights: Tensor) -> None:
        """Sum one layer's weights, (batch, heads, rows, places), over utterances, and average its rows."""
        mass = weights.float() @ self.members[:, None]  # (batch, heads, rows, utterances)
        total = mass.sum(-1, keepdim=True)
        is_seen = self.counts[:, None, :, None] & (total > 0)
        share = torch.where(is_seen, mass / total, 0.0).sum(2)
        self.shares.append(share / is_seen.sum(2))  # no row at all: 0 / 0, not a number


_RECORDER: ContextVar[Recorder] = ContextVar("recorder")


@torch.inference_mode()
def readings(network: Network, samples: Sequence[Sample], *, rows: Rows) -> list[Reading]:
    """Shares of utterances while each response is read, and its likelihood by the same pass.

    An utterance that has no tokens has a share of 0.
    """
    sequences, places = network.written(samples)
    ids, mask = network.padded(sequences)
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    width = ids.shape[1]
    if network.kind == "encoder-decoder":
        inputs, width = _decoder_inputs(network, samples, ids)
    recorder = Recorder(*indices(places, network.device), _members(samples, width, network.device))
    is_exchanged = rows != "eager" and network.model._can_set_attn_implementation()
    with OutputLayer(network, places) as head:
        output = (_recompute if is_exchanged else _eager)(network, inputs, recorder)
        said = head.likelihoods(output.logits, samples)
    shares = torch.stack(recorder.shares, dim=1).double().log().float().cpu().numpy()  # (batch, layers, heads, turns)
    seen = [_attention(*both) for both in zip(shares, samples, strict=True)]
    return [Reading(*both) for both in zip(seen, said, strict=True)]


def _attention(share: Floats, sample: Sample) -> Attention:
    kept = np.ascontiguousarray(share[:, :, : sample.turns])
    return Attention(kept, np.array(sample.lengths(), dtype=np.int64), "transformer")


def _decoder_inputs(network: Network, samples: Sequence[Sample], ids: Tensor) -> tuple[dict[str, Any], int]:
    """The encoder runs first and unrecorded. Its length differs from the decoder's, so that cross-attention shows."""
    longest = max(len(each.source) for each in samples)
    source, seen = network.padded([each.source for each in samples], width=longest + (longest == ids.shape[1]))
    encoded = network.model.get_encoder()(input_ids=source, attention_mask=seen, return_dict=True)
    return {"encoder_outputs": encoded, "attention_mask": seen, "decoder_input_ids": ids}, source.shape[1]


def _members(samples: Sequence[Sample], width: int, device: torch.device) -> Tensor:
    members = torch.zeros((len(samples), width, max(each.turns for each in samples)))
    for k, each in enumerate(samples):
        owned = [(place, turn) for place, turn in enumerate(each.owner) if turn != NOBODY]
        if owned:
            place, turn = zip(*owned, strict=True)
            members[k, list(place), list(turn)] = 1
    return members.to(device)


def _eager(network: Network, inputs: dict[str, Any], recorder: Recorder) -> Any:
    """All weights of all layers, as the model gives them: for short inputs, and to check the other way against."""
    with _implementation(network.model, "eager"):
        output = network.model(**inputs, output_attentions=True, use_cache=False)
    found = getattr(output, "cross_attentions" if network.kind == "encoder-decoder" else "attentions", None)
    for weights in found or ():
        if weights is not None:  # a layer of another kind
            if bool((weights < 0).any()):  # ProphetNet gives what goes into the softmax
                raise UsageError(f"{type(network.model).__name__} gives scores in place of attention weights.")
            recorder.add(_take(weights, recorder.rows))
    if not recorder.shares:
        raise UsageError(f"{type(network.model).__name__} gives no attention weights: use a model that has attention.")
    return output


def _recompute(network: Network, inputs: dict[str, Any], recorder: Recorder) -> Any:
    """Only the rows that matter, one layer after the other."""
    _register()
    usual = network.model.config._attn_implementation
    token = _RECORDER.set(recorder)
    try:
        with _implementation(network.model, IMPLEMENTATIONS["eager" if usual == "eager" else "sdpa"]):
            output = network.model(**inputs, use_cache=False)
    finally:
        _RECORDER.reset(token)
    return output if recorder.shares else _eager(network, inputs, recorder)


@contextmanager
def _implementation(model: Any, name: str) -> Iterator[None]:
    """Another attention for a while, where the model allows.

    Set for every part that has a configuration of its own: transformers 5.17 forgets T5's encoder and decoder.
    """
    parts = [part for part in model.modules() if hasattr(part, "set_attn_implementation")]
    usual = [part.config._attn_implementation for part in parts]
    if not model._can_set_attn_implementation():
        yield
        return
    for part in parts:
        part.set_attn_implementation(name)
    try:
        yield
    finally:
        for part, own in zip(parts, usual, strict=True):
            part.set_attn_implementation(own)


def _register() -> None:
    """Make the recording attentions known to transformers, each with the masks of its kernel."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask, sdpa_mask

    AttentionInterface.register(IMPLEMENTATIONS["sdpa"], _recording_sdpa)
    AttentionMaskInterface.register(IMPLEMENTATIONS["sdpa"], sdpa_mask)
    AttentionInterface.register(IMPLEMENTATIONS["eager"], _recording_eager)
    AttentionMaskInterface.register(IMPLEMENTATIONS["eager"], eager_mask)


def _recording_sdpa(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> Any:
    """The usual kernel's output; the rows that count by the model's own formula, in single precision."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    recorder = _RECORDER.get()
    if recorder.wants(query, key):
        mask = _row_mask(module, query, key, attention_mask, recorder.rows, options.get("is_causal"))
        bias = options.get("position_bias")
        extra = {} if bias is None else {"position_bias": _take(bias, recorder.rows).float()}
        some = _take(query, recorder.rows).float()
        recorder.add(_own_formula(module)(module, some, key.float(), value.float(), mask, **{**options, **extra})[1])
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


def _recording_eager(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> Any:
    """For models that no kernel serves: the formula itself, one layer's weights at a time."""
    output, weights = _own_formula(module)(module, query, key, value, attention_mask, **options)
    recorder = _RECORDER.get()
    if recorder.wants(query, key):
        recorder.add(_take(weights, recorder.rows))
    return output, None


def _own_formula(module: Any) -> Any:
    """The eager attention that stands in the file of the model's layers."""
    for kind in type(module).__mro__:
        found = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if found is not None:
            return found
    raise NotImplementedError(f"{type(module).__name__} has no eager_attention_forward beside it")


def _row_mask(
    module: Any, query: Tensor, key: Tensor, mask: Tensor | None, rows: Tensor, is_causal: bool | None
) -> Tensor | None:
    """The mask of the rows that count, to be added to scores: (batch, 1 or heads, rows, places)."""
    if mask is not None:
        chosen = _take(mask, rows)
        return _additive(chosen) if chosen.dtype == torch.bool else chosen.float()
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if not causal or query.shape[2] == 1:
        return None
    return _additive(torch.arange(key.shape[2], device=rows.device) <= rows[:, None, :, None])


def _additive(is_visible: Tensor) -> Tensor:
    return torch.where(is_visible, 0.0, torch.finfo(torch.float32).min)


def _take(values: Tensor, rows: Tensor) -> Tensor:
    """The rows of (batch or 1, heads or 1, T, width): (batch, heads or 1, rows, width)."""
    batch, count = rows.shape
    wide = values.expand(batch, *values.shape[1:])
    return wide.gather(2, rows[:, None, :, None].expand(batch, values.shape[1], count, values.shape[3]))
