"""Against scikit-learn, run until it converges; no expected number is our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from dialoscope.errors import UsageError
from dialoscope.model.protocol import Floats
from dialoscope.probe import descent
from dialoscope.probe.logistic import Linear, fit_logistic
from dialoscope.probe.targets import Targets

Array = np.ndarray[Any, Any]


def sets(table: Array) -> Targets:
    return Targets(sparse.csr_array(table.astype(bool)), table.shape[1])


def dense(targets: Targets) -> Array:
    codes: Array = targets.codes.toarray()  # type: ignore[union-attr]
    return codes


def theirs(features: Floats, codes: Array, strength: float = 1.0) -> Any:
    """Scikit-learn's optimum: Newton's method, in double precision, far below its usual tolerance."""
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10, max_iter=500)
    return model.fit(features.astype(np.float64), codes)


def objective(features: Floats, weight: Array, bias: Array, codes: Array, strength: float = 1.0) -> float:
    """½‖w‖² + C · Σ log loss of one binary problem, in double precision."""
    scores = features.astype(np.float64) @ weight.astype(np.float64) + float(bias)
    return float(
        strength * (np.logaddexp(0, scores) - codes * scores).sum() + (weight.astype(np.float64) ** 2).sum() / 2
    )


def encodings(rows: int, width: int, seed: int, *, scales: bool = False) -> Floats:
    """Like hidden states: a few directions that matter, noise, squashed; the scales may differ by thousands."""
    rng = np.random.default_rng(seed)
    found = np.tanh(
        rng.normal(size=(rows, 8)) @ rng.normal(size=(8, width)) * 0.5 + rng.normal(size=(rows, width)) * 0.3
    )
    stretch = np.geomspace(1e-2, 30, width) if scales else np.ones(width)
    moved: Floats = (found * rng.permutation(stretch) + rng.normal(size=width)).astype(np.float32)
    return moved


def labels(features: Floats, shares: list[float], seed: int, noise: float = 0.5) -> Array:
    """Labels of these frequencies that the features partly know; none where the share is 0, all where it is 1."""
    rng = np.random.default_rng(seed)
    unit = (features - features.mean(0)) / features.std(0)
    scores = unit @ rng.normal(size=(features.shape[1], len(shares))) / np.sqrt(features.shape[1])
    ranks = np.argsort(np.argsort(-(scores + noise * rng.normal(size=scores.shape)), axis=0), axis=0)
    return ranks < np.round(np.array(shares) * len(features))


RARE = [1 / 600, 2 / 600, 3 / 600, 5 / 600]
SHAPES = {
    "frequent": ([0.5, 0.3, 0.2, 0.1, 0.9], False, 0.5),
    "rare": ([*RARE, 0.05, 0.02], False, 0.5),
    "scales": ([0.5, 0.3, 0.05, *RARE], True, 0.5),
    "separable": ([0.5, 0.2, 0.05], False, 0.0),
    "separable scales": ([0.5, 0.2, 0.05], True, 0.0),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_label_reaches_scikit_learns_optimum_and_answers(shape: str) -> None:
    shares, scales, noise = SHAPES[shape]
    features = encodings(900, 40, seed=3, scales=scales)
    table = labels(features, shares, seed=4, noise=noise)
    first, second = features[:600], features[600:]
    found = fit_logistic(first, [sets(table[:600])])[0]
    said, expected = dense(found.predict(second)), np.zeros((300, len(shares)), dtype=bool)
    assert found.is_converged.all()
    for place in range(len(shares)):
        codes = table[:600, place]
        if 0 < codes.sum() < 600:
            model = theirs(first, codes)
            expected[:, place] = model.predict(second)
            best = objective(first, model.coef_[0], model.intercept_[0], codes)
            assert objective(first, found.weight[:, place], found.bias[place], codes) <= best * (1 + 1e-5)
    assert abs(micro_f1(table[600:], said) - micro_f1(table[600:], expected)) < 0.003


def micro_f1(truth: Array, said: Array) -> float:
    return float(f1_score(truth, said, average="micro", zero_division=0))


def test_separable_classes_take_few_iterations() -> None:
    """They took 250 before the preconditioner knew how certain rows had become."""
    pixels, digits = load_digits(return_X_y=True)
    features, codes = pixels[digits < 3][:269].astype(np.float32), digits[digits < 3][:269].astype(np.int64)
    assert fit_logistic(features, [Targets(codes, 3)], most_iterations=80)[0].is_converged.all()


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
def test_weights_are_scikit_learns(strength: float) -> None:
    features = encodings(500, 10, seed=1)
    codes = labels(features, [0.4], seed=2)[:, 0]
    found = fit_logistic(features, [sets(codes[:, None])], strength=strength, tolerance=1e-11)[0]
    model = theirs(features, codes, strength)
    np.testing.assert_allclose(found.weight[:, 0], model.coef_[0], rtol=2e-3, atol=2e-3 * np.abs(model.coef_).max())
    assert found.bias[0] == pytest.approx(model.intercept_[0], rel=5e-3, abs=5e-3)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_classes_are_told_apart_as_by_scikit_learn(classes: int) -> None:
    pixels, digits = load_digits(return_X_y=True)
    features, codes = pixels[digits < classes].astype(np.float32), digits[digits < classes].astype(np.int64)
    half = len(codes) // 2
    found = fit_logistic(features[:half], [Targets(codes[:half], classes)])[0]
    model = theirs(features[:half], codes[:half])
    said = found.predict(features[half:]).codes
    assert found.is_converged.all() and found.weight.shape == (64, classes)
    assert np.mean(said == model.predict(features[half:])) > 0.997


def test_softmax_reaches_scikit_learns_optimum() -> None:
    pixels, digits = load_digits(return_X_y=True)
    features, codes = (pixels[:600] / 16).astype(np.float32), digits[:600].astype(np.int64)
    found = fit_logistic(features, [Targets(codes, 10)])[0]
    model = theirs(features, codes)
    both = (found.weight, found.bias), (model.coef_.T, model.intercept_)
    ours, best = (softmax_objective(features, weight, bias, codes) for weight, bias in both)
    assert ours <= best * (1 + 1e-5)
    np.testing.assert_allclose(found.weight, model.coef_.T, atol=5e-3)


def softmax_objective(features: Floats, weight: Array, bias: Array, codes: Array) -> float:
    scores = features.astype(np.float64) @ weight.astype(np.float64) + bias
    loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(codes)), codes]
    return float(loss.sum() + (weight.astype(np.float64) ** 2).sum() / 2)


def test_a_label_that_is_always_or_never_on_is_answered_so() -> None:
    features = encodings(50, 4, seed=0)
    table = labels(features, [1.0, 0.0, 0.5], seed=0)
    said = dense(fit_logistic(features, [sets(table)])[0].predict(encodings(30, 4, seed=1) * 100))
    assert said[:, 0].all() and not said[:, 1].any()


def test_a_class_that_never_occurs_is_never_answered() -> None:
    features = encodings(60, 4, seed=0)
    codes = np.arange(60) % 3 + 1
    cases = (np.full(60, 2), {2}), (np.where(codes == 3, 1, codes), {1, 2}), (codes, {1, 2, 3})
    for taught, allowed in cases:
        found = fit_logistic(features, [Targets(taught, 5)])[0]
        assert set(np.unique(np.asarray(found.predict(features * 10).codes))) <= allowed


@settings(max_examples=10)
@given(order=st.permutations(range(6)), others=st.booleans())
def test_neither_order_nor_copies_nor_other_tasks_change_an_answer(order: list[int], others: bool) -> None:
    features = encodings(200, 12, seed=5)
    table = labels(features, [0.5, 0.3, 0.1, 0.05, 0.02, 0.005], seed=6)
    classes = Targets(table[:, :3].sum(1).astype(np.int64), 4)
    alone = fit_logistic(features, [sets(table)])[0]
    before = [classes, sets(~table)] if others else []
    again = fit_logistic(features, [*before, sets(table[:, [*order, order[0]]])])[-1]
    np.testing.assert_allclose(again.weight, alone.weight[:, [*order, order[0]]], atol=2e-3)
    assert (dense(again.predict(features)) == dense(alone.predict(features))[:, [*order, order[0]]]).mean() > 0.999


def test_equal_columns_are_solved_once() -> None:
    features = encodings(100, 6, seed=0)
    table = labels(features, [0.5, 0.2], seed=0)
    seen: list[tuple[int, int]] = []
    found = fit_logistic(features, [sets(table), sets(table[:, [1, 0, 1]])], progress=lambda *at: seen.append(at))
    assert seen[-1] == (2, 2)
    np.testing.assert_array_equal(found[1].weight, found[0].weight[:, [1, 0, 1]])


def test_small_blocks_and_pieces_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    features = encodings(300, 12, seed=5)
    table, classes = labels(features, [0.5, 0.3, 0.1, 0.05], seed=6), Targets(np.arange(300) % 7, 7)
    whole = fit_logistic(features, [sets(table), classes])
    said = [one.predict(features) for one in whole]
    monkeypatch.setattr(descent, "BLOCK_CELLS", 650)
    monkeypatch.setattr(descent, "PIECE_CELLS", {"cpu": 1})
    for one, other in zip(whole, fit_logistic(features, [sets(table), classes]), strict=True):
        np.testing.assert_allclose(one.weight, other.weight, atol=2e-3)
    assert (dense(whole[0].predict(features)) == dense(said[0])).all()
    np.testing.assert_array_equal(whole[1].predict(features).codes, said[1].codes)


@pytest.mark.parametrize("share", [0.25, 0.6, 1.0])
def test_problems_that_wait_for_others_to_leave_with_change_no_answer(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where putting the rest of a block together is worth it only once many are done."""
    features = encodings(300, 12, seed=5)
    table, classes = labels(features, [0.5, 0.3, 0.1, 0.05, 0.02], seed=6), Targets(np.arange(300) % 7, 7)
    at_once = fit_logistic(features, [sets(table), classes])
    monkeypatch.setattr(descent, "LEAVING", {"cpu": share})
    for one, other in zip(at_once, fit_logistic(features, [sets(table), classes]), strict=True):
        np.testing.assert_allclose(one.weight, other.weight, atol=1e-4)
        np.testing.assert_array_equal(one.is_converged, other.is_converged)


