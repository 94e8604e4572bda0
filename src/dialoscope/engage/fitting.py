"""From corpora to a predictor on disk, in one call: frozen in seconds, or tuned in minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import split_for
from dialoscope.engage.examples import Examples, Target, dialogue_scores, examples, joined, of_length, shuffled
from dialoscope.engage.human_sets import HumanSet, halves, read_human
from dialoscope.engage.settings import ENCODER, RECIPE, SHAPE, PredictorSettings
from dialoscope.engage.shape import PAPER_HUMAN_RATE, RECIPES, Recipe, Shape
from dialoscope.errors import OutputError, UsageError
from dialoscope.progress import Progress
from dialoscope.settings import with_options

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.tuning import Judged, Moment, Tuned
    from dialoscope.engage.tuning import Progress as TuningProgress

OnMoment = Callable[["Moment"], None]  # called with each evaluation of an encoder that is tuned


def train(
    corpus: Corpus | Sequence[Corpus],
    *,
    settings: PredictorSettings | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    work: Path | None = None,
    progress: Progress | None = None,
    on_moment: OnMoment | None = None,
    **options: Any,
) -> Predictor:
    """Train a predictor of remaining depth on one corpus or several; no ratings are needed.

    `frozen` fits a linear layer on an encoder that stays as it is, in seconds; otherwise the encoder is tuned as well.
    `out` is the folder of the predictor, which `resume` goes on with; `work` keeps the vectors of a frozen encoder.
    `on_moment` is called with each evaluation of an encoder that is tuned.

    >>> predictor = train(load("chitchat"), frozen=True, history=2, out="engaged")         # doctest: +SKIP
    """
    settings = with_options(settings, PredictorSettings, options)
    material = material_for(corpus, settings)
    start = start_of(settings)
    if settings.frozen:
        if resume:
            raise UsageError("frozen finds its optimum at once: leave out --resume.")
        folder = None if out is None else Path(out)
        return fit_head(material, start=start, out=folder, seed=settings.seed, cache=work, progress=progress)
    if work is not None:
        raise UsageError("work keeps the vectors of a frozen encoder: give --frozen, or leave out --work.")
    recipe = recipe_of(settings)

    def watch(moment: Moment, steps: int) -> None:
        if progress is not None:
            progress(moment.step, steps)
        if on_moment is not None and moment.validation is not None:
            on_moment(moment)

    with TemporaryDirectory() if out is None else nullcontext(out) as folder_of_run:
        tuned = fit_all(
            material,
            start=start,
            out=Path(folder_of_run),
            recipe=recipe,
            seed=settings.seed,
            select=settings.select,
            human=selection_of(settings),
            resume=resume,
            progress=watch,
        )
    return tuned.predictor


def material_for(corpus: Corpus | Sequence[Corpus], settings: PredictorSettings) -> Material:
    """Turns to learn from and turns to choose by, of one corpus or several; each is split by itself."""
    corpora = [corpus] if isinstance(corpus, Corpus) else list(corpus) if isinstance(corpus, Sequence) else []
    if not corpora or not all(isinstance(each, Corpus) for each in corpora):
        raise UsageError("train takes a Corpus or several. Load one with dialoscope.load.")
    target = None if settings.scores is None else target_of(settings.scores)
    training, validation = [], []
    for place, each in enumerate(corpora):
        chosen, _ = of_length(each, settings.least_turns, settings.most_turns)
        parts = split_for(
            chosen,
            alone="split",
            split=settings.validation_split,
            usual="validation",
            train_split=settings.train_split,
            option="validation_split",
            limit=settings.limit,
            seed=settings.seed,
        )
        part = examples(parts.reference[: settings.limit], target=target)
        rng = np.random.default_rng([settings.seed, place])
        training.append(shuffled(part, rng) if settings.shuffled else part)
        validation.append(examples(parts.measured, target=target))
    return Material(training, joined(validation), settings.shuffled, settings.limit)


def start_of(settings: PredictorSettings) -> Predictor:
    """Where training begins: a predictor that goes on, or an encoder under a random layer."""
    from dialoscope.model.loading import choose_device, require_torch

    require_torch("Training a predictor")
    from dialoscope.engage import storage
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.predictor import Predictor

    if settings.start is not None:
        start = replace(storage.load(settings.start, device=settings.device), calibration=None)
    else:
        encoder = Encoder.load(settings.encoder or ENCODER, device=choose_device(settings.device))
        start = Predictor.untrained(encoder, shape_of(settings), seed=settings.seed)
    return start.using(dtype=settings.dtype if settings.frozen else None, batch_size=settings.batch_size)


def shape_of(settings: PredictorSettings) -> Shape:
    """What the predictor is made of besides its encoder."""
    chosen = {name: getattr(settings, name) for name in SHAPE if name != "flat"}
    return Shape(**{name: value for name, value in chosen.items() if value is not None}, is_flat=settings.flat)


def recipe_of(settings: PredictorSettings) -> Recipe:
    """The recipe by its name, with what the settings change; a short run warms up and evaluates in proportion."""
    usual = RECIPES[settings.recipe]
    # The paper's rate for selection by people is another one.
    is_paper = (settings.recipe, settings.select) == ("paper", "human")
    changes: dict[str, Any] = {"rate": PAPER_HUMAN_RATE} if is_paper else {}
    if settings.steps is not None:
        changes["warmup"] = usual.warmup * settings.steps // usual.steps
        changes["evaluate_every"] = max(1, usual.evaluate_every * settings.steps // usual.steps)
    chosen = {name: getattr(settings, name) for name in (*RECIPE, "dtype")}
    return replace(usual, **changes | {name: value for name, value in chosen.items() if value is not None})


def target_of(scores: str) -> Target:
    """The target that `LABEL=LOWEST:HIGHEST` names: a dialogue's own score."""
    label, _, scale = scores.partition("=")
    low, _, high = scale.partition(":")
    try:
        return dialogue_scores(label, lowest=float(low), highest=float(high))
    except ValueError as error:
        raise UsageError(f"scores takes LABEL=LOWEST:HIGHEST, such as eval=1:5, found '{scores}'.") from error


