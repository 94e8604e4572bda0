from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.huggingface.conftest import LLAMA

from dialoscope.corpus.turns import Said
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.batches import Network, in_batches
from dialoscope.model.huggingface.sharing import can_share
from dialoscope.model.protocol import Context, Likelihood, SharesPrefixes, TooLong

Load = Callable[..., HuggingFaceModel]
SHARING = ["gpt2", "llama"]  # learnt positions, plainly joined; rotated ones, with a chat template
WHOLE = ["mistral", "gemma2", "bloom", "mamba", "bart", "t5"]  # sliding, in part, no places told, recurrent, encoders
WHOLES = [
    ["hello there", "where is the station?", "", "it is over there, near the old bridge", "thank you"],
    ["hi", "where is it?"],
    ["a"],  # nothing can be left out
    ["near the bridge", "near the bridge", "near the bridge", "are you fine?"],
]
RESPONSES = ["i am fine.", "", "hello 🙂", "it is over there"]
TURNS = st.lists(st.text(alphabet="abc ?é", max_size=12), min_size=1, max_size=6)


def variants(wholes: Sequence[Context], responses: Sequence[str]) -> tuple[list[Context], list[str], list[int]]:
    """Every context, then the same without each turn before the Query; of all, the response and the group."""
    made = [
        (context, response, group)
        for group, (whole, response) in enumerate(zip(wholes, responses, strict=True))
        for context in (whole, *([*whole[:k], *whole[k + 1 :]] for k in range(len(whole) - 1)))
    ]
    return [one[0] for one in made], [one[1] for one in made], [one[2] for one in made]


def totals(found: Sequence[Likelihood]) -> list[float]:
    return [one.total for one in found]


@contextmanager
def read_by(model: HuggingFaceModel) -> Iterator[list[torch.Size]]:
    """The shape of all token ids that go into the network."""
    seen: list[torch.Size] = []

    def note(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        seen.append(inputs[0].shape)

    handle = model.network.model.get_input_embeddings().register_forward_pre_hook(note)
    yield seen
    handle.remove()


def common(one: Sequence[int], other: Sequence[int]) -> int:
    return max(k for k in range(min(len(one), len(other)) + 1) if one[:k] == other[:k])


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("name", [*SHARING, *WHOLE])
def test_sharing_gives_what_reading_everything_gives(model: Load, name: str, batch_size: int) -> None:
    loaded = model(name, batch_size=batch_size)
    contexts, responses, groups = variants(WHOLES, RESPONSES)
    found = loaded.log_likelihood_sharing(contexts, responses, groups)
    expected = loaded.log_likelihood(contexts, responses)
    assert totals(found) == pytest.approx(totals(expected), rel=1e-5)
    assert [one.tokens for one in found] == [one.tokens for one in expected]


@pytest.mark.parametrize(("name", "joining"), [("gpt2", "plain"), ("llama", "plain"), ("llama", "chat")])
def test_whatever_is_shared_changes_nothing(model: Load, name: str, joining: str) -> None:
    loaded = model(name, joining=joining, batch_size=4)

    @settings(max_examples=15)
    @given(st.lists(st.tuples(TURNS, st.text(alphabet="abc", max_size=6)), min_size=1, max_size=3))
    def check(pairs: list[tuple[list[str], str]]) -> None:
        contexts, responses, groups = variants(*zip(*pairs, strict=True))
        found = loaded.log_likelihood_sharing(contexts, responses, groups)
        assert totals(found) == pytest.approx(totals(loaded.log_likelihood(contexts, responses)), rel=1e-5)

    check()


def test_contexts_of_a_group_need_not_be_neighbours_or_alike(model: Load) -> None:
    contexts: list[Context] = [["a b", "c"], ["hello", "you", "there"], ["x"], ["hello", "you"], ["a b", "c"]]
    responses, groups = ["one", "two", "three", "four", "five"], [7, 0, 7, 0, 7]
    for name in SHARING:
        found = model(name).log_likelihood_sharing(contexts, responses, groups)
        assert totals(found) == pytest.approx(totals(model(name).log_likelihood(contexts, responses)), rel=1e-5)


@pytest.mark.parametrize("name", SHARING)
def test_what_a_context_begins_with_as_its_first_does_is_not_read_again(model: Load, name: str) -> None:
    loaded = model(name, batch_size=1)  # no padding
    contexts, responses, groups = variants([[Said(turn, "AB"[k % 2]) for k, turn in enumerate(WHOLES[0])]], ["fine"])
    whole, *others = loaded.sampler.pairs(contexts, responses)
    # A response's last token is predicted and not read; a context's last one predicts, so it is read again.
    again = [len(one.source) - min(common(one.source, whole.source), len(one.source) - 1) for one in others]
    expected = [len(whole) - 1, *sorted((rest + len(whole.target) - 1 for rest in again), reverse=True)]
    assert loaded._can_share  # asks the network once
    with read_by(loaded) as seen:
        loaded.log_likelihood_sharing(contexts, responses, groups)
    assert seen == [(1, width) for width in expected]
    assert min(expected) < len(whole) / 2


@pytest.mark.parametrize("name", WHOLE)
def test_a_past_that_cannot_be_cut_is_not_shared(model: Load, name: str) -> None:
    loaded = model(name)
    contexts, responses, groups = variants(WHOLES, RESPONSES)
    assert not loaded._can_share
    with read_by(loaded) as seen:
        loaded.log_likelihood_sharing(contexts, responses, groups)
    with read_by(loaded) as expected:
        loaded.log_likelihood(contexts, responses)
    assert seen == expected


@pytest.mark.parametrize(
    ("least", "batches"),
    [
        (0.0, [["aaaa", "bbb", "cc"], ["d"]]),
        (0.75, [["aaaa", "bbb"], ["cc"], ["d"]]),
        (0.8, [["aaaa"], ["bbb"], ["cc"], ["d"]]),
    ],
)
def test_a_batch_is_full_or_ends_where_the_next_is_too_short(least: float, batches: list[list[str]]) -> None:
    seen: list[list[str]] = []

    def work(some: Sequence[str]) -> list[str]:
        seen.append([*some])
        return [each.upper() for each in some]

    assert in_batches(["cc", "aaaa", "d", "bbb"], 3, work, least=least) == ["CC", "AAAA", "D", "BBB"]
    assert seen == batches


@pytest.mark.parametrize(
    ("rope", "is_shared"),
    [
        ({"rope_type": "linear", "factor": 2.0}, True),
        ({"rope_type": "dynamic", "factor": 2.0}, False),
        ({"rope_type": "longrope", "factor": 2.0, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}, False),
    ],
)
def test_rotations_that_change_with_the_length_are_not_shared(rope: dict[str, Any], is_shared: bool) -> None:
    t: Any = import_module("transformers")
    limits = {"rope_theta": 10_000.0, "original_max_position_embeddings": 128}
    network = t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, rope_parameters={**limits, **rope}))
    assert can_share(Network(network, "causal", 0, [])) == is_shared


