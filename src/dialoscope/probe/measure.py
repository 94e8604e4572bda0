"""What encodings know: one classifier for each task on a model's encodings, beside what it takes to be impressed.

Fit on the training split's positions, scored on the held-out ones. Every model stands beside its controls: the most
frequent answer, the best one that never changes, the context's bag of words, the same structure untrained, and the same
classifier taught shuffled labels of other positions, which is what chance gives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol
from zlib import crc32

import numpy as np

from dialoscope.errors import UsageError
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.protocol import Floats as Features
from dialoscope.probe.encodings import encode
from dialoscope.probe.examples import Examples
from dialoscope.probe.labels import Hits, Labels, constant, hits_of, labels_of, majority, shuffled
from dialoscope.probe.pictures import Picture, colouring, picture
from dialoscope.probe.targets import Targets
from dialoscope.probe.tasks import SO_FAR, TASKS, Task, rule_of
from dialoscope.probe.words import bags_of_words

LOG = logging.getLogger(__name__)
CLASSIFIERS = ("logistic", "mlp")
OWN = "model"  # what a model itself answers, among its controls
Progress = Callable[[int, int], None]  # steps done, steps in all: contexts encoded and labels learnt


@dataclass(frozen=True)
class Settings:
    """How models are probed."""

    classifier: Literal["logistic", "mlp"] = "logistic"
    context_tokens: int | None = 100
    is_scaled: bool = False  # divide all encodings by one number, so that models of other scales are penalised alike
    topics_so_far: bool = False  # NumAllTopics and IsMultiTopic of the context, not of the whole dialogue
    has_controls: bool = True  # those that need a classifier of their own; answers that never change cost nothing
    seed: int = 0  # of shuffled labels, untrained weights and the perceptron

    def to_dict(self) -> dict[str, Any]:
        """As JSON and signatures have it; what is as usual is left out."""
        usual = Settings()
        return {"classifier": self.classifier} | {
            key: value for key, value in asdict(self).items() if value != getattr(usual, key) and key != "seed"
        }


class Predictor(Protocol):
    """A fitted classifier of one task."""

    def predict(self, features: Features, *, device: str = "cpu") -> Targets:
        """The answer to each row."""
        ...


Answered = Mapping[str, Hits]  # by task


@dataclass(frozen=True, eq=False)
class Probed:
    """One model: how its encodings and its controls answered."""

    name: str  # as the caller calls it
    identity: str  # its own name, with a fingerprint of its weights
    width: int
    settings: Mapping[str, Any]  # how it reads, where it says so: layer, pooling and the like
    own: Answered
    controls: Mapping[str, Answered]
    picture: Picture
    undecided: Mapping[str, int] = field(default_factory=dict)  # labels not converged: of `model` and of each control
    why_no_untrained: str | None = None
    spread: float = 1.0  # the mean standard deviation of the encodings' numbers


@dataclass(frozen=True)
class Dialogues:
    """How many dialogues are learnt from and scored on, and how many of the latter are learnt from as well."""

    training: int
    held_out: int
    shared: int

    @property
    def told(self) -> str:
        """What to know of those that are shared."""
        count = f"{self.shared:,} of {self.held_out:,} held-out dialogues {'is' if self.shared == 1 else 'are'}"
        return f"{count} in the training split as well, word for word, and may make scores too high: leave them out."


@dataclass(frozen=True, eq=False)
class Measured:
    """All models on all tasks that the corpus can carry."""

    labels: Mapping[str, Labels]
    skipped: Mapping[str, str]  # task -> why
    models: Sequence[Probed]
    training: Examples
    held_out: Examples
    dialogues: Dialogues


@dataclass(frozen=True, eq=False)
class Bench:
    """What all models share: positions, labels, settings, and somebody who watches."""

    training: Examples
    held_out: Examples
    labels: Mapping[str, Labels]
    settings: Settings
    device: str
    cache: Path | None
    advance: Callable[[int], None]
    picture_by: str  # the task whose labels colour pictures

    def encodings(self, model: DialogueModel) -> tuple[Features, Features]:
        """Of both splits."""
        first, second = (self._encoded(model, part) for part in (self.training, self.held_out))
        if not self.settings.is_scaled:
            return first, second
        scale = np.float32(first.std(axis=0, dtype=np.float64).mean() or 1.0)
        return first / scale, second / scale

    def _encoded(self, model: DialogueModel, part: Examples) -> Features:
        done = 0

        def watch(now: int, _: int) -> None:
            nonlocal done
            self.advance(now - done)
            done = now

        return encode(model, part, tokens=self.settings.context_tokens, cache=self.cache, progress=watch)


def measure(
    models: Mapping[str, DialogueModel],
    training: Examples,
    held_out: Examples,
    *,
    tasks: Mapping[str, Task] = TASKS,
    settings: Settings | None = None,
    picture_by: str | None = None,
    device: str = "cpu",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Probe every model on every task that the corpus can carry."""
    settings = settings or Settings()
    dialogues = check_apart(training, held_out)
    labels, skipped = label_all(tasks, training, held_out, settings)
    if not models or not labels:
        why = "; ".join(f"{name} {reason}" for name, reason in skipped.items())
        raise UsageError(f"Nothing to probe: {why}." if models else "Give at least one model to probe.")
    colour = colouring(labels, skipped, picture_by)
    if dialogues.shared:
        LOG.warning(dialogues.told)
    total = _steps(len(models), training, held_out, labels, settings)
    bench = Bench(training, held_out, labels, settings, device, cache, _counter(total, progress), colour)
    shared = _shared_controls(bench)
    probed = [_probe(name, model, bench, shared) for name, model in models.items()]
    return Measured(labels, skipped, probed, training, held_out, dialogues)


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
    tasks: Mapping[str, Task], training: Examples, held_out: Examples, settings: Settings
) -> tuple[dict[str, Labels], dict[str, str]]:
    """Labels by task, and why a task has none."""
    found, skipped = {}, {}
    for name, task in tasks.items():
        if settings.topics_so_far and name in SO_FAR:
            task = replace(task, labels=SO_FAR[name], needs=("state",))
        try:
            rule = rule_of(task, training, training.annotations & held_out.annotations)
            found[name] = _asked(labels_of(name, task, rule, training, held_out))
        except UsageError as error:
            skipped[name] = str(error)
    return found, skipped


