"""How hard equation 9 pulls at attention beside cross-entropy, before anything is learnt.

    python examples/attention_pull.py dailydialog/

One batch of real samples with distractions put in (probability 0.7), presets at the paper's size as they start. The
norm of the gradient of each loss with respect to log attention; the ratio says how many times as hard the attention
loss (mean, weight 1) pulls.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dialoscope.corpus import load
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.model import Vocabulary, preset
from dialoscope.model.attention import Scorer
from dialoscope.model.batching import collate_examples
from dialoscope.model.examples import examples_of
from dialoscope.model.seq2seq import Seq2Seq

SAMPLES = 64


def pulls(name: str, data: str) -> tuple[float, float]:
    """Norms of both gradients."""
    training = load(data).split("train")[:500]
    vocabulary = Vocabulary.of(training.turn_column("text").to_pylist(), size=25_000)
    torch.manual_seed(0)
    network = Seq2Seq(replace(preset(name).settings, vocabulary=len(vocabulary))).eval()
    rng = np.random.default_rng(0)
    put_in = InsertDistractions(0.7)(examples_of(training, vocabulary), rng)
    batch = collate_examples(put_in, rng.permutation(len(put_in))[:SAMPLES])
    seen: list[Tensor] = []  # log attention, as the network computes and uses it
    attention = next(module for module in network.modules() if isinstance(module, Scorer))
    attention.register_forward_hook(lambda module, given, found: seen.append(found[1]))
    output = network(batch)
    losses = network.loss(output, batch), AttentionLoss()(output, batch)
    gradients = [torch.autograd.grad(loss, seen[0], retain_graph=True)[0] for loss in losses]
    return gradients[0].norm().item(), gradients[1].norm().item()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a corpus with a training split")
    parser.add_argument("--presets", nargs="+", default=["static", "static-ui"])
    arguments = parser.parse_args()
    print("| preset | cross-entropy | attention loss | times |\n|---|--:|--:|--:|")
    for name in arguments.presets:
        plain, loss = pulls(name, arguments.data)
        print(f"| {name} | {plain:.1e} | {loss:.1e} | {loss / plain:,.0f} |")


if __name__ == "__main__":
    main()
