from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.engage.samples import Counting

from dialoscope.engage.encoder import Encoder
from dialoscope.engage.predictor import Predictor, activated, class_of, loss_of, readings, window_means
from dialoscope.engage.settings import POOLINGS
from dialoscope.engage.shape import Shape

Make = Callable[..., Predictor]
SHOP = ["hello there", "hi, how are you?", "where is the old bridge?", "it is near the river", "thank you, bye"]
SHORT = ["good morning", "where is the station?"]

TURNS = st.lists(st.sampled_from(["hello", "the old bridge", "where is it?", "", "bye", "i see " * 8]), max_size=7)
SOME_SETTINGS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    history=st.integers(0, 5),
    pooling=st.sampled_from(POOLINGS),
    is_flat=st.booleans(),
    activation=st.sampled_from(["clamp", "sigmoid"]),
    classes=st.sampled_from([None, None, 5]),
    tokens=st.sampled_from([8, 64]),
)


# --- A slow reference -------------------------------------------------------------------------------------------------


def vector_of(predictor: Predictor, text: str) -> list[float]:
    """BERT(X): a text on its own through the network, then over its tokens one by one."""
    ids = predictor.encoder.read([text], predictor.settings)
    with torch.inference_mode():
        states = predictor.encoder.network.eval()(input_ids=torch.tensor(ids)).last_hidden_state[0].tolist()
    columns = [[token[place] for token in states] for place in range(len(states[0]))]
    pooled: dict[str, Callable[[list[float]], float]] = {
        "mean": lambda column: sum(column) / len(column), "cls": lambda column: column[0], "max": max, "min": min,
    }  # fmt: skip
    return [pooled[predictor.settings.pooling](column) for column in columns]


def expected_scores(predictor: Predictor, dialogue: Sequence[str]) -> list[float]:
    """Equations 2 to 4, turn by turn."""
    settings, scores = predictor.settings, []
    weights, biases = predictor.head.weight.tolist(), predictor.head.bias.tolist()
    for turn in range(len(dialogue)):
        window = dialogue[max(0, turn - settings.history) : turn + 1]
        vectors = [vector_of(predictor, text) for text in ([" ".join(window)] if settings.is_flat else window)]
        mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]  # (2)
        linear = [
            sum(w * x for w, x in zip(row, mean, strict=True)) + b for row, b in zip(weights, biases, strict=True)
        ]
        scores.append(expected_score(linear, settings))
    return scores


def expected_score(linear: Sequence[float], settings: Shape) -> float:
    if settings.classes is not None:
        total = sum(math.exp(one) for one in linear)
        middles = [(place + 0.5) / settings.classes for place in range(settings.classes)]
        return sum(math.exp(one) / total * middle for one, middle in zip(linear, middles, strict=True))
    one = linear[0]
    return min(max(one, 0.0), 1.0) if settings.activation == "clamp" else 1 / (1 + math.exp(-one))


@pytest.mark.parametrize(
    "options",
    [
        *({"history": history} for history in (0, 1, 2, 3, 5)),
        *({"history": 2, "pooling": pooling} for pooling in ("cls", "max", "min")),
        {"history": 2, "activation": "sigmoid"},
        *({"history": 1, "classes": classes} for classes in (2, 5, 10)),
        {"history": 2, "is_flat": True},
        {"history": 3, "is_flat": True, "pooling": "max", "activation": "sigmoid"},
    ],
    ids=str,
)
def test_scores_are_equations_2_to_4(predictor: Make, options: dict[str, Any]) -> None:
    made = predictor(**options)
    found = made.predict([SHOP, SHORT])
    for scores, dialogue in zip(found, (SHOP, SHORT), strict=True):
        assert scores.tolist() == pytest.approx(expected_scores(made, dialogue), abs=1e-5)
    assert len(set(np.concatenate(found).tolist())) == 7  # so it was no comparison of ends of the clamp


def test_the_clamp_is_equation_4() -> None:
    outputs = torch.tensor([[-3.0], [0.0], [0.4], [1.0], [2.5]])
    assert activated(outputs, Shape()).tolist() == pytest.approx([0, 0, 0.4, 1, 1])


# --- What a score does not depend on ----------------------------------------------------------------------------------


@hypothesis_settings(max_examples=40)
@given(SOME_SETTINGS, TURNS.filter(bool), st.lists(TURNS, max_size=4), st.data())
def test_a_turn_has_one_score_alone_among_others_and_as_its_dialogue_grows(
    predictor: Make, options: dict[str, Any], dialogue: list[str], others: list[list[str]], data: st.DataObject
) -> None:
    made = predictor(**options)
    alone = made.predict([dialogue])[0]
    place = data.draw(st.integers(0, len(others)))
    among = made.predict([*others[:place], dialogue, *others[place:]])[place]
    growing = made.rate([dialogue[: turn + 1] for turn in range(len(dialogue))])
    one_by_one = [made.rate([dialogue[: turn + 1]])[0] for turn in range(len(dialogue))]
    for scores in (among, growing, one_by_one):
        np.testing.assert_allclose(scores, alone, atol=1e-5)


def test_earlier_turns_than_the_history_do_not_matter(predictor: Make) -> None:
    made = predictor(history=1)
    first, second = made.predict([["hello", *SHORT], ["see you soon", *SHORT]])
    assert first[2] == pytest.approx(second[2], abs=1e-6)
    assert first[1] != pytest.approx(second[1], abs=1e-3)


