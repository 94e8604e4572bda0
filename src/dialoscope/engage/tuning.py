"""Tuning the encoder with its linear layer: whole dialogues are the batch, each turn is encoded once a step.

An interrupted run resumes from its last evaluation and ends with the weights of an unbroken one: which
dialogues a step takes and what its dropout draws depend on the seed and the step alone.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import count, cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from dialoscope.engage import storage
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.examples import Examples, Ints
from dialoscope.engage.fitting import learnt_from
from dialoscope.engage.predictor import Predictor, loss_of, readings, window_means
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.engage.shape import Recipe, Shape
from dialoscope.engage.tokens import Tokens
from dialoscope.errors import ModelError, OutputError, TrainingError, UsageError, unknown_name
from dialoscope.files import MARK, restore, whole_file
from dialoscope.model.learner import give_back, is_out_of_memory, memory_of, seed_step

SELECTIONS = ("valloss", "human")
LOG = "log.csv"
LOOK_EVERY = 20  # steps between looks at the loss: a look waits for the GPU


class Judged(Protocol):
    """Turns that people rated, to select by."""

    @property
    def dialogues(self) -> Sequence[Dialogue]:
        """Turns, the rated one last."""
        ...

    @property
    def mean(self) -> np.ndarray[Any, Any]:
        """The mean rating of each."""
        ...

    @property
    def selection_keys(self) -> Collection[str]:
        """By what the items are known, also in copies."""
        ...


@dataclass(frozen=True)
class Moment:
    """One line of the log."""

    step: int
    loss: float | None = None  # of training, since the last line
    validation: float | None = None  # mean squared error × 100
    pearson: float | None = None  # with remaining depth, on the validation turns
    human: float | None = None  # Pearson's with people, on the items that may be selected on
    seconds: float = 0.0


Progress = Callable[[Moment, int], None]  # and the steps in all


@dataclass(frozen=True)
class State:
    """Where a run stands."""

    step: int = 0
    best: float = math.inf  # of what is selected by, the less the better
    best_step: int = 0
    waited: int = 0  # evaluations since
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a run gave."""

    predictor: Predictor  # the best
    best_step: int
    steps: int
    seconds: float
    history: Sequence[Moment]


