from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from torch.utils._python_dispatch import TorchDispatchMode

from dialoscope.errors import UsageError
from dialoscope.model.protocol import Floats
from dialoscope.probe import descent
from dialoscope.probe.perceptron import Perceptron, fit_perceptron
from dialoscope.probe.targets import Targets

Array = np.ndarray[Any, Any]
PIXELS, DIGITS = load_digits(return_X_y=True)
FEATURES: Floats = (PIXELS / 16).astype(np.float32)
HALF = len(DIGITS) // 2
BITS = (DIGITS[:, None] >> np.arange(4)) % 2 == 1  # which powers of two a digit is the sum of


def classes(rows: slice, count: int = 10) -> Targets:
    return Targets(DIGITS[rows].astype(np.int64) % count, count)


def sets(table: Array) -> Targets:
    return Targets(sparse.csr_array(table), table.shape[1])


def dense(targets: Targets) -> Array:
    found: Array = targets.codes.toarray()  # type: ignore[union-attr]
    return found


def micro_f1(truth: Array, said: Array) -> float:
    return float(2 * (truth & said).sum() / (truth.sum() + said.sum()))


FIRST, SECOND = slice(0, HALF), slice(HALF, None)


def test_held_out_digits_are_read_as_well_as_by_scikit_learn() -> None:
    model = MLPClassifier(max_iter=60, random_state=0, tol=1e-2).fit(FEATURES[FIRST], DIGITS[FIRST])
    found = fit_perceptron(FEATURES[FIRST], [classes(FIRST)], epochs=model.n_iter_)[0]
    ours = np.mean(found.predict(FEATURES[SECOND]).codes == DIGITS[SECOND])
    assert abs(ours - model.score(FEATURES[SECOND], DIGITS[SECOND])) < 0.03


def test_sets_of_labels_are_learnt_as_by_scikit_learn() -> None:
    model = MLPClassifier(max_iter=60, random_state=0, tol=1e-2).fit(FEATURES[FIRST], BITS[FIRST])
    found = fit_perceptron(FEATURES[FIRST], [sets(BITS[FIRST])], epochs=model.n_iter_)[0]
    ours = micro_f1(BITS[SECOND], dense(found.predict(FEATURES[SECOND])))
    assert abs(ours - micro_f1(BITS[SECOND], model.predict(FEATURES[SECOND]).astype(bool))) < 0.03


