from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from tests.engage.samples import Counting, conversations, of

from dialoscope.engage.encoder import Encoder
from dialoscope.engage.examples import Examples, joined, shuffled
from dialoscope.engage.frozen import PENALTIES, fit_frozen
from dialoscope.engage.predictor import Predictor, window_means
from dialoscope.engage.shape import Shape

TRAINING, VALIDATION = conversations(60, seed=1), conversations(20, seed=2)


def averaged(given: Examples, encoder: Encoder, history: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Each turn's vector and those of its predecessors, averaged in a loop: (turns, width)."""
    rows = []
    for dialogue in given.dialogues:
        vectors = encoder.vectors(list(dialogue), Shape()).astype(np.float64)
        rows += [vectors[max(0, turn - history) : turn + 1].mean(0) for turn in range(len(dialogue))]
    return np.array(rows)


def error(made: Predictor, given: Examples) -> float:
    return float(np.square(np.concatenate(made.predict(list(given.dialogues))) - given.targets).mean())


# --- The optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [0, 2])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_the_layer_is_scikit_learns_ridge(
    encoder: Encoder, history: int, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.engage.frozen.PENALTIES", (penalty,))
    made = fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape(history))
    expected = Ridge(alpha=penalty).fit(averaged(TRAINING, encoder, history), TRAINING.targets)
    assert made.head.weight[0].tolist() == pytest.approx(expected.coef_.tolist(), abs=1e-4)
    assert made.head.bias.item() == pytest.approx(expected.intercept_, abs=1e-4)


def test_the_layer_is_the_least_squares_of_the_augmented_system(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.engage.frozen.PENALTIES", (10.0,))
    made = fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape(1))
    vectors = averaged(TRAINING, encoder, 1)
    left = np.block([[vectors, np.ones((len(vectors), 1))], [np.sqrt(10.0) * np.eye(32), np.zeros((32, 1))]])
    solution = np.linalg.lstsq(left, np.concatenate([TRAINING.targets, np.zeros(32)]))[0]
    assert [*made.head.weight[0].tolist(), made.head.bias.item()] == pytest.approx(solution.tolist(), abs=1e-4)


@pytest.mark.parametrize("is_noise", [False, True])
def test_the_penalty_is_the_one_that_serves_validation_best(encoder: Encoder, is_noise: bool) -> None:
    few = conversations(12, seed=4)
    noise = np.random.default_rng(3).random(len(few.targets)).astype(np.float32)
    given = replace(few, targets=noise) if is_noise else few
    made = fit_frozen(given, VALIDATION, encoder=encoder, settings=Shape())
    errors = {}
    for penalty in PENALTIES:
        ridge = Ridge(alpha=penalty).fit(averaged(given, encoder, 0), given.targets)
        scores = np.clip(ridge.predict(averaged(VALIDATION, encoder, 0)), 0, 1)
        errors[penalty] = np.square(scores - VALIDATION.targets).mean()
    assert made.origin["penalty"] == min(errors, key=lambda penalty: errors[penalty])
    assert error(made, VALIDATION) == pytest.approx(min(errors.values()), abs=1e-5)
    assert (made.origin["penalty"] > 10) == is_noise  # what is learnt from noise had better be forgotten


def test_dialogues_that_calibrate_do_not_choose_the_penalty(encoder: Encoder) -> None:
    """They would take what learnt their noise by heart; what has to serve others forgets it."""
    few = conversations(12, seed=4)
    noise = replace(few, targets=np.random.default_rng(3).random(len(few.targets)).astype(np.float32))
    by_heart = joined([noise] * 20)
    given = [(VALIDATION, None), (VALIDATION, by_heart), (joined([VALIDATION, by_heart]), None)]
    alone, both, wrong = (
        fit_frozen(noise, one, encoder=encoder, settings=Shape(), calibration=other) for one, other in given
    )
    assert both.origin["penalty"] == alone.origin["penalty"] > wrong.origin["penalty"]
    assert both.origin["validation_mse"] == alone.origin["validation_mse"]


