"""From corpora to a predictor on disk, in one call: frozen in seconds, or tuned in minutes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from turnwise.corpus import Corpus, resplit
from turnwise.engage.examples import Examples, Target, examples, joined, shuffled
from turnwise.errors import OutputError, UsageError

if TYPE_CHECKING:
    from turnwise.engage.encoder import Progress as EncodingProgress
    from turnwise.engage.predictor import Predictor
    from turnwise.engage.settings import Recipe
    from turnwise.engage.tuning import Judged, Progress, Tuned

DEALT = 20  # of a corpus without splits, one in so many dialogues is held out for validation, and one for testing


@dataclass(frozen=True, eq=False)
class Material:
    """What a predictor learns from and what it is chosen by, of one corpus or several."""

    training: Sequence[Examples]
    validation: Examples

    @property
    def left_out(self) -> int:
        """Dialogues without a target."""
        return sum(one.left_out for one in (*self.training, self.validation))


def material(
    corpora: Iterable[Corpus], *, target: Target | None = None, is_shuffled: bool = False, seed: int = 0
) -> Material:
    """Turns of the training and validation splits; with `is_shuffled`, each training turn has another's label."""
    parts = [dealt(one, seed=seed) for one in corpora]
    training = [examples(one.split("train"), target=target) for one in parts]
    if is_shuffled:
        training = [shuffled(one, np.random.default_rng([seed, place])) for place, one in enumerate(training)]
    return Material(training, joined([examples(one.split("validation"), target=target) for one in parts]))


def dealt(corpus: Corpus, *, seed: int = 0) -> Corpus:
    """A corpus with training and validation splits: its own, or where it has a single one, dealt by the seed."""
    if {"train", "validation"} <= corpus.splits.keys():
        return corpus
    if not corpus.splits.keys() <= {"train", "all"} or len(corpus.splits) > 1:
        found = ", ".join(corpus.splits)
        raise UsageError(f"Corpus '{corpus.name}' needs splits called train and validation, found {found}.")
    held_out = len(corpus) // DEALT
    if not held_out:
        raise UsageError(f"Corpus '{corpus.name}' has {len(corpus)} dialogues; {DEALT} are needed to hold some out.")
    return resplit(corpus, validation=held_out, test=held_out, seed=seed)


def fit_head(
    given: Material,
    *,
    start: Predictor,
    out: Path | None = None,
    seed: int = 0,
    cache: Path | None = None,
    progress: EncodingProgress | None = None,
) -> Predictor:
    """Fit the linear layer on an encoder that stays as it is."""
    from turnwise.engage import storage
    from turnwise.engage.frozen import fit_frozen

    if out is not None and out.is_dir() and any(out.iterdir()):
        raise OutputError(f"{out}: this folder is not empty. Give the name of a new one.")
    training = joined(given.training)
    fitted = fit_frozen(
        training, given.validation, encoder=start.encoder, settings=start.settings, cache=cache, progress=progress
    )
    # An encoder that people's ratings chose stays chosen by them.
    more = {"seed": seed, "selected_on": sorted(start.selected_on)}
    fitted = replace(fitted, origin={**fitted.origin, **more})
    found = calibrated(fitted, given.validation)
    if out is not None:
        storage.save(out / "best", found)
    return found


def fit_all(
    given: Material,
    *,
    start: Predictor,
    out: Path,
    recipe: Recipe,
    seed: int = 0,
    select: str = "valloss",
    human: Judged | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Tune the encoder as well."""
    from turnwise.engage import storage
    from turnwise.engage.tuning import tune

    found = tune(
        given.training, given.validation, start=start, out=out, recipe=recipe, seed=seed, select=select, human=human,
        resume=resume, progress=progress,
    )  # fmt: skip
    best = calibrated(found.predictor, given.validation)
    storage.save(out / "best", best)
    return replace(found, predictor=best)


def calibrated(predictor: Predictor, held_out: Examples) -> Predictor:
    """With intervals around its scores, from dialogues that it did not learn from."""
    from turnwise.engage.live import Calibration

    scores = np.concatenate(predictor.predict(list(held_out.dialogues)))
    return replace(predictor, calibration=Calibration.of(scores, held_out.targets))
