"""Train a model of the sequence-to-sequence family on a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import Parts, canonical, split_evenly, split_for
from dialoscope.errors import UsageError
from dialoscope.model.batching import batches
from dialoscope.model.checkpoint import load_model
from dialoscope.model.evaluation import further_metrics
from dialoscope.model.learner import ExtraLoss
from dialoscope.model.loading import choose_device
from dialoscope.model.log import Progress
from dialoscope.model.network import parameter_count
from dialoscope.model.presets import preset
from dialoscope.model.run import Data, Plan, TrainingResult, Transform
from dialoscope.model.seq2seq import Seq2SeqModel
from dialoscope.model.settings import TrainSettings
from dialoscope.model.structure import Recipe, Structure, changed, read_word
from dialoscope.model.training import is_run_begun, run_training
from dialoscope.settings import with_options

PRECISIONS = {"float32": "fp32", "bfloat16": "bf16"}


class TrainedModel(Seq2SeqModel):
    """The best checkpoint of a training run, with its folder, its log, and the dialogues that it was trained on."""

    path: Path
    training: TrainingResult
    parts: Mapping[str, int]
    used: str


def train(
    corpus: Corpus,
    *,
    out: str | Path,
    settings: TrainSettings | None = None,
    transform: Transform | None = None,
    extra_loss: ExtraLoss | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> TrainedModel:
    """Train a model on the training split and return the checkpoint that is best on the validation split.

    A corpus of one split is split 80/10/10 by dialogue, by the seed. `limit` cuts the training split only. `transform`
    changes the training examples anew in every epoch, and `extra_loss` is added to the cross-entropy (see
    `dialoscope.distract`). With `resume`, an interrupted run in the folder goes on, and ends with the same weights as a
    run that was not interrupted.

    >>> model = train(load("concierge"), out="run", preset="lstm", epochs=3)        # doctest: +SKIP
    >>> model.path, model.training.best_epoch                                       # doctest: +SKIP
    """
    settings = with_options(settings, TrainSettings, options)
    plan = plan_of(settings, transform, extra_loss)
    device = choose_device(settings.device)
    folder = Path(out)
    is_run_begun(folder, resume=resume)  # a folder that is taken is refused before the work
    whole, parts = training_corpus(corpus, settings)
    validation = whole.split(plan.validation_split)
    validate = None
    if settings.log_metrics:
        validate = further_metrics(validation, settings.log_metrics, context_turns=settings.context_turns)
    result = run_training(
        whole,
        plan.settings,
        plan.recipe,
        out=folder,
        seed=settings.seed,
        transform=transform,
        extra_loss=extra_loss,
        validate=validate,
        resume=resume,
        device=device,
        progress=progress,
        **plan.choices,
    )
    return trained_model(folder, result, parts, device=device)


def planned(
    corpus: Corpus,
    *,
    settings: TrainSettings | None = None,
    transform: Transform | None = None,
    extra_loss: ExtraLoss | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What a training run would read and compute: dialogues, samples, words, weights, batches. Nothing is trained."""
    settings = with_options(settings, TrainSettings, options)
    plan = plan_of(settings, transform, extra_loss)
    whole, parts = training_corpus(corpus, settings)
    data = Data.of(whole, plan)
    examples = data.epoch(plan, np.random.default_rng(plan.seed))
    limit = plan.settings.context_tokens
    rows = batches(examples, batch_size=plan.recipe.batch_size, context_tokens=limit)
    structure = replace(plan.settings, vocabulary=len(data.vocabulary))
    return {
        "dialogues": len(whole.split(plan.train_split)),
        "samples": len(examples),
        "cut_contexts": data.cut,
        "validation_samples": len(data.validation),
        "vocabulary": len(data.vocabulary),
        "parameters": parameter_count(structure),
        "batches": len(rows),
        "epochs": plan.recipe.epochs,
        "used": parts.used,
    }