@pytest.mark.parametrize("options", [{"history": 2}, {"activation": "sigmoid"}, {"classes": 5}], ids=str)
def test_a_layer_from_portions_is_that_of_all_turns_at_once(
    encoder: Encoder, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.engage.frozen.PENALTIES", (1.0, 100.0))
    targets = TRAINING.targets.copy()
    targets[::7] = np.nan  # turns without a target, as dialogue scores leave them
    given = replace(TRAINING, targets=targets)
    whole = fit_frozen(given, VALIDATION, encoder=encoder, settings=Shape(**options))
    monkeypatch.setattr("dialoscope.engage.frozen.TURNS_AT_ONCE", 5)
    pieces = fit_frozen(given, VALIDATION, encoder=encoder, settings=Shape(**options))
    assert pieces.origin["penalty"] == whole.origin["penalty"]
    assert torch.allclose(pieces.head.weight, whole.head.weight, atol=2e-3)


def test_no_more_averaged_vectors_exist_than_a_portion_has(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoscope.engage.frozen.TURNS_AT_ONCE", 6)
    sizes: list[int] = []

    def noted(values: torch.Tensor, *others: Any) -> torch.Tensor:
        sizes.append(len(values))
        return window_means(values, *others)

    monkeypatch.setattr("dialoscope.engage.frozen.window_means", noted)
    fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape(2))
    assert max(sizes) == 6  # dialogues have two to six turns


# --- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"activation": "sigmoid"}, {"classes": 2}, {"classes": 5}, {"classes": 10}, {"history": 1, "is_flat": True}],
    ids=str,
)
def test_what_can_be_told_apart_is_learnt(encoder: Encoder, options: dict[str, Any]) -> None:
    training, validation = (of([["hello there", "bye"], ["good morning", "good night"]] * 5) for _ in range(2))
    made = fit_frozen(training, validation, encoder=encoder, settings=Shape(**options))
    middle = {2: 0.25, 5: 0.1, 10: 0.05}.get(options.get("classes", 0), 0.0)  # of the lowest class
    expected = [[1 - middle, middle]] * 10
    np.testing.assert_allclose(made.predict(list(validation.dialogues)), expected, atol=0.05)


def test_depth_is_learnt_far_better_than_by_chance_and_shuffled_labels_teach_nothing(encoder: Encoder) -> None:
    spread = float(VALIDATION.targets.var())
    learnt = fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape())
    control = shuffled(TRAINING, np.random.default_rng(5))
    assert error(learnt, VALIDATION) < 0.4 * spread
    assert error(fit_frozen(control, VALIDATION, encoder=encoder, settings=Shape()), VALIDATION) > 0.8 * spread


def test_its_origin_names_data_and_encoder(encoder: Encoder) -> None:
    made = fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape())
    assert made.origin["training"] == f"toy@{TRAINING.fingerprint}"
    assert made.origin["encoder"] == f"tiny@{encoder.fingerprint}"
    assert made.origin["is_frozen"]
    assert made.encoder is encoder


# --- What is kept -----------------------------------------------------------------------------------------------------


def test_vectors_are_kept_by_texts_pooling_tokens_and_flat_history_but_not_by_an_averaged_one(
    counted: tuple[Encoder, Counting], tmp_path: Path
) -> None:
    encoder, counting = counted

    def encoded(training: Examples = TRAINING, **options: Any) -> int:
        before = counting.texts
        fit_frozen(training, VALIDATION, encoder=encoder, settings=Shape(**options), cache=tmp_path / "kept")
        return counting.texts - before

    assert encoded() > 0
    assert encoded() == 0
    assert encoded(history=3) == 0
    assert encoded(activation="sigmoid") == encoded(classes=5) == 0
    assert encoded(shuffled(TRAINING, np.random.default_rng(0))) == 0  # the control has the same texts
    assert encoded(pooling="max") > 0
    assert encoded(tokens=16) > 0
    assert encoded(is_flat=True) > 0  # cut from the other side
    assert encoded(is_flat=True, history=1) > 0
    assert encoded(is_flat=True, history=2) > 0
    assert encoded(is_flat=True, history=2) == 0
    assert encoded(of([["hello there", "bye"]])) == 2  # the validation turns are those of before


def test_kept_vectors_give_the_same_predictor(encoder: Encoder, tmp_path: Path) -> None:
    names = [
        fit_frozen(TRAINING, VALIDATION, encoder=encoder, settings=Shape(2), cache=cache).name
        for cache in (None, tmp_path, tmp_path)
    ]
    assert len(set(names)) == 1


def test_another_encoder_does_not_find_the_vectors_of_the_first(bert: Path, encoder: Encoder, tmp_path: Path) -> None:
    other = Encoder.load(bert)
    other.network.embeddings.LayerNorm.bias.data += 0.5
    for one in (encoder, other):
        fit_frozen(TRAINING, VALIDATION, encoder=one, settings=Shape(), cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2  # for each encoder one: both parts have the same few texts
