"""The distraction paper's equations 2 to 6 in loops over one sample, with nothing but numpy: what ours is held against.

Weights come by their names in our state dictionary. One LSTM is four arrays: `inputs` (4w, n) of the input, `first`
(4w, w) of the lowest layer's own h, or (4w, 2w) of [c_{t-1} ; h] in a decoder that attends, `upper` (layers - 1, 4w,
2w) of [h of the layer below ; own h], and `bias` (layers, 4w); gates come as input, forget, cell, output.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialoscope.model.structure import Structure

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = Mapping[str, Array]


@dataclass
class Layers:
    """h and c of every layer."""

    hidden: list[Array]
    cell: list[Array]


@dataclass
class Answer:
    """What a model computes while it reads one response."""

    states: list[Array]
    log_attention: list[Array]  # one for each step; static: the same every time
    losses: list[float]
    summary: Array


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def log_softmax(x: Array) -> Array:
    shifted = x - x.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def zeros(settings: Structure) -> Layers:
    empty = np.zeros(settings.width)
    return Layers([empty] * settings.layers, [empty] * settings.layers)


def lstm_step(weights: Weights, name: str, x: Array, context: Array | None, before: Layers) -> Layers:
    """One step of all layers; a context vector is concatenated to the input of the lowest."""
    hidden: list[Array] = []
    cell: list[Array] = []
    for layer, (h, c) in enumerate(zip(before.hidden, before.cell, strict=True)):
        if layer == 0:
            own = h if context is None else np.concatenate([context, h])
            gates = weights[f"{name}.inputs"] @ x + weights[f"{name}.first"] @ own
        else:
            gates = weights[f"{name}.upper"][layer - 1] @ np.concatenate([hidden[-1], h])
        i, f, g, o = np.split(gates + weights[f"{name}.bias"][layer], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        cell.append(c)
        hidden.append(sigmoid(o) * np.tanh(c))
    return Layers(hidden, cell)


def run_lstm(weights: Weights, name: str, inputs: Sequence[Array], start: Layers) -> tuple[list[Array], Layers]:
    """The top layer's h at every step, and the last h and c of all layers."""
    top, state = [], start
    for x in inputs:
        state = lstm_step(weights, name, x, None, state)
        top.append(state.hidden[-1])
    return top, state


def attend(weights: Weights, settings: Structure, memory: Sequence[Array], query: Array) -> tuple[Array, Array]:
    """A context vector and log α: softmax of m · q, or of v · tanh(K m + Q q)."""
    if settings.scoring == "dot":
        scores = [m @ query for m in memory]
    else:
        keys, bias = weights["decoder.scorer.keys.weight"], weights["decoder.scorer.keys.bias"]
        asked = weights["decoder.scorer.query.weight"] @ query
        scores = [weights["decoder.scorer.score"] @ np.tanh(keys @ m + bias + asked) for m in memory]
    log = log_softmax(np.array(scores))
    return np.asarray(sum(np.exp(share) * m for share, m in zip(log, memory, strict=True))), log


def sums(some: Sequence[Array], others: Sequence[Array]) -> list[Array]:
    return [one + other for one, other in zip(some, others, strict=True)]


def read(weights: Weights, settings: Structure, turns: Sequence[Sequence[int]]) -> tuple[list[Array], Layers]:
    """The memory that attention sees, and the state that starts the decoder; turns end with their mark."""
    words = [[weights["words.weight"][token] for token in turn] for turn in turns]
    if settings.encoder == "hierarchical":
        said = [run_lstm(weights, "encoder.utterance", turn, zeros(settings))[1].hidden[-1] for turn in words]
        return run_lstm(weights, "encoder.context", said, zeros(settings))
    flat = [word for turn in words for word in turn]
    tokens, state = run_lstm(weights, "encoder.forth", flat, zeros(settings))
    if settings.encoder == "bilstm":
        again, other = run_lstm(weights, "encoder.back", flat[::-1], zeros(settings))
        tokens = sums(tokens, again[::-1])
        state = Layers(sums(state.hidden, other.hidden), sums(state.cell, other.cell))
    utterances = [tokens[end - 1] for end in np.cumsum([len(turn) for turn in turns])]
    if settings.integration:
        state = run_lstm(weights, "encoder.integration", utterances, zeros(settings))[1]
    return tokens if settings.attention == "token" else utterances, state


def answer(weights: Weights, settings: Structure, turns: Sequence[Sequence[int]], response: Sequence[int]) -> Answer:
    """Read a response from its start to its end token; c_0 is zeros, static attention has its c from the start."""
    memory, state = read(weights, settings, turns)
    table = weights["words.weight" if settings.shared_embedding else "response_words.weight"]
    done = Answer([], [], [], state.hidden[-1])
    steps_attend = settings.attention in ("token", "dynamic")
    context = np.zeros(settings.width)
    for token, target in itertools.pairwise(response):
        x = table[token]
        if settings.attention == "static":
            context, log = attend(weights, settings, memory, memory[-1])
            x = np.concatenate([x, context])
        state = lstm_step(weights, "decoder.lstm", x, context if steps_attend else None, state)
        h = state.hidden[-1]
        if steps_attend:
            context, log = attend(weights, settings, memory, h)
        if settings.attention != "none":
            combine, bias = weights["decoder.combine.weight"], weights["decoder.combine.bias"]
            h = np.tanh(combine @ np.concatenate([h, context]) + bias)
            done.log_attention.append(log)
        done.states.append(h)
        done.losses.append(-float(log_softmax(weights["out.weight"] @ h + weights["out.bias"])[target]))
    return done
