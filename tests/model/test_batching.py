from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.model.batch import Batch
from dialoscope.model.batching import Shapes, batches, collate, collate_all, collate_examples, prefetch, shapes_for
from dialoscope.model.examples import Examples, examples_of, whole_lengths
from dialoscope.model.vocabulary import TURN, Vocabulary

TURNS = st.lists(st.lists(st.integers(5, 9), max_size=4), min_size=1, max_size=5)


def corpus(*dialogues: list[str]) -> Corpus:
    return Corpus.of(Dialogue(tuple(Turn("AB"[i % 2], t) for i, t in enumerate(turns))) for turns in dialogues)


LETTERS = Vocabulary.of(["a a a a b b b c c d"], size=9)  # a 5, b 6, c 7, d 8
SMALL = corpus(["a b", "c", "d d d"], ["b", "a"])


def shown(batch: Batch) -> dict[str, object]:
    return {name: value if name == "steps" else value.tolist() for name, value in vars(batch).items()}


def test_a_batch_by_hand() -> None:
    assert shown(collate([[[7, 8], [9]], [[5]]], [[6], [5, 6, 7]], is_distraction=[[True, False], [False]])) == {
        "context": [[7, 8, 4, 9, 4], [5, 4, 0, 0, 0]],
        "length": [5, 2],
        "utterance": [[0, 0, 0, 1, 1], [0, 0, -1, -1, -1]],
        "end": [[2, 4], [1, 0]],
        "utterances": [2, 1],
        "is_distraction": [[True, False], [False, False]],
        "response": [[2, 6, 3, 0, 0], [2, 5, 6, 7, 3]],
        "response_length": [2, 4],
        "real_places": [0, 1, 4, 5, 6, 7],
        "steps": (2, 4),
    }


@pytest.mark.parametrize(
    ("limit", "context", "utterance", "end", "flags"),
    [
        (9, [5, 6, 4, 7, 4, 8, 4], [0, 0, 0, 1, 1, 2, 2], [2, 4, 6], [True, False, True]),
        (5, [4, 7, 4, 8, 4], [0, 1, 1, 2, 2], [0, 2, 4], [True, False, True]),  # only the end of the first is left
        (4, [7, 4, 8, 4], [0, 0, 1, 1], [1, 3], [False, True]),  # the first has gone, with its flag
        (1, [4], [0], [0], [True]),
    ],
)
def test_the_oldest_tokens_go_first(
    limit: int, context: list[int], utterance: list[int], end: list[int], flags: list[bool]
) -> None:
    found = collate([[[5, 6], [7], [8]]], [[5]], is_distraction=[[True, False, True]], context_tokens=limit)
    assert (found.context.tolist(), found.utterance.tolist()) == ([context], [utterance])
    assert (found.end.tolist(), found.is_distraction.tolist()) == ([end], [flags])
    assert (found.length.tolist(), found.utterances.tolist()) == ([len(context)], [len(end)])


@given(st.lists(TURNS, min_size=1, max_size=4), st.integers(1, 12))
def test_every_row_is_what_plain_python_makes_of_it(contexts: list[list[list[int]]], limit: int) -> None:
    found = collate(contexts, [context[0] for context in contexts], context_tokens=limit)
    for row, context in enumerate(contexts):
        flat = [(one, place) for place, turn in enumerate(context) for one in [*turn, TURN]][-limit:]
        oldest, length = flat[0][1], len(flat)
        assert found.context[row, :length].tolist() == [one for one, _ in flat]
        assert found.utterance[row, :length].tolist() == [place - oldest for _, place in flat]
        ends = [at for at in range(length) if at + 1 == length or flat[at + 1][1] != flat[at][1]]
        assert found.end[row, : len(ends)].tolist() == ends
        assert (found.length[row].item(), found.utterances[row].item()) == (length, len(ends))
        assert (found.context[row, length:] == 0).all()
        assert (found.utterance[row, length:] == -1).all()


@pytest.mark.parametrize(("contexts", "responses"), [([[]], [[5]]), ([[[5]]], [])])
def test_a_context_without_turns_is_refused(contexts: list[list[list[int]]], responses: list[list[int]]) -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        collate(contexts, responses)


def test_a_context_without_tokens_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one token"):
        collate([[[5]]], [[5]], context_tokens=0)


def test_examples_point_at_turns_that_are_encoded_once() -> None:
    found = examples_of(SMALL, LETTERS)
    assert found.turns.tokens.tolist() == [5, 6, 4, 7, 4, 8, 8, 8, 4, 6, 4, 5, 4]
    assert found.context.tolist() == [0, 0, 1, 3]
    assert (found.offsets.tolist(), found.response.tolist()) == ([0, 1, 3, 4], [1, 2, 4])
    assert (found.lengths.tolist(), found.steps.tolist()) == ([3, 5, 2], [2, 4, 2])
    assert found.dialogue.tolist() == [0, 0, 1]


def test_whole_lengths_do_not_depend_on_what_was_left_out() -> None:
    for limit in (None, 1):
        found = examples_of(SMALL, LETTERS, context_tokens=limit)
        assert whole_lengths(found).tolist() == [3, 5, 2]
        assert whole_lengths(found, context_turns=1).tolist() == [3, 2, 2]


