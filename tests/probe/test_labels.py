from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.probe.examples import Examples, Position
from dialoscope.probe.labels import Floats, Labels, constant, f1_parts, hits, labels_of, majority, shuffled
from dialoscope.probe.targets import Targets
from dialoscope.probe.tasks import NONE, Task

SETS = Task("?", "semantic", "easy", (), True, lambda position: position.context)
ONE = Task("?", "semantic", "easy", (), False, lambda position: position.context)
EMPTY = Corpus.of([Dialogue((Turn("A", "x"),), "d")], name="c")


def made(task: Task, training: list[tuple[str, ...]], held_out: list[tuple[str, ...]]) -> Labels:
    """Labels of positions whose contexts are their labels."""
    parts = [Examples(EMPTY, [Position("d", row) for row in rows], frozenset()) for rows in (training, held_out)]
    assert task.labels is not None
    return labels_of("T", task, task.labels, *parts)


def answers(labels: Labels, rows: list[tuple[str, ...]]) -> Targets:
    numbers = [[labels.classes.index(label) for label in row] for row in rows]
    if not labels.task.is_multi:
        return Targets(np.array([row[0] for row in numbers]), len(labels.classes))
    dense = np.zeros((len(rows), len(labels.classes)), dtype=bool)
    for place, row in enumerate(numbers):
        dense[place, row] = True
    return Targets(sparse.csr_array(dense), len(labels.classes))


def micro(counts: Floats) -> float:
    top, bottom = f1_parts(counts)
    return float(top.sum() / bottom.sum())


def test_classes_are_those_of_training_the_most_frequent_first() -> None:
    found = made(SETS, [("b",), ("a", "b"), (), ()], [("b", "z"), ()])
    assert found.classes == ("b", NONE, "a")
    assert found.unseen.tolist() == [1, 0]
    assert found.held_out.codes.toarray().tolist() == [[True, False, False], [False, True, False]]  # type: ignore[union-attr]


def test_hits_by_hand() -> None:
    """Truth {a, z}, {} and {b}; said {a, b}, {none} and {}: 2 right, 1 too many, z and b missing."""
    found = made(SETS, [("a",), ("b",), ()], [("a", "z"), (), ("b",)])
    counts = hits(found, answers(found, [("a", "b"), (NONE,), ()]))
    assert counts.tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 1]]
    assert micro(counts) == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))


def test_without_none_the_empty_set_counts_for_nothing() -> None:
    found = made(SETS, [("a",), ("b",), ()], [("a", "z"), (), ("b",)])
    counts = hits(found, answers(found, [("a", "b"), (NONE,), (NONE,)]), has_none=False)
    assert counts.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 1]]


def test_without_none_an_empty_set_that_training_never_had_is_no_miss() -> None:
    """Truth {}, {a} and {z}; said {}, {a} and {}: with the empty set it is a miss, as z is in any case."""
    found = made(SETS, [("a",), ("b",)], [(), ("a",), ("z",)])
    said = answers(found, [(), ("a",), ()])
    assert hits(found, said).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert hits(found, said, has_none=False).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]
    alone = made(SETS, [("a",), ("b",)], [(), ("a",)])
    assert micro(hits(alone, answers(alone, [(), ("a",)]), has_none=False)) == 1.0


def test_a_class_that_training_never_had_is_a_miss() -> None:
    found = made(ONE, [("1",), ("2",), ("2",)], [("2",), ("7",)])
    assert hits(found, answers(found, [("2",), ("1",)])).tolist() == [[1, 0, 0], [0, 1, 1]]


@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abcde")), st.frozensets(st.sampled_from("abcd"))), min_size=1))
def test_micro_f1_of_sets_is_that_of_scikit_learn(rows: list[tuple[frozenset[str], frozenset[str]]]) -> None:
    """`e` is a label that training never had."""
    truth, said = [tuple(sorted(first)) for first, _ in rows], [tuple(sorted(second)) for _, second in rows]
    found = made(SETS, [("a",), ("b",), ("c",), ("d",), ()], truth)
    binary = MultiLabelBinarizer(classes=[*"abcde", NONE])
    expected = f1_score(
        binary.fit_transform([row or (NONE,) for row in truth]),
        binary.transform([row or (NONE,) for row in said]),
        average="micro",
    )
    assert micro(hits(found, answers(found, [row or (NONE,) for row in said]))) == pytest.approx(expected)


