"""What encodings know: one classifier for each task on a model's encodings, beside its controls.

Classifiers learn from the training split's positions and are scored on the held-out ones. Every model stands beside its
controls: the most frequent answer, the best one that never changes, the context's bag of words, the same structure
untrained, and the same classifier taught shuffled labels of other positions, which is what chance gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import Parts, split_for
from dialoscope.errors import UsageError
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.protocol import Floats as Features
from dialoscope.probe.encodings import encode
from dialoscope.probe.examples import Examples, examples
from dialoscope.probe.labels import Answered, Floats, Labels, constant, f1_parts, hits_of, labels_of, majority, shuffled
from dialoscope.probe.models import models_to_probe
from dialoscope.probe.pictures import Picture, colouring, picture
from dialoscope.probe.result import COLUMNS, Dialogues, Example, ProbeResult
from dialoscope.probe.scores import Tested, score_all
from dialoscope.probe.settings import ProbeSettings
from dialoscope.probe.targets import Targets
from dialoscope.probe.tasks import SO_FAR, Task, chosen_tasks, rule_of
from dialoscope.probe.words import bags_of_words
from dialoscope.progress import Progress, Stages
from dialoscope.record import Origin
from dialoscope.report.result import documented, skipped
from dialoscope.settings import with_options

LONGEST = 300  # characters of an example's Query
PICTURES = 6  # models that get a picture of their encodings; of more, the first and the last


def measure(
    corpus: Corpus,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: ProbeSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> ProbeResult:
    """Probe every model on every task that the corpus can carry; the first model is compared with each other one.

    Classifiers learn from encodings of the training split's contexts and are scored on the validation split by
    micro-F1 (Parthasarathi et al. 2020). A corpus of one split is split 80/10/10. With `work`, encodings are kept
    there, so that an interrupted run resumes and another classifier does not encode again.

    >>> measure(load("concierge"), models={"mine": "run"}, tasks=["RecentTopic"])                # doctest: +SKIP
    """
    settings = with_options(settings, ProbeSettings, options)
    probes = models_to_probe(models, settings, is_quiet=progress is None)
    sides = sides_of(corpus, against, settings)
    training, held_out = sides.training, sides.held_out
    tasks = chosen_tasks(settings.tasks)
    labels, not_probed = label_all(tasks, training, held_out, topics_so_far=settings.topics_so_far)
    if not labels:
        raise UsageError(f"Nothing to probe: {'; '.join(f'{name} {why}' for name, why in not_probed.items())}.")
    coloured_by = labels[colouring(labels, not_probed, settings.picture_by)]
    device = device_for(settings)
    probes.check_names()

    stages = Stages(progress, _steps(len(probes), sides, labels, settings))
    fit = partial(fit_classifiers, settings=settings, device=device, stages=stages)
    answer = partial(answers_of, labels=labels, device=device)
    encodings = partial(encodings_of, training=training, held_out=held_out, settings=settings, work=work, stages=stages)

    controls = shared_controls(labels, training, held_out, settings=settings, fit=fit, answer=answer)
    probed = {
        name: probe_model(
            name, probes.open(name), labels, coloured_by=coloured_by, settings=settings,
            encodings=encodings, fit=fit, answer=answer,
        )
        for name in probes
    }  # fmt: skip

    origin = _origin(corpus, sides, probed, settings)
    scored = score_all(
        {name: each.tested for name, each in probed.items()},
        {name: each.tasks for name, each in controls.items()},
        labels,
        dialogues=held_out.dialogues,
        origin=origin,
        settings=settings,
    )
    pictures = [each.picture for each in probed.values()]
    return ProbeResult(
        settings=settings,
        parts=sides.sizes,
        used=sides.used,
        counts=_counts(corpus, sides, not_probed, controls, probed, settings),
        origin=origin,
        models=scored.models,
        controls=scored.controls,
        tasks=scored.tasks,
        dialogues=sides.dialogues,
        positions=_positions(probed, held_out),
        evidence=_evidence(probed, controls, labels, held_out),
        pictures=tuple(pictures if len(pictures) <= PICTURES else (pictures[0], pictures[-1])),
        checkpoints={run: tuple(by) for run, by in probes.runs.items()},
        chosen={f"{run}@{name}": at for run, by in probes.runs.items() for name, at in by.items() if name != at},
        choices=probes.choices,
    )


def planned(
    corpus: Corpus,
    *,
    settings: ProbeSettings | None = None,
    models: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Count what `measure` would do: the models, the positions of both splits, and the contexts to encode."""
    settings = with_options(settings, ProbeSettings, options)
    probes = models_to_probe(models, settings)
    sides = sides_of(corpus, None, settings)
    positions = len(sides.training) + len(sides.held_out)
    return {
        "models": list(probes),
        "training_positions": len(sides.training),
        "held_out_positions": len(sides.held_out),
        "contexts_to_encode": len(probes) * positions * (2 if settings.controls else 1),
        "used": sides.used,
    }


