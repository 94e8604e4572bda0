from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dialoscope.report.theme import PAGE, QUIET, SERIES, dark_counterparts

# How linear RGB looks without one kind of cone (Machado, Oliveira and Fernandes 2009, full severity).
SIGHT = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ _linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _lab(linear: np.ndarray) -> np.ndarray:
    relative = XYZ @ np.clip(linear, 0, 1) / WHITE
    root = np.where(relative > 0.008856, np.cbrt(relative), 7.787 * relative + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "muted", "accent", "good", "concern"])
def test_words_can_be_read_on_every_ground(name: str, place: int) -> None:
    assert all(_contrast(PAGE[name][place], PAGE[ground][place]) >= 4.5 for ground in ("paper", "surface"))


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_words_can_be_read_when_marked(place: int) -> None:
    assert _contrast(PAGE["ink"][place], PAGE["marked"][place]) >= 4.5


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("pair", [*SERIES, QUIET], ids=lambda pair: pair[0])
def test_lines_and_bars_stand_out_from_the_paper(pair: tuple[str, str], place: int) -> None:
    assert _contrast(pair[place], PAGE["paper"][place]) >= 3


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_series_can_be_told_apart_by_everybody(sight: str, place: int) -> None:
    seen = [_lab(SIGHT[sight] @ _linear(pair[place])) for pair in SERIES]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) >= 12


def test_no_two_colours_of_a_chart_want_different_counterparts() -> None:
    assert all(dark_counterparts()[light] == dark for light, dark in [*SERIES, QUIET])