@pytest.mark.parametrize("name", SHARING)
def test_no_more_contexts_are_held_than_a_batch_has(model: Load, name: str) -> None:
    loaded = model(name, batch_size=3)
    with read_by(loaded) as seen:
        loaded.log_likelihood_sharing(*variants(WHOLES * 3, RESPONSES * 3))
    assert max(rows for rows, _ in seen) == 3


def test_a_full_window_leaves_no_place_for_padding(model: Load) -> None:
    """Without its first turn, all of the context is read; padded to that, the rest after 102 tokens is too long."""
    loaded = model("gpt2")
    contexts, responses, groups = variants([["b" * 20, "c" * 80, "d" * 19, "aa"]], ["a"])
    assert (
        len(loaded.sampler.pairs(contexts, responses)[0])
        == 21 + 81 + 20 + 3 + 2
        < loaded.network.model.config.n_positions
    )
    found = loaded.log_likelihood_sharing(contexts, responses, groups)
    assert totals(found) == pytest.approx(totals(loaded.log_likelihood(contexts, responses)), rel=1e-5)


@pytest.mark.parametrize("name", SHARING)
def test_a_turn_that_comes_into_the_window_is_read(model: Load, name: str) -> None:
    """The oldest turn is cut of the whole context and of no other, so that they do not begin alike."""
    contexts, responses, groups = variants([["x" * 20, "c" * 10, "d" * 10, "a"]], ["b"])
    loaded = model(name, window=len(model(name).sampler.pairs(contexts, responses)[0]) - 1)
    found = loaded.log_likelihood_sharing(contexts, responses, groups)
    assert loaded.account.turns == 1
    assert totals(found) == pytest.approx(totals(loaded.log_likelihood(contexts, responses)), rel=1e-5)


def test_what_is_too_long_is_named_by_its_place(model: Load) -> None:
    with pytest.raises(TooLong) as caught:
        model("gpt2", window=12).log_likelihood_sharing([["a"], ["a", "b" * 20], ["c"]], ["d", "e", "f"], [0, 0, 1])
    assert caught.value.parts == {1: "Query"}


def test_no_contexts_share_nothing(model: Load) -> None:
    loaded = model("gpt2")
    assert isinstance(loaded, SharesPrefixes)
    assert loaded.log_likelihood_sharing([], [], []) == []
