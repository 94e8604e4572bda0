"""Log-likelihood after contexts that begin alike, with what they share read once.

The first context of a group is its trunk: it is read whole, and its keys and values are kept. The others are branches:
of each, only the tokens after the longest common prefix with the trunk's are read, with the trunk's past before them.
Prefixes are compared as tokens, for a template or a tokenizer may write the same turns otherwise in other company.

Branches of all groups are put together by how much is left to read; by dialogue, the longest of each would set the
width, and nothing be saved. Their pasts stand on the right, next to what follows, as in left-padded generation, so that
distances between places are true. What is kept is the past of one batch of trunks and one of branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from dialoscope.model.huggingface.batches import Network, in_batches
from dialoscope.model.huggingface.likelihood import OutputLayer
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Likelihood

LEAST = 0.75  # of a batch's longest: what is left to read differs so much that padding would eat up what is saved
Group = list[Sample]  # the trunk first
Past = list[tuple[Tensor, Tensor]]  # keys and values of each layer: (batch, heads, places, width)


@dataclass(frozen=True, eq=False)
class Branch:
    """A sample that begins as its trunk does."""

    sample: Sample
    trunk: int  # row of the trunk in its batch
    shared: int  # tokens that are not read again

    def __len__(self) -> int:
        """Tokens that are."""
        return len(self.sample) - self.shared


@torch.inference_mode()
def can_share(network: Network) -> bool:
    """Whether a past can be cut anywhere and continued: all keys and values of every layer, and places that are told.

    A sliding window has forgotten some, a recurrent state cannot be cut, and rotations that change with a context's
    length make other keys of the same tokens.
    """
    if network.kind != "causal" or "position_ids" not in signature(network.model.forward).parameters:
        return False
    rotations = {str(getattr(part, "rope_type", "")) for part in network.model.modules()}  # by layer, in some models
    if any(kind in one for one in rotations for kind in ("dynamic", "longrope")):
        return False
    from transformers.cache_utils import DynamicCache, DynamicLayer

    ids, _ = network.padded([[network.pad]])
    cache: Any = getattr(network.model(input_ids=ids, use_cache=True), "past_key_values", None)
    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)


def shared_likelihoods(
    network: Network, samples: Sequence[Sample], groups: Sequence[int], size: int
) -> list[Likelihood]:
    """What `likelihoods` gives, for samples each of which belongs to a group, by its number; the order is theirs."""
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    chosen = [[samples[place] for place in places] for places in members.values()]
    work = partial(_of_groups, network, size)
    found = in_batches(chosen, size, work, length=lambda group: len(group[0]), least=LEAST)
    results = {
        place: one
        for places, some in zip(members.values(), found, strict=True)
        for place, one in zip(places, some, strict=True)
    }
    return [results[place] for place in range(len(samples))]


def _of_groups(network: Network, size: int, groups: Sequence[Group]) -> list[list[Likelihood]]:
    """The trunks in one pass, then all branches of theirs, batch by batch."""
    trunks, past = _of_trunks(network, [group[0] for group in groups])
    branches = [
        Branch(sample, row, _shared(group[0], sample)) for row, group in enumerate(groups) for sample in group[1:]
    ]
    rest = iter(in_batches(branches, size, partial(_of_branches, network, past), least=LEAST))
    return [[trunk, *(next(rest) for _ in group[1:])] for trunk, group in zip(trunks, groups, strict=True)]


def _shared(trunk: Sample, sample: Sample) -> int:
    """How many tokens two contexts begin with alike; the last one is always read, for it predicts the response."""
    most = min(len(trunk.source), len(sample.source) - 1)
    return next((place for place in range(most) if trunk.source[place] != sample.source[place]), most)


@torch.inference_mode()
def _of_trunks(network: Network, samples: Sequence[Sample]) -> tuple[list[Likelihood], Past]:
    sequences, places = network.written(samples)
    ids, mask = network.padded(sequences)
    with OutputLayer(network, places) as head:
        output = network.model(input_ids=ids, attention_mask=mask, use_cache=True)
        past = [(layer.keys, layer.values) for layer in output.past_key_values.layers]
        return head.likelihoods(output.logits, samples), past


@torch.inference_mode()
def _of_branches(network: Network, past: Past, branches: Sequence[Branch]) -> list[Likelihood]:
    samples = [each.sample for each in branches]
    sequences, places = network.written(samples)
    rest = [sequence[each.shared :] for sequence, each in zip(sequences, branches, strict=True)]
    places = [[place - each.shared for place in some] for some, each in zip(places, branches, strict=True)]
    ids, mask = network.padded(rest)
    cache, seen = _continued(past, branches, network.device)
    mask = torch.cat([seen, mask], dim=1)  # (branches, places of the past and of the rest)
    position = (mask.cumsum(1) - 1)[:, seen.shape[1] :]  # padding stays at the last place: no model has too few
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": position, "past_key_values": cache}
    with OutputLayer(network, places) as head:
        return head.likelihoods(network.model(**inputs, use_cache=True).logits, samples)


def _continued(past: Past, branches: Sequence[Branch], device: torch.device) -> tuple[Any, Tensor]:
    """The past of each branch, cut from its trunk's and put to the right, and its mask: (branches, longest past)."""
    from transformers.cache_utils import DynamicCache

    shared = torch.tensor([each.shared for each in branches], device=device)
    places = torch.arange(int(shared.max()), device=device) + (shared - shared.max())[:, None]  # below 0: padding
    rows = torch.tensor([[each.trunk] for each in branches], device=device)

    def cut(states: Tensor) -> Tensor:
        return states.transpose(1, 2)[rows, places.clamp(min=0)].transpose(1, 2)

    return DynamicCache((cut(keys), cut(values)) for keys, values in past), (places >= 0).long()