def test_a_gpu_takes_more_labels_at_once() -> None:
    assert descent.labels_at_once("cpu", 50_000) == 2**24 // 50_000 == 335
    assert descent.labels_at_once("cuda", 50_000) == 2**28 // 50_000 == 5368
    assert descent.labels_at_once("cuda", 1) == 16 * descent.labels_at_once("cpu", 1) == 16 * 1024
    assert descent.labels_at_once("cpu", 2**30) == 1


def test_single_label_tasks_of_as_many_classes_are_solved_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    features, rng = encodings(200, 8, seed=3), np.random.default_rng(0)
    tasks = [Targets(rng.integers(0, count, 200), count) for count in (4, 3, 4, 4)]
    alone = [fit_logistic(features, [one])[0] for one in tasks]
    blocks: list[tuple[int, int]] = []
    start = descent.Descent.start
    monkeypatch.setattr(
        descent.Descent,
        "start",
        lambda space, rows, **how: blocks.append((len(rows), how["heads"])) or start(space, rows, **how),  # type: ignore[func-returns-value]
    )
    for one, other in zip(alone, fit_logistic(features, tasks), strict=True):
        np.testing.assert_allclose(one.weight, other.weight, atol=1e-4)
    assert blocks == [(3, 3), (12, 4)]


def test_answers_in_pieces_keep_the_order_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "BLOCK_CELLS", 4)
    one = Linear(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32), True, np.ones(2, dtype=bool))
    features = np.array([[1, -1], [-1, 1], [1, 1], [-1, -1], [2, -2]], dtype=np.float32)
    assert dense(one.predict(features)).tolist() == (features > 0).tolist()


