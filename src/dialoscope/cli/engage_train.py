"""`dialoscope engage train`: a linear layer on a frozen encoder in seconds, or the encoder as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
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
    progress_bar,
)
from dialoscope.cli.engage_options import DryRun, loaded, show_estimate
from dialoscope.cli.train import Device
from dialoscope.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from dialoscope.engage.examples import Target
    from dialoscope.engage.human_sets import HumanSet
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.settings import Recipe
    from dialoscope.engage.tuning import Moment

EPILOG = (
    "Try: dialoscope engage train chitchat --frozen --out engaged  ·  "
    "… train dailydialog/ empathetic_dialogues/ --history 3 --out engaged"
)

NO_GAIN = 0.98  # of the mean's squared error: above it nothing was learnt


def train(
    corpora: Annotated[
        list[str], typer.Argument(help="Files, folders or names; several are mixed.", metavar="CORPUS…")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the predictor and its log.")],
    history: Annotated[
        int | None, typer.Option("--history", min=0, help="Predecessors that a turn is averaged with. Usual: 0.")
    ] = None,
    is_flat: Annotated[bool | None, typer.Option("--flat", help="Read them with the turn as one text.")] = None,
    pooling: Annotated[str | None, typer.Option("--pooling", help="mean, cls, max or min. Usual: mean.")] = None,
    activation: Annotated[str | None, typer.Option("--activation", help="clamp or sigmoid. Usual: clamp.")] = None,
    classes: Annotated[
        int | None, typer.Option("--classes", min=2, help="Classes instead of a number: 2, 5, 10.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=3, help="Of a text, at most. Usual: 128.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="minilm (the usual), mpnet, a folder or a hub name.")
    ] = None,
    is_frozen: Annotated[bool, typer.Option("--frozen", help="Fit the linear layer alone, in seconds.")] = False,
    recipe: Annotated[str | None, typer.Option("--recipe", help="default, or paper (appendix A.3).")] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps of training.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Learning rate of the encoder.")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", min=1, help="Turns in a step, in whole dialogues; frozen: in a pass."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="float32 or bfloat16. Usual: bfloat16 where a GPU tunes.")
    ] = None,
    mixing: Annotated[
        str | None, typer.Option("--mixing", help="Of several corpora: proportional, or by-corpus.")
    ] = None,
    select: Annotated[str, typer.Option("--select", help="Choose the best by valloss, or human.")] = "valloss",
    human: Annotated[
        str | None,
        typer.Option("--human", help="Rated turns; half of them may be selected on, and are then not reported."),
    ] = None,
    is_whole: Annotated[
        bool, typer.Option("--reproduce-paper", help="With --select human: select on the whole set, as the paper did.")
    ] = False,
    is_shuffled: Annotated[bool, typer.Option("--shuffled", help="With other turns' labels: a control.")] = False,
    start: Annotated[str | None, typer.Option("--from", help="Go on from this predictor, say with --scores.")] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", help="Learn a dialogue's own score, in this label, as in eval=1:5.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same weights.")] = 0,
    device: Device = "auto",
    cache: Annotated[Path | None, typer.Option("--cache", help="With --frozen: where vectors are kept.")] = None,
    train_split: Annotated[str, typer.Option("--train-split", help="Split to learn from.")] = "train",
    validation_split: Annotated[str, typer.Option("--validation-split", help="Split to choose by.")] = "validation",
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from dialogues how much of a conversation remains after a turn; no ratings are needed."""
    from dialoscope.engage import fit_all, fit_head, material
    from dialoscope.model.loading import require_torch

    require_torch("Training")
    quiet = quiet or json
    shape = {"history": history, "is_flat": is_flat, "pooling": pooling, "activation": activation, "classes": classes,
             "tokens": tokens}  # fmt: skip
    chosen = {key: value for key, value in shape.items() if value is not None}
    changes = {"steps": steps, "rate": rate, "mixing": mixing}
    tuned_by = {"recipe": recipe, **changes, "select": select if select != "valloss" else None, "human": human,
                "reproduce-paper": is_whole or None, "resume": resume or None}  # fmt: skip
    _check_frozen(is_frozen, tuned_by, cache)
    if is_whole and select != "human":
        raise UsageError("--reproduce-paper selects on the whole human set: give --select human, or leave it out.")
    how = _recipe(recipe or "default", {**changes, "batch_turns": batch_size, "dtype": dtype}, select=select)
    options = {"format": format, "on_error": on_error, "limit": limit, "quiet": quiet}
    read = [load_corpus([one], **options) for one in corpora]  # type: ignore[arg-type]
    splits = (train_split, validation_split)
    given = material(read, target=_target(scores), is_shuffled=is_shuffled, seed=seed, splits=splits)
    begin = _begin(start, encoder, chosen, seed=seed, device=device)
    if is_frozen:
        begin = begin.using(dtype=dtype, batch_size=batch_size)
    if dry_run:
        from dialoscope.engage.estimate import estimate_all, estimate_head

        found = (
            estimate_head(given, start=begin) if is_frozen else estimate_all(given, start=begin, recipe=how, seed=seed)
        )
        show_estimate(found, json=json)
        return
    counts = {"dialogues": sum(map(len, given.training)), "left_out": given.left_out}
    if is_frozen:
        with progress_bar("encoding", quiet=quiet) as progress:
            fitted = fit_head(given, start=begin, out=out, seed=seed, cache=cache, progress=progress)
        if not json:  # where both numbers stand
            _tell_if_nothing_was_learnt(fitted)
        about = {key: fitted.origin[key] for key in ("penalty", "validation_mse", "mean_mse")}
        _show_fitted(fitted, {**counts, **about}, json=json)
        return
    with _tuning_bar(how.steps, quiet=quiet) as watch:
        tuned = fit_all(
            given,
            start=begin,
            out=out,
            recipe=how,
            seed=seed,
            select=select,
            human=_selection(human, is_whole=is_whole),
            resume=resume,
            progress=watch,
        )
    best = next(one for one in tuned.history if one.step == tuned.best_step)
    about = {"steps": tuned.steps, "best_step": tuned.best_step, "seconds": tuned.seconds,
             "validation": best.validation, "pearson": best.pearson}  # fmt: skip
    _show_fitted(tuned.predictor, {**counts, **about}, json=json)


