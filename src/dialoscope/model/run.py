"""What a training run is given, where it stands, and what it ended with: three records that travel as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.corpus import Corpus
from dialoscope.errors import ModelError, TrainingError, UsageError, unknown_name
from dialoscope.model.evaluation import Questions
from dialoscope.model.examples import Examples, Ints, examples_of, whole_lengths
from dialoscope.model.learner import ExtraLoss
from dialoscope.model.log import COLUMNS, EXTRA, Moment
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.structure import Recipe, Structure
from dialoscope.model.vocabulary import BYTES, MARKS, Vocabulary

Transform = Callable[[Examples, np.random.Generator], Examples]
Validate = Callable[[DialogueModel], Mapping[str, float]]
BEST_BY = ("perplexity", "bleu-2")
MAY_DIFFER = ("epochs", "patience")  # what a resumed run may be given anew: it only says when to end
LATER = frozenset({"extra_loss", "samples"})  # of a state: runs that were begun before they were counted lack them
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where an object happens to be in memory


@dataclass(frozen=True)
class Plan:
    """Everything the weights depend on: equal plans on an equal corpus train equal models."""

    settings: Structure
    recipe: Recipe
    seed: int = 0
    tokens: str = "words"
    preset: str = "custom"
    train_split: str = "train"
    validation_split: str = "validation"
    context_turns: int | None = None
    best_by: str = "perplexity"
    bleu_samples: int = 200
    transform: Transform | None = None
    extra_loss: ExtraLoss | None = None

    def __post_init__(self) -> None:
        if self.best_by not in BEST_BY:
            raise unknown_name("measure to choose the best by", self.best_by, BEST_BY)
        if self.best_by == "bleu-2" and self.bleu_samples < 1:
            raise UsageError(f"bleu_samples is {self.bleu_samples}: what is best by BLEU-2 needs responses to score.")

    def origin(self, corpus: Corpus) -> dict[str, Any]:
        """The plan as JSON: what a checkpoint says of where it comes from, and what a resumed run must repeat."""
        plain = ("seed", "tokens", "train_split", "validation_split", "context_turns", "best_by", "bleu_samples")
        return {
            "corpus": f"{corpus.name}@{corpus.fingerprint}",
            "settings": self.settings.to_dict(),
            "recipe": self.recipe.to_dict(),
            **{name: getattr(self, name) for name in plain},
            "transform": _named("transform", self.transform),
            "extra_loss": _named("extra_loss", self.extra_loss),
        }


def _named(role: str, given: object) -> str | None:
    """The same words for the same function or object in every process: functions by their qualified name."""
    if given is None:
        return None
    words = " ".join(ADDRESS.sub("", repr(given)).split())
    if "<lambda>" in words:
        what = f"expected a {role} that a resumed run can be held against, found {words}"
        raise UsageError(f"{what}. Give a function with a name, or an object whose repr tells its settings.")
    return words


def check_same_run(before: Mapping[str, Any], now: Mapping[str, Any], *, out: Path) -> None:
    """A resumed run must be the run that was begun, or its end would be neither's.

    What an earlier version did not write down yet was as it is usually.
    """
    usual = {"settings": Structure().to_dict(), "recipe": Recipe().to_dict()}
    old, new = {**_flat(usual), **_flat(before)}, _flat(now)
    for name in sorted(old.keys() | new.keys()):
        if name.rpartition(".")[2] not in MAY_DIFFER and old.get(name) != new.get(name):
            found = f"{name} was {old.get(name)} and is now {new.get(name)}"
            raise UsageError(f"{out}: expected the run that was begun, but {found}. Give another --out to start anew.")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


@dataclass(frozen=True)
class State:
    """Where a run stands: so many batches into an epoch."""

    rate: float
    epoch: int = 1
    done: int = 0  # batches of this epoch
    step: int = 0  # batches of all epochs
    loss: float = 0.0  # summed over this epoch's tokens so far
    tokens: int = 0
    best: float | None = None  # of what the best checkpoint is chosen by
    best_epoch: int = 0
    lowest: float | None = None  # validation perplexity
    stalled: int = 0  # epochs since it was lowest
    seconds: float = 0.0
    extra_loss: float = 0.0  # summed over this epoch's samples so far
    samples: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, path: Path) -> State:
        """The state that a checkpoint remembers."""
        names = {one.name for one in fields(cls)}
        if values.keys() | LATER != names:
            differing = ", ".join(sorted(names ^ (values.keys() | LATER)))
            raise ModelError(f"{path}: expected the state of a training run, found other names: {differing}.")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class Portion:
    """What one process computes of a batch."""

    rows: Ints
    own_tokens: int  # that count here
    own_samples: int  # that count here
    tokens: int  # of the whole batch
    samples: int  # of the whole batch

    @property
    def token_share(self) -> float:
        """Of the batch's tokens, which the cross-entropy is a mean over."""
        return self.own_tokens / self.tokens

    @property
    def sample_share(self) -> float:
        """Of the batch's samples, which an extra loss is a mean over."""
        return self.own_samples / self.samples


