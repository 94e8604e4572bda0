"""`dialoscope train` and `dialoscope presets`: the sequence-to-sequence family on any corpus, distracted or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Quiet,
    complain,
    load_corpus,
    print_json,
    print_table,
)
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.model.estimate import Estimate
    from dialoscope.model.log import Progress
    from dialoscope.model.presets import Preset
    from dialoscope.model.run import TrainingResult
    from dialoscope.model.settings import Recipe, Settings

EPILOG = (
    "Try: dialoscope train concierge --preset static-ui --insert 0.7 --out run  ·  "
    "… train clean/corpus --preset lstm-attn --set layers=1 --set width=128 --epochs 3 --out small"
)
PRESETS_EPILOG = "Try: dialoscope presets  ·  dialoscope presets --json"
PRECISIONS = {"float32": "fp32", "fp32": "fp32", "bfloat16": "bf16", "bf16": "bf16"}

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
ContextTurns = Annotated[int | None, typer.Option("--context-turns", min=1, help="Turns of context at most.")]


def train(
    corpus: Annotated[str, typer.Argument(help="A corpus with training and validation splits.", metavar="CORPUS")],
    out: Annotated[Path, typer.Option("--out", help="Folder for checkpoints and the log.")],
    preset: Annotated[str, typer.Option("--preset", help="Which model (see: dialoscope presets).")] = "static-ui",
    insert: Annotated[
        float | None, typer.Option("--insert", min=0, max=1, help="Probability of inserting each of two distractions.")
    ] = None,
    has_attention_loss: Annotated[
        bool | None,
        typer.Option(
            "--attention-loss/--no-attention-loss", help="With --insert: lower attention on them. Usual: yes."
        ),
    ] = None,
    attention_weight: Annotated[
        float | None, typer.Option("--attention-weight", min=0, help="λ of that loss. Usual: 1.")
    ] = None,
    attention_reduction: Annotated[
        str | None, typer.Option("--attention-reduction", help="mean (the paper's) or sum over places. Usual: mean.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="At most so many.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Samples in a step.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as layers=2; may be given again.")
    ] = None,
    tokens: Annotated[str, typer.Option("--tokens", help="words, or bpe for trained pieces.")] = "words",
    context_turns: ContextTurns = None,
    best_by: Annotated[
        str | None, typer.Option("--best-by", help="perplexity or bleu-2. Usual: what the preset's paper chose by.")
    ] = None,
    log_metrics: Annotated[
        str | None, typer.Option("--log-metrics", help="Further metrics of each epoch, such as rouge-l,meteor.")
    ] = None,
    train_split: Annotated[str, typer.Option("--train-split", help="Split to train on.")] = "train",
    validation_split: Annotated[str, typer.Option("--validation-split", help="Split to choose by.")] = "validation",
    device: Device = "auto",
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32, or bfloat16 for mixed precision.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same weights.")] = 0,
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and estimate the time.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a dialogue model; killed at any moment, --resume ends with the same weights as an unbroken run."""
    from dialoscope.model.loading import choose_device, require_torch
    from dialoscope.model.presets import preset as preset_named

    require_torch("Training")
    chosen = preset_named(preset)
    recipe = {"epochs": epochs, "batch_size": batch_size, "precision": _precision(dtype)}
    settings, how = _changed(chosen.settings, chosen.recipe, changes or [], recipe)
    options: dict[str, Any] = {
        "tokens": tokens,
        "preset": preset,
        "train_split": train_split,
        "validation_split": validation_split,
        "context_turns": context_turns,
        "best_by": best_by or chosen.best_by,
        "seed": seed,
        **_distractions(insert, has_attention_loss, attention_weight, attention_reduction, settings),
    }
    place = choose_device(device)
    if not dry_run:
        _check_out(out, resume=resume)
    data = load_corpus([corpus], format=format, on_error=on_error, limit=limit, quiet=quiet or json)
    if dry_run:
        from dialoscope.model.estimate import estimate
        from dialoscope.model.run import Plan

        _show_estimate(estimate(data, Plan(settings, how, **options), device=place), json=json)
        return
    from dialoscope.model.training import train as train_model

    if log_metrics:
        from dialoscope.model.evaluation import further_metrics

        names = log_metrics.replace(" ", "").split(",")
        options["validate"] = further_metrics(data.split(validation_split), names, context_turns=context_turns)
    with training_bar(how.epochs, quiet=quiet or json) as progress:
        result = train_model(data, settings, how, out=out, resume=resume, device=place, progress=progress, **options)
    print_json(result.to_dict()) if json else _show(result, options["best_by"])


def _check_out(out: Path, *, resume: bool) -> None:
    """Refuse a folder that is taken before the corpus is read; a --resume that finds nothing is said, not refused."""
    from dialoscope.model.training import is_run_begun

    if not is_run_begun(out, resume=resume) and resume:
        complain(f"{out}: nothing to resume, for no run was begun there; a new one begins.")