def selection_of(settings: PredictorSettings) -> HumanSet | None:
    """The rated turns that a predictor is selected by: half of the set, or with `reproduce_paper` all of it."""
    if settings.human is None:
        return None
    rated = read_human(settings.human)
    return rated if settings.reproduce_paper else halves(rated).selection


@dataclass(frozen=True, eq=False)
class Material:
    """What a predictor learns from and what it is chosen by, of one corpus or several."""

    training: Sequence[Examples]
    validation: Examples
    is_shuffled: bool = False  # whether training turns have each other's labels: a control
    limit: int | None = None  # the first dialogues of each split, where not all are used

    @property
    def left_out(self) -> int:
        """Dialogues without a target."""
        return sum(each.left_out for each in (*self.training, self.validation))


def learnt_from(training: Sequence[Examples], start: Predictor) -> dict[str, str]:
    """Fingerprints of all dialogues that weights have seen, by corpus, those of the start included.

    Where other dialogues of one corpus were seen before, it has all fingerprints, and no split fits them.
    """
    seen: dict[str, set[str]] = {name: set(known.split("+")) for name, known in start.origin.get("learnt", {}).items()}
    for part in training:
        seen.setdefault(part.name, set()).add(part.dialogue_fingerprint)
    return {name: "+".join(sorted(fingerprints)) for name, fingerprints in seen.items()}


def fit_head(
    given: Material,
    *,
    start: Predictor,
    out: Path | None = None,
    seed: int = 0,
    cache: Path | None = None,
    progress: Progress | None = None,
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
    origin = {**fitted.origin, **more, **_about(given)}
    predictor = replace(fitted, origin=origin).using(dtype="float32")  # as it is read from disk
    if out is not None:
        storage.save(out / "best", predictor)
    return predictor


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
    progress: TuningProgress | None = None,
) -> Tuned:
    """Tune the encoder as well."""
    from dialoscope.engage import storage
    from dialoscope.engage.tuning import tune

    choosing, calibrating = halved(given.validation, seed=seed)
    tuned = tune(
        given.training, choosing, start=start, out=out, recipe=recipe, seed=seed, select=select, human=human,
        resume=resume, progress=progress,
    )  # fmt: skip
    best = tuned.predictor if calibrating is None else calibrated(tuned.predictor, calibrating)
    chosen = next(moment for moment in tuned.history if moment.step == tuned.best_step)
    numbers = {"validation_mse": chosen.validation, "validation_pearson": chosen.pearson, "best_step": chosen.step}
    best = replace(best, origin={**best.origin, **_about(given), **numbers, "steps": tuned.steps})
    storage.save(out / "best", best)
    return replace(tuned, predictor=best)


def _about(given: Material) -> dict[str, Any]:
    """What a predictor's folder says of its material: its size, and whether it is a control."""
    about: dict[str, Any] = {"dialogues": sum(map(len, given.training)), "left_out": given.left_out}
    about |= {"is_shuffled": True} if given.is_shuffled else {}
    return about if given.limit is None else {**about, "limit": given.limit}


def halved(validation: Examples, *, seed: int = 0) -> tuple[Examples, Examples | None]:
    """Validation dialogues split by the seed: one half chooses a penalty or a checkpoint, the other calibrates.

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