# --- Dialogues --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sides:
    """The positions that classifiers learn from, and those that they are scored on."""

    training: Examples
    held_out: Examples
    dialogues: Dialogues
    sizes: Mapping[str, int] = field(default_factory=dict)
    used: str = ""


def sides_of(corpus: object, against: Mapping[str, Any] | None, settings: ProbeSettings) -> Sides:
    """The positions of the training and the validation split, or of the splits that the settings name."""
    if not isinstance(corpus, Corpus):
        hint = "Load it with dialoscope.load, or make one of dialogues with Corpus.of."
        raise UsageError(f"probe measures a Corpus, found {type(corpus).__name__}. {hint}")
    if against:
        raise UsageError("probe compares with no other corpus: leave against out.")
    parts = split_for(
        corpus,
        alone="split",
        split=settings.split,
        usual="validation",
        train_split=settings.train_split,
        limit=settings.limit,
        seed=settings.seed,
    )
    taught = parts.reference if settings.train_limit is None else parts.reference[: settings.train_limit]
    training, held_out = examples(taught), examples(parts.measured)
    return Sides(training, held_out, check_apart(training, held_out), *_account(parts, taught))


def _account(parts: Parts, taught: Corpus) -> tuple[Mapping[str, int], str]:
    """How many dialogues were used for what, as numbers and as a sentence."""
    if len(taught) == len(parts.reference):
        return parts.sizes, parts.used
    name = next(iter(parts.sizes))  # the training split comes first
    used = f"{parts.used} Learnt from: the first {len(taught):,} training dialogues."
    return {**parts.sizes, name: len(taught)}, used


def check_apart(training: Examples, held_out: Examples) -> Dialogues:
    """Refuse to score classifiers on nothing but what they learn from; else count the dialogues."""
    learnt = set(training.texts)
    shared = sum(text in learnt for text in held_out.texts)
    if shared == len(held_out.texts):
        raise UsageError(
            "Classifiers learn from every dialogue that they would be scored on: give two different splits."
        )
    return Dialogues(len(training.texts), len(held_out.texts), shared)


def label_all(
    tasks: Mapping[str, Task], training: Examples, held_out: Examples, *, topics_so_far: bool = False
) -> tuple[dict[str, Labels], dict[str, str]]:
    """Labels by task, and why a task has none."""
    labels, not_probed = {}, {}
    annotations = training.annotations & held_out.annotations
    for name, task in tasks.items():
        if topics_so_far and name in SO_FAR:
            task = replace(task, labels=SO_FAR[name], needs=("state",))
        try:
            rule = rule_of(task, training, annotations)
            labels[name] = _asked(labels_of(name, task, rule, training, held_out))
        except UsageError as error:
            not_probed[name] = str(error)
    return labels, not_probed


def _asked(labels: Labels) -> Labels:
    """Labels that leave something to ask."""
    if len(labels.classes) < 2:
        raise UsageError(f"has one label only in the training split, {labels.classes[0]!r}")
    return labels


# --- Encodings and classifiers ----------------------------------------------------------------------------------------


class Classifier(Protocol):
    """A fitted classifier of one task."""

    def predict(self, features: Features, *, device: str = "cpu") -> Targets:
        """The answer to each row."""
        ...


class Answers(NamedTuple):
    """What classifiers answer to held-out positions, and how many of their labels had not converged."""

    tasks: Answered
    undecided: int = 0
    labels: Mapping[str, Targets] = MappingProxyType({})  # task -> the labels that they name


@dataclass(frozen=True, eq=False, kw_only=True)
class Probed:
    """One model: what classifiers read from its encodings, and from those of its controls."""

    answers: Mapping[str, Answers]  # own, shuffled, untrained
    identity: str  # the model's own name, with a fingerprint of its weights
    width: int
    reading: Mapping[str, Any]  # how it reads, where it says so: layer, pooling and the like
    picture: Picture
    why_no_untrained: str | None
    spread: float  # the mean standard deviation of the encodings' numbers

    @property
    def tested(self) -> Tested:
        """The model as it is scored."""
        controls = {name: self.answers[name].tasks for name in ("untrained", "shuffled") if name in self.answers}
        own = self.answers["own"].tasks
        return Tested(own, controls, self.identity, self.width, self.reading, self.why_no_untrained, self.spread)


Encode = Callable[[DialogueModel], tuple[Features, Features]]
Fit = Callable[[Features, Sequence[Targets]], Sequence[Classifier]]
Answer = Callable[[Sequence[Classifier], Features], Answers]


