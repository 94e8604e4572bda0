"""`dialoscope probe`: what the encoding of a context knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from dialoscope.cli.console import (
    Format,
    Json,
    OnErrorOption,
    Quiet,
    complain,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
)
from dialoscope.cli.model import BatchSize, Dtype, named_paths
from dialoscope.cli.train import Device
from dialoscope.errors import UsageError, unknown_name
from dialoscope.files import check_free, user_cache

if TYPE_CHECKING:
    from dialoscope.corpus import Corpus
    from dialoscope.model import DialogueModel
    from dialoscope.probe import Examples, ProbeResult, Settings
    from dialoscope.probe.selection import Selected
    from dialoscope.record import Score

Of = TypeVar("Of")  # what is known of a task or of a group
MEASURE_EPILOG = (
    "Try: dialoscope probe measure run --corpus concierge --out probed  ·  "
    "… measure run --corpus multiwoz21/ --train-split validation --split test --checkpoints untrained,best,last"
)
TASKS_EPILOG = "Try: dialoscope probe tasks  ·  dialoscope probe tasks --corpus concierge"
TIES_EPILOG = "Try: dialoscope probe ties judgements.csv --size 100  ·  … ties judgements.csv --json"
# Controls by short names, so that a model with all of them is one table in a terminal of 80 columns.
SHORT = {"majority": "major", "constant": "const", "bag_of_words": "words", "untrained": "untr."}
PADDING = 3  # of a column: a blank on both sides and a line
DEALT = 5  # of a corpus with one split, one in so many dialogues is held out

app = typer.Typer(name="probe", help="What does the encoding of a context know?", no_args_is_help=True)

CorpusOption = Annotated[str, typer.Option("--corpus", help="A file, a folder or a name.")]
TrainSplit = Annotated[str, typer.Option("--train-split", help="The split that classifiers learn from.")]
Split = Annotated[str, typer.Option("--split", help="The split that they are scored on.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many dialogues of each split.")]


@app.command(epilog=MEASURE_EPILOG)
def measure(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Trained folders or Hugging Face models; NAME=PATH names one, NAME#0=PATH one run of several."
        ),
    ],
    corpus: CorpusOption,
    train_split: TrainSplit = "train",
    split: Split = "validation",
    tasks: Annotated[
        str, typer.Option("--tasks", help="all, a family, or names such as RecentTopic,AllSlots.")
    ] = "all",
    classifier: Annotated[str, typer.Option("--classifier", help="logistic, or mlp (one hidden layer).")] = "logistic",
    checkpoints: Annotated[
        str | None,
        typer.Option("--checkpoints", help="Of runs of dialoscope train: all, untrained,best,last or by:bleu_2."),
    ] = None,
    layer: Annotated[str, typer.Option("--layer", help="Of Hugging Face models; several: 0,6,-1.")] = "-1",
    pooling: Annotated[
        str, typer.Option("--pooling", help="Of Hugging Face models: last, first, mean, query; several: last,mean.")
    ] = "auto",
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", min=0, help="A context's last tokens that are read; 0: all.")
    ] = 100,
    groups: Annotated[
        str, typer.Option("--groups", help="Difficulty: the paper's, or own by untrained scores.")
    ] = "paper",
    is_scaled: Annotated[
        bool, typer.Option("--scaled", help="Divide encodings by one number, so that all models are of one scale.")
    ] = False,
    is_so_far: Annotated[
        bool, typer.Option("--so-far", help="Count topics of the context, not of the whole dialogue.")
    ] = False,
    has_controls: Annotated[
        bool, typer.Option("--controls/--no-controls", help="Also bag of words, untrained and shuffled.")
    ] = True,
    picture_by: Annotated[
        str | None, typer.Option("--picture-by", help="The task whose labels colour pictures of encodings.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the report and the numbers.")] = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Where encodings are kept; usually in the user's cache.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of shuffled labels and untrained weights.")] = 0,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = 64,
    limit: Limit = None,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What classifiers can read from a model's encodings, task by task, beside their controls.

    Encodings are kept, so that what was encoded before is not encoded again; classifiers are fitted anew.
    """
    from dialoscope.model.loading import check_model, choose_device, require_torch
    from dialoscope.probe import Settings, chosen_tasks, examine, examples, write_result
    from dialoscope.probe.checkpoints import choices
    from dialoscope.probe.measure import CLASSIFIERS, check_apart

    quiet = quiet or json
    check_free(out, overwrite=overwrite)
    settings = Settings(
        _known("classifier", classifier, CLASSIFIERS),
        context_tokens or None,
        is_scaled=is_scaled,
        topics_so_far=is_so_far,
        has_controls=has_controls,
        seed=seed,
    )
    grouping = _known("grouping", groups, ("paper", "own"))
    chosen = chosen_tasks(tasks.replace(" ", "").split(","))
    if picture_by is not None:
        _known("task to colour pictures by", picture_by, list(chosen))
    named = named_paths(models)
    paths, runs = _expanded(named, checkpoints)
    for path in paths.values():
        check_model(path)
    readings = _readings(paths, layer, pooling)
    data = _dealt(load_corpus([corpus], format=format, on_error=on_error, quiet=quiet), train_split, split, quiet=quiet)
    training, held_out = (examples(_part(data, name, limit)) for name in (train_split, split))
    check_apart(training, held_out)
    if is_dry:
        _show_plan(training, held_out, list(readings), settings, json=json)
        return
    require_torch("Probing")
    options = {"device": choose_device(device), "dtype": dtype, "batch_size": batch_size, "quiet": quiet}
    asked = _Models(readings, options)
    asked.check()
    with progress_bar("probing", quiet=quiet) as progress:
        found = examine(
            asked,
            training,
            held_out,
            tasks=chosen,
            settings=settings,
            grouping=grouping,
            checkpoints=runs,
            choices=None if runs is None else {run: choices(Path(named[run])) for run in runs},
            picture_by=picture_by,
            device=str(options["device"]),
            cache=cache or user_cache("encodings"),
            progress=progress,
        )
    if out is not None:
        write_result(found.result, found.measured, out, pictures=found.pictures, overwrite=overwrite)
    if json:
        print_json(found.result.to_dict())
        return
    _show(found.result)
    if out is not None:
        typer.echo(f"The report is at {out / 'report.html'}")


