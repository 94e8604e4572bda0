"""Killed at any moment, resumed, and in the end byte for byte the run that was never broken."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dialoscope.corpus import Corpus, load, write
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.errors import ModelError, OutputError, UsageError
from dialoscope.model import Recipe, Structure, run_training, training
from dialoscope.model.batch import Batch, Output
from dialoscope.model.examples import Examples
from dialoscope.model.log import Moment
from dialoscope.model.run import Plan, State, check_same_run

# Looks and saves every other batch, tells where it is, and lets itself be killed there.
SCRIPT = """
import json, sys, time
from dialoscope.corpus import load
from dialoscope.distract import AttentionLoss, InsertDistractions
from dialoscope.model import Recipe, Structure, run_training, training

def tell(moment):
    print(moment.epoch, moment.done, flush=True)
    time.sleep(0.05)

corpus, out, settings, recipe = sys.argv[1:]
training.LOOK_EVERY = 2
run_training(load(corpus), Structure(**json.loads(settings)), Recipe(**json.loads(recipe)), out=out, device="cpu",
      seed=3, bleu_samples=2, resume=True, save_seconds=0.0, progress=tell,
      transform=InsertDistractions(0.7), extra_loss=AttentionLoss())
"""
FILES = ("weights.safetensors", "optimiser.safetensors", "vocabulary.json")


def run(corpus: Corpus, settings: Structure, recipe: Recipe, out: Path, **options: Any) -> None:
    distracted = {"transform": InsertDistractions(0.7), "extra_loss": AttentionLoss(), "seed": 3, "bleu_samples": 2}
    run_training(corpus, settings, recipe, out=out, device="cpu", **{**distracted, **options})


def killed_at(place: str, command: list[str]) -> bool:
    """Run until it says that it is at this place, then kill it with no chance to clean up."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == place:
            process.send_signal(signal.SIGKILL)
            break
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def test_killed_twice_and_resumed_is_the_unbroken_run(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    write(corpus, tmp_path / "shop.parquet", to="parquet")
    shop = load(tmp_path / "shop.parquet")
    run(shop, settings, recipe, tmp_path / "whole")
    values = [json.dumps(one.to_dict()) for one in (settings, recipe)]
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "shop.parquet"), str(tmp_path / "broken"), *values]
    assert killed_at("1 4", command)  # within the first epoch
    assert killed_at("2 6", command)  # within the second, after it had been resumed in the first
    state = json.loads((tmp_path / "broken" / "last" / "training.json").read_text())
    assert (state["epoch"], state["done"]) in [(2, 4), (2, 6)]
    run(shop, settings, recipe, tmp_path / "broken", resume=True)
    for name in ("untrained", "epoch-001", "epoch-002", "epoch-003", "best", "last"):
        assert contents(tmp_path / "whole" / name) == contents(tmp_path / "broken" / name), name
    assert {"optimiser.safetensors"} <= contents(tmp_path / "broken" / "last").keys()


class Interrupted(Exception):
    """Stands for whatever stops a run within this process."""


def interrupted_at(epoch: int, done: int) -> Any:
    def progress(moment: Moment) -> None:
        if (moment.epoch, moment.done) == (epoch, done) and moment.perplexity is None:
            raise Interrupted

    return progress