def _check_frozen(is_frozen: bool, others: Mapping[str, Any], cache: Path | None) -> None:
    """Refuse options that would do nothing."""
    given = [f"--{name}" for name, value in others.items() if value is not None]
    if is_frozen and given:
        raise UsageError(f"--frozen finds its optimum at once: leave out {', '.join(given)}.")
    if cache is not None and not is_frozen:
        raise UsageError("--cache keeps the vectors of a frozen encoder: give --frozen, or leave it out.")


def _recipe(name: str, changes: Mapping[str, Any], *, select: str) -> Recipe:
    from dialoscope.engage.settings import PAPER_HUMAN_RATE, RECIPES

    if name not in RECIPES:
        raise unknown_name("recipe", name, RECIPES)
    # The paper's rate for selection by people is another one.
    given: dict[str, Any] = {"rate": PAPER_HUMAN_RATE} if (name, select) == ("paper", "human") else {}
    given |= {key: value for key, value in changes.items() if value is not None}
    steps = given.get("steps")
    if steps is not None:  # a short run warms up and looks at itself in proportion
        usual = RECIPES[name]
        given["warmup"] = usual.warmup * steps // usual.steps
        given["evaluate_every"] = max(1, usual.evaluate_every * steps // usual.steps)
    return replace(RECIPES[name], **given)


def _begin(start: str | None, encoder: str | None, chosen: Mapping[str, Any], *, seed: int, device: str) -> Predictor:
    from dialoscope.engage import Settings
    from dialoscope.engage.encoder import DEFAULT, Encoder
    from dialoscope.engage.predictor import Predictor
    from dialoscope.model.loading import choose_device

    if start is not None and (chosen or encoder is not None):
        raise UsageError("--from goes on with a predictor as it is: leave out --encoder, --history and other settings.")
    if start is not None:
        return replace(loaded(start, device), calibration=None)
    settings = Settings(**chosen)
    return Predictor.untrained(Encoder.load(encoder or DEFAULT, device=choose_device(device)), settings, seed=seed)


def _target(scores: str | None) -> Target | None:
    from dialoscope.engage.examples import dialogue_scores

    if scores is None:
        return None
    label, _, scale = scores.partition("=")
    low, _, high = scale.partition(":")
    try:
        return dialogue_scores(label, lowest=float(low), highest=float(high))
    except ValueError as error:
        raise UsageError(f"--scores expects LABEL=LOWEST:HIGHEST, such as eval=1:5, found '{scores}'.") from error


def _selection(path: str | None, *, is_whole: bool) -> HumanSet | None:
    from dialoscope.engage import halves, read_human

    if path is None:
        return None
    rated = read_human(path)
    return rated if is_whole else halves(rated).selection


@contextmanager
def _tuning_bar(steps: int, *, quiet: bool) -> Iterator[Any]:
    with progress_bar("training", quiet=quiet) as progress:

        def watch(moment: Moment, _: int) -> None:
            if progress is not None:
                progress(moment.step, steps)
            if moment.validation is not None and not quiet:
                human = "" if moment.human is None else f", with people {moment.human:.3f}"
                complain(
                    f"step {moment.step}: MSE × 100 {moment.validation:.2f}, Pearson {moment.pearson or 0:.3f}{human}"
                )

        yield watch


def _tell_if_nothing_was_learnt(predictor: Predictor) -> None:
    """A penalty that leaves hardly more than the mean gives every turn the same score."""
    own, mean = (float(predictor.origin[key]) for key in ("validation_mse", "mean_mse"))
    if own > NO_GAIN * mean:
        found = f"MSE × 100 {own:.2f} against {mean:.2f} on validation dialogues"
        complain(f"Hardly better than one score for all turns ({found}): give more dialogues, or another corpus.")


def _show_fitted(predictor: Predictor, more: Mapping[str, Any], *, json: bool) -> None:
    found = {"model": predictor.name, **predictor.settings.to_dict(), **more}
    if json:
        print_json(found)
        return
    print_table(["", ""], [[key, value if isinstance(value, float) else str(value)] for key, value in found.items()])
