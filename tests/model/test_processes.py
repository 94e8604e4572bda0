"""Several processes train what one trains: the same objective, whoever computes which part of a batch."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dialoscope.corpus import Corpus, Dialogue, Turn, load, write
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.model import Recipe, Structure, run_training
from dialoscope.model.examples import Examples

SETTINGS = Structure(attention="dynamic", layers=1, width=8, embedding=8, vocabulary=60, context_tokens=20)
RECIPE = Recipe("sgd", 0.5, epochs=3, batch_size=3, loss_over="responses", clip=2.0)
ROOT = str(Path(__file__).parents[2])
SCRIPT = """
import sys
import torch
from tests.model.test_processes import trained
from dialoscope.corpus import load

torch.set_num_threads(1)
trained(load(sys.argv[1]), sys.argv[2], weight=float(sys.argv[3]))
"""


def three_responses() -> Corpus:
    """One batch of 1, 5 and 20 words: one process computes 23 of 29 tokens with their ends, but 2 of 3 samples."""
    turns = [
        ("tea or rice ?", "tea"),
        ("bread or milk ?", "milk " * 5),
        ("salt or fish ?", "fish and salt " * 6 + "fish !"),
    ]
    made = [
        Dialogue((Turn("A", "good day"), Turn("B", question), Turn("A", answer)), id=f"{split}-{number}", split=split)
        for split in ("train", "validation")
        for number, (question, answer) in enumerate(turns)
    ]
    return Corpus.of(made, name="three")


def longest(examples: Examples, rng: np.random.Generator) -> Examples:
    """Distractions in the examples that have a History."""
    return InsertDistractions(1.0)(examples.take(np.nonzero(examples.utterances == 2)[0]), rng)


def trained(corpus: Corpus, out: str | Path, *, weight: float) -> None:
    """Three steps of one batch each."""
    options = {"transform": longest, "extra_loss": AttentionLoss(weight, "sum"), "bleu_samples": 2}
    run_training(corpus, SETTINGS, RECIPE, out=out, device="cpu", seed=1, **options)  # type: ignore[arg-type]


def in_two_processes(corpus: Path, out: Path, weight: float) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([ROOT, *sys.path])}
    command = [*launch, sys.executable, "-c", SCRIPT, str(corpus), str(out), str(weight)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this PyTorch has no gloo")
def test_two_processes_train_the_weights_of_one(tmp_path: Path) -> None:
    write(three_responses(), tmp_path / "three.parquet", to="parquet")
    trained(load(tmp_path / "three.parquet"), tmp_path / "one", weight=20.0)
    in_two_processes(tmp_path / "three.parquet", tmp_path / "two", weight=20.0)
    one, two = (load_file(tmp_path / name / "last" / "weights.safetensors") for name in ("one", "two"))
    start = load_file(tmp_path / "one" / "untrained" / "weights.safetensors")
    for name, weights in one.items():
        torch.testing.assert_close(two[name], weights, atol=1e-5, rtol=1e-4)
        assert not torch.equal(weights, start[name])
    losses = []
    for name in ("one", "two"):
        with (tmp_path / name / "log.csv").open(newline="") as file:
            losses.append([float(row[key]) for row in list(csv.DictReader(file))[1:] for key in ("loss", "extra_loss")])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert min(losses[0]) > 0
