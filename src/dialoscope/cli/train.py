"""`dialoscope train`: the sequence-to-sequence family on any corpus, with distractions or without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from dialoscope.cli.arguments import LAST_GROUP, Corpus, Reading, command
from dialoscope.cli.console import complain, print_json, print_table, print_text
from dialoscope.distract.settings import DistractionSettings
from dialoscope.errors import UsageError
from dialoscope.model.settings import TrainSettings
from dialoscope.settings import BaseSettings, option

if TYPE_CHECKING:
    from dialoscope.model.log import Progress
    from dialoscope.model.train import TrainedModel


@dataclass(frozen=True, kw_only=True)
class RunOutput(BaseSettings):
    """Where checkpoints and the log go."""

    out: str | None = option(None, "Folder for checkpoints and the log.", group=LAST_GROUP, metavar="DIR")
    resume: bool = option(False, "Continue an interrupted run exactly.", group=LAST_GROUP)
    dry_run: bool = option(False, "Count dialogues, samples, weights and batches; train nothing.", group=LAST_GROUP)
    json: bool = option(False, "Print the result as JSON.", group=LAST_GROUP)
    quiet: bool = option(False, "No progress bars.", group=LAST_GROUP)

    @property
    def is_quiet(self) -> bool:
        """Whether progress bars are left out."""
        return self.quiet or self.json


def train(
    corpus: Corpus, settings: TrainSettings, distractions: DistractionSettings, reading: Reading, output: RunOutput
) -> None:
    """Train a dialogue model. An interrupted run resumes exactly with --resume."""
    from dialoscope.model.loading import choose_device, require_torch

    if output.out is None:
        raise UsageError("Give a folder for the checkpoints with --out.")
    require_torch("Training")
    from dialoscope.model.train import plan_of, planned
    from dialoscope.model.train import train as train_model
    from dialoscope.model.training import is_run_begun

    out, more = Path(output.out), distractions.for_training()
    plan = plan_of(settings, more.get("transform"), more.get("extra_loss"))
    choose_device(settings.device)
    if not output.dry_run and not is_run_begun(out, resume=output.resume) and output.resume:
        complain(f"{out}: there is no run to resume; a new one begins.")
    data = reading.load(corpus, output)
    if output.dry_run:
        counts = planned(data, settings=settings, **more)
        print_json(counts) if output.json else print_table(["count", "value"], counts.items())
        return
    with training_bar(plan.recipe.epochs, quiet=output.is_quiet) as progress:
        model = train_model(data, out=out, settings=settings, resume=output.resume, progress=progress, **more)
    if output.json:
        print_json({**model.training.to_dict(), "used": model.used, "parts": dict(model.parts)})
        return
    show(model, plan.best_by)
    given = reading.words(corpus)
    typer.echo(f"Next: dialoscope perplexity {given} --model {quote(str(out))}")


def show(model: TrainedModel, best_by: str) -> None:
    """The log of a run as a table."""
    result = model.training
    if not result.history:
        typer.echo(f"The run had ended, so nothing was trained. Its models are in {result.out}.")
        return
    rows = [[each.epoch, each.loss, each.perplexity, each.bleu_2, f"{each.rate:g}", each.seconds]
            for each in result.history]  # fmt: skip
    columns = ["epoch", "loss", "validation perplexity", "BLEU-2", "rate", "seconds"]
    best = f"best by {best_by} after epoch {result.best_epoch}"
    print_table(columns, rows, title=f"{result.parameters:,} weights, {best}")
    print_text(model.used)
    typer.echo(f"The models are in {result.out}.")


def add_commands(app: typer.Typer) -> None:
    """Add the command to the root of the command line."""
    command(
        app,
        "train",
        train,
        examples=[
            "train concierge --preset static-ui --insert 0.7 --out run",
            "train chats/ --preset lstm-attn --set 'layers=1 width=128' --epochs 3 --out small",
        ],
    )


@contextmanager
def training_bar(epochs: int, *, quiet: bool) -> Iterator[Progress | None]:
    """One bar for each epoch on standard error: loss and speed live, perplexity and BLEU-2 at its end."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from dialoscope.model.log import Moment

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[shown]}"), TimeRemainingColumn()]
    with Bar(*columns, console=console) as bar:
        tasks: dict[int, Any] = {}

        def update(moment: Moment) -> None:
            if moment.epoch not in tasks:
                tasks[moment.epoch] = bar.add_task(f"epoch {moment.epoch}/{epochs}", shown="")
            bar.update(tasks[moment.epoch], completed=moment.done, total=moment.batches, shown=_shown(moment))

        yield update


def _shown(moment: Any) -> str:
    if moment.perplexity is None:
        return f"loss {moment.loss:.3f} · {moment.samples_per_second:,.0f} samples/s"
    return f"perplexity {moment.perplexity:,.2f} · BLEU-2 {moment.bleu_2:.2f} · rate {moment.rate:.4g}"