def _changed(
    settings: Settings, recipe: Recipe, changes: Sequence[str], more: Mapping[str, Any]
) -> tuple[Settings, Recipe]:
    """Settings and recipe with what --set and the options of their own change in them."""
    from dialoscope.model.settings import changed, read_word

    words = dict(_pair(one) for given in changes for one in given.split())
    settings, recipe = changed(settings, recipe, {name: read_word(word) for name, word in words.items()})
    for name in words:
        if name in settings.ignored:
            model = f"encoder {settings.encoder} and attention {settings.attention}"
            raise UsageError(f"--set {name}={words[name]} would change nothing in a model with {model}. Leave it out.")
    return settings, recipe.from_dict({**recipe.to_dict(), **{k: v for k, v in more.items() if v is not None}})


def _pair(change: str) -> tuple[str, str]:
    name, sign, word = change.partition("=")
    if not sign or not name or not word:
        raise UsageError(f"--set expects NAME=VALUE, such as layers=2, found '{change}'.")
    return name, word


def _precision(dtype: str | None) -> str | None:
    if dtype is not None and dtype not in PRECISIONS:
        raise UsageError(f"--dtype {dtype}: expected float32, or bfloat16 for mixed precision.")
    return None if dtype is None else PRECISIONS[dtype]


def _distractions(
    insert: float | None, has_loss: bool | None, weight: float | None, reduction: str | None, settings: Settings
) -> dict[str, Any]:
    """What the distract room gives to the loop; nothing where nothing is inserted."""
    from dialoscope.distract import AttentionLoss, InsertDistractions

    shape = {"weight": weight, "reduction": reduction}
    loss = AttentionLoss(**{name: value for name, value in shape.items() if value is not None})  # type: ignore[arg-type]
    if insert is None and (has_loss, weight, reduction) != (None, None, None):
        raise UsageError("The attention loss is about inserted distractions: give --insert 0.7 as well, say.")
    if has_loss is False and (weight, reduction) != (None, None):
        raise UsageError("--no-attention-loss leaves nothing to --attention-weight and --attention-reduction.")
    if not insert:
        return {}
    if has_loss is not False and settings.attention == "none":
        raise UsageError("This preset has no attention to lower. Give --no-attention-loss, or another --preset.")
    return {"transform": InsertDistractions(insert), "extra_loss": None if has_loss is False else loss}


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


def _show(result: TrainingResult, best_by: str) -> None:
    if not result.history:
        typer.echo(f"Nothing was left to do: this run had ended. Its models are in {result.out}.")
        return
    rows = [[one.epoch, one.loss, one.perplexity, one.bleu_2, f"{one.rate:g}", one.seconds] for one in result.history]
    columns = ["epoch", "loss", "validation perplexity", "BLEU-2", "rate", "seconds"]
    best = f"best by {best_by} after epoch {result.best_epoch}"
    print_table(columns, rows, title=f"{result.parameters:,} weights, {best}")
    typer.echo(f"written to {result.out}; try: dialoscope perplexity {quote(str(result.out))} CORPUS --split test")


def _show_estimate(found: Estimate, *, json: bool) -> None:
    shown = found.to_dict()
    print_json(shown) if json else print_table(["what", "value"], [[key, value] for key, value in shown.items()])


def presets(json: Json = False) -> None:
    """The models of the papers: what each is made of, how it is trained, and how many weights it has."""
    from dialoscope.model.loading import require_torch

    require_torch("Counting weights")
    from dialoscope.model.network import parameter_count
    from dialoscope.model.presets import PRESETS

    counts = {name: parameter_count(one.settings) for name, one in PRESETS.items()}
    if json:
        print_json(
            {
                name: {
                    "settings": one.settings.to_dict(),
                    "recipe": one.recipe.to_dict(),
                    "best_by": one.best_by,
                    "paper": one.paper,
                    "parameters": counts[name],
                    "paper_millions": one.millions,
                }
                for name, one in PRESETS.items()
            }
        )
        return
    rows = []
    for name, one in PRESETS.items():
        made, how = one.settings, one.recipe
        attention = f"{made.attention}{' UI' if made.integration else ''}"
        rate = f"{how.optimiser} {how.learning_rate:.0e}".replace("e-0", "e-").replace("e+00", "")
        rows.append([name, made.encoder, attention, f"{made.layers}×{made.width}", rate, counts[name] / 1e6])
    print_table(["preset", "encoder", "attention", "size", "rate", "M"], rows)
    typer.echo(_about_sizes(PRESETS))


def _about_sizes(named: Mapping[str, Preset]) -> str:
    """At which vocabularies the weights are counted, and what the paper counts."""
    counted = {name: one for name, one in named.items() if one.millions is not None}
    others = {one.settings.vocabulary for name, one in named.items() if name not in counted}
    theirs = {one.settings.vocabulary for one in counted.values()}
    words = [" or ".join(f"{size:,}" for size in sorted(sizes)) for sizes in (theirs, others)]
    printed = ", ".join(f"{name} {one.millions:g}" for name, one in counted.items())
    ours = f"M: million weights with {words[0]} words for {', '.join(counted)}; with {words[1]} for the others."
    return f"{ours}\nTable 3 of the probe paper, for corpora of 13k and 16k words: {printed}."