def _asked(labels: Labels) -> Labels:
    """Labels that leave something to ask."""
    if len(labels.classes) < 2:
        raise UsageError(f"has one label only in the training split, {labels.classes[0]!r}")
    return labels


class _Learnt(NamedTuple):
    """What classifiers answer, and how many of their labels had not converged."""

    answered: Answered
    undecided: int = 0


def _probe(name: str, model: DialogueModel, bench: Bench, shared: Mapping[str, _Learnt]) -> Probed:
    first, second = bench.encodings(model)
    targets = [one.training for one in bench.labels.values()]
    wrong = [_shuffled(name, one, bench) for name, one in bench.labels.items()] if bench.settings.has_controls else []
    fitted = _fit(first, [*targets, *wrong], bench)
    found = {OWN: _answered(fitted[: len(targets)], second, bench), **shared}
    reason = None
    if wrong:
        found["shuffled"] = _answered(fitted[len(targets) :], second, bench)
        try:
            found["untrained"] = _untrained(model, bench)
        except UsageError as error:
            reason = str(error)
    undecided = {what: one.undecided for what, one in found.items() if one.undecided}
    own, controls = found.pop(OWN).answered, {what: one.answered for what, one in found.items()}
    settings = dict(getattr(model, "settings", {}))
    spread = float(first.std(axis=0, dtype=np.float64).mean())
    seen = picture(name, second, bench.labels[bench.picture_by], np.random.default_rng(bench.settings.seed))
    return Probed(name, model.name, first.shape[1], settings, own, controls, seen, undecided, reason, spread)


def _shuffled(name: str, labels: Labels, bench: Bench) -> Targets:
    """By the task's name, so that what else is asked changes nothing."""
    return shuffled(labels.training, np.random.default_rng([bench.settings.seed, crc32(name.encode())]))


def _untrained(model: DialogueModel, bench: Bench) -> _Learnt:
    from dialoscope.model.untrained import untrained

    return _learnt(*bench.encodings(untrained(model, seed=bench.settings.seed)), bench)


def _shared_controls(bench: Bench) -> dict[str, _Learnt]:
    """Controls that need no model."""
    found = {
        control: _Learnt({name: hits_of(one, answer(one)) for name, one in bench.labels.items()})
        for control, answer in (("majority", majority), ("constant", constant))
    }
    if bench.settings.has_controls:
        tokens = bench.settings.context_tokens
        bags = bags_of_words(bench.training.contexts(tokens), bench.held_out.contexts(tokens))
        found["bag_of_words"] = _learnt(*bags, bench)
    return found


def _learnt(first: Features, second: Features, bench: Bench) -> _Learnt:
    """What classifiers make of features, from the true labels."""
    fitted = _fit(first, [one.training for one in bench.labels.values()], bench)
    return _answered(fitted, second, bench)


def _fit(features: Features, targets: Sequence[Targets], bench: Bench) -> Sequence[Predictor]:
    fitted: Sequence[Predictor]
    if bench.settings.classifier == "mlp":
        from dialoscope.probe.perceptron import fit_perceptron

        fitted = fit_perceptron(features, targets, seed=bench.settings.seed, device=bench.device)
    else:
        from dialoscope.probe.logistic import fit_logistic

        fitted = fit_logistic(features, targets, device=bench.device)
    bench.advance(sum(one.classes for one in targets))
    return fitted


def _answered(fitted: Sequence[Predictor], features: Features, bench: Bench) -> _Learnt:
    both = zip(bench.labels.items(), fitted, strict=True)
    said = {name: hits_of(one, each.predict(features, device=bench.device)) for (name, one), each in both}
    # Perceptrons stop when their loss stalls and have no optimum to be short of.
    undecided = sum(int((~np.asarray(one.is_converged)).sum()) for one in fitted if hasattr(one, "is_converged"))
    return _Learnt(said, undecided)


def _steps(models: int, training: Examples, held_out: Examples, labels: Mapping[str, Labels], how: Settings) -> int:
    contexts, classes = len(training) + len(held_out), sum(len(one.classes) for one in labels.values())
    if not how.has_controls:
        return models * (contexts + classes)
    return models * (2 * contexts + 3 * classes) + classes


def _counter(total: int, progress: Progress | None) -> Callable[[int], None]:
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        done = min(total, done + steps)
        if progress is not None:
            progress(done, total)

    return advance
