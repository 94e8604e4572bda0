"""Encodings as pictures: their two main directions, coloured by a label (Figures 2 and 4 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dialoscope.errors import UsageError, unknown_name
from dialoscope.model.protocol import Floats as Features
from dialoscope.probe.labels import Floats, Ints, Labels

POINTS = 600  # that a picture shows
NAMED = 7  # labels that have a colour of their own
OTHERS = "other"
PREFERRED = ("RecentTopic", "UtteranceLoc")  # what colours a picture, the first that the corpus carries


@dataclass(frozen=True, eq=False)
class Picture:
    """Where some of a model's encodings lie, with their labels."""

    model: str
    task: str
    labels: tuple[str, ...]  # the most frequent first
    label: Ints  # (points,) number of each point's label, from 0
    coordinates: Floats  # (points, 2)
    share: float  # of the encodings' variance that lies in these two directions

    @property
    def points(self) -> dict[str, list[tuple[float, float]]]:
        """The points of each label."""
        points: dict[str, list[tuple[float, float]]] = {name: [] for name in self.labels}
        for label, (x, y) in zip(self.label.tolist(), self.coordinates.tolist(), strict=True):
            points[self.labels[label]].append((x, y))
        return points


def colouring(labels: Mapping[str, Labels], skipped: Mapping[str, str], wanted: str | None) -> str:
    """The task whose labels colour pictures: the one that is wanted, or what usually tells most."""
    if wanted is None:
        return next((name for name in PREFERRED if name in labels), next(iter(labels)))
    if wanted in skipped:
        raise UsageError(f"Pictures cannot be coloured by {wanted}: it {skipped[wanted]}.")
    if wanted not in labels:
        raise unknown_name("task to colour pictures by", wanted, list(labels))
    return wanted


def picture(model: str, encodings: Features, labels: Labels, rng: np.random.Generator) -> Picture:
    """Project held-out encodings on to two principal components and name them by a task's labels."""
    chosen = np.sort(rng.permutation(len(encodings))[:POINTS])
    points, share = main_directions(encodings, chosen)
    names = _names(labels, chosen)
    common = [name for name, _ in Counter(names).most_common(NAMED)]
    names = [name if name in common else OTHERS for name in names]
    shown = tuple(dict.fromkeys([*common, *names]))
    return Picture(model, labels.name, shown, np.array([shown.index(name) for name in names]), points, share)


def main_directions(encodings: Features, chosen: Ints) -> tuple[Floats, float]:
    """The chosen rows on the first two principal components of all rows, and the share of variance they hold."""
    centred = encodings.astype(np.float64) - encodings.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = np.pad(vectors[:, ::-1], ((0, 0), (0, 1)))[:, :2]  # an encoding of one number has one direction
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1, 1)  # a direction has no sign: fix one
    total = float(values.sum())
    return centred[chosen] @ axes, float(values[-2:].sum()) / total if total > 0 else 0.0


def _names(labels: Labels, chosen: Ints) -> list[str]:
    """What each chosen position is labelled with; a set is its labels joined."""
    codes = labels.held_out.codes
    if isinstance(codes, np.ndarray):
        return [labels.classes[code] if code >= 0 else OTHERS for code in codes[chosen]]
    rows = (codes.indices[codes.indptr[row] : codes.indptr[row + 1]] for row in chosen)
    return [" + ".join(labels.classes[code] for code in sorted(row)) or OTHERS for row in rows]