def _check_vocabulary(size: int, kind: str) -> None:
    """A size as users give it, marks included."""
    least = len(MARKS) + (BYTES if kind == "bpe" else 1)
    if size < least:
        raise UsageError(f"vocabulary is {size}, expected at least {least} for {kind}: {len(MARKS)} of them are marks")


@dataclass(frozen=True, eq=False)
class Data:
    """A corpus as a run reads it."""

    vocabulary: Vocabulary
    training: Examples
    validation: Examples
    questions: Questions
    cut: int = 0  # training contexts longer than what is read of them, before a transform puts anything in

    @classmethod
    def of(cls, corpus: Corpus, plan: Plan, *, vocabulary: Vocabulary | None = None) -> Data:
        """Splits, vocabulary (of the training split only) and examples."""
        training, validation = corpus.split(plan.train_split), corpus.split(plan.validation_split)
        if vocabulary is None:
            _check_vocabulary(plan.settings.vocabulary, plan.tokens)
            texts = (text.as_py() or "" for chunk in training.turn_column("text").chunks for text in chunk)
            vocabulary = Vocabulary.of(texts, size=plan.settings.vocabulary - len(MARKS), kind=plan.tokens)
        turns, tokens = plan.context_turns, plan.settings.context_tokens
        # A transform sees whole contexts: where it puts something must not depend on how much of them can be read.
        limit = tokens if plan.transform is None else None
        learnt = examples_of(training, vocabulary, context_turns=turns, context_tokens=limit)
        held_out = examples_of(validation, vocabulary, context_turns=turns, context_tokens=tokens)
        for name, some in ((plan.train_split, learnt), (plan.validation_split, held_out)):
            if not len(some):
                raise TrainingError(f"{corpus.name}: expected dialogues of two turns or more in '{name}', found none.")
        questions = Questions.of(validation, most=plan.bleu_samples, context_turns=plan.context_turns)
        cut = 0 if tokens is None else int((whole_lengths(learnt, context_turns=turns) > tokens).sum())
        return cls(vocabulary, learnt, held_out, questions, cut)

    def epoch(self, plan: Plan, rng: np.random.Generator) -> Examples:
        """The training examples of one epoch, as the plan's transform draws them."""
        if plan.transform is None:
            return self.training
        return plan.transform(self.training, rng).within(plan.settings.context_tokens)


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended: where its models are, and what they score on the validation split."""

    out: str
    epochs: int
    steps: int
    best_epoch: int
    parameters: int
    seconds: float
    history: tuple[Moment, ...]  # the untrained model first, then each epoch of this session
    cut_contexts: int = 0  # training contexts longer than `context_tokens`

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "history"}
        has_extra = any(moment.extra_loss is not None for moment in self.history)
        keys = [name for name in COLUMNS if name != EXTRA or has_extra]
        rows = [{key: getattr(moment, key) for key in keys} | dict(moment.more) for moment in self.history]
        return {**named, "history": rows}
