"""The training loop. An interrupted run resumes from its last checkpoint and ends with the same weights.

Checkpoints hold no random state. The order of the examples and the random numbers of a transform depend on (seed,
epoch) alone, and dropout depends on (seed, epoch, batch). So a checkpoint can be written between any two batches.

A run's folder::

    untrained/  epoch-001/ …  best/  last/     models (see `dialoscope.model.checkpoint`)
    log.csv                                    what happened
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError, TrainingError
from dialoscope.files import MARK, restore
from dialoscope.model import graphs
from dialoscope.model.batch import Batch
from dialoscope.model.batching import batches, collate_all
from dialoscope.model.checkpoint import Checkpoint, copy_checkpoint, read_checkpoint, read_state, save_model
from dialoscope.model.evaluation import perplexity_of
from dialoscope.model.examples import Ints
from dialoscope.model.learner import ExtraLoss, Learner, is_out_of_memory, make_accelerator, seed_step
from dialoscope.model.log import FILE, Log, Moment, Progress, Sums, Watch
from dialoscope.model.network import Seq2Seq
from dialoscope.model.run import Data, Plan, Portion, State, TrainingResult, Transform, Validate, check_same_run
from dialoscope.model.seq2seq import Seq2SeqModel
from dialoscope.model.structure import Recipe, Structure

LOG = logging.getLogger(__name__)
LOOK_EVERY = 50  # steps between looks at the loss: a look waits for the GPU
SAVE_SECONDS = 600.0  # between checkpoints within an epoch


def run_training(
    corpus: Corpus,
    settings: Structure,
    recipe: Recipe,
    *,
    out: str | Path,
    seed: int = 0,
    transform: Transform | None = None,
    extra_loss: ExtraLoss | None = None,
    validate: Validate | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
    **options: Any,
) -> TrainingResult:
    """Train a network on a corpus with training and validation splits, and write its checkpoints to a folder.

    `transform` changes the training examples anew every epoch; `extra_loss` is added to the cross-entropy; what
    `validate` measures on the model after every epoch is logged. Other options are those of `Plan`: `tokens` (words or
    bpe), `preset` (its name), `train_split`, `validation_split`, `context_turns`, `best_by`, `bleu_samples`. With
    `resume`, a run that was begun in the folder is resumed; where none was, a new one begins.
    """
    plan = Plan(settings, recipe, seed, transform=transform, extra_loss=extra_loss, **options)
    folder = Path(out)
    is_begun = is_run_begun(folder, resume=resume)
    loop = Loop(corpus, plan, folder, device=device, is_begun=is_begun, save_seconds=save_seconds, validate=validate)
    return loop.run(progress)


def is_run_begun(folder: Path, *, resume: bool) -> bool:
    """Whether a folder has a run to resume. A folder that a run must not write to is an error."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: expected a folder, found a file. Give the name of a new one.")
    restore(folder / "last")  # a run that was interrupted while it replaced its checkpoint may have left none
    is_begun = (folder / "last").is_dir()
    if is_begun and not resume:
        raise OutputError(f"{folder}: a training run was begun here. Give --resume to continue it, or another folder.")
    ours = {("untrained", True), ("best", True), ("last", True), (FILE, False)}
    files = [file for file in folder.iterdir() if not file.name.startswith(".")] if folder.is_dir() else []
    found = {(file.name, file.is_dir()) for file in files}
    if not is_begun and found - ours:
        raise OutputError(
            f"{folder}: expected an empty folder, found {min(found - ours)[0]}. Give the name of a new one."
        )
    return is_begun


