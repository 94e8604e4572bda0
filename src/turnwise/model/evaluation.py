"""How good a network is on held-out dialogues: perplexity of all responses, BLEU-2 of some generated ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from turnwise.corpus import Corpus, Sample, samples
from turnwise.metrics import Options, Pairs, measure
from turnwise.model.batching import batches, collate_all
from turnwise.model.examples import Examples
from turnwise.model.protocol import Decoding, DialogueModel
from turnwise.model.vocabulary import Vocabulary

LARGEST = 700.0  # whose exponential is still a number


def perplexity_of(
    objective: nn.Module,
    examples: Examples,
    *,
    batch_size: int,
    device: torch.device,
    context_tokens: int | None = None,
) -> float:
    """The exponential of the mean cross-entropy of a response token, over all of them."""
    rows = batches(examples, batch_size=batch_size, context_tokens=context_tokens)
    total = torch.zeros((), dtype=torch.float64, device="cpu" if device.type == "mps" else device)
    with torch.no_grad():
        for batch in collate_all(examples, rows, device=device, context_tokens=context_tokens):
            loss, _ = objective(batch)  # of a token
            total += loss.to(total) * batch.response_length.sum().to(total)
    mean = total.item() / int(examples.steps.sum())
    return math.inf if mean > LARGEST else math.exp(mean)


@dataclass(frozen=True, eq=False)
class Questions:
    """Some held-out contexts, evenly spread over the corpus, with the responses that were given."""

    contexts: Sequence[Sequence[str]] = field(default_factory=list)
    references: Sequence[str] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus, *, most: int, context_turns: int | None = None) -> Questions:
        """At most so many samples of a corpus, without drawing at random."""
        found = samples(corpus, context_turns=context_turns)
        places = set(np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)).tolist())
        kept: list[Sample] = [sample for place, sample in enumerate(found) if place in places] if places else []
        return cls([sample.context for sample in kept], [sample.response for sample in kept])

    def bleu_2(self, model: DialogueModel, vocabulary: Vocabulary) -> float:
        """BLEU-2 in percent of greedily generated responses, without case, references written as the model writes."""
        if not self.references:
            return math.nan
        responses = model.generate(self.contexts, decoding=Decoding())
        pairs = Pairs(responses, [vocabulary.normalise(one) for one in self.references])
        return measure(pairs, ["bleu-2"], Options(lowercase=True))["bleu-2"].value()