def test_what_did_not_converge_says_so() -> None:
    features = encodings(300, 12, seed=5)
    found = fit_logistic(features, [sets(labels(features, [0.5, 0.0], seed=6))], most_iterations=1)[0]
    assert found.is_converged.tolist() == [False, True]
    assert np.isfinite(found.weight).all()


def test_features_that_say_nothing_leave_the_frequencies() -> None:
    features = np.ones((10, 3), dtype=np.float32)
    found = fit_logistic(features, [sets(np.arange(10)[:, None] < 2)])[0]
    assert found.bias[0] + found.weight[:, 0].sum() == pytest.approx(np.log(0.2 / 0.8), rel=1e-4)


FINE = np.ones((3, 2), dtype=np.float32)
BAD = {
    "NaN or infinite": (np.array([[1, np.nan]], dtype=np.float32), Targets(np.zeros(1, dtype=np.int64), 1)),
    "at least one": (np.zeros((0, 2), dtype=np.float32), Targets(np.zeros(0, dtype=np.int64), 1)),
    "2 rows, the features 3": (FINE, Targets(np.zeros(2, dtype=np.int64), 1)),
    "classes -1 to 1, expected 0 to 1": (FINE, Targets(np.array([-1, 0, 1]), 2)),
    "2 columns of labels, expected 3": (FINE, Targets(sparse.csr_array((3, 2), dtype=bool), 3)),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_clear_line(message: str) -> None:
    features, targets = BAD[message]
    with pytest.raises(UsageError, match=message) as error:
        fit_logistic(features, [targets])
    assert "\n" not in str(error.value)