class Loop:
    """A run in progress."""

    def __init__(
        self,
        corpus: Corpus,
        plan: Plan,
        folder: Path,
        *,
        device: str = "auto",
        is_begun: bool = False,
        save_seconds: float = SAVE_SECONDS,
        validate: Validate | None = None,
    ) -> None:
        self.folder, self.save_seconds, self.validate = folder, save_seconds, validate
        self.accelerator = make_accelerator(device, plan.recipe.precision)
        self.device: torch.device = self.accelerator.device
        self.origin, self.is_begun = plan.origin(corpus), is_begun
        found = read_checkpoint(folder / "last") if is_begun else None
        if found is not None:
            check_same_run(found.origin, self.origin, out=folder)
        self.data = Data.of(corpus, plan, vocabulary=found.vocabulary if found else None)
        self.plan = replace(plan, settings=replace(plan.settings, vocabulary=len(self.data.vocabulary)))
        with _explained(self._too_large):
            self.network = found.network if found else self._new_network()
            self.learner = Learner(self.network, plan.recipe, self.accelerator, extra_loss=plan.extra_loss)
        self.state = self._restored() if found else State(plan.recipe.learning_rate)
        self.saved = "last" if found else None
        self.started, self.speed = time.monotonic() - self.state.seconds, 0.0

    def _new_network(self) -> Seq2Seq:
        seed_step(self.plan.seed, 0)
        return Seq2Seq(self.plan.settings)

    def _restored(self) -> State:
        values, memory = read_state(self.folder / "last")
        state = State.from_dict(values, path=self.folder / "last")
        self.learner.remember(memory)
        return state

    # --- Epochs -------------------------------------------------------------------------------------------------------

    def run(self, progress: Progress | None = None) -> TrainingResult:
        """Train until the last epoch, or until it stops getting better."""
        step = self.state.step if self.is_begun else None
        has_extra = self.plan.extra_loss is not None
        folder = self.folder if self.accelerator.is_main_process else None
        log = Log(folder, step=step, progress=progress, has_extra_loss=has_extra)
        history: list[Moment] = []
        self._sweep()
        self._tell_what_is_cut()
        self._tell_what_is_chosen_on()
        try:
            if not self.is_begun:
                history.append(self._begin(log))
            while not self._is_finished():
                self._train_epoch(log)
                history.append(self._end_epoch(log))
        finally:
            graphs.clear()
            self.accelerator.free_memory()
        return self._result(history)

    def _sweep(self) -> None:
        """Delete unfinished files of an interrupted run, and put back the folders that it was replacing."""
        if self.accelerator.is_main_process and self.folder.is_dir():
            for name in ("untrained", "best", f"epoch-{self.state.epoch:03d}"):
                restore(self.folder / name)
            for left in self.folder.glob(f"{MARK}*"):
                shutil.rmtree(left, ignore_errors=True)

    def _tell_what_is_cut(self) -> None:
        if self.data.cut and self.accelerator.is_main_process:
            counts = f"{self.data.cut:,} of {len(self.data.training):,} training contexts"
            tokens = self.plan.settings.context_tokens
            LOG.warning("%s are longer than context_tokens=%s: only their last tokens are read.", counts, tokens)

    def _tell_what_is_chosen_on(self) -> None:
        if self.plan.train_split == self.plan.validation_split and self.accelerator.is_main_process:
            split = self.plan.train_split
            LOG.warning("Trained and validated on '%s': what is best is chosen on what was learnt.", split)

    def _begin(self, log: Log) -> Moment:
        self._save("untrained")
        moment = self._measured(replace(self.state, epoch=0), batches=0)
        log.tell(moment)
        self._save("last", is_resumable=True)
        return moment

    def _is_finished(self) -> bool:
        patience = self.plan.recipe.patience
        is_stalled = patience is not None and self.state.stalled >= patience and self.state.done == 0
        return self.state.epoch > self.plan.recipe.epochs or is_stalled

    def _train_epoch(self, log: Log) -> None:
        rng = np.random.default_rng([self.plan.seed, self.state.epoch])
        examples, limit = self.data.epoch(self.plan, rng), self.plan.settings.context_tokens
        rows = batches(examples, batch_size=self.plan.recipe.batch_size, rng=rng, context_tokens=limit)
        self.learner.objective.train()
        portions = [self._portion(some, examples.steps) for some in rows[self.state.done :]]
        made = collate_all(examples, [one.rows for one in portions], device=self.device, context_tokens=limit)
        with self.explained():
            self._train_batches(zip(made, portions, strict=True), len(rows), log)

    def _portion(self, rows: Ints, steps: Ints) -> Portion:
        """What this process computes of a batch; where nothing is left for it, an example that does not count."""
        mine = rows[self.accelerator.process_index :: self.accelerator.num_processes]
        own, tokens = int(steps[mine].sum()), int(steps[rows].sum())
        return Portion(mine if len(mine) else rows[:1], own, len(mine), tokens, len(rows))

    def _train_batches(self, made: Iterable[tuple[Batch, Portion]], batches: int, log: Log) -> None:
        before = Sums(self.state.loss, self.state.tokens, self.state.extra_loss, self.state.samples)
        watch = Watch(before, self.device)
        for batch, portion in made:
            self.learner.set_rate(self._rate(self.state))
            losses = self._backward(batch, portion) or self._backward(batch, portion, is_last_attempt=True)
            assert losses is not None
            self.learner.update()
            watch.add(*losses, tokens=portion.tokens, samples=portion.samples)
            self.state = replace(self.state, done=self.state.done + 1, step=self.state.step + 1)
            if self.state.done == batches:
                self._look(watch, batches, log, is_logged=False)
            elif self.state.done % LOOK_EVERY == 0:
                self._look(watch, batches, log, is_logged=True)
                if watch.is_time(self.save_seconds, self.accelerator):
                    self._save("last", is_resumable=True)

    def _backward(
        self, batch: Batch, portion: Portion, *, is_last_attempt: bool = False
    ) -> tuple[Tensor, Tensor | None] | None:
        """What a batch cost; None where memory ran out, but captured graphs gave theirs back: it can be tried again.

        Several processes do not try again: the others would wait for gradients that they have.
        """
        seed_step(self.plan.seed, self.state.epoch, self.state.done, self.accelerator.process_index)
        try:
            return self.learner.backward(
                batch,
                own_tokens=portion.own_tokens,
                own_samples=portion.own_samples,
                token_share=portion.token_share,
                sample_share=portion.sample_share,
                scale=portion.tokens / portion.samples if self.plan.recipe.loss_over == "responses" else 1.0,
            )
        except RuntimeError as error:
            is_final = is_last_attempt or self.accelerator.num_processes > 1 or not is_out_of_memory(error)
            if is_final or not graphs.give_way():
                raise
            self.learner.forget()
            return None

    def _look(self, watch: Watch, batches: int, log: Log, *, is_logged: bool) -> None:
        total = watch.total(self.accelerator)
        if not math.isfinite(total.loss):
            raise self._diverged(f"the loss became {total.loss}")
        seconds = time.monotonic() - self.started
        self.state = replace(self.state, **total._asdict(), seconds=seconds)
        self.speed = watch.samples_per_second
        log.tell(self._moment(self.state, batches), is_logged=is_logged)

    def _end_epoch(self, log: Log) -> Moment:
        """Measure, choose the next rate, and write the models; `last` comes last, for it is where a run goes on."""
        batches, ended = self.state.done, self.state
        moment = self._measured(ended, batches=batches)
        if moment.perplexity is None or not math.isfinite(moment.perplexity):
            raise self._diverged(f"the validation perplexity became {moment.perplexity}")
        is_lower = ended.lowest is None or moment.perplexity < ended.lowest
        chosen = moment.perplexity if self.plan.best_by == "perplexity" else -(moment.bleu_2 or 0.0)
        is_best = ended.best is None or chosen < ended.best
        self.state = replace(
            ended,
            epoch=ended.epoch + 1,
            done=0,
            loss=0.0,
            tokens=0,
            extra_loss=0.0,
            samples=0,
            lowest=moment.perplexity if is_lower else ended.lowest,
            stalled=0 if is_lower else ended.stalled + 1,
            rate=ended.rate / 2 if self.plan.recipe.halve_when_stalled and not is_lower else ended.rate,
            best=chosen if is_best else ended.best,
            best_epoch=ended.epoch if is_best else ended.best_epoch,
            seconds=time.monotonic() - self.started,
        )
        log.tell(moment)
        self._save(f"epoch-{ended.epoch:03d}", is_best=is_best)
        self._save("last", is_resumable=True)
        return moment

    # --- Measuring ----------------------------------------------------------------------------------------------------

    def _measured(self, state: State, *, batches: int) -> Moment:
        """The validation split's perplexity and BLEU-2, and what else was asked for."""
        sizes = {"batch_size": self.plan.recipe.batch_size, "context_tokens": self.plan.settings.context_tokens}
        with self.explained():
            perplexity = perplexity_of(self.learner.resting(), self.data.validation, device=self.device, **sizes)  # type: ignore[arg-type]
            model = Seq2SeqModel(
                self.network,
                self.data.vocabulary,
                name=self.plan.preset,
                batch_size=self.plan.recipe.batch_size,
                context_turns=self.plan.context_turns,
            )
            bleu_2 = self.data.questions.bleu_2(model, self.data.vocabulary)
            more = {} if self.validate is None else dict(self.validate(model))
        perplexity, bleu_2 = self._agreed(perplexity, bleu_2)
        return replace(self._moment(state, batches), perplexity=perplexity, bleu_2=bleu_2, more=more)

    def _agreed(self, *values: float) -> list[float]:
        """The first process's numbers in all of them, so that all choose the same rate."""
        from accelerate.utils import broadcast

        if self.accelerator.num_processes == 1:
            return list(values)
        return [float(one) for one in broadcast(torch.tensor(values, device=self.device))]

    def _moment(self, state: State, batches: int) -> Moment:
        loss = state.loss / state.tokens if state.tokens else None
        has_extra = self.plan.extra_loss is not None and state.samples
        extra = state.extra_loss / state.samples if has_extra else None
        seconds = time.monotonic() - self.started
        counts = state.epoch, state.step, state.done, batches
        return Moment(*counts, loss, self._rate(state), self.speed, seconds, extra_loss=extra)

    def _rate(self, state: State) -> float:
        """The rate of the next step, which rises in the beginning."""
        warmup = self.plan.recipe.warmup
        return state.rate * min(1.0, (state.step + 1) / warmup) if warmup else state.rate

    # --- Writing, and giving up ---------------------------------------------------------------------------------------

    def _save(self, name: str, *, is_resumable: bool = False, is_best: bool = False) -> None:
        if not self.learner.is_finite():
            raise self._diverged("the weights are no numbers any more")
        if self.accelerator.is_main_process:
            model = Checkpoint(self.network, self.data.vocabulary, self.plan.settings, self.plan.preset, self.origin)
            state, memory = (self.state.to_dict(), self.learner.memory()) if is_resumable else (None, None)
            try:
                save_model(self.folder / name, model, state=state, optimiser=memory)
                if is_best:
                    copy_checkpoint(self.folder / name, self.folder / "best")
            except OutputError as error:
                raise OutputError(f"{error} Last good checkpoint: {self._good()}.") from error
        self.saved = name
        self.accelerator.wait_for_everyone()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """One line where memory runs out while batches are computed."""
        with _explained(self._too_much):
            yield

    def _too_much(self) -> TrainingError:
        advice = f"Give a --batch-size below {self.plan.recipe.batch_size}, or --set context_tokens=100."
        return self._ended(f"Out of memory on {self.device}", advice)

    def _too_large(self) -> TrainingError:
        made = self.plan.settings
        size = f"{made.layers} layers of width {made.width:,}, {made.vocabulary:,} words of width {made.embedding:,}"
        return TrainingError(f"Out of memory on {self.device}: no room for a model of {size}. Give smaller --set.")

    def _diverged(self, what: str) -> TrainingError:
        advice = f"Give --set learning_rate= below {self.plan.recipe.learning_rate}, or a smaller clip."
        return self._ended(what[0].upper() + what[1:], advice)

    def _ended(self, what: str, advice: str) -> TrainingError:
        place = f"in epoch {self.state.epoch} after {self.state.done} batches"
        return TrainingError(f"{what} {place}. {advice} Last good checkpoint: {self._good()}.")

    def _good(self) -> str:
        return "none" if self.saved is None else str(self.folder / self.saved)

    def _result(self, history: list[Moment]) -> TrainingResult:
        parameters = sum(weight.numel() for weight in self.network.parameters())
        ended = self.state
        counts = ended.epoch - 1, ended.step, ended.best_epoch, parameters
        return TrainingResult(str(self.folder), *counts, ended.seconds, tuple(history), self.data.cut)


@contextmanager
def _explained(give_up: Callable[[], TrainingError]) -> Iterator[None]:
    """One line where memory runs out, in place of a trace through the libraries; captured graphs give theirs back."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        graphs.clear()
        raise give_up() from error
