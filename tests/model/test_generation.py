from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import reference
from tests.model.samples import WORDS, batch_of, network, samples, tiny

from dialoscope.errors import UsageError
from dialoscope.model.generation import NEVER, generate, kept_shares, sample
from dialoscope.model.network import Seq2Seq
from dialoscope.model.presets import PRESETS
from dialoscope.model.protocol import Decoding
from dialoscope.model.vocabulary import END, START, TURN, UNKNOWN

GREEDY = Decoding("greedy", max_tokens=5)
METHODS = [GREEDY, Decoding("beam", beams=3, max_tokens=5), Decoding("sample", temperature=1.5, max_tokens=5, seed=3)]
TURNS = [[5, 6, 7], [8, 9]]


def shares_after(model: Seq2Seq, written: list[int]) -> reference.Array:
    """The reference's log-likelihood of every next token."""
    weights = {name: weight.double().numpy() for name, weight in model.state_dict().items()}
    marked = [[*turn, TURN] for turn in TURNS]
    state = reference.answer(weights, model.settings, marked, [START, *written, END]).states[-1]
    return reference.log_softmax(weights["out.weight"] @ state + weights["out.bias"])


def words_only(log: reference.Array) -> reference.Array:
    return np.where(np.isin(np.arange(WORDS), NEVER), -np.inf, log)


@pytest.mark.parametrize("name", ["non-hier", "static-ui", "dynamic", "lstm", "hred", "bilstm-attn"])
@pytest.mark.parametrize("seed", [0, 1])
def test_greedy_takes_the_references_best_word_at_every_step(name: str, seed: int) -> None:
    model = network(tiny(name), seed=seed)
    expected: list[int] = []
    while len(expected) < 5 and (best := int(words_only(shares_after(model, expected)).argmax())) != END:
        expected.append(best)
    assert generate(model, batch_of((TURNS, [])), GREEDY) == [expected]


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=5)
@given(data=st.data())
def test_the_rest_of_a_batch_changes_no_response(name: str, data: st.DataObject) -> None:
    model = network(tiny(name))
    together = data.draw(st.lists(samples, min_size=2, max_size=3))
    for decoding in METHODS:
        whole = generate(model, batch_of(*together), decoding)
        assert whole == [generate(model, batch_of(one), decoding)[0] for one in together]


@pytest.mark.parametrize("name", PRESETS)
def test_one_beam_is_greedy(name: str) -> None:
    model, batch = network(tiny(name)), batch_of((TURNS, []), ([[5]], []))
    for normalised in (True, False):
        one = Decoding("beam", beams=1, length_normalised=normalised, max_tokens=5)
        assert generate(model, batch, one) == generate(model, batch, GREEDY)


@pytest.mark.parametrize("name", ["static", "transformer", "lstm-attn"])
@pytest.mark.parametrize("is_normalised", [True, False])
def test_enough_beams_find_the_best_of_all_responses(name: str, is_normalised: bool) -> None:
    model, batch = network(tiny(name), scale=2.0), batch_of((TURNS, []))
    words = [word for word in range(WORDS) if word not in (*NEVER, END)]
    responses = [[*start] for length in range(3) for start in itertools.product(words, repeat=length)]

    def score(response: list[int]) -> float:
        with torch.no_grad():
            longer = batch_of((TURNS, response))
            total = float(model.log_likelihood(model(longer), longer))
        if len(response) == 2:  # cut there, so its end is not counted
            with torch.no_grad():
                output = model(longer)
                total -= float(torch.log_softmax(model.logits(output.states[0, 2]), -1)[END])
            return total / 2 if is_normalised else total
        return total / (len(response) + 1) if is_normalised else total

    search = Decoding("beam", beams=200, length_normalised=is_normalised, max_tokens=2)
    found = generate(model, batch, search)[0]
    assert score(found) == pytest.approx(max(map(score, responses)), abs=1e-5)


def test_sampled_words_are_as_frequent_as_they_are_likely() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0, float("-inf")]])
    drawn = (torch.arange(1000) + 0.5) / 1000
    words = sample(scores.expand(1000, -1), drawn.double(), Decoding("sample"))
    expected = torch.softmax(scores[0], -1) * 1000
    assert words.bincount(minlength=4).tolist() == pytest.approx(expected.tolist(), abs=1)


@pytest.mark.parametrize(
    ("decoding", "expected"),
    [
        (Decoding("sample", top_k=2), [0.0, 0.3, 0.5]),
        (Decoding("sample", top_p=0.0), [0.0, 0.0, 0.5]),  # the likeliest word always stays
        (Decoding("sample", top_p=0.4), [0.0, 0.0, 0.5]),
        (Decoding("sample", top_p=0.6), [0.0, 0.3, 0.5]),
        (Decoding("sample", temperature=0.5), [0.04, 0.09, 0.25]),
        (Decoding("sample"), [0.2, 0.3, 0.5]),
    ],
)
def test_temperature_top_k_and_top_p_by_hand(decoding: Decoding, expected: list[float]) -> None:
    kept = kept_shares(torch.tensor([[0.2, 0.3, 0.5]]).log(), decoding)[0]
    scaled = np.array(expected) / np.sum(expected)
    assert (kept / kept.sum()).tolist() == pytest.approx(scaled.tolist())


def test_seeds_give_other_samples_and_the_same_seed_the_same() -> None:
    model, batch = network(tiny("static")), batch_of((TURNS, []), ([[5]], []))
    first, again, other = (generate(model, batch, Decoding("sample", seed=seed)) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"method": "bean"}, "Did you mean 'beam'"),
        ({"beams": 0}, "beams is 0, expected 1 or more"),
        ({"max_tokens": 0}, "max_tokens is 0, expected 1 or more"),
        ({"temperature": 0.0}, "temperature is 0.0, expected a number over 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1, expected 0 or more"),
        ({"top_p": 1.5}, "top_p is 1.5, expected a share"),
    ],
)
def test_a_decoding_that_means_nothing_is_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Decoding(**values)


def test_sampling_at_no_temperature_is_nearly_greedy() -> None:
    model, batch = network(tiny("dynamic")), batch_of((TURNS, []))
    cold = replace(METHODS[2], temperature=1e-4)
    assert generate(model, batch, cold) == generate(model, batch, GREEDY)


@pytest.mark.parametrize("decoding", METHODS, ids=lambda one: one.method)
def test_marks_are_never_written_and_length_is_limited(decoding: Decoding) -> None:
    model = network(tiny("lstm"))
    with torch.no_grad():
        model.out.bias[list(NEVER)] = 50
        model.out.bias[END] = -50
    written = generate(model, batch_of((TURNS, [])), decoding)[0]
    assert len(written) == 5 and not set(written) & {*NEVER, END}


@pytest.mark.parametrize("decoding", METHODS, ids=lambda one: one.method)
def test_an_unknown_word_is_never_written_and_what_is_left_is_the_end(decoding: Decoding) -> None:
    model = network(tiny("lstm"))
    with torch.no_grad():
        model.out.bias[:] = -1e9
        model.out.bias[UNKNOWN], model.out.bias[END] = 50, -50  # no other word has a chance
    assert generate(model, batch_of((TURNS, [])), decoding) == [[]]
