"""How good a network is on held-out dialogues: perplexity of all responses, BLEU-2 of some generated ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from dialoscope.corpus import Corpus, Sample, samples
from dialoscope.errors import unknown_name
from dialoscope.metrics.options import Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.score import METRICS, statistics_of
from dialoscope.model.batching import batches, collate_all
from dialoscope.model.examples import Examples
from dialoscope.model.protocol import Decoding, DialogueModel
from dialoscope.model.seq2seq import Seq2SeqModel
from dialoscope.model.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dialoscope.model.run import Validate

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
        """At most this many samples of a corpus, evenly spaced."""
        found = samples(corpus, context_turns=context_turns)
        places = set(np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)).tolist())
        kept: list[Sample] = [sample for place, sample in enumerate(found) if place in places] if places else []
        return cls([sample.context for sample in kept], [sample.response for sample in kept])

    def bleu_2(self, model: DialogueModel, vocabulary: Vocabulary) -> float:
        """BLEU-2 in percent of greedily generated responses, without case, references written as the model writes."""
        return self.scores(model, vocabulary, ["bleu-2"])["bleu-2"] if self.references else math.nan

    def scores(self, model: DialogueModel, vocabulary: Vocabulary, names: Sequence[str]) -> dict[str, float]:
        """Any metrics of the same responses."""
        responses = model.generate(self.contexts, decoding=Decoding())
        pairs = Pairs(responses, [vocabulary.normalise(one) for one in self.references])
        return {name: found.value() for name, found in statistics_of(pairs, names, Options(lowercase=True)).items()}


def further_metrics(
    validation: Corpus, names: Sequence[str], *, most: int = 200, context_turns: int | None = None
) -> Validate:
    """What `train` takes as `validate`: further metrics of generated responses in the log, to compare epochs by."""
    for name in names:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    questions = Questions.of(validation, most=most, context_turns=context_turns)

    def validate(model: DialogueModel) -> dict[str, float]:
        assert isinstance(model, Seq2SeqModel)  # the loop trains no others
        return questions.scores(model, model.vocabulary, names)

    return validate