def test_one_epoch_from_the_same_weights_is_scikit_learns() -> None:
    """One batch holds all rows, so the order of rows is nothing and the update can be compared number by number."""
    rows, wide = slice(0, 100), sets(BITS[:100])
    before = fit_perceptron(FEATURES[rows], [wide], rate=0.0, epochs=1)[0]
    model = MLPClassifier(max_iter=1, batch_size=100, alpha=1.0)
    model.partial_fit(FEATURES[rows], BITS[rows], classes=np.arange(4))
    model.coefs_ = [before.hidden_weight.astype(np.float32), before.weight.astype(np.float32)]
    model.intercepts_ = [before.hidden_bias.astype(np.float32), before.bias.astype(np.float32)]
    del model._optimizer
    model.partial_fit(FEATURES[rows], BITS[rows])
    after = fit_perceptron(FEATURES[rows], [wide], epochs=1, decay=1.0)[0]
    for ours, theirs in zip((after.hidden_weight, after.weight), model.coefs_, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    for ours, theirs in zip((after.hidden_bias, after.bias), model.intercepts_, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def parts(one: Perceptron) -> tuple[Floats, ...]:
    return one.hidden_weight, one.hidden_bias, one.weight, one.bias


def test_the_same_seed_gives_the_same_weights_and_another_gives_others() -> None:
    one, same, other = (
        fit_perceptron(FEATURES[:300], [classes(slice(300))], epochs=3, seed=seed)[0] for seed in (1, 1, 2)
    )
    for first, second in zip(parts(one), parts(same), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(one.weight, other.weight)


def test_other_tasks_change_nothing_even_when_they_stop() -> None:
    rows = slice(0, 400)
    constant, own = Targets(np.zeros(400, dtype=np.int64), 1), classes(rows, 3)
    alone = fit_perceptron(FEATURES[rows], [own], epochs=20, patience=2)[0]
    found = fit_perceptron(FEATURES[rows], [constant, sets(BITS[rows]), own], epochs=20, patience=2)
    assert found[0].epochs < found[2].epochs == alone.epochs
    for first, second in zip(parts(alone), parts(found[2]), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-4)


def test_tasks_of_any_width_and_kind_learn_as_they_do_alone() -> None:
    """Widths on both sides of what shares a product, so that some are filled up and some are products of their own."""
    rows, rng = slice(0, 300), np.random.default_rng(0)
    wide = [sets(rng.random((300, count)) < 0.1) for count in (1, 70, 100, 300)]
    every = [wide[3], classes(rows, 3), wide[0], classes(rows), wide[1], Targets(DIGITS[rows] * 9, 90), wide[2]]
    together = fit_perceptron(FEATURES[rows], every, epochs=4)
    for one, found in zip(every, together, strict=True):
        alone = fit_perceptron(FEATURES[rows], [one], epochs=4)[0]
        assert found.is_multi == one.is_multi
        assert found.weight.shape == (100, one.classes)
        for first, second in zip(parts(alone), parts(found), strict=True):
            np.testing.assert_allclose(first, second, atol=1e-4)


def test_a_task_whose_numbers_overflow_stops_no_other() -> None:
    """With a rate that is far too high the weights of what can be learnt are no numbers soon."""
    rows = slice(0, 200)
    wild, constant = sets(np.random.default_rng(0).random((200, 80)) < 0.5), Targets(np.zeros(200, dtype=np.int64), 1)
    found = fit_perceptron(FEATURES[rows], [wild, constant], epochs=30, rate=1e30, decay=0.0)
    assert not np.isfinite(found[0].weight).all()
    assert np.isfinite(found[1].weight).all()
    assert found[1].epochs == 12  # nothing to learn: the first epoch, ten of patience, and one


def test_a_batch_takes_few_operations_however_many_tasks_there_are() -> None:
    """On a GPU every one of them is a launch, and there are thousands of batches."""

    class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
        found = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.found += 1
            return func(*args, **(kwargs or {}))

    def operations(tasks: int, batches: int) -> int:
        rows = slice(0, 50 * batches)
        with Count() as count:  # type: ignore[no-untyped-call]
            fit_perceptron(FEATURES[rows], [sets(BITS[rows]), classes(rows)] * tasks, epochs=1, batch_size=50)
        return int(count.found)

    few, many = (operations(tasks, 9) - operations(tasks, 5) for tasks in (1, 10))
    assert many == few < 4 * 120  # views included


def test_a_task_keeps_the_weights_it_stopped_with() -> None:
    rows, constant = slice(0, 200), Targets(np.zeros(200, dtype=np.int64), 1)
    found = fit_perceptron(FEATURES[rows], [constant, classes(rows)], epochs=15, patience=1)
    again = fit_perceptron(FEATURES[rows], [constant], epochs=found[0].epochs, patience=100)[0]
    np.testing.assert_allclose(found[0].hidden_weight, again.hidden_weight, atol=1e-6)


def test_labels_stored_as_false_or_twice_are_read_right() -> None:
    rows = slice(0, 100)
    stored = sparse.csr_array(np.ones((100, 4), dtype=bool))
    stored.data = BITS[rows].ravel()
    plain, odd = fit_perceptron(FEATURES[rows], [sets(BITS[rows]), Targets(stored, 4)], epochs=2)
    np.testing.assert_allclose(plain.weight, odd.weight, atol=1e-6)


def test_answers_in_pieces_are_the_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fit_perceptron(FEATURES[:100], [classes(slice(100)), sets(BITS[:100])], epochs=2)
    single, several = (one.predict(FEATURES) for one in found)
    monkeypatch.setattr(descent, "BLOCK_CELLS", 5000)
    np.testing.assert_array_equal(found[0].predict(FEATURES).codes, single.codes)
    np.testing.assert_array_equal(dense(found[1].predict(FEATURES)), dense(several))


def test_progress_ends_with_all_epochs() -> None:
    seen: list[tuple[int, int]] = []
    constant = Targets(np.zeros(50, dtype=np.int64), 1)
    fit_perceptron(FEATURES[:50], [constant], epochs=30, patience=1, progress=lambda *at: seen.append(at))
    assert len(seen) < 30 and seen[-1] == (30, 30)


def test_no_tasks_need_no_training() -> None:
    assert fit_perceptron(FEATURES, []) == []


def test_rows_that_differ_are_refused() -> None:
    with pytest.raises(UsageError, match="Task 0 has 10 rows, the features 20"):
        fit_perceptron(FEATURES[:20], [classes(slice(10))])