@dataclass(frozen=True)
class ChosenPlan(Plan):
    """A plan, and the part of it that `run_training` takes as options."""

    @property
    def choices(self) -> dict[str, Any]:
        """Everything besides settings, recipe, seed, transform and extra loss."""
        names = ("tokens", "preset", "train_split", "validation_split", "context_turns", "best_by")
        return {name: getattr(self, name) for name in names}


def plan_of(settings: TrainSettings, transform: Transform | None, extra_loss: ExtraLoss | None) -> ChosenPlan:
    """The preset with the changes that the settings make in it."""
    chosen = preset(settings.preset)
    structure, recipe = with_changes(chosen.settings, chosen.recipe, settings)
    if extra_loss is not None and structure.attention == "none":
        raise UsageError("This preset has no attention to lower. Choose another preset, or no attention loss.")
    return ChosenPlan(
        structure,
        recipe,
        seed=settings.seed,
        tokens=settings.tokens,
        preset=settings.preset,
        train_split=canonical_split(settings.train_split, "train"),
        validation_split=canonical_split(settings.validation_split, "validation"),
        context_turns=settings.context_turns,
        best_by=settings.best_by or chosen.best_by,
        transform=transform,
        extra_loss=extra_loss,
    )


def canonical_split(name: str | None, usual: str) -> str:
    """The usual name of the split that was named, or the usual split."""
    return usual if name is None else canonical(name)


def with_changes(structure: Structure, recipe: Recipe, settings: TrainSettings) -> tuple[Structure, Recipe]:
    """Structure and recipe of the preset, changed by `set`, `epochs`, `batch_size` and `dtype`."""
    words = dict(change.split("=", 1) for change in settings.changes)
    structure, recipe = changed(structure, recipe, {name: read_word(word) for name, word in words.items()})
    for name in words:
        if name in structure.ignored:
            model = f"encoder {structure.encoder} and attention {structure.attention}"
            raise UsageError(f"set {name}={words[name]} changes nothing in a model with {model}. Leave it out.")
    precision = None if settings.dtype is None else PRECISIONS[settings.dtype]
    more = {"epochs": settings.epochs, "batch_size": settings.batch_size, "precision": precision}
    given = {name: value for name, value in more.items() if value is not None}
    return structure, recipe.from_dict({**recipe.to_dict(), **given})


def training_corpus(corpus: Corpus, settings: TrainSettings) -> tuple[Corpus, Parts]:
    """The corpus with the splits of the run, the training split cut to `limit`; and which dialogues are used."""
    if not isinstance(corpus, Corpus):
        raise UsageError(f"train takes a Corpus, found {type(corpus).__name__}. Load it with dialoscope.load.")
    names = canonical_split(settings.train_split, "train"), canonical_split(settings.validation_split, "validation")
    parts = split_for(
        corpus,
        alone="split",
        usual="validation",
        split=settings.validation_split,
        train_split=settings.train_split,
        option="validation_split",
        seed=settings.seed,
    )
    whole = corpus if set(names) <= set(corpus.splits) else split_evenly(corpus, seed=settings.seed)
    parts = replace(parts, used=parts.used.replace("Measured:", "Validation:", 1))
    if settings.limit is None or len(parts.reference) <= settings.limit:
        return whole, parts
    in_training = np.asarray(whole.table["split"].to_pylist()) == names[0]
    is_kept = ~in_training | (np.cumsum(in_training) <= settings.limit)
    sizes = {**parts.sizes, names[0]: settings.limit}
    used = f"{parts.used} Of the training split, the first {settings.limit:,} dialogues were used."
    return whole.select(np.flatnonzero(is_kept)), replace(parts, sizes=sizes, used=used)


def trained_model(folder: Path, result: TrainingResult, parts: Parts, *, device: str) -> TrainedModel:
    """The best checkpoint of a run, with what is known of the run."""
    best = load_model(folder, device=device)
    model = TrainedModel(
        best.network,
        best.vocabulary,
        name=best.name.partition("@")[0],
        batch_size=best.batch_size,
        context_turns=best.context_turns,
    )
    model.path, model.training, model.parts, model.used = folder, result, parts.sizes, parts.used
    return model