def shared_controls(
    labels: Mapping[str, Labels],
    training: Examples,
    held_out: Examples,
    *,
    settings: ProbeSettings,
    fit: Fit,
    answer: Answer,
) -> dict[str, Answers]:
    """Controls that need no model: answers that never change, and the same classifier on bags of words."""
    controls = {
        "majority": Answers({name: hits_of(each, majority(each)) for name, each in labels.items()}),
        "constant": Answers({name: hits_of(each, constant(each)) for name, each in labels.items()}),
    }
    if settings.controls:
        tokens = settings.context_tokens or None
        learnt, asked = bags_of_words(training.contexts(tokens), held_out.contexts(tokens))
        controls["bag_of_words"] = answer(fit(learnt, [each.training for each in labels.values()]), asked)
    return controls


def probe_model(
    name: str,
    model: DialogueModel,
    labels: Mapping[str, Labels],
    *,
    coloured_by: Labels,
    settings: ProbeSettings,
    encodings: Encode,
    fit: Fit,
    answer: Answer,
) -> Probed:
    """Fit classifiers on a model's encodings, on the same with shuffled labels, and on those of untrained weights."""
    targets = [each.training for each in labels.values()]
    wrong = [_shuffled(task, each, settings.seed) for task, each in labels.items()] if settings.controls else []
    learnt, asked = encodings(model)
    fitted = fit(learnt, [*targets, *wrong])
    answers = {"own": answer(fitted[: len(targets)], asked)}
    why_no_untrained = None
    if settings.controls:
        answers["shuffled"] = answer(fitted[len(targets) :], asked)
        try:
            first, second = encodings(_untrained(model, settings.seed))
            answers["untrained"] = answer(fit(first, targets), second)
        except UsageError as error:
            why_no_untrained = str(error)
    return Probed(
        answers=answers,
        identity=model.name,
        width=learnt.shape[1],
        reading=dict(getattr(model, "settings", {})),
        picture=picture(name, asked, coloured_by, np.random.default_rng(settings.seed)),
        why_no_untrained=why_no_untrained,
        spread=float(learnt.std(axis=0, dtype=np.float64).mean()),
    )


def device_for(settings: ProbeSettings) -> str:
    """Where models and classifiers run."""
    from dialoscope.model.loading import choose_device, require_torch

    require_torch("Probing")
    return choose_device(settings.device)


def encodings_of(
    model: DialogueModel,
    *,
    training: Examples,
    held_out: Examples,
    settings: ProbeSettings,
    work: str | Path | None = None,
    stages: Stages,
) -> tuple[Features, Features]:
    """A model's encodings of both splits' contexts; scaled, the training split's spread by 1."""
    tokens, cache = settings.context_tokens or None, None if work is None else Path(work)
    learnt, asked = (
        encode(model, part, tokens=tokens, cache=cache, progress=stages.next()) for part in (training, held_out)
    )
    if not settings.scaled:
        return learnt, asked
    scale = np.float32(learnt.std(axis=0, dtype=np.float64).mean() or 1.0)
    return learnt / scale, asked / scale


def fit_classifiers(
    features: Features, targets: Sequence[Targets], *, settings: ProbeSettings, device: str, stages: Stages
) -> Sequence[Classifier]:
    """One classifier for each task, all of them fitted together."""
    fitted: Sequence[Classifier]
    if settings.classifier == "mlp":
        from dialoscope.probe.perceptron import fit_perceptron

        fitted = fit_perceptron(features, targets, seed=settings.seed, device=device)
    else:
        from dialoscope.probe.logistic import fit_logistic

        fitted = fit_logistic(features, targets, device=device)
    classes = sum(each.classes for each in targets)
    stages.next()(classes, classes)
    return fitted


def answers_of(
    fitted: Sequence[Classifier], features: Features, *, labels: Mapping[str, Labels], device: str
) -> Answers:
    """What classifiers answer, held against the labels."""
    predicted = (classifier.predict(features, device=device) for classifier in fitted)
    answers = dict(zip(labels, predicted, strict=True))
    hits = {name: hits_of(each, answers[name]) for name, each in labels.items()}
    # Perceptrons stop when their loss stalls and have no optimum to be short of.
    undecided = sum(int((~np.asarray(each.is_converged)).sum()) for each in fitted if hasattr(each, "is_converged"))
    return Answers(hits, undecided, answers)


def _shuffled(name: str, labels: Labels, seed: int) -> Targets:
    """By the task's name, so that what else is asked changes nothing."""
    return shuffled(labels.training, np.random.default_rng([seed, crc32(name.encode())]))


def _untrained(model: DialogueModel, seed: int) -> DialogueModel:
    from dialoscope.model.untrained import untrained

    return untrained(model, seed=seed)


