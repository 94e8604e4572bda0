"""The attention loss on the sequence-to-sequence family: its gradient reaches whatever makes the attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.errors import UsageError
from dialoscope.model import Recipe, Structure, Vocabulary, preset
from dialoscope.model.batch import Batch
from dialoscope.model.batching import collate_examples
from dialoscope.model.examples import examples_of
from dialoscope.model.network import Seq2Seq
from dialoscope.model.run import Data, Plan


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Real contexts with two distractions each."""
    corpus = generate(dialogues=10, seed=2).split("train")
    texts = [text for dialogue in corpus for text in dialogue.texts]
    examples = examples_of(corpus, Vocabulary.of(texts, size=95), context_turns=3)
    distracted = InsertDistractions(1.0)(examples, np.random.default_rng(0))
    return collate_examples(distracted, np.arange(24))


def test_distractions_are_spread_over_the_whole_history_however_little_of_it_is_read() -> None:
    """31 turns of nine words and an end mark; 100 tokens are read: the Query and the nine turns before it.

    A distraction before turn k (0 … 29, the Query) has 30 - k turns after it, and the other distraction where that
    comes later; it is read if those are nine at most.
    """
    turns = tuple(Turn("AB"[place % 2], "a b c d e f g h i") for place in range(31))
    dialogues = [
        Dialogue(turns, id=f"{split}-{n}", split=split) for split in ("train", "validation") for n in range(20)
    ]
    settings = Structure(attention="static", vocabulary=20, context_tokens=100)
    plan = Plan(settings, Recipe(), transform=InsertDistractions(1.0))
    data = Data.of(Corpus.of(dialogues), plan)
    found = []
    for seed in range(40):
        examples = data.epoch(plan, np.random.default_rng(seed))
        longest = collate_examples(examples, np.arange(29, len(examples), 30), context_tokens=100)  # 30 turns each
        found.append(longest.is_distraction.sum(dim=1).numpy())
    expected = np.mean(
        [(30 - k + (other >= k) <= 9) + (30 - other + (other < k) <= 9) for k in range(30) for other in range(30)]
    )
    assert np.mean(found) == pytest.approx(expected, abs=0.08)  # 0.58; of the turns that are read, nearly two would be
    assert int(examples.utterances.max()) <= 12  # what is never read is not kept


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