@pytest.mark.parametrize(("optimiser", "warmup"), [("sgd", 0), ("adam", 0), ("adam", 15)])
def test_a_run_stopped_within_an_epoch_goes_on_from_the_last_one(
    optimiser: Any, warmup: int, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    chosen = replace(recipe, optimiser=optimiser, warmup=warmup, epochs=2, halve_when_stalled=True)
    run(corpus, settings, chosen, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(corpus, settings, chosen, tmp_path / "broken", progress=interrupted_at(2, 9))
    run(corpus, settings, chosen, tmp_path / "broken", resume=True)
    assert contents(tmp_path / "whole" / "last") == contents(tmp_path / "broken" / "last")


def test_the_log_of_a_resumed_run_has_no_row_twice(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "LOOK_EVERY", 4)
    with pytest.raises(Interrupted):
        run(corpus, settings, recipe, tmp_path / "run", progress=interrupted_at(2, 8))
    with (tmp_path / "run" / "log.csv").open("a") as file:
        file.write("2,1")  # a line that was being written
    run(corpus, settings, recipe, tmp_path / "run", resume=True)
    with (tmp_path / "run" / "log.csv").open(newline="") as file:
        found = [(row["epoch"], row["step"]) for row in csv.DictReader(file)]
    steps = ["0", "4", "8", "9", "13", "17", "18", "22", "26", "27"]
    assert found == [(str(max(0, int(step) - 1) // 9 + (step != "0")), step) for step in steps]


def response_tokens(output: Output, batch: Batch) -> torch.Tensor:
    """An extra loss that differs from batch to batch and has no gradient."""
    return batch.response_length.float().mean()


def test_the_losses_in_a_resumed_log_are_those_of_the_unbroken_run(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "LOOK_EVERY", 4)
    options: dict[str, Any] = {"extra_loss": response_tokens, "save_seconds": 0.0}
    run(corpus, settings, recipe, tmp_path / "whole", **options)
    with pytest.raises(Interrupted):  # the last checkpoint is of the fourth batch of the second epoch
        run(corpus, settings, recipe, tmp_path / "broken", progress=interrupted_at(2, 8), **options)
    run(corpus, settings, recipe, tmp_path / "broken", resume=True, **options)
    names = ("epoch", "step", "loss", "extra_loss", "perplexity")
    found = {}
    for name in ("whole", "broken"):
        with (tmp_path / name / "log.csv").open(newline="") as file:
            found[name] = [tuple(row[column] for column in names) for row in csv.DictReader(file)]
    assert len(found["whole"]) == 10
    assert found["broken"] == found["whole"]
    assert len({row[3] for row in found["whole"]}) > 3


def test_a_state_from_before_the_extra_loss_was_counted_is_read(tmp_path: Path) -> None:
    values = State(0.5, epoch=2, step=9).to_dict()
    older = {name: value for name, value in values.items() if name not in ("extra_loss", "samples")}
    assert State.from_dict(older, path=tmp_path) == State(0.5, epoch=2, step=9)
    with pytest.raises(ModelError, match="other names: step"):
        State.from_dict({name: value for name, value in older.items() if name != "step"}, path=tmp_path)


def test_many_layers_are_resumed(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    deep = replace(settings, layers=20, width=4, embedding=4)
    run(corpus, deep, replace(recipe, epochs=1, batch_size=72), tmp_path / "run")
    run(corpus, deep, replace(recipe, epochs=2, batch_size=72), tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "epoch-002").is_dir()


# Kills itself between the two renames that put the second folder of this name in the place of the first.
KILLED_BETWEEN = """
import os, signal
from dialoscope import files

move, replaced = files._move, []

def killed(folder, place):
    if place.name == NAME and folder.name.startswith(files.MARK) and not place.exists():
        replaced.append(place)
        if len(replaced) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return move(folder, place)

files._exchange = lambda new, place: False
files._move = killed
"""


@pytest.mark.parametrize(("name", "epochs"), [("last", 1), ("best", 2)])
def test_killed_between_two_renames_it_goes_on_from_the_older_checkpoint(
    name: str, epochs: int, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    short = replace(recipe, epochs=epochs)
    write(corpus, tmp_path / "shop.parquet", to="parquet")
    shop = load(tmp_path / "shop.parquet")
    run(shop, settings, short, tmp_path / "whole")
    values = [json.dumps(one.to_dict()) for one in (settings, short)]
    script = f"NAME = {name!r}\n{KILLED_BETWEEN}{SCRIPT}"
    command = [sys.executable, "-c", script, str(tmp_path / "shop.parquet"), str(tmp_path / "broken"), *values]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=300).returncode == -signal.SIGKILL
    assert not (tmp_path / "broken" / name).exists()
    with pytest.raises(OutputError, match="Give --resume"):
        run(shop, settings, short, tmp_path / "broken")
    run(shop, settings, short, tmp_path / "broken", resume=True)
    for kept in ("last", "best"):
        assert contents(tmp_path / "whole" / kept) == contents(tmp_path / "broken" / kept)
    assert not list((tmp_path / "broken").glob(".*"))


def marked(examples: Examples, rng: np.random.Generator) -> Examples:
    """A transform that is a plain function."""
    return examples.take(np.arange(8))


class Kept:
    """A transform whose object has no repr of its own."""

    def __call__(self, examples: Examples, rng: np.random.Generator) -> Examples:
        return examples

    def some(self, examples: Examples, rng: np.random.Generator, count: int = 8) -> Examples:
        return examples.take(np.arange(count))


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (marked, "<function marked>"),
        (Kept(), "Kept object>"),
        (Kept().some, "<bound method Kept.some of"),
        (partial(Kept().some, count=4), "count=4"),
        (InsertDistractions(0.7), "InsertDistractions(probability=0.7, most=2)"),
    ],
)
def test_a_transform_has_the_same_name_in_every_process(transform: Any, words: str, corpus: Corpus) -> None:
    named = Plan(Structure(), Recipe(), transform=transform).origin(corpus)["transform"]
    assert words in named
    assert "0x" not in named


@pytest.mark.parametrize("given", [lambda examples, rng: examples, partial(lambda a, b, c: b, 0)])
def test_what_has_no_name_is_refused_before_anything_is_trained(
    given: Any, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="Give a function with a name"):
        run(corpus, settings, recipe, tmp_path / "run", transform=given)
    assert not (tmp_path / "run").exists()


def test_more_epochs_can_be_asked_for(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    run(corpus, settings, replace(recipe, epochs=2), tmp_path / "whole")
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "grown")
    run(corpus, settings, replace(recipe, epochs=2), tmp_path / "grown", resume=True)
    assert contents(tmp_path / "whole" / "last") == contents(tmp_path / "grown" / "last")


def test_a_finished_run_is_left_as_it_is(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run")
    before = contents(tmp_path / "run" / "last")
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run", resume=True)
    assert contents(tmp_path / "run" / "last") == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "seed was 3 and is now 4"),
        ({"transform": None}, "transform was InsertDistractions"),
        ({"extra_loss": AttentionLoss(2.0)}, "extra_loss was AttentionLoss"),
        ({"context_turns": 1}, "context_turns was None and is now 1"),
    ],
)
def test_another_run_is_not_taken_for_this_one(
    change: dict[str, Any], message: str, corpus: Corpus, settings: Structure, recipe: Recipe, begun: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        run(corpus, settings, recipe, begun, resume=True, **change)


@pytest.fixture(scope="module")
def begun(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("begun") / "run"
    run(corpus, settings, replace(recipe, epochs=1), out)
    return out


def test_other_settings_or_another_corpus_are_another_run(
    corpus: Corpus, settings: Structure, recipe: Recipe, begun: Path
) -> None:
    with pytest.raises(UsageError, match=r"settings\.width was 12 and is now 16"):
        run(corpus, replace(settings, width=16), recipe, begun, resume=True)
    with pytest.raises(UsageError, match=r"recipe\.batch_size was 8 and is now 4"):
        run(corpus, settings, replace(recipe, batch_size=4), begun, resume=True)
    with pytest.raises(UsageError, match="corpus was shop@"):
        run(corpus[1:], settings, recipe, begun, resume=True)


def test_a_damaged_state_is_one_line(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run")
    (tmp_path / "run" / "last" / "training.json").write_text("{}")
    with pytest.raises(ModelError, match=r"training\.json: expected"):
        run(corpus, settings, recipe, tmp_path / "run", resume=True)


def test_a_run_of_a_version_without_a_setting_had_its_usual_value(tmp_path: Path, corpus: Corpus) -> None:
    now = Plan(Structure(), Recipe()).origin(corpus)
    before = {**now, "recipe": {name: value for name, value in now["recipe"].items() if name != "warmup"}}
    check_same_run(before, now, out=tmp_path)
    with pytest.raises(UsageError, match=r"recipe\.warmup was 0 and is now 9"):
        check_same_run(before, Plan(Structure(), Recipe(warmup=9)).origin(corpus), out=tmp_path)
