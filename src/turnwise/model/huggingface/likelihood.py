"""Log-likelihood of responses, with logits for their own places only: never context × vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from turnwise.model.huggingface.batches import Network
from turnwise.model.huggingface.samples import Sample
from turnwise.model.protocol import Likelihood


@torch.inference_mode()
def likelihoods(network: Network, samples: Sequence[Sample]) -> list[Likelihood]:
    """The sum of log p over each response's tokens, its end included."""
    sequences, rows = network.written(samples)
    ids, mask = network.padded(sequences)
    batch = [k for k, row in enumerate(rows) for _ in row]
    where = (torch.tensor(batch), torch.tensor([place for row in rows for place in row]))
    targets = torch.tensor([token for each in samples for token in each.target], device=network.device)
    if not batch:
        return [Likelihood(0.0, 0) for _ in samples]
    logits = _logits(network, samples, ids, mask, where)  # (tokens of all responses, vocabulary)
    losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none").double().cpu()
    totals = torch.zeros(len(samples), dtype=torch.float64).index_add_(0, where[0], -losses)
    return [Likelihood(float(total), len(each.target)) for total, each in zip(totals, samples, strict=True)]


def _logits(
    network: Network, samples: Sequence[Sample], ids: Tensor, mask: Tensor, where: tuple[Tensor, Tensor]
) -> Tensor:
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if network.kind == "encoder-decoder":
        source, seen = network.padded([each.source for each in samples])
        inputs = {"input_ids": source, "attention_mask": seen, "decoder_input_ids": ids}
    with _only_places(network.model.get_output_embeddings(), where) as is_done:
        logits: Tensor = network.model(**inputs, use_cache=False).logits
    return logits[0] if is_done else logits[where]


@contextmanager
def _only_places(head: Any, where: tuple[Tensor, Tensor]) -> Iterator[list[bool]]:
    """Let the output layer see these places only; what a model does to its logits afterwards stays as it is."""
    is_done: list[bool] = []

    def choose(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        is_done.append(True)
        return (inputs[0][where].unsqueeze(0), *inputs[1:])  # (1, tokens, width)

    handle = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        yield is_done
    finally:
        if handle is not None:
            handle.remove()