@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from("123")), min_size=1))
def test_micro_f1_of_single_labels_is_the_share_of_right_answers(rows: list[tuple[str, str]]) -> None:
    found = made(ONE, [("1",), ("2",), ("3",)], [(first,) for first, _ in rows])
    expected = f1_score(*map(list, zip(*rows, strict=True)), average="micro")
    assert micro(hits(found, answers(found, [(second,) for _, second in rows]))) == pytest.approx(expected)


def test_the_majority_is_the_most_frequent_whole_answer() -> None:
    sets = made(SETS, [("a", "b"), ("a", "b"), ("a",), ("c",), ("c", "a")], [(), ("a",)])
    assert majority(sets).codes.toarray().sum(axis=0).tolist() == [2, 2, 0]  # type: ignore[union-attr]
    single = made(ONE, [("1",), ("2",), ("2",)], [("1",), ("1",), ("1",)])
    assert [single.classes[code] for code in majority(single).codes] == ["2", "2", "2"]


def test_the_best_constant_answer_by_hand() -> None:
    """Four sets of 8 labels: a is in 3, b and c in 2 each, d in 1.

    With one label F1 is 2 · 3 / (4 + 8) = 0.5, with two 2 · 5 / (8 + 8) = 0.625, with three 2 · 7 / (12 + 8) = 0.7,
    with four 2 · 8 / (16 + 8) = 0.667. The most frequent set is {d}, for of equally frequent ones the last counts.
    Held out, {a, b} and {z}: 2 right, 4 too many, 1 missing.
    """
    sets = made(SETS, [("a", "b"), ("a", "b", "c"), ("a", "c"), ("d",)], [("a", "b"), ("z",)])
    said = constant(sets)
    assert said.codes.toarray().tolist() == [[True, True, True, False]] * 2  # type: ignore[union-attr]
    assert micro(hits(sets, said)) == pytest.approx(2 * 2 / (2 * 2 + 4 + 1))
    assert micro(hits(sets, majority(sets))) == 0.0


def test_the_best_constant_answer_may_be_that_there_is_none() -> None:
    """Of three empty sets and {a}: 2 · 3 / (4 + 4) = 0.75 with `none`, 2 · 4 / (8 + 4) = 0.667 with both."""
    sets = made(SETS, [(), (), (), ("a",)], [("a",), ()])
    assert constant(sets).codes.toarray().tolist() == [[True, False]] * 2  # type: ignore[union-attr]


def test_the_best_constant_answer_of_single_labels_is_the_majority() -> None:
    single = made(ONE, [("1",), ("2",), ("2",)], [("1",), ("1",)])
    assert [single.classes[code] for code in constant(single).codes] == ["2", "2"]


@given(st.lists(st.frozensets(st.sampled_from("abcd")), min_size=1))
def test_no_number_of_frequent_labels_is_better_in_training(rows: list[frozenset[str]]) -> None:
    sets = [tuple(sorted(row)) for row in rows]
    found = made(SETS, sets, sets)
    tried = [micro(hits(found, answers(found, [found.classes[:count]] * len(sets)))) for count in range(1, 6)]
    assert micro(hits(found, constant(found))) == pytest.approx(max(tried))
    assert micro(hits(found, constant(found))) >= micro(hits(found, majority(found))) - 1e-12


def test_shuffling_keeps_every_answer_and_moves_it() -> None:
    found = made(SETS, [(letter,) for letter in "abcdefgh"], [("a",)])
    mixed = shuffled(found.training, np.random.default_rng(0)).codes.toarray()  # type: ignore[union-attr]
    plain = found.training.codes.toarray()  # type: ignore[union-attr]
    assert sorted(map(tuple, mixed)) == sorted(map(tuple, plain))
    assert (mixed != plain).any()
