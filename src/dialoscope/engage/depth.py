"""How well is the remaining depth predicted? Tables 1 and 2 of the paper, Figure 3, and the turns behind them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import Parts, split_for
from dialoscope.engage.baselines import DEPTH_BASELINES
from dialoscope.engage.depth_result import DepthResult, cases_of, chosen_conversation, turns_table
from dialoscope.engage.examples import Examples, examples, of_length
from dialoscope.engage.human_sets import item_key, normalised
from dialoscope.engage.predictors import check_named, open_predictors, untrained_control
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.engage.settings import DepthSettings
from dialoscope.errors import UsageError
from dialoscope.progress import Progress
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor

TOO_SHORT = "a dialogue of fewer than two turns"
TURN_ALONE, UNTRAINED = "turn alone", "untrained"


def depth(
    corpus: Corpus,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: DepthSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> DepthResult:
    """Measure how well predictors tell how much of a conversation remains after each turn.

    The remaining depth of turn j of n is (n − j) / (n − 1). Errors and correlations are pooled over all turns of all
    dialogues; intervals resample dialogues. Without `models`, two predictors are fitted on the training split: one
    averages a turn with its history, and one reads the turn alone.

    >>> depth(corpus, models={"mine": "engaged"}).scores()["mine/test/mse"].value          # doctest: +SKIP
    7.304...
    """
    settings = with_options(settings, DepthSettings, options)
    check_depth_call(corpus, against, models)
    chosen, other_lengths = of_length(corpus, settings.least_turns, settings.most_turns)
    choose = partial(
        split_for,
        chosen,
        alone="split",
        split=settings.split,
        train_split=settings.train_split,
        validation_split=settings.validation_split,
        needs_validation=models is None,
        seed=settings.seed,
    )
    parts = choose(limit=settings.limit)
    part = list(parts.sizes)[-1]
    sizes = dict(parts.sizes)
    if settings.train_limit is not None:
        sizes |= {name: min(size, settings.train_limit) for name, size in sizes.items() if name != part}
    held_out = examples(parts.measured_apart, may_be_empty=True)
    training = examples(parts.reference[: settings.train_limit], may_be_empty=True)
    reason = why_not_measurable(held_out, training, part)

    predictors, controls = dict[str, "Predictor"](), dict[str, "Predictor"]()
    if reason is None and models is None:
        predictors, controls = fit_frozen_heads(training, parts, settings, work, progress)
    elif reason is None and models is not None:
        predictors = open_predictors(models, settings)
        check_not_learnt(predictors, choose(limit=None).measured, settings.limit)
        if len(chosen.splits) == 1 and len(parts.reference) < len(chosen):
            check_same_split(predictors, corpus.name, parts.reference, settings.seed)
        controls = untrained_control(predictors, seed=settings.seed)

    dialogues = list(held_out.dialogues)
    predicted = {
        name: np.concatenate(predictor.predict(dialogues, progress=progress))
        for name, predictor in {**predictors, **controls}.items()
    }
    guessed = {} if reason is not None else guess_by_baselines(held_out, training)
    shared = shared_dialogues(training, held_out)
    too_short = {TOO_SHORT: held_out.left_out + training.left_out}
    names = ",".join(f"{name}={predictor.name}" for name, predictor in predictors.items())
    return DepthResult(
        settings=settings,
        parts=sizes,
        used=parts.used + used_first(settings.train_limit),
        counts={**skipped(corpus.skipped, other_lengths, too_short), "shared_with_training": shared},
        origin=Origin(
            f"{corpus.name}@{corpus.fingerprint}",
            {"task": "remaining-depth", **without_seed(settings), "models": names or None},
            settings.seed,
        ),
        turns=turns_table(held_out, predicted, guessed),
        part=part,
        models=tuple(predictors),
        controls=tuple(controls),
        baselines=tuple(guessed),
        judged=tuple(predictors)[:1] if models is None else tuple(predictors),
        n_shared=shared,
        cases={name: cases_of(scores, held_out) for name, scores in predicted.items()},
        conversation=chosen_conversation(held_out, predicted),
        reason=reason,
    )


def check_depth_call(corpus: object, against: object, models: object) -> None:
    """Refuse what this question cannot use, in one line."""
    if not isinstance(corpus, Corpus):
        raise UsageError(f"depth measures a Corpus, found {type(corpus).__name__}. Load it with dialoscope.load.")
    if against:
        raise UsageError("depth compares with nothing: leave out against.")
    if models is not None:
        check_named(models)


def why_not_measurable(held_out: Examples, training: Examples, part: str) -> str | None:
    """Why there is nothing to measure, or None."""
    for name, turns in ((part, held_out), ("training", training)):
        if not len(turns):
            return f"no dialogue of the {name} split has two turns or more"
    return None


def fit_frozen_heads(
    training: Examples, parts: Parts, settings: DepthSettings, work: Path | None, progress: Progress | None
) -> tuple[dict[str, Predictor], dict[str, Predictor]]:
    """Two predictors on one frozen encoder, with the history and for the turn alone, and an untrained control."""
    from dialoscope.model.loading import choose_device, require_torch

    require_torch("A predictor of remaining depth")
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.fitting import Material, fit_head
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.shape import Shape

    loaded = Encoder.load(settings.encoder, device=choose_device(settings.device))
    encoder = loaded.using(dtype=settings.dtype, batch_size=settings.batch_size)
    assert parts.validation is not None
    material = Material([training], examples(parts.validation[: settings.train_limit]))
    histories = {f"history {settings.history}": settings.history} if settings.history else {}
    fitted = {
        name: fit_head(
            material,
            start=Predictor.untrained(encoder, Shape(history=history), seed=settings.seed),
            seed=settings.seed,
            cache=work,
            progress=progress,
        ).using(dtype=settings.dtype, batch_size=settings.batch_size)
        for name, history in {**histories, TURN_ALONE: 0}.items()
    }
    return fitted, {UNTRAINED: Predictor.untrained(encoder, Shape(history=settings.history), seed=settings.seed)}


def guess_by_baselines(held_out: Examples, training: Examples) -> dict[str, Floats]:
    """What each baseline, knowing the training split, guesses of every turn."""
    guesses = {name: fitted(training) for name, fitted in DEPTH_BASELINES.items()}
    return {name: np.concatenate(list(map(guess, held_out.dialogues))) for name, guess in guesses.items()}


def check_not_learnt(predictors: Mapping[str, Predictor], split: Corpus, limit: int | None) -> None:
    """Refuse to measure a predictor on a split that it says it learnt from, wholly or up to a limit."""
    for name, predictor in predictors.items():
        origin = getattr(predictor, "origin", {})
        learnt = {each for known in origin.get("learnt", {}).values() for each in known.split("+")}
        cuts = {None, limit, origin.get("limit")} if learnt else set()  # one made elsewhere may not know
        if any(examples(split[:cut], may_be_empty=True).dialogue_fingerprint in learnt for cut in cuts):
            raise UsageError(f"'{name}' learnt from the very dialogues that it would predict: give another --split.")


def check_same_split(predictors: Mapping[str, Predictor], name: str, training: Corpus, seed: int) -> None:
    """Where a corpus was split here, refuse predictors that learnt from it as split in another way.

    Some of what they learnt from would be measured. Predictors that learnt from other corpora set no condition.
    """
    for model, predictor in predictors.items():
        learnt = getattr(predictor, "origin", {}).get("learnt", {}).get(name)
        if learnt is None:
            continue
        seen = examples(training[: predictor.origin.get("limit")], may_be_empty=True).dialogue_fingerprint
        if learnt == seen:
            continue
        own = predictor.origin.get("seed", 0)
        if own != seed:
            raise UsageError(
                f"'{model}' learnt from '{name}' as seed {own} splits it, not seed {seed}: give --seed {own}."
            )
        advice = "Give the --least-turns and --most-turns of its training, or a corpus with splits."
        raise UsageError(f"'{model}' learnt from other dialogues of '{name}' than the training split here. {advice}")


def shared_dialogues(training: Examples, held_out: Examples) -> int:
    """How many held-out dialogues stand in training as well, whatever their case, spacing and punctuation."""
    known = set(map(_key, training.dialogues))
    return sum(_key(dialogue) in known for dialogue in held_out.dialogues)


def _key(dialogue: Dialogue) -> str:
    return item_key(map(normalised, dialogue))


def without_seed(settings: DepthSettings) -> dict[str, Any]:
    """The settings that a signature names; the seed stands in it already."""
    return {name: value for name, value in settings.changed().items() if name != "seed"}


def used_first(train_limit: int | None) -> str:
    """A sentence about training dialogues that were not used."""
    return (
        ""
        if train_limit is None
        else f" Of training and validation, only the first {train_limit:,} dialogues each were used."
    )
