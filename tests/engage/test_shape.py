from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.engage.settings import ACTIVATIONS, POOLINGS
from dialoscope.engage.shape import PAPER, Recipe, Shape
from dialoscope.errors import UsageError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "meen"}, "Unknown pooling 'meen'. Did you mean 'mean'?"),
        ({"activation": "relu"}, "Unknown activation 'relu'. Known: clamp, sigmoid."),
        ({"history": -1}, "A history has 0 turns or more, found -1."),
        ({"tokens": 2}, "A text has at least 3 tokens, found 2."),
        ({"classes": 1}, "Give 2 classes or more, found 1."),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Shape(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimiser": "adam"}, "Unknown optimiser 'adam'. Did you mean 'adamw'?"),
        ({"mixing": "by corpus"}, "Unknown mixing 'by corpus'. Did you mean 'by-corpus'?"),
        ({"schedule": "linea"}, "Unknown schedule 'linea'. Did you mean 'linear'?"),
        ({"steps": 0}, "Steps, turns of a batch and steps between evaluations must be 1 or more."),
        ({"batch_turns": 0}, "Steps, turns of a batch and steps between evaluations must be 1 or more."),
        ({"evaluate_every": 0}, "Steps, turns of a batch and steps between evaluations must be 1 or more."),
        ({"warmup": -1}, "A warm-up has 0 steps or more, found -1."),
        ({"patience": 0}, "Give a patience of 1 evaluation or more."),
        ({"rate": 0.0}, "Learning rates, the clip and the scale of the loss must be above 0."),
        ({"clip": -1.0}, "Learning rates, the clip and the scale of the loss must be above 0."),
    ],
)
def test_recipes_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe(**options)
    assert str(caught.value) == message


@given(
    st.builds(
        Shape,
        history=st.integers(0, 9),
        is_flat=st.booleans(),
        pooling=st.sampled_from(POOLINGS),
        activation=st.sampled_from(ACTIVATIONS),
        classes=st.none() | st.integers(2, 20),
        tokens=st.integers(3, 512),
    )
)
def test_settings_survive_json(settings: Shape) -> None:
    assert Shape.from_dict(settings.to_dict()) == settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"history": "2"}, "Setting 'history' must be int, found '2'."),
        ({"history": True}, "Setting 'history' must be int, found True."),
        ({"tokens": 128.0}, "Setting 'tokens' must be int, found 128.0."),
        ({"is_flat": 1}, "Setting 'is_flat' must be bool, found 1."),
        ({"classes": "5"}, "Setting 'classes' must be int, found '5'."),
        ({"pooling": None}, "Setting 'pooling' must be str, found None."),
        ({"histori": 2}, "Unknown setting 'histori'. Did you mean 'history'?"),
    ],
)
def test_settings_of_another_type_or_name_are_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Shape.from_dict(given)
    assert str(caught.value) == message


def test_a_flat_history_is_read_and_not_averaged() -> None:
    assert (Shape(history=3).averaged, Shape(history=3, is_flat=True).averaged) == (3, 0)


def test_the_layer_has_an_output_for_each_class_or_one() -> None:
    assert (Shape().outputs, Shape(classes=5).outputs) == (1, 5)


def test_names_on_record_depend_on_these_words() -> None:
    shown = "Settings(history=2, is_flat=False, pooling='mean', activation='clamp', classes=None, tokens=128)"
    assert Shape(history=2).words == shown


def test_signatures_name_the_history_and_what_is_not_as_usual() -> None:
    assert Shape().signed() == {"history": 0}
    assert Shape(2, pooling="max").signed() == {"history": 2, "pooling": "max"}


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        ("linear", [1 / 4, 2 / 4, 3 / 4, 4 / 4, 6 / 6, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0]),
        ("constant", [1 / 4, 2 / 4, 3 / 4, 4 / 4, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_the_rate_rises_in_the_warm_up_and_then_falls_or_stays(schedule: Any, shares: list[float]) -> None:
    recipe = Recipe(steps=10, warmup=4, schedule=schedule)
    assert [recipe.rate_at(step) for step in range(11)] == pytest.approx(shares)


def test_without_a_warm_up_the_first_step_has_the_whole_rate() -> None:
    assert [Recipe(steps=4, warmup=0).rate_at(step) for step in range(4)] == [1, 0.75, 0.5, 0.25]


def test_the_paper_recipe_is_that_of_appendix_a3() -> None:
    assert (PAPER.optimiser, PAPER.rate, PAPER.steps, PAPER.warmup) == ("sgd", 5e-2, 50_000, 5_000)
    assert (PAPER.batch_turns, PAPER.clip, PAPER.schedule) == (20, 0.1, "constant")