def tune(
    training: Sequence[Examples],
    validation: Examples,
    *,
    start: Predictor,
    out: str | Path,
    recipe: Recipe | None = None,
    seed: int = 0,
    select: str = "valloss",
    human: Judged | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Train a predictor on one corpus or several, keep the best by validation loss or by people, say how it went.

    human: rated items that may be selected on; with `select="valloss"` they are only watched, which is logged.
    """
    if select not in SELECTIONS:
        raise unknown_name("selection", select, SELECTIONS)
    if select == "human" and human is None:
        raise UsageError("Selecting by people needs a human-rated set: give --human.")
    folder = Path(out)
    is_begun = _is_begun(folder, resume=resume)
    plan = Plan(start.settings, recipe or Recipe(), seed, select)
    return Run(training, validation, plan, start, folder, human=human, is_begun=is_begun).go(progress)


def _is_begun(folder: Path, *, resume: bool) -> bool:
    for name in ("last", "best"):
        restore(folder / name)
    if (folder / "last" / storage.ABOUT).is_file():
        if resume:
            return True
        raise OutputError(f"{folder}: a training run was begun here. Give --resume to continue it, or another folder.")
    found = {file.name for file in folder.iterdir() if not file.name.startswith(MARK)} if folder.is_dir() else set()
    if found - ({LOG} if resume else set()):  # a run that was interrupted before its first checkpoint leaves its log
        raise OutputError(f"{folder}: expected an empty folder. Give the name of a new one.")
    return False


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    settings: Shape
    recipe: Recipe
    seed: int
    select: str


class Run:
    """A training run in progress."""

    def __init__(
        self,
        training: Sequence[Examples],
        validation: Examples,
        plan: Plan,
        start: Predictor,
        folder: Path,
        *,
        human: Judged | None,
        is_begun: bool,
    ) -> None:
        self.plan, self.folder, self.human, self.validation = plan, folder, human, validation
        self.is_begun = is_begun
        self.origin = _origin(training, validation, plan, start, human)
        found = storage.load(folder / "last", device=str(start.encoder.device)) if is_begun else None
        if found is not None and dict(found.origin) != self.origin:
            changed = next((key for key in self.origin if found.origin.get(key) != self.origin[key]), "origin")
            raise ModelError(f"{folder}: another run was begun here ('{changed}' differs). Give another folder.")
        begun = replace(found or _copied(start), origin=self.origin, calibration=None)
        self.predictor = begun.using(dtype=_dtype(plan.recipe, begun.encoder.device))
        self.encoder, self.head = self.predictor.encoder, self.predictor.head
        self.data = Data.of(training, self.encoder, plan.settings)
        self.held_out = [text for one in validation.dialogues for text in readings(one, plan.settings)]
        self.optimiser = _optimiser(self.encoder.network, self.head, plan.recipe)
        self.state = self._restored() if is_begun else State()
        self.started = time.monotonic() - self.state.seconds

    def _restored(self) -> State:
        standing = storage.read_standing(self.folder / "last")
        give_back(self.optimiser, standing.optimiser)
        return State(**standing.state)

    def go(self, progress: Progress | None) -> Tuned:
        """Take all steps that are left."""
        history = list(_read_log(self.folder / LOG, until=self.state.step)) if self.is_begun else []
        if not self.is_begun:
            history.append(self._evaluate(None))
            self._keep(history)
        elif self.state.best_step == self.state.step:  # interrupted between the two, the best may be an older one
            storage.save(self.folder / "best", self.predictor)
        losses: list[Tensor] = []
        for batch in self.data.batches(self.plan, first=self.state.step):
            if self._is_over():
                break
            losses.append(self.step(batch))
            step = self.state.step
            is_last = step == self.plan.recipe.steps
            if progress is not None and step % LOOK_EVERY == 0:
                progress(Moment(step, _mean(losses)), self.plan.recipe.steps)
            if step % self.plan.recipe.evaluate_every == 0 or is_last:
                history.append(self._evaluate(_mean(losses)))
                losses = []
                self._keep(history)
                if progress is not None:
                    progress(history[-1], self.plan.recipe.steps)
        best = storage.load(self.folder / "best", device=str(self.encoder.device))
        return Tuned(best, self.state.best_step, self.state.step, self.state.seconds, history)

    def _is_over(self) -> bool:
        patience = self.plan.recipe.patience
        return self.state.step >= self.plan.recipe.steps or (patience is not None and self.state.waited >= patience)

    def step(self, batch: Batch) -> Tensor:
        """Learn from one batch; its loss."""
        recipe, step = self.plan.recipe, self.state.step
        seed_step(self.plan.seed, step)
        for group in self.optimiser.param_groups:
            group["lr"] = group["usual"] * recipe.rate_at(step)
        self.encoder.network.train()
        try:
            with _repeatable() if self.encoder.device.type == "cuda" else nullcontext():
                vectors = self.encoder.encode(batch.ids, self.plan.settings)
                outputs = window_means(self.head(vectors), torch.from_numpy(batch.starts), self._averaged)
                loss = loss_of(outputs, torch.from_numpy(batch.targets).to(outputs.device), self.plan.settings)
                (recipe.loss_scale * loss).backward()  # type: ignore[no-untyped-call]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            advice = "Give a smaller --batch-size, or fewer --tokens; --resume goes on from the last evaluation."
            raise self._ended(f"No memory is left for a batch of {len(batch.ids)} turns", advice) from error
        nn.utils.clip_grad_norm_([*self.encoder.network.parameters(), *self.head.parameters()], recipe.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.state = replace(self.state, step=step + 1)
        return loss.detach()

    @property
    def _averaged(self) -> int:
        return self.plan.settings.averaged

    def _evaluate(self, loss: float | None) -> Moment:
        if loss is not None and not math.isfinite(loss):
            raise self._ended("The loss is no number any more", "Give a smaller --rate.")
        predictor = replace(self.predictor)  # a fresh one: names are made of weights, and these move
        scores = predictor.scores(predictor.outputs(self.held_out), self.validation.starts)
        human = None if self.human is None else _pearson(predictor.rate(self.human.dialogues), self.human.mean)
        targets = self.validation.targets
        error = 100 * float(np.square(scores - targets)[np.isfinite(targets)].mean())
        if not math.isfinite(error):  # the last step may have been the one too large
            raise self._ended("The scores are no numbers any more", "Give a smaller --rate.")
        seconds = time.monotonic() - self.started
        depth = _pearson(scores, self.validation.targets)
        self.state = replace(self.state, seconds=seconds)
        return Moment(self.state.step, loss, error, depth, human, seconds)

    def _ended(self, what: str, advice: str) -> TrainingError:
        last = self.folder / "last"
        good = last if last.is_dir() else "none"
        return TrainingError(f"{what} at step {self.state.step}. {advice} Last good checkpoint: {good}.")

    def _keep(self, history: Sequence[Moment]) -> None:
        """The log, the state to go on from, and the best predictor, in an order that may be broken off anywhere."""
        now = history[-1]
        value = now.validation if self.plan.select == "valloss" else -(now.human if now.human is not None else -1.0)
        assert value is not None
        is_better = value < self.state.best
        best, at = (value, now.step) if is_better else (self.state.best, self.state.best_step)
        waited = 0 if is_better else self.state.waited + 1
        self.state = replace(self.state, best=best, best_step=at, waited=waited)
        _write_log(self.folder / LOG, history)
        standing = storage.Standing(asdict(self.state), memory_of(self.optimiser))
        storage.save(self.folder / "last", self.predictor, standing=standing)
        if is_better:
            storage.save(self.folder / "best", self.predictor)


@contextmanager
def _repeatable() -> Iterator[None]:
    """Make a GPU add up in a fixed order, so that equal seeds give equal weights.

    Usually its blocks add in the order in which they happen to end. Fused attention always does, so attention is
    computed in steps.
    """
    was_enabled, was_mild = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=was_mild or not was_enabled)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.use_deterministic_algorithms(was_enabled, warn_only=was_mild)


def _copied(start: Predictor) -> Predictor:
    """With weights of its own: who gave it may tune it once more, or compare with it."""
    encoder = replace(start.encoder, network=deepcopy(start.encoder.network))
    return replace(start, encoder=encoder, head=deepcopy(start.head))


def _origin(
    training: Sequence[Examples], validation: Examples, plan: Plan, start: Predictor, human: Judged | None
) -> dict[str, Any]:
    chosen_by = human.selection_keys if human is not None and plan.select == "human" else ()
    return {
        "training": [one.label for one in training],
        "validation": validation.label,
        "learnt": learnt_from(training, start),
        "start": start.name,
        "recipe": plan.recipe.to_dict(),
        "seed": plan.seed,
        "select": plan.select,
        "selected_on": sorted(start.selected_on.union(chosen_by)),  # what the start was chosen by flatters this one too
    }


# --- Batches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Batch:
    """Whole dialogues: token ids of every turn, where dialogues begin, and targets."""

    ids: Sequence[Sequence[int]]
    starts: Ints
    targets: Floats


@dataclass(frozen=True, eq=False)
class Data:
    """Training dialogues, read once."""

    parts: Sequence[Examples]
    tokens: Sequence[Tokens]  # of each part

    @classmethod
    def of(cls, parts: Sequence[Examples], encoder: Encoder, settings: Shape) -> Data:
        """Read all turns."""
        return cls(parts, [Tokens.of(part, encoder, settings) for part in parts])

    def batches(self, plan: Plan, *, first: int = 0) -> Iterator[Batch]:
        """Batches without end, from a step on; what came before is drawn, but not made."""
        every = tuple(range(len(self.parts)))
        groups = [(part,) for part in every] if plan.recipe.mixing == "by-corpus" else [every]
        streams = cycle([self._stream(group, plan, number) for number, group in enumerate(groups)])
        for step, stream in enumerate(streams):
            places = next(stream)
            if step >= first:
                yield self._made(places)

    def _stream(self, parts: Sequence[int], plan: Plan, number: int) -> Iterator[list[tuple[int, int]]]:
        """Dialogues as (part, place), in a new order every epoch, until a batch has its turns."""
        places = [(part, place) for part in parts for place in range(len(self.parts[part]))]
        lengths = {part: self.parts[part].lengths for part in parts}
        for epoch in count():
            rng = np.random.default_rng([plan.seed, number, epoch])
            batch, turns = [], 0
            for place in rng.permutation(len(places)).tolist():
                part, one = places[place]
                batch.append((part, one))
                turns += int(lengths[part][one])
                if turns >= plan.recipe.batch_turns:
                    yield batch
                    batch, turns = [], 0
            if batch:
                yield batch

    def _made(self, places: Sequence[tuple[int, int]]) -> Batch:
        ids: list[Sequence[int]] = []
        starts, targets = [0], []
        for part, place in places:
            first, stop = self.parts[part].starts[place : place + 2].tolist()
            ids += self.tokens[part].lists(first, stop)
            starts.append(len(ids))
            targets.append(self.parts[part].targets[first:stop])
        return Batch(ids, np.array(starts), np.concatenate(targets))


# --- Parts ------------------------------------------------------------------------------------------------------------


def _optimiser(network: nn.Module, head: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    rates = (recipe.rate, recipe.rate if recipe.head_rate is None else recipe.head_rate)
    groups: list[dict[str, Any]] = [
        {"params": [one for one in module.parameters() if one.requires_grad], "lr": rate, "usual": rate}
        for module, rate in zip((network, head), rates, strict=True)
    ]
    kind: Any = torch.optim.SGD if recipe.optimiser == "sgd" else torch.optim.AdamW
    made: torch.optim.Optimizer = kind(groups)
    return made


def _dtype(recipe: Recipe, device: torch.device) -> str:
    return recipe.dtype or ("bfloat16" if device.type == "cuda" else "float32")


def _mean(losses: Sequence[Tensor]) -> float | None:
    return float(torch.stack(list(losses)).mean()) if losses else None


def _pearson(first: Any, second: Any) -> float | None:
    both = np.array([first, second], np.float64)
    first, second = both[:, np.isfinite(both).all(0)]
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _write_log(path: Path, history: Sequence[Moment]) -> None:
    with whole_file(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(history[0])))
        writer.writeheader()
        writer.writerows(asdict(one) for one in history)


def _read_log(path: Path, *, until: int) -> Iterator[Moment]:
    """Lines of an earlier run, up to where it is taken up again."""
    if not path.is_file():
        return
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            values = {key: float(value) if value else None for key, value in line.items()}
            step = int(values.pop("step") or 0)
            if step <= until:
                yield Moment(step, **values)  # type: ignore[arg-type]
