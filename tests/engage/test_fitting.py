"""From material to a predictor: validation is encoded once, and what chooses does not calibrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engage.samples import Counting, conversations

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.engage import storage
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.examples import Examples, shuffled
from dialoscope.engage.fitting import (
    Material,
    fit_all,
    fit_head,
    halved,
    material_for,
    recipe_of,
    shape_of,
    start_of,
    train,
)
from dialoscope.engage.live import Calibration
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.settings import PredictorSettings
from dialoscope.engage.shape import PAPER_HUMAN_RATE, RECIPES, Recipe, Shape
from dialoscope.errors import UsageError

TRAINING, VALIDATION = conversations(40, seed=1), conversations(21, seed=2)
GIVEN = Material([TRAINING], VALIDATION)


def intervals(made: Predictor, held_out: Examples) -> Calibration:
    scores = np.concatenate(made.predict(list(held_out.dialogues)))
    return Calibration.of(scores, held_out.targets, held_out.positions)


def agree(one: Calibration | None, other: Calibration) -> bool:
    assert one is not None
    places = [(score, turn) for score in np.linspace(0, 1, 41).tolist() for turn in range(1, 7)]
    return bool(
        np.allclose([one.around(*place) for place in places], [other.around(*place) for place in places], atol=1e-5)
    )


def test_validation_is_split_by_whole_dialogues() -> None:
    first, second = halved(VALIDATION, seed=5)
    assert second is not None
    assert (len(first), len(second)) == (11, 10)
    together = sorted(map(tuple, [*first.dialogues, *second.dialogues]))
    assert together == sorted(map(tuple, VALIDATION.dialogues))
    for one in (first, second):
        assert len(one.targets) == len(one.texts) == one.starts[-1]
        assert one.targets[one.starts[:-1]].tolist() == [1.0] * len(one)
        assert one.targets[one.starts[1:] - 1].tolist() == [0.0] * len(one)


def test_the_seed_decides_who_calibrates() -> None:
    first, again, other = (halved(VALIDATION, seed=seed)[0].label for seed in (5, 5, 6))
    assert first == again != other


def test_a_single_validation_dialogue_chooses_and_gives_no_interval(encoder: Encoder) -> None:
    alone = VALIDATION.select([0])
    assert halved(alone)[1] is None
    made = fit_head(Material([TRAINING], alone), start=Predictor.untrained(encoder, Shape()))
    assert made.calibration is None


def test_every_text_is_encoded_once_by_a_frozen_fit(counted: tuple[Encoder, Counting]) -> None:
    encoder, counting = counted
    fit_head(GIVEN, start=Predictor.untrained(encoder, Shape(history=1)), seed=5)
    assert counting.texts == len(set(TRAINING.texts)) + len(set(VALIDATION.texts))


@pytest.mark.parametrize("options", [{}, {"history": 2}, {"history": 1, "is_flat": True}, {"classes": 5}], ids=str)
def test_a_frozen_fit_is_calibrated_by_the_half_that_did_not_choose(encoder: Encoder, options: dict[str, Any]) -> None:
    made = fit_head(GIVEN, start=Predictor.untrained(encoder, Shape(**options)), seed=5)
    choosing, calibrating = halved(VALIDATION, seed=5)
    assert calibrating is not None
    assert (made.origin["validation"], made.origin["calibration"]) == (choosing.label, calibrating.label)
    assert agree(made.calibration, intervals(made, calibrating))
    assert made.calibration != intervals(made, VALIDATION)


def test_a_tuned_predictor_is_calibrated_by_the_half_that_did_not_choose(
    predictor: Callable[..., Predictor], tmp_path: Path
) -> None:
    recipe = Recipe(rate=1e-3, steps=2, warmup=0, batch_turns=16, evaluate_every=1)
    made = fit_all(GIVEN, start=predictor(), out=tmp_path / "run", recipe=recipe, seed=5).predictor
    choosing, calibrating = halved(VALIDATION, seed=5)
    assert calibrating is not None
    assert (made.origin["validation"], made.origin["calibration"]) == (choosing.label, calibrating.label)
    assert agree(made.calibration, intervals(made, calibrating))
    assert agree(storage.load(tmp_path / "run").calibration, intervals(made, calibrating))
    again = fit_all(GIVEN, start=predictor(), out=tmp_path / "run", recipe=recipe, seed=5, resume=True).predictor
    assert agree(again.calibration, intervals(made, calibrating))


def test_weights_say_what_they_and_their_start_have_learnt(encoder: Encoder, tmp_path: Path) -> None:
    own, other = (one.dialogue_fingerprint for one in (TRAINING, VALIDATION))
    first = fit_head(GIVEN, start=Predictor.untrained(encoder, Shape()), seed=5)
    assert first.origin["learnt"] == {"toy": own}
    control = Material([shuffled(TRAINING, np.random.default_rng(0))], VALIDATION)
    assert fit_head(control, start=Predictor.untrained(encoder, Shape())).origin["learnt"] == {"toy": own}
    recipe = Recipe(rate=1e-3, steps=1, warmup=0, batch_turns=16, evaluate_every=1)
    renamed = Material([replace(VALIDATION, name="else")], VALIDATION)
    tuned = fit_all(renamed, start=first, out=tmp_path / "run", recipe=recipe)
    assert tuned.predictor.origin["learnt"] == {"toy": own, "else": other}
    again = fit_head(Material([VALIDATION], VALIDATION), start=first)
    assert again.origin["learnt"] == {"toy": "+".join(sorted([own, other]))}  # both, so that no split fits


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_material_knows_whether_its_labels_are_shuffled(is_shuffled: bool) -> None:
    made = [Dialogue((Turn("A", f"{n}"), Turn("B", "b"), Turn("A", "c")), str(n)) for n in range(40)]
    found = material_for(Corpus.of(made, name="made"), PredictorSettings(shuffled=is_shuffled))
    (training,) = found.training
    assert found.is_shuffled is is_shuffled
    assert (training.targets.tolist() == [1.0, 0.5, 0.0] * len(training)) is not is_shuffled


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_control_knows_on_disk_that_it_is_one(encoder: Encoder, tmp_path: Path, is_shuffled: bool) -> None:
    start, given = Predictor.untrained(encoder, Shape()), replace(GIVEN, is_shuffled=is_shuffled)
    recipe = Recipe(rate=1e-3, steps=2, warmup=0, batch_turns=16, evaluate_every=1)
    fit_head(given, start=start, out=tmp_path / "frozen")
    fit_all(given, start=start, out=tmp_path / "tuned", recipe=recipe)
    alone = replace(given, validation=VALIDATION.select([0]))  # which nothing calibrates
    fit_all(alone, start=start, out=tmp_path / "alone", recipe=recipe)
    for name in ("frozen", "tuned", "alone"):
        assert storage.load(tmp_path / name).is_shuffled is is_shuffled


def talks(count: int, *, splits: tuple[str, ...] = ("all",)) -> Corpus:
    """Dialogues that are all different, in these splits in turn."""
    made = [
        Dialogue(
            tuple(Turn("AB"[place % 2], f"talk {n} turn {place}") for place in range(3)),
            str(n),
            splits[n % len(splits)],
        )
        for n in range(count)
    ]
    return Corpus.of(made, name="made")


def test_a_corpus_of_one_split_is_split_80_10_10() -> None:
    given = material_for(talks(40), PredictorSettings(seed=3))
    assert (len(given.training[0]), len(given.validation)) == (32, 4)
    again, other = (material_for(talks(40), PredictorSettings(seed=seed)) for seed in (3, 4))
    assert again.validation.label == given.validation.label != other.validation.label


def test_a_limit_cuts_training_and_validation_after_splitting() -> None:
    whole, cut = (material_for(talks(40), PredictorSettings(limit=limit)) for limit in (None, 3))
    assert (len(cut.training[0]), len(cut.validation), len(whole.validation), cut.limit) == (3, 3, 4, 3)
    assert cut.training[0].texts == whole.training[0].texts[:9]
    assert cut.validation.texts == whole.validation.texts[:9]


@pytest.mark.parametrize(
    ("splits", "option"), [(("train", "test"), "validation_split"), (("validation", "test"), "train_split")]
)
def test_a_split_that_is_missing_names_the_option_that_helps(splits: tuple[str, ...], option: str) -> None:
    with pytest.raises(UsageError, match=rf"Name another with {option} \(--{option.replace('_', '-')}\)"):
        material_for(talks(40, splits=splits), PredictorSettings())


def test_each_of_several_corpora_is_split_by_itself() -> None:
    given = material_for([talks(40), talks(30, splits=("train", "validation", "test"))], PredictorSettings())
    assert list(map(len, given.training)) == [32, 10]
    assert len(given.validation) == 4 + 10


def test_dialogues_of_other_lengths_are_left_out() -> None:
    with pytest.raises(UsageError, match="made has no dialogue of 4 to any number of messages"):
        material_for(talks(40), PredictorSettings(least_turns=4))


@pytest.mark.parametrize("given", [None, [], ["made"], "made", 3])
def test_what_is_no_corpus_is_refused_in_one_line(given: Any) -> None:
    with pytest.raises(UsageError, match="train takes a Corpus or several"):
        material_for(given, PredictorSettings())


def test_settings_choose_the_shape_and_the_recipe() -> None:
    assert shape_of(PredictorSettings()) == Shape()
    chosen = PredictorSettings(history=2, flat=True, pooling="max", classes=5, tokens=64)
    assert shape_of(chosen) == Shape(2, is_flat=True, pooling="max", classes=5, tokens=64)
    assert recipe_of(PredictorSettings()) == RECIPES["default"]
    assert recipe_of(PredictorSettings(recipe="paper")) == RECIPES["paper"]
    assert recipe_of(PredictorSettings(recipe="paper", select="human", human="x")).rate == PAPER_HUMAN_RATE
    short = recipe_of(PredictorSettings(steps=100, rate=1e-4, patience=2, dtype="bfloat16"))
    assert (short.warmup, short.evaluate_every, short.rate, short.patience, short.dtype) == (
        10,
        10,
        1e-4,
        2,
        "bfloat16",
    )
    assert recipe_of(PredictorSettings(steps=100, warmup=0)).warmup == 0


def test_one_call_is_the_same_predictor_as_its_parts(bert: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": str(bert), "frozen": True, "history": 1, "seed": 5}
    made = train(talks(40), out=tmp_path / "made", work=tmp_path / "vectors", **options)
    settings = PredictorSettings(**options)
    assert made.name == fit_head(material_for(talks(40), settings), start=start_of(settings), seed=5).name
    assert storage.load(tmp_path / "made").name == made.name
    assert list((tmp_path / "vectors").iterdir())


def test_an_encoder_is_tuned_without_a_folder_of_its_own(bert: Path) -> None:
    moments: list[int] = []
    made = train(
        talks(20), encoder=str(bert), steps=2, batch_turns=16, on_moment=lambda moment: moments.append(moment.step)
    )
    assert (made.origin["steps"], moments) == (2, [1, 2])
    assert made.origin["validation_mse"] > 0
