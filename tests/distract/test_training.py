"""The attention loss on the sequence-to-sequence family: its gradient reaches whatever makes the attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from turnwise.corpus import generate
from turnwise.distract import AttentionLoss, InsertDistractions
from turnwise.errors import UsageError
from turnwise.model import Vocabulary, preset
from turnwise.model.batch import Batch
from turnwise.model.batching import collate_examples
from turnwise.model.examples import examples_of
from turnwise.model.network import Seq2Seq


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Real contexts with two distractions each."""
    corpus = generate(dialogues=10, seed=2).split("train")
    texts = [text for dialogue in corpus for text in dialogue.texts]
    examples = examples_of(corpus, Vocabulary.of(texts, size=95), context_turns=3)
    distracted = InsertDistractions(1.0)(examples, np.random.default_rng(0))
    return collate_examples(distracted, np.arange(24))


def network(name: str) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(replace(preset(name).settings, layers=1, width=16, embedding=16, vocabulary=100, dropout=0.0))


@pytest.mark.parametrize("name", ["non-hier", "static-ui", "dynamic-ui", "bilstm-attn", "hred", "transformer"])
def test_the_loss_alone_takes_attention_away_from_distractions(name: str, batch: Batch) -> None:
    trained, loss = network(name), AttentionLoss(reduction="sum")
    optimiser = torch.optim.Adam(trained.parameters(), lr=0.05)
    found = []
    for _ in range(25):
        value = loss(trained(batch, attention=True), batch)
        found.append(value.item())
        optimiser.zero_grad()
        torch.autograd.backward(value)
        optimiser.step()
    assert found[-1] < 0.6 * found[0]


def test_a_preset_without_attention_is_told_what_to_do(batch: Batch) -> None:
    with pytest.raises(UsageError, match="--no-attention-loss"):
        AttentionLoss()(network("lstm")(batch, attention=True), batch)
