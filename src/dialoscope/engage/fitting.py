"""From corpora to a predictor on disk, in one call: frozen in seconds, or tuned in minutes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialoscope.corpus import Corpus, resplit
from dialoscope.engage.examples import Examples, Target, examples, joined, shuffled
from dialoscope.errors import OutputError, UsageError

if TYPE_CHECKING:
    from dialoscope.engage.encoder import Progress as EncodingProgress
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.settings import Recipe
    from dialoscope.engage.tuning import Judged, Progress, Tuned

SPLITS = ("train", "validation")
DEALT = 20  # of a corpus without splits, one in so many dialogues is held out for validation, and one for testing


@dataclass(frozen=True, eq=False)
class Material:
    """What a predictor learns from and what it is chosen by, of one corpus or several."""

    training: Sequence[Examples]
    validation: Examples
    is_shuffled: bool = False  # whether training turns have each other's labels: a control

    @property
    def left_out(self) -> int:
        """Dialogues without a target."""
        return sum(one.left_out for one in (*self.training, self.validation))


def material(
    corpora: Iterable[Corpus],
    *,
    target: Target | None = None,
    is_shuffled: bool = False,
    seed: int = 0,
    splits: tuple[str, str] = SPLITS,
) -> Material:
    """Turns of the training and validation splits; with `is_shuffled`, each training turn has another's label."""
    parts = [dealt(one, seed=seed, splits=splits) for one in corpora]
    training = [examples(one.split(splits[0]), target=target) for one in parts]
    if is_shuffled:
        training = [shuffled(one, np.random.default_rng([seed, place])) for place, one in enumerate(training)]
    return Material(training, joined([examples(one.split(splits[1]), target=target) for one in parts]), is_shuffled)


def dealt(corpus: Corpus, *, seed: int = 0, splits: tuple[str, str] = SPLITS) -> Corpus:
    """A corpus with training and validation splits: its own, or where it has a single one, dealt by the seed."""
    if set(splits) <= corpus.splits.keys():
        return corpus
    if splits != SPLITS or not corpus.splits.keys() <= {"train", "all"} or len(corpus.splits) > 1:
        found = ", ".join(corpus.splits)
        raise UsageError(f"Corpus '{corpus.name}' needs splits called {' and '.join(splits)}, found {found}.")
    held_out = len(corpus) // DEALT
    if not held_out:
        raise UsageError(f"Corpus '{corpus.name}' has {len(corpus)} dialogues; {DEALT} are needed to hold some out.")
    return resplit(corpus, validation=held_out, test=held_out, seed=seed)


def learnt_from(training: Sequence[Examples], start: Predictor) -> dict[str, str]:
    """Fingerprints of all dialogues that weights have seen, by corpus, those of the start included.

    Where other dialogues of one corpus were seen before, it has all fingerprints, and no dealing fits them.
    """
    seen: dict[str, set[str]] = {name: set(known.split("+")) for name, known in start.origin.get("learnt", {}).items()}
    for one in training:
        seen.setdefault(one.name, set()).add(one.dialogue_fingerprint)
    return {name: "+".join(sorted(some)) for name, some in seen.items()}


def dealt_as_learnt(corpus: Corpus, predictors: Mapping[str, Predictor]) -> Corpus:
    """A corpus without splits, dealt as predictors learnt from it, so that none is measured on what it learnt.

    Those that learnt from other corpora alone set no condition. An older predictor, which does not say what it learnt
    from, counts as having learnt from this one.
    """
    learners = {
        name: one for name, one in predictors.items() if corpus.name in one.origin.get("learnt", (corpus.name,))
    }
    seeds = {name: int(one.origin.get("seed", 0)) for name, one in learners.items()}
    seed = next(iter(seeds.values()), 0)
    for name, other in seeds.items():
        if other != seed:
            both = f"'{name}' by seed {other}, '{next(iter(seeds))}' by seed {seed}"
            advice = "Measure them one by one, or give a corpus with splits."
            raise UsageError(f"They learnt from '{corpus.name}' as different seeds deal it: {both}. {advice}")
    found = dealt(corpus, seed=seed)
    training = examples(found.split(SPLITS[0])).dialogue_fingerprint if learners else ""
    for name, one in learners.items():
        if one.origin.get("learnt", {}).get(corpus.name, training) != training:
            advice = "Give the --limit of its training and no --seed, or a corpus with splits."
            raise UsageError(f"'{name}' learnt from other dialogues of '{corpus.name}' than are dealt here. {advice}")
    return found


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
    from dialoscope.engage import storage
    from dialoscope.engage.frozen import fit_frozen

    if out is not None and out.is_dir() and any(out.iterdir()):
        raise OutputError(f"{out}: this folder is not empty. Give the name of a new one.")
    choosing, calibrating = halved(given.validation, seed=seed)
    fitted = fit_frozen(
        joined(given.training),
        choosing,
        encoder=start.encoder,
        settings=start.settings,
        calibration=calibrating,
        cache=cache,
        progress=progress,
    )
    # An encoder that people's ratings chose stays chosen by them.
    more = {"seed": seed, "learnt": learnt_from(given.training, start), "selected_on": sorted(start.selected_on)}
    origin = {**fitted.origin, **more, **_control(given)}
    found = replace(fitted, origin=origin).using(dtype="float32")  # as it is read from disk
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
    from dialoscope.engage import storage
    from dialoscope.engage.tuning import tune

    choosing, calibrating = halved(given.validation, seed=seed)
    found = tune(
        given.training, choosing, start=start, out=out, recipe=recipe, seed=seed, select=select, human=human,
        resume=resume, progress=progress,
    )  # fmt: skip
    best = found.predictor if calibrating is None else calibrated(found.predictor, calibrating)
    best = replace(best, origin={**best.origin, **_control(given)})
    storage.save(out / "best", best)
    return replace(found, predictor=best)


def _control(given: Material) -> dict[str, bool]:
    return {"is_shuffled": True} if given.is_shuffled else {}


def halved(validation: Examples, *, seed: int = 0) -> tuple[Examples, Examples | None]:
    """Validation dialogues dealt by the seed: one half chooses a penalty or a checkpoint, the other calibrates.

    Errors on dialogues that chose are smaller than on new ones, and so would be the intervals made of them. A single
    dialogue chooses, and no interval is given.
    """
    order = np.random.default_rng([seed, len(validation)]).permutation(len(validation))
    middle = (len(order) + 1) // 2
    first, second = (validation.select(np.sort(some)) for some in (order[:middle], order[middle:]))
    return first, second if len(second) else None


def calibrated(predictor: Predictor, held_out: Examples) -> Predictor:
    """With intervals around its scores, from dialogues that it neither learnt from nor was chosen by."""
    from dialoscope.engage.live import Calibration

    scores = np.concatenate(predictor.predict(list(held_out.dialogues)))
    origin = {**predictor.origin, "calibration": held_out.label}
    return replace(predictor, origin=origin, calibration=Calibration.of(scores, held_out.targets, held_out.positions))
