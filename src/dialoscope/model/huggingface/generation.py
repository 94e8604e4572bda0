"""Writing responses: greedy, beam and sampling, the same whatever else is in the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.batches import Network
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Decoding


class Gumbel:
    """Turns the largest score into a fair draw: argmax(log p + Gumbel noise) is distributed as p.

    Each item has its own noise, from the seed and its own context, so that a sample does not depend on its company;
    it is drawn on the CPU, so that it does not depend on the device either.
    """

    def __init__(self, seed: int, samples: Sequence[Sample]) -> None:
        self._generators = [_generator(seed, each.source) for each in samples]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Add the next step's noise to the scores of each item: (batch, vocabulary)."""
        size = scores.shape[-1]
        draws = torch.stack([torch.empty(size).exponential_(generator=each) for each in self._generators])
        return scores.float() - draws.clamp_min(torch.finfo(torch.float32).tiny).log().to(scores.device)


@torch.inference_mode()
def generations(
    network: Network, samples: Sequence[Sample], *, decoding: Decoding, ends: Sequence[int]
) -> list[list[int]]:
    """The new tokens of each response, up to its end."""
    is_causal = network.kind == "causal"
    # A causal model writes at the right edge, so its padding is on the left; an encoder's places must not move.
    ids, mask = network.padded([each.source for each in samples], is_left=is_causal)
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if not is_causal:
        inputs["decoder_input_ids"] = torch.tensor([network.opening] * len(samples), device=network.device)
    how = {"generation_config": _config(network, decoding, ends), "logits_processor": _processors(decoding, samples)}
    try:
        written = network.model.generate(**inputs, **how)
    except ValueError as error:  # ProphetNet's cache in transformers 5.22, say
        line = str(error).partition("\n")[0]
        raise UsageError(f"transformers cannot write with {type(network.model).__name__}: {line}") from error
    start = ids.shape[1] if is_causal else len(network.opening)
    return [_until_end(row, ends) for row in written[:, start:].tolist()]


def _config(network: Network, decoding: Decoding, ends: Sequence[int]) -> Any:
    from transformers import GenerationConfig

    make: Any = GenerationConfig  # its signature is not typed
    return make(
        max_new_tokens=decoding.max_tokens,
        do_sample=False,  # sampling is done by noise
        num_beams=decoding.beams if decoding.method == "beam" else 1,
        length_penalty=1.0 if decoding.length_normalised else 0.0,  # the power of the length that a sum is divided by
        eos_token_id=list(ends) or None,
        pad_token_id=network.pad,
        decoder_start_token_id=next(iter(network.opening), None),
    )


def _processors(decoding: Decoding, samples: Sequence[Sample]) -> Any:
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    if decoding.method != "sample":
        return LogitsProcessorList()
    chosen: list[Any] = [TemperatureLogitsWarper(float(decoding.temperature))]
    chosen += [TopKLogitsWarper(decoding.top_k)] if decoding.top_k else []
    chosen += [TopPLogitsWarper(decoding.top_p)] if decoding.top_p < 1 else []
    return LogitsProcessorList([*chosen, Gumbel(decoding.seed, samples)])


def _generator(seed: int, ids: Sequence[int]) -> torch.Generator:
    digest = hashlib.blake2b(f"{seed}:{','.join(map(str, ids))}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def _until_end(ids: Sequence[int], ends: Sequence[int]) -> list[int]:
    length = next((k for k, token in enumerate(ids) if token in ends), len(ids))
    return list(ids[:length])