def test_nothing_gives_nothing(predictor: Make) -> None:
    assert predictor().predict([]) == []
    assert [len(one) for one in predictor(history=2).predict([[], SHORT])] == [0, 2]
    assert predictor().rate([]).shape == (0,)


# --- What it costs ----------------------------------------------------------------------------------------------------


def test_history_costs_nothing_and_equal_texts_are_encoded_once(
    predictor: Make, counted: tuple[Encoder, Counting]
) -> None:
    encoder, counting = counted
    work = []
    for history in (0, 3):
        before = counting.passes, counting.texts
        replace(predictor(history=history), encoder=encoder).predict([SHOP, SHORT, SHOP])
        work.append((counting.passes - before[0], counting.texts - before[1]))
    assert work == [(1, 7), (1, 7)]


def test_rating_the_last_turn_reads_no_more_than_its_history(
    predictor: Make, counted: tuple[Encoder, Counting]
) -> None:
    encoder, counting = counted
    replace(predictor(history=2), encoder=encoder).rate([SHOP])
    assert counting.texts == 3
    replace(predictor(history=2, is_flat=True), encoder=encoder).rate([SHOP])
    assert counting.texts == 4


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_a_flat_history_is_one_text() -> None:
    assert readings(["a", "b", "c"], Shape(history=1, is_flat=True)) == ["a", "a b", "b c"]
    assert readings(["a", "b", "c"], Shape(history=1)) == ["a", "b", "c"]


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(0, 8), st.integers(1, 3))
def test_window_means_are_a_loop_over_turns(lengths: list[int], history: int, outputs: int) -> None:
    starts = np.cumsum([0, *lengths])
    values = np.random.default_rng(len(lengths)).normal(size=(sum(lengths), outputs))
    found = window_means(torch.from_numpy(values), torch.from_numpy(starts), history).numpy()
    expected = [
        np.mean([values[first + one] for one in range(max(0, turn - history), turn + 1)], axis=0)
        for first, length in zip(starts[:-1], lengths, strict=True)
        for turn in range(length)
    ]
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), atol=1e-12)


@pytest.mark.parametrize(
    ("target", "of_2", "of_5", "of_10"),
    [
        (0.0, 0, 0, 0), (0.1, 0, 0, 1), (0.2, 0, 1, 2), (0.3, 0, 1, 3), (0.4, 0, 2, 4), (0.5, 1, 2, 5),
        (0.6, 1, 3, 6), (0.7, 1, 3, 7), (0.8, 1, 4, 8), (0.9, 1, 4, 9), (1.0, 1, 4, 9), (0.19999, 0, 0, 1),
        (1 / 3, 0, 1, 3), (2 / 3, 1, 3, 6),
    ],
)  # fmt: skip
def test_an_edge_belongs_to_the_class_above(target: float, of_2: int, of_5: int, of_10: int) -> None:
    for kind in (torch.float32, torch.float64):
        given = torch.tensor([target], dtype=kind)
        assert [class_of(given, classes).item() for classes in (2, 5, 10)] == [of_2, of_5, of_10]


def test_classes_give_their_expected_middle() -> None:
    outputs = torch.tensor([[0.0, math.log(3.0)], [0.0, 0.0]])  # shares 1/4 and 3/4; 1/2 and 1/2
    assert activated(outputs, Shape(classes=2)).tolist() == pytest.approx([0.25 / 4 + 0.75 * 3 / 4, 0.5])


# --- Losses -----------------------------------------------------------------------------------------------------------


def test_the_clamped_loss_is_equation_5_and_its_gradient_goes_beyond_the_clamp() -> None:
    outputs = torch.tensor([[-0.5], [0.3], [1.8], [1.2]], requires_grad=True)
    loss = loss_of(outputs, torch.tensor([0.25, 0.5, 0.0, 1.0]), Shape())
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx((0.25**2 + 0.2**2 + 1.0**2 + 0.0**2) / 4)
    assert outputs.grad is not None
    # 2 (clamped - target) / 4; a clamp's own slope would give 0 for the first and the third.
    assert outputs.grad[:, 0].tolist() == pytest.approx([-0.125, -0.1, 0.5, 0.0])


def test_the_loss_of_a_sigmoid_by_hand() -> None:
    outputs = torch.tensor([[0.0], [math.log(3.0)]])  # 1/2 and 3/4
    assert loss_of(outputs, torch.tensor([1.0, 0.5]), Shape(activation="sigmoid")).item() == pytest.approx(0.15625)


def test_the_loss_of_classes_by_hand() -> None:
    outputs = torch.tensor([[0.0, math.log(3.0)]])
    for target, share in ((0.4, 1 / 4), (0.5, 3 / 4)):
        assert loss_of(outputs, torch.tensor([target]), Shape(classes=2)).item() == pytest.approx(-math.log(share))


# --- Names ------------------------------------------------------------------------------------------------------------


def test_names_change_with_weights_and_settings_and_seeds(encoder: Encoder) -> None:
    made = [Predictor.untrained(encoder, Shape(history), seed=seed) for history, seed in ((0, 0), (0, 1), (1, 0))]
    assert len({one.name for one in made}) == 3
    assert Predictor.untrained(encoder, Shape(), seed=0).name == made[0].name
    assert made[0].name.startswith("rdep-tiny@")


def test_drawing_a_layer_leaves_the_random_numbers_of_others_alone(encoder: Encoder) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Predictor.untrained(encoder, Shape(), seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_it_knows_what_it_was_selected_on(predictor: Make) -> None:
    assert predictor().selected_on == frozenset()
    assert replace(predictor(), origin={"selected_on": ["a", "b"]}).selected_on == {"a", "b"}
