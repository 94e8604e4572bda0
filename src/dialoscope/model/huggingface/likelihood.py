"""Log-likelihood of responses, with logits for their own places only: never context × vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from dialoscope.model.huggingface.batches import Network
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Likelihood


@torch.inference_mode()
def likelihoods(network: Network, samples: Sequence[Sample]) -> list[Likelihood]:
    """The sum of log p over each response's tokens, its end included."""
    sequences, places = network.written(samples)
    ids, mask = network.padded(sequences)
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if network.kind == "encoder-decoder":
        source, seen = network.padded([each.source for each in samples])
        inputs = {"input_ids": source, "attention_mask": seen, "decoder_input_ids": ids}
    with OutputLayer(network, places) as head:
        return head.likelihoods(network.model(**inputs, use_cache=False).logits, samples)


class OutputLayer:
    """While it is entered, a model's output layer sees the places that predict responses, and no others.

    What a model does to its logits afterwards stays as it is.
    """

    def __init__(self, network: Network, places: Sequence[Sequence[int]]) -> None:
        self.head, self.device = network.model.get_output_embeddings(), network.device
        rows = torch.tensor([row for row, some in enumerate(places) for _ in some], dtype=torch.long)
        self.where = (rows, torch.tensor([place for some in places for place in some], dtype=torch.long))
        self.is_done = False

    def __enter__(self) -> Self:
        self.handle = None if self.head is None else self.head.register_forward_pre_hook(self._choose)
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            self.handle.remove()

    def likelihoods(self, logits: Tensor, samples: Sequence[Sample]) -> list[Likelihood]:
        """Of each sample's response, from what the model gave."""
        chosen = logits[0] if self.is_done else logits[self.where]  # (tokens of all responses, vocabulary)
        targets = torch.tensor([token for each in samples for token in each.target], dtype=torch.long)
        losses = torch.nn.functional.cross_entropy(chosen.float(), targets.to(self.device), reduction="none")
        totals = torch.zeros(len(samples), dtype=torch.float64).index_add_(0, self.where[0], -losses.double().cpu())
        return [Likelihood(float(total), len(each.target)) for total, each in zip(totals, samples, strict=True)]

    def _choose(self, _: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if (
            inputs[0].dim() != 3
        ):  # ProphetNet predicts several tokens at once: then its logits are chosen from, all made
            return inputs
        self.is_done = True
        return (inputs[0][self.where].unsqueeze(0), *inputs[1:])  # (1, tokens, width)
