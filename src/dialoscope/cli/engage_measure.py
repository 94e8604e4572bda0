"""`dialoscope engage evaluate` and `dialoscope engage depth`: scores against people, and against how talks went on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Quiet,
    Seed,
    Split,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
)
from dialoscope.cli.engage_options import (
    BatchSize,
    DryRun,
    Dtype,
    Models,
    Out,
    Overwrite,
    all_loaded,
    show_estimate,
    untrained,
)
from dialoscope.cli.train import Device
from dialoscope.files import check_free

if TYPE_CHECKING:
    from dialoscope.engage.evaluate import EngageEvaluation
    from dialoscope.engage.human_sets import HumanSet
    from dialoscope.record import Score

EVALUATE_EPILOG = "Try: dialoscope engage evaluate engaged --human dailydialog_human/ --json"
DEPTH_EPILOG = "Try: dialoscope engage depth engaged --corpus dailydialog/"

HumanPaths = Annotated[
    list[str], typer.Option("--human", help="FED json, DailyDialog-Human, or a table of context, response, annotators.")
]
Aspect = Annotated[str | None, typer.Option("--aspect", help="What was rated. Usual: engagement.")]


def evaluate(
    models: Models,
    human: HumanPaths,
    aspect: Aspect = None,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Columns of a table that are other metrics.")] = None,
    annotators: Annotated[
        str | None, typer.Option("--annotators", help="Columns of a table that are people. Usual: all numbers.")
    ] = None,
    is_reported_half: Annotated[
        bool, typer.Option("--reported-half", help="Only the half of each set that is never selected on.")
    ] = False,
    is_single: Annotated[
        bool, typer.Option("--single-turn", help="Read the rated turn alone, as the paper's Table 4.")
    ] = False,
    reproduce_paper: Annotated[
        bool, typer.Option("--reproduce-paper", help="Report items that were selected on, marked.")
    ] = False,
    out: Out = None,
    split: Split = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many rated turns of each set.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of intervals; with --limit: draw turns at random with it.")
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """How far scores agree with people, beside what needs no training and the people's own agreement."""
    from dialoscope.engage import BASELINES, halves, read_human
    from dialoscope.engage import evaluate as held_against
    from dialoscope.engage.baselines import SingleTurn
    from dialoscope.engage.evaluate import RESAMPLING
    from dialoscope.engage.human_sets import some_of
    from dialoscope.engage.output import write_evaluation

    check_free(out, overwrite=overwrite)
    columns, people = (
        tuple(name.strip() for name in given.split(",")) if given else () for given in (metrics, annotators)
    )
    splits = split.replace(" ", "").split(",") if split else ()
    sets: list[HumanSet] = [
        read_human(one, aspect=aspect, metrics=columns, annotators=people, splits=splits) for one in human
    ]
    if is_reported_half:
        sets = [halves(one).reported for one in sets]
    if limit is not None:
        sets = [some_of(one, limit, seed=seed) for one in sets]
    predictors = all_loaded(models, device, dtype, batch_size)
    raters, controls = (
        {name: SingleTurn(one) if is_single else one for name, one in some.items()}
        for some in (predictors, untrained(predictors))
    )
    found = held_against(
        raters,
        sets,
        baselines={**BASELINES, **controls},
        resampling=replace(RESAMPLING, seed=seed or 0),
        reproduce_paper=reproduce_paper,
    )
    if out is not None:
        write_evaluation(found, out, overwrite=overwrite)
    print_json(found.to_dict()) if json else _show_evaluation(found)


def depth(
    models: Models,
    corpus: Annotated[str, typer.Option("--corpus", help="A file, a folder or a name.")],
    split: Annotated[str, typer.Option("--split", help="The split that is predicted.")] = "test",
    train_split: Annotated[str, typer.Option("--train-split", help="What the baselines have seen.")] = "train",
    out: Out = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = None,
    limit: Limit = None,
    seed: Seed = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well remaining depth is predicted: squared error and correlations, beside baselines."""
    from dialoscope.engage import examples
    from dialoscope.engage.depth import check_apart, measure_depth, resampling_of
    from dialoscope.engage.fitting import dealt_as_learnt
    from dialoscope.engage.output import write_depth

    quiet = quiet or json
    check_free(out, overwrite=overwrite)
    predictors = all_loaded(models, device, dtype, batch_size)
    data = load_corpus([corpus], format=format, on_error=on_error, limit=limit, seed=seed, quiet=quiet)
    if len(data.splits) == 1 and split not in data.splits:
        data = dealt_as_learnt(data, predictors)
    held_out, training = (examples(data.split(name)) for name in (split, train_split))
    check_apart(predictors, held_out)
    asked = {**predictors, **untrained(predictors)}
    if dry_run:
        from dialoscope.engage.estimate import estimate_depth

        show_estimate(estimate_depth(asked.values(), held_out), json=json)
        return
    how = resampling_of(held_out, seed=seed or 0)
    with progress_bar("predicting", quiet=quiet) as progress:
        found = measure_depth(asked, held_out, training=training, resampling=how, progress=progress)
    if out is not None:
        write_depth(found, out, overwrite=overwrite)
    if json:
        print_json(found.to_dict())
        return
    both = {**found.models, **found.baselines}
    rows = [[name, *map(_with_ends, (one.mse, one.pearson, one.spearman))] for name, one in both.items()]
    print_table(["", "MSE × 100", "Pearson", "Spearman"], rows)


def _show_evaluation(found: EngageEvaluation) -> None:
    """A table for each set; the report and --json hold the other correlations and all intervals."""
    from dialoscope.engage.evaluate import PARTIAL, SHARE

    for name, one in found.sets.items():
        rows = [
            [
                "one annotator against the others",
                _with_ends(one.ceiling),
                *map(_short, (one.pearson_ceiling, None, None)),
            ]
        ]
        for kind, some in one.raters.items():
            rows += [
                [f"{rater} ({kind.removesuffix('s')})", _with_ends(each["spearman"]),
                 *(_short(each[key]) for key in ("pearson", PARTIAL, SHARE))]
                for rater, each in some.items()
            ]  # fmt: skip
        columns = ["rater", "Spearman", "Pearson", "given length", "share of ceiling"]
        print_table(columns, rows, title=f"{name}: {len(one.rated):,} rated turns")
        if one.rated.note:
            typer.echo(one.rated.note)
    if found.note:
        typer.echo(found.note)


def _with_ends(score: Score) -> str:
    if score.value is None or score.interval is None:
        return _short(score)
    low, high = score.interval
    return f"{score.value:.3f} [{low:.3f}, {high:.3f}]"


def _short(score: Score | None) -> str:
    return "–" if score is None or score.value is None else f"{score.value:.3f}"
