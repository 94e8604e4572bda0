from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import reference
from tests.model.samples import WORDS, Sample, batch_of, network, samples, tiny

from dialoscope.model.network import Seq2Seq, real_steps
from dialoscope.model.presets import PRESETS
from dialoscope.model.structure import AttentionKind, Scoring, Structure
from dialoscope.model.vocabulary import END, START, TURN

BASE = Structure(layers=2, width=6, embedding=5, vocabulary=WORDS)
STRUCTURES = [
    replace(BASE, attention=attention, scoring=scoring, integration=integration)
    for attention in get_args(AttentionKind)
    for scoring in (("dot",) if attention == "none" else get_args(Scoring))
    for integration in (False, True)
] + [
    replace(BASE, encoder="bilstm", attention="token"),
    replace(BASE, encoder="bilstm", attention="static", shared_embedding=False),
    replace(BASE, encoder="hierarchical", attention="dynamic", scoring="additive"),
    replace(BASE, encoder="hierarchical", attention="static"),
    replace(BASE, layers=1, attention="token"),
    replace(BASE, layers=3, attention="dynamic", integration=True),
]
THREE: list[Sample] = [
    ([[5, 6, 7], [8]], [9, 10]),
    ([[11]], []),
    ([[6, 6], [7, 12, 13, 5], [9, 8, 10]], [5, 13, 6, 7]),
]


def named(structure: Structure) -> str:
    parts = (structure.encoder, structure.attention, structure.scoring, "ui" * structure.integration)
    return "-".join(filter(None, (*parts, str(structure.layers))))


def arrays(model: Seq2Seq) -> dict[str, reference.Array]:
    return {name: weight.double().numpy() for name, weight in model.state_dict().items()}


@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("structure", STRUCTURES, ids=named)
def test_states_attention_and_loss_follow_the_equations(structure: Structure) -> None:
    model = network(structure)
    batch = batch_of(*THREE)
    output = model(batch)
    losses = []
    for row, (turns, response) in enumerate(THREE):
        marked = [[*turn, TURN] for turn in turns]
        expected = reference.answer(arrays(model), structure, marked, [START, *response, END])
        steps = len(response) + 1
        np.testing.assert_allclose(output.states[row, :steps].detach(), expected.states, atol=1e-5)
        np.testing.assert_allclose(model.encode(batch)[row].detach(), expected.summary, atol=1e-5)
        losses += expected.losses
        if structure.attention != "none":
            assert output.log_attention is not None
            places = len(expected.log_attention[0])
            found = output.log_attention[row, :, :places].expand(max(steps, output.log_attention.shape[1]), -1)
            np.testing.assert_allclose(found[:steps].detach(), expected.log_attention, atol=1e-4)
    assert model.loss(output, batch).item() == pytest.approx(np.mean(losses), abs=1e-5)


