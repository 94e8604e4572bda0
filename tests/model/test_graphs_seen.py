"""Which shapes are remembered before they are captured: nothing here needs a GPU."""

from __future__ import annotations

import pytest

from dialoscope.model import graphs


@pytest.fixture(autouse=True)
def cleared() -> None:
    graphs.clear()


def test_a_shape_is_known_when_it_comes_again() -> None:
    assert [graphs._came_before((shape,)) for shape in (1, 2, 1, 2, 3)] == [False, False, True, True, False]


def test_shapes_that_never_come_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_SEEN", 3)
    for shape in range(100):
        graphs._came_before((shape,))
        assert len(graphs._seen) <= 3
    assert graphs._came_before((99,))