def _steps(models: int, sides: Sides, labels: Mapping[str, Labels], settings: ProbeSettings) -> int:
    """Steps of progress: contexts encoded and labels learnt."""
    contexts = len(sides.training) + len(sides.held_out)
    classes = sum(len(each.classes) for each in labels.values())
    if not settings.controls:
        return models * (contexts + classes)
    return models * (2 * contexts + 3 * classes) + classes


# --- What a result has besides scores ---------------------------------------------------------------------------------


def _origin(corpus: Corpus, sides: Sides, probed: Mapping[str, Probed], settings: ProbeSettings) -> Origin:
    """What has to be repeated to get the same numbers."""
    changed = {
        key: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for key, value in settings.changed().items()
        if key != "seed"
    }
    measured, taught = sides.held_out.corpus, sides.training.corpus
    named = {
        "classifier": settings.classifier,
        "context_tokens": settings.context_tokens or "all",
        "measured": f"{measured.name}@{measured.fingerprint}",
        "taught": f"{taught.name}@{taught.fingerprint}",
        "models": ",".join(f"{name}={each.identity}" for name, each in probed.items()),
    }
    return Origin(f"{corpus.name}@{corpus.fingerprint}", {**changed, **named}, settings.seed)


def _counts(
    corpus: Corpus,
    sides: Sides,
    not_probed: Mapping[str, str],
    controls: Mapping[str, Answers],
    probed: Mapping[str, Probed],
    settings: ProbeSettings,
) -> dict[str, Any]:
    """What was not measured or only in part: tasks, dialogues, starts of contexts, labels that did not converge."""
    held_out, tokens = sides.held_out, settings.context_tokens
    tasks: dict[str, int] = {}
    for reason in not_probed.values():
        tasks[f"task: {reason}"] = tasks.get(f"task: {reason}", 0) + 1
    cut = sum(
        short != each.context for short, each in zip(held_out.contexts(tokens or None), held_out.positions, strict=True)
    )
    left_out = {
        "dialogue without a response": len(held_out.corpus) - len(held_out.texts),
        f"context cut to its last {tokens} tokens": cut,
    }
    undecided = {name: each.undecided for name, each in controls.items() if each.undecided} | {
        name if kind == "own" else f"{name} ({kind})": answers.undecided
        for name, each in probed.items()
        for kind, answers in each.answers.items()
        if answers.undecided
    }
    return {
        **skipped(corpus.skipped, tasks, left_out),
        "tasks_not_probed": dict(not_probed),
        "labels_not_converged": undecided,
        "dialogues_in_both_splits": sides.dialogues.shared,
    }


def _evidence(
    probed: Mapping[str, Probed], controls: Mapping[str, Answers], labels: Mapping[str, Labels], held_out: Examples
) -> Example | None:
    """Where the first model differs most from its bag of words: a position that only one of the two answers rightly."""
    if "bag_of_words" not in controls:
        return None
    name, own, words = next(iter(probed)), next(iter(probed.values())).answers["own"], controls["bag_of_words"]
    f1 = {task: [_micro_f1(side.tasks[task].all) for side in (own, words)] for task in labels}
    task = max(f1, key=lambda each: abs(f1[each][0] - f1[each][1]))
    better, other = (own, words) if f1[task][0] > f1[task][1] else (words, own)
    is_right = [each.tasks[task].all[:, 1:].sum(axis=1) == 0 for each in (better, other)]
    rows = np.flatnonzero(is_right[0] & ~is_right[1])
    if not len(rows):
        return None
    row, position = int(rows[0]), held_out.positions[rows[0]]
    query = str(position.context[-1])
    return Example(
        model=name,
        task=task,
        dialogue=position.dialogue,
        turn=len(position.context),
        query=query if len(query) <= LONGEST else f"{query[:LONGEST]}…",
        labels=labels[task].names(better.labels[task], row),
        from_encodings=labels[task].names(own.labels[task], row),
        from_words=labels[task].names(words.labels[task], row),
    )


def _micro_f1(hits: Floats) -> float:
    above, below = f1_parts(hits)
    return float(above.sum() / max(1.0, below.sum()))


def _positions(probed: Mapping[str, Probed], held_out: Examples) -> pa.Table:
    """Right, too many and missing labels of every position, so that scores can be computed again (COLUMNS)."""
    dialogues = pa.array(held_out.dialogues, pa.string())
    turns = pa.array([len(each.context) for each in held_out.positions], pa.int32())
    parts = []
    for name, each in probed.items():
        for task, hits in each.answers["own"].tasks.items():
            named = {"model": name, "task": task}
            columns = {key: pa.array([value] * len(held_out), pa.string()) for key, value in named.items()}
            numbers = {
                key: pa.array(column.astype("int32"))
                for key, column in zip(("right", "too_many", "missing"), hits.all.T, strict=True)
            }
            parts.append(pa.table({**columns, "dialogue": dialogues, "turn": turns, **numbers}))
    return documented(pa.concat_tables(parts), COLUMNS)