@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("structure", STRUCTURES, ids=named)
def test_gradients_are_the_slopes_of_the_loss(structure: Structure) -> None:
    model = network(structure).double()
    batch = batch_of(*THREE)

    def loss() -> torch.Tensor:
        output = model(batch)
        extra = 0.0 if output.log_attention is None else (output.log_attention.exp() ** 2)[:, :1].mean()
        return model.loss(output, batch) + extra

    loss().backward()  # type: ignore[no-untyped-call]
    rng = torch.Generator().manual_seed(1)
    for name, weight in model.named_parameters():
        direction, small = torch.randn(weight.shape, generator=rng, dtype=torch.float64), 1e-6
        with torch.no_grad():
            weight.add_(direction, alpha=small)
            above = loss().item()
            weight.sub_(direction, alpha=2 * small)
            below = loss().item()
            weight.add_(direction, alpha=small)
        assert weight.grad is not None
        slope = float((weight.grad * direction).sum())
        assert slope == pytest.approx((above - below) / (2 * small), rel=1e-4, abs=1e-7), name


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=12)
@given(data=st.data())
def test_the_rest_of_a_batch_changes_nothing(name: str, data: st.DataObject) -> None:
    model = network(tiny(name))
    together = data.draw(st.lists(samples, min_size=2, max_size=4))
    row = data.draw(st.integers(0, len(together) - 1))
    many, one = batch_of(*together), batch_of(together[row])
    steps, places = len(together[row][1]) + 1, int(one.length)
    with torch.no_grad():
        there, alone = model(many, attention=True), model(one, attention=True)
        torch.testing.assert_close(there.states[row, :steps], alone.states[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(model.encode(many)[row], model.encode(one)[0], atol=1e-5, rtol=0)
        likely = model.log_likelihood(there, many)[row], model.log_likelihood(alone, one)[0]
        torch.testing.assert_close(*likely, atol=1e-5, rtol=1e-5)
        if there.log_attention is not None:
            assert alone.log_attention is not None
            count = alone.log_attention.shape[2] if alone.log_attention.shape[2] < places else places
            found = there.log_attention[row, : alone.log_attention.shape[1], :count].exp()
            torch.testing.assert_close(found, alone.log_attention[0, :, :count].exp(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", PRESETS)
def test_the_loss_is_the_mean_over_real_tokens(name: str) -> None:
    model, batch = network(tiny(name)), batch_of(*THREE)
    with torch.no_grad():
        output = model(batch)
        expected = -model.log_likelihood(output, batch).sum() / batch.response_length.sum()
        assert model.loss(output, batch).item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("name", PRESETS)
def test_one_step_at_a_time_gives_the_same_scores_as_all_at_once(name: str) -> None:
    model, batch = network(tiny(name)), batch_of(*THREE)
    with torch.no_grad():
        at_once = model.logits(model(batch).states)
        progress, scores = model.start(batch), []
        for step in range(batch.response.shape[1] - 1):
            found, progress = model.step(batch.response[:, step], progress)
            scores.append(found)
    real = real_steps(batch)
    torch.testing.assert_close(torch.stack(scores, dim=1)[real], at_once[real], atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("name", PRESETS)
def test_every_weight_learns(name: str) -> None:
    model, batch = Seq2Seq(tiny(name)), batch_of(*THREE)
    model.loss(model(batch), batch).backward()  # type: ignore[no-untyped-call]
    assert not [key for key, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]


@pytest.mark.parametrize("name", PRESETS)
def test_a_few_steps_of_training_lower_the_loss(name: str) -> None:
    torch.manual_seed(0)
    model, batch = Seq2Seq(replace(tiny(name), dropout=0.1)), batch_of(*THREE)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(20):
        loss = model.loss(model(batch), batch)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_dropout_acts_in_training_only() -> None:
    model, batch = network(replace(tiny("dynamic-ui"), dropout=0.5)), batch_of(*THREE)
    assert torch.equal(model(batch).states, model(batch).states)
    model.train()
    assert not torch.equal(model(batch).states, model(batch).states)


@pytest.mark.parametrize("attention", get_args(AttentionKind))
def test_dropout_takes_its_share_of_what_the_output_layer_reads(attention: AttentionKind) -> None:
    """What is dropped there is exactly 0, which nothing else makes of a state."""
    model, batch = network(replace(BASE, attention=attention, dropout=0.25)), batch_of(*THREE * 50)
    real = real_steps(batch)
    assert (model(batch).states[real] != 0).all()
    dropped = (model.train()(batch).states[real] == 0).float()
    deviation = (0.25 * 0.75 / dropped.numel()) ** 0.5
    assert dropped.mean().item() == pytest.approx(0.25, abs=5 * deviation)


@pytest.mark.parametrize(
    ("within", "deviation", "largest"),
    [(0.1, 0.1 / 3**0.5, 0.1), (0.5, 0.5 / 3**0.5, 0.5), (None, 1.0, 6.0)],
)
def test_word_vectors_start_within_what_is_set_or_at_a_deviation_of_one(
    within: float | None, deviation: float, largest: float
) -> None:
    torch.manual_seed(0)
    made = Seq2Seq(replace(BASE, vocabulary=2000, words_within=within, shared_embedding=False))
    assert made.response_words is not None
    for table in (made.words.weight, made.response_words.weight):
        assert table.std().item() == pytest.approx(deviation, rel=0.05)
        assert table.abs().max().item() <= largest


@pytest.mark.parametrize("name", PRESETS)
def test_half_precision_stays_close(name: str) -> None:
    model, batch = network(tiny(name), scale=1.0), batch_of(*THREE)
    full = model.loss(model(batch), batch)
    with torch.autocast("cpu", torch.bfloat16):
        half = model.loss(model(batch), batch)
    half.backward()  # type: ignore[no-untyped-call]
    assert half.item() == pytest.approx(full.item(), rel=0.02)
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_backward_twice_is_refused() -> None:
    model, batch = network(tiny("non-hier")), batch_of(*THREE)
    loss = model(batch).states.sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="runs backward once"):
        loss.backward()