@app.command(epilog=TASKS_EPILOG)
def tasks(
    corpus: Annotated[str | None, typer.Option("--corpus", help="Which tasks can this corpus carry?")] = None,
    train_split: TrainSplit = "train",
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The probe tasks, and which of them a corpus can carry; labels are counted without `none`, the empty set."""
    from dialoscope.probe import TASKS
    from dialoscope.probe.tasks import carried

    counts: Mapping[str, int | str] = {}
    if corpus is not None:
        data = load_corpus([corpus], format=format, on_error=on_error, quiet=quiet or json)
        split = train_split if train_split in data.splits else next(iter(data.splits))
        from dialoscope.probe import examples

        counts = carried(TASKS, examples(_part(data, split, limit)))
    if json:
        print_json({"tasks": [_described(name, counts) for name in TASKS]})
        return
    columns = ["task", "family", "labels", "difficulty", "needs", "asks"]
    rows = [
        [name, task.family, "a set" if task.is_multi else "one", task.difficulty, " or ".join(task.needs), task.asks]
        for name, task in TASKS.items()
    ]
    if corpus is not None:
        columns[-1:] = [f"in {Path(corpus).name}"]
        rows = [[*row[:-1], _carried(counts[str(row[0])])] for row in rows]
    print_table(columns, rows)


@app.command(epilog=TIES_EPILOG)
def ties(
    file: Annotated[Path, typer.Argument(help="CSV with the columns item, annotator and choice (a, b or tie).")],
    draws: Annotated[int, typer.Option("--draws", min=1, help="Studies that are drawn.")] = 50_000,
    size: Annotated[int, typer.Option("--size", min=1, help="Judgements in each.")] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of what is drawn.")] = 0,
    json: Json = False,
) -> None:
    """How often people call two responses a tie, and how far a study of usual size strays from that."""
    from dialoscope.probe.ties import read_judgements, tie_study
    from dialoscope.report.cell import in_one_line

    found = tie_study(read_judgements(file), draws=draws, size=size, seed=seed)
    if json:
        print_json(found.to_dict())
        return
    rows = [[name, in_one_line(score, ".3f")] for name, score in found.shares.items()]
    rows += [[f"ties of {name}", in_one_line(score, ".3f")] for name, score in found.by_annotator.items()]
    low, high = found.spread
    rows += [[f"ties in studies of {size}", f"{low:.3f} to {high:.3f} (95 % of {draws:,})"]]
    rows += [["agreement (Krippendorff's alpha)", in_one_line(found.agreement, ".3f")]]
    print_table(["judgement", "share"], rows)


class _Models(Mapping[str, "DialogueModel"]):
    """Models that are loaded when they are asked, one at a time: a run can have dozens of checkpoints."""

    def __init__(self, readings: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.readings, self.options = readings, options

    def __getitem__(self, name: str) -> DialogueModel:
        from dialoscope.model import load

        return load(**self.readings[name], **self.options)

    def check(self) -> None:
        """Load what only a hub can have, once: a name that leads nowhere is told before anything is computed."""
        names = {one["path_or_name"]: name for name, one in self.readings.items()}
        for path, name in names.items():
            if not Path(path).exists():  # what is here was looked at before
                self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.readings)

    def __len__(self) -> int:
        return len(self.readings)


def _expanded(paths: Mapping[str, str], wanted: str | None) -> tuple[dict[str, str], dict[str, dict[str, str]] | None]:
    """Every checkpoint that is wanted as a model of its own, `RUN@CHECKPOINT`; and which folder of its run each is."""
    from dialoscope.probe.checkpoints import checkpoints

    if wanted is None:
        return dict(paths), None
    found = {run: checkpoints(Path(path), wanted) for run, path in paths.items()}
    each = {f"{run}@{name}": str(path) for run, by in found.items() for name, path in by.items()}
    return each, {run: {name: path.name for name, path in by.items()} for run, by in found.items()}


def _readings(paths: Mapping[str, str], layers: str, poolings: str) -> dict[str, dict[str, Any]]:
    """How each model is loaded; every layer and pooling of a Hugging Face model is a model of its own."""
    from dialoscope.model.checkpoint import is_checkpoint

    wanted = [(_number(layer), pooling) for layer in layers.split(",") for pooling in poolings.split(",")]
    if wanted != [(-1, "auto")] and all(map(is_checkpoint, paths.values())):
        raise UsageError("--layer and --pooling are for Hugging Face models; these are ours.")
    found: dict[str, dict[str, Any]] = {}
    for name, path in paths.items():
        for layer, pooling in [(-1, "auto")] if is_checkpoint(path) else wanted:
            label = name if len(wanted) == 1 or is_checkpoint(path) else f"{name}, layer {layer}, {pooling}"
            found[label] = {"path_or_name": path, "layer": layer, "pooling": pooling}
    return found


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError as error:
        raise UsageError(f"--layer expects numbers such as 0,6,-1, found '{word}'.") from error


def _dealt(corpus: Corpus, training: str, held_out: str, *, quiet: bool) -> Corpus:
    """A corpus of one split, where nobody named others, with one in five dialogues held out."""
    from dialoscope.corpus import resplit

    if len(corpus.splits) != 1 or (training, held_out) != ("train", "validation"):
        return corpus
    count = len(corpus) // DEALT
    if not quiet:
        complain(f"{corpus.name} has one split: {count:,} of its {len(corpus):,} dialogues are held out (seed 0).")
    return resplit(corpus, validation=count, test=0, seed=0)


def _part(corpus: Corpus, split: str, limit: int | None) -> Corpus:
    part = corpus.split(split)
    return part if limit is None else part[:limit]


def _known(what: str, name: str, names: Sequence[str]) -> Any:
    if name not in names:
        raise unknown_name(what, name, names)
    return name


def _described(name: str, counts: Mapping[str, int | str]) -> dict[str, Any]:
    from dialoscope.probe import TASKS

    task = TASKS[name]
    shown: dict[str, Any] = {"name": name, "family": task.family, "is_multi": task.is_multi}
    shown |= {"difficulty": task.difficulty, "needs": list(task.needs), "asks": task.asks}
    if name in counts:
        is_carried = isinstance(counts[name], int)
        shown |= {"is_carried": is_carried, "labels" if is_carried else "reason": counts[name]}
    return shown


def _carried(count: int | str) -> str:
    return f"{count:,} labels" if isinstance(count, int) else count


def _show_plan(training: Examples, held_out: Examples, names: Sequence[str], settings: Settings, *, json: bool) -> None:
    counts = {"models": list(names), "training_positions": len(training), "held_out_positions": len(held_out)}
    if json:
        print_json(counts)
        return
    typer.echo(f"{len(names)} model{'s'[: len(names) > 1]}: {', '.join(names)}")
    times = "twice a model, once of them untrained" if settings.has_controls else "once a model"
    typer.echo(f"{len(training):,} positions to learn from, {len(held_out):,} to score on; each encoded {times}")


def _show(result: ProbeResult) -> None:
    for title, columns, rows in _tables(result):
        for part, lines in _in_width(columns, rows, Console().width):
            print_table(part, lines, title=title)
    for name, checkpoint in result.about.get("chosen", {}).items():
        typer.echo(f"{name} is {checkpoint}")
    for line in result.advice:
        typer.echo(line)
    for reason, names in _by_reason(result.skipped).items():
        typer.echo(f"not probed: {', '.join(names)} ({reason})")


def _tables(result: ProbeResult) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Tables with their titles; of a model with several runs their mean, for each of them is in the report."""
    if len(result.models) == 1:
        yield f"Micro-F1 of {result.first}", *_with_controls(result)
        return
    runs = {run for one in result.pooled.values() for run in one.runs}
    if single := [name for name in result.models if name not in runs]:
        yield "Micro-F1", *_side_by_side(result, single)
    if result.pooled:
        yield "Micro-F1 over runs", *_over_runs(result)
    for run, by in result.selection.items():
        yield f"{run} by metric", *_as_chosen(by)


def _in_width(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int
) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """A table cut into tables that are as wide as the terminal, the first column in each."""
    widths = [PADDING + max(len(name), *(len(str(row[place])) for row in rows)) for place, name in enumerate(columns)]
    first = 1
    while first < len(columns):
        last, used = first + 1, 1 + widths[0] + widths[first]
        while last < len(columns) and used + widths[last] <= width:
            last, used = last + 1, used + widths[last]
        shown = [0, *range(first, last)]
        yield [columns[place] for place in shown], [[row[place] for place in shown] for row in rows]
        first = last


def _over_runs(result: ProbeResult) -> tuple[list[str], list[list[Any]]]:
    found = [_with_means(one.tasks, one.groups) for one in result.pooled.values()]
    rows = [
        [name, *(f"{one[name].mean:.3f} ± {one[name].deviation:.3f}" if name in one else "–" for one in found)]
        for name in dict.fromkeys(name for one in found for name in one)
    ]
    return ["task", *result.pooled], rows


def _as_chosen(by: Mapping[str, Selected]) -> tuple[list[str], list[list[Any]]]:
    rows: list[list[Any]] = [["checkpoint", *(one.choice.checkpoint for one in by.values())]]
    rows += _scores([_with_means(one.tasks, one.groups) for one in by.values()])
    return ["task", *(f"by {metric}" for metric in by)], rows


def _side_by_side(result: ProbeResult, names: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    models = [result.models[name] for name in names]
    scores = [_with_means({name: task.f1 for name, task in one.tasks.items()}, one.groups) for one in models]
    return ["task", *names], _scores(scores)


def _with_means(tasks: Mapping[str, Of], groups: Mapping[str, Of]) -> dict[str, Of]:
    return {**tasks, **{f"mean, {name}": one for name, one in groups.items()}}


def _scores(columns: Sequence[Mapping[str, Score]]) -> list[list[Any]]:
    """A row for each name that any column has a value of."""
    from dialoscope.report.cell import in_one_line

    names = [name for name in columns[0] if any(one[name].value is not None for one in columns)]
    return [[name, *(in_one_line(one[name].value, ".3f") for one in columns)] for name in names]


def _by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        found.setdefault(reason, []).append(name)
    return found


def _with_controls(result: ProbeResult) -> tuple[list[str], list[list[Any]]]:
    from dialoscope.report.cell import in_one_line

    (one,) = result.models.values()
    names = list(next(iter(one.tasks.values())).controls)
    rows = [
        [
            task,
            in_one_line(found.f1.value, ".3f"),
            "{:.2f}–{:.2f}".format(*found.f1.interval) if found.f1.interval else "–",
            *(in_one_line(found.controls[name].value, ".3f") for name in names),
        ]
        for task, found in one.tasks.items()
    ]
    return ["task", "F1", "95 %", *(SHORT.get(name, name) for name in names)], rows
