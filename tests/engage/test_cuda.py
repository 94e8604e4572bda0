"""Training and scoring on a GPU: the same seed gives the same weights, and so does a run that was killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engage.samples import MIDDLES, conversations, of
from tests.engage.test_tuning import Killed, are_equal

from dialoscope.engage import storage, tuning
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.fitting import Material, fit_head
from dialoscope.engage.live import Monitor
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.shape import Recipe, Shape
from dialoscope.engage.tuning import Moment, Tuned, tune

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

# Turns of all lengths up to the encoder's window: attention over more than one block of keys adds up in parts.
LONG = of([[" ".join(MIDDLES * repeats), "thank you, bye"] for repeats in range(1, 7)])
TRAINING, VALIDATION = [conversations(30, seed=1), LONG], conversations(10, seed=2)
RECIPE = Recipe(rate=1e-3, head_rate=1e-2, steps=12, warmup=3, batch_turns=32, evaluate_every=4)
Run = Callable[..., Tuned]


@pytest.fixture
def start(bert: Path) -> Predictor:
    return Predictor.untrained(Encoder.load(bert, device="cuda"), Shape(history=1), seed=3)


@pytest.fixture
def run(start: Predictor, tmp_path: Path) -> Run:
    def go(out: str, **options: Any) -> Tuned:
        usual = {"start": start, "recipe": RECIPE, "seed": 3}
        return tune(TRAINING, VALIDATION, out=tmp_path / out, **{**usual, **options})

    return go


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_same_seed_gives_the_same_weights_on_a_gpu(run: Run, dtype: str, tmp_path: Path) -> None:
    recipe = replace(RECIPE, dtype=dtype)  # type: ignore[arg-type]
    run("one", recipe=recipe)
    run("other", recipe=recipe)
    assert are_equal(*(storage.load(tmp_path / name / "last") for name in ("one", "other")))


def test_a_frozen_layer_stays_on_the_device_of_its_encoder(start: Predictor) -> None:
    made = fit_head(Material([conversations(30, seed=1)], VALIDATION), start=start)
    assert made.calibration is not None
    assert made.head.weight.device.type == start.encoder.device.type == "cuda"


@pytest.mark.parametrize("at", [5, 9])
def test_killed_and_resumed_on_a_gpu_is_the_unbroken_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    def kill(moment: Moment, _: int) -> None:
        if moment.step == at:
            raise Killed

    monkeypatch.setattr(tuning, "LOOK_EVERY", 1)
    unbroken = run("unbroken")
    with pytest.raises(Killed):
        run("broken", progress=kill)
    resumed = run("broken", resume=True)
    assert are_equal(*(storage.load(tmp_path / name / "last") for name in ("unbroken", "broken")))
    assert [one.validation for one in resumed.history] == [one.validation for one in unbroken.history]
    assert resumed.best_step == unbroken.best_step


def test_depth_is_learnt_on_a_gpu(run: Run) -> None:
    history = run("run").history
    assert (history[-1].validation or 0) < 0.6 * (history[0].validation or 0)


@pytest.mark.parametrize("history", [0, 2])
def test_scores_on_a_gpu_are_those_of_the_cpu_alone_together_or_live(bert: Path, history: int) -> None:
    near, far = (
        Predictor.untrained(Encoder.load(bert, device=device), Shape(history=history), seed=3)
        for device in ("cpu", "cuda")
    )
    dialogues = [list(one) for one in (*VALIDATION.dialogues, *LONG.dialogues)]
    together = np.concatenate(far.predict(dialogues))
    assert together == pytest.approx(np.concatenate(near.predict(dialogues)), abs=1e-4)
    assert np.concatenate([far.predict([one])[0] for one in dialogues]) == pytest.approx(together, abs=1e-5)
    monitor = Monitor(far)
    assert [monitor.hear(turn).score for turn in dialogues[-1]] == pytest.approx(
        far.predict(dialogues[-1:])[0].tolist(), abs=1e-5
    )
