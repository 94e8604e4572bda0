"""A context as one vector: hidden states of a layer, pooled over its tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.batches import Network
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Floats


def last(states: Tensor, sample: Sample) -> Tensor:
    """The last token: of a causal model, the one that has read everything and would write next."""
    return states[-1]


def first(states: Tensor, sample: Sample) -> Tensor:
    """The first token, [CLS] of BERT's kin."""
    return states[0]


def mean(states: Tensor, sample: Sample) -> Tensor:
    """The mean over all tokens, special ones included, padding never: as sentence-transformers does."""
    return states.mean(0)


def query(states: Tensor, sample: Sample) -> Tensor:
    """The mean over the Query's own tokens; of an empty Query, the last token."""
    places = [place for place, turn in enumerate(sample.owner) if turn == sample.turns - 1]
    return states[places].mean(0) if places else states[-1]


POOLINGS: Mapping[str, Callable[[Tensor, Sample], Tensor]] = {
    "last": last,
    "first": first,
    "mean": mean,
    "query": query,
}


@torch.inference_mode()
def encodings(network: Network, samples: Sequence[Sample], *, layer: int, pooling: str) -> list[Floats]:
    """One vector for each sample's context: (width,) each."""
    ids, mask = network.padded([each.source for each in samples])
    reader = network.model if network.kind == "encoder" else _trunk(network)
    layers = reader(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"Layer {layer} does not exist: 0 (embeddings) to {len(layers) - 1}, or -{len(layers)} to -1.")
    states = layers[layer].float()  # (batch, places, width)
    pooled = [POOLINGS[pooling](row[: len(each.source)], each) for row, each in zip(states, samples, strict=True)]
    return [np.asarray(vector.cpu().numpy(), dtype=np.float32) for vector in pooled]


def _trunk(network: Network) -> Any:
    """The part that reads a context: an encoder, or a causal model without its output layer."""
    return network.model.get_encoder() if network.kind == "encoder-decoder" else network.model.base_model