def test_examples_make_the_batch_that_small_calls_make() -> None:
    found = collate_examples(examples_of(SMALL, LETTERS), np.array([1, 2]))
    assert shown(found) == shown(collate([[[5, 6], [7]], [[6]]], [[8, 8, 8], [5]]))


@given(st.lists(st.lists(st.text("abcd ", max_size=6), min_size=2, max_size=6), min_size=1, max_size=3))
def test_turns_too_old_to_be_read_can_be_left_out_at_once(dialogues: list[list[str]]) -> None:
    whole = examples_of(corpus(*dialogues), LETTERS)
    short = examples_of(corpus(*dialogues), LETTERS, context_tokens=4)
    rows = np.arange(len(whole))
    assert len(short.context) <= len(whole.context)
    one, other = (collate_examples(each, rows, context_tokens=4) for each in (whole, short))
    assert shown(one) == shown(other)


@given(
    st.lists(st.lists(st.text("abcd ", max_size=6), min_size=2, max_size=6), min_size=1, max_size=3), st.integers(1, 9)
)
def test_leaving_out_what_is_too_old_afterwards_is_leaving_it_out_at_once(
    dialogues: list[list[str]], limit: int
) -> None:
    at_once = examples_of(corpus(*dialogues), LETTERS, context_tokens=limit)
    afterwards = examples_of(corpus(*dialogues), LETTERS).within(limit)
    for name in ("context", "is_distraction", "offsets", "response", "dialogue"):
        assert getattr(afterwards, name).tolist() == getattr(at_once, name).tolist()


def test_without_a_limit_everything_stays() -> None:
    found = examples_of(SMALL, LETTERS)
    assert found.within(None) is found


def test_taken_examples_keep_their_contexts() -> None:
    found = examples_of(SMALL, LETTERS).take(np.array([2, 1]))
    assert (found.context.tolist(), found.offsets.tolist()) == ([3, 0, 1], [0, 1, 3])
    assert (found.response.tolist(), found.dialogue.tolist()) == ([4, 2], [1, 0])


def long_examples(count: int) -> Examples:
    return examples_of(corpus(*(["a " * (i * 7 % 40), "b"] for i in range(count))), LETTERS)


def test_every_example_is_in_one_batch_and_like_lengths_are_together() -> None:
    examples = long_examples(1000)
    rows = batches(examples, batch_size=8, rng=np.random.default_rng(0))
    assert sorted(np.concatenate(rows).tolist()) == list(range(1000))
    spread = [np.ptp(examples.lengths[some]) for some in rows]
    assert np.mean(spread) < 8  # lengths go from 1 to 40; at random, eight of them spread over 30


def test_an_epoch_is_drawn_from_its_seed() -> None:
    examples = long_examples(100)
    one, same, other = (batches(examples, batch_size=8, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in same]
    assert [rows.tolist() for rows in one] != [rows.tolist() for rows in other]


def test_without_a_generator_short_ones_come_first() -> None:
    examples = long_examples(50)
    order = np.concatenate(batches(examples, batch_size=8))
    assert (np.diff(examples.lengths[order] // 8) >= 0).all()


def test_fixed_shapes_pad_up_and_nothing_else_changes() -> None:
    examples, rows = examples_of(SMALL, LETTERS), np.array([0, 1])
    plain = collate_examples(examples, rows)
    padded = collate_examples(examples, rows, shapes=Shapes(tokens=(4, 8), utterances=(1,), steps=(6,)))
    assert (padded.context.shape, padded.end.shape, padded.response.shape) == ((2, 8), (2, 2), (2, 7))
    assert torch.equal(padded.context[:, :5], plain.context)
    assert (padded.context[:, 5:] == 0).all()
    assert (padded.utterance[:, 5:] == -1).all()
    assert torch.equal(padded.length, plain.length)
    assert Shapes(tokens=(4, 8)).fit((17, 1, 1))[0] == 24  # over the largest: a multiple of it


def test_only_a_gpu_is_given_few_shapes() -> None:
    assert shapes_for(torch.device("cuda")) == Shapes()
    assert shapes_for(torch.device("cpu")) is None


def test_batches_come_in_the_order_of_their_rows() -> None:
    examples = long_examples(20)
    rows = batches(examples, batch_size=6)
    made = list(collate_all(examples, rows, device=torch.device("cpu")))
    assert [len(batch.length) for batch in made] == [6, 6, 6, 2]


def test_prefetched_items_keep_their_order_and_errors_arrive() -> None:
    def items() -> Iterator[int]:
        yield from range(10)
        raise ValueError("from the thread")

    got: list[int] = []
    with pytest.raises(ValueError, match="from the thread"):
        got.extend(prefetch(items(), depth=2))
    assert got == list(range(10))


def test_leaving_early_ends_the_thread() -> None:
    before = threading.active_count()
    ahead = prefetch(iter(range(1000)), depth=2)
    assert next(iter(ahead)) == 0
    ahead.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
