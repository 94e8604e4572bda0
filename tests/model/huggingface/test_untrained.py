from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.untrained import untrained

CONTEXTS = [["hello there", "how are you?"], ["where is the station?"]]


@pytest.mark.parametrize("name", ["llama", "bert", "t5"])
def test_weights_are_drawn_anew_and_nothing_else_changes(name: str, model: Callable[..., HuggingFaceModel]) -> None:
    trained = model(name)
    before = {key: weight.clone() for key, weight in trained.network.model.state_dict().items()}
    state = torch.random.get_rng_state()
    fresh, again, other = (untrained(trained, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(torch.random.get_rng_state(), state)  # the caller's random numbers stay as they were
    assert fresh.name == again.name != other.name
    assert fresh.name.partition("@")[0] == f"{trained.checkpoint}-untrained"
    assert not np.allclose(fresh.encode(CONTEXTS), trained.encode(CONTEXTS), atol=1e-3)
    assert np.array_equal(fresh.encode(CONTEXTS), again.encode(CONTEXTS))
    assert isinstance(fresh, HuggingFaceModel)
    fresh.account.contexts = 7
    assert trained.account.contexts == 0
    assert all(torch.equal(weight, before[key]) for key, weight in trained.network.model.state_dict().items())
