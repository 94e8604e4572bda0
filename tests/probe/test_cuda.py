"""Classifiers on a GPU, where batches are graphs and blocks are larger, against the same on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.probe.test_perceptron import BITS, FEATURES, FIRST, SECOND, classes, dense, sets

from dialoscope.probe.logistic import fit_logistic
from dialoscope.probe.perceptron import fit_perceptron

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

TARGETS = [classes(FIRST), sets(BITS[FIRST]), classes(FIRST, 3)]


def test_perceptrons_learn_the_same_from_captured_steps() -> None:
    """With a last batch that is smaller and is not captured; few epochs, for rounding grows with every one."""
    here, there = (
        fit_perceptron(FEATURES[FIRST], TARGETS, epochs=5, batch_size=64, device=device) for device in ("cpu", "cuda")
    )
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one.hidden_weight, other.hidden_weight, atol=2e-4)
        np.testing.assert_allclose(one.weight, other.weight, atol=2e-4)


def test_perceptrons_that_stop_at_different_epochs_leave_the_graph() -> None:
    here, there = (
        fit_perceptron(FEATURES[FIRST], TARGETS, epochs=200, patience=2, rate=1e-2, device=device)
        for device in ("cpu", "cuda")
    )
    assert len({one.epochs for one in here}) > 1
    for one, other in zip(here, there, strict=True):
        assert abs(one.epochs - other.epochs) <= 10
    answers = [
        some[0].predict(FEATURES[SECOND], device=device).codes for some, device in ((here, "cpu"), (there, "cuda"))
    ]
    assert np.mean(answers[0] == answers[1]) > 0.97


def test_logistic_regression_finds_the_same_optimum() -> None:
    here, there = (fit_logistic(FEATURES[FIRST], TARGETS, device=device) for device in ("cpu", "cuda"))
    for one, other in zip(here, there, strict=True):
        assert np.all(other.is_converged)
        ours, theirs = one.predict(FEATURES[SECOND]), other.predict(FEATURES[SECOND], device="cuda")
        if isinstance(ours.codes, np.ndarray):
            assert np.mean(ours.codes == theirs.codes) > 0.995
        else:
            assert np.mean(dense(ours) == dense(theirs)) > 0.995
