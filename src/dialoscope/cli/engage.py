"""`dialoscope engage`: how much of a conversation remains, and whether scores of turns agree with people."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.arguments import Corpus, Output, Reading, command
from dialoscope.cli.console import check_output, complain, finish, print_json, print_table, progress_bar, working
from dialoscope.cli.engage_live import INPUT, Predictors, add_live_commands, bar, the_model
from dialoscope.engage.settings import DepthSettings, PredictorSettings, RatingsSettings, ScoreSettings
from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, option

if TYPE_CHECKING:
    import pyarrow as pa

    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.tuning import Moment

app = typer.Typer(
    name="engage",
    help="Where does a conversation lose its user? Remaining depth, and agreement with people's ratings.",
    epilog="Try: dialoscope engage train chitchat --frozen --out engaged  ·  "
    "dialoscope engage score chats.jsonl --model engaged",
    no_args_is_help=True,
)
NO_GAIN = 0.98  # of the mean's squared error: above it nothing was learnt
Rated = Annotated[
    list[str],
    typer.Argument(help="FED's JSON, DailyDialog-Human, or a table of context, response and annotators."),
]


# --- Questions --------------------------------------------------------------------------------------------------------


def depth(corpus: Corpus, settings: DepthSettings, models: Predictors, reading: Reading, output: Output) -> None:
    """Measure how well remaining depth is predicted, beside turn counting and other baselines.

    Without --model, two predictors are fitted on the training split: one averages a turn with its history, one reads it
    alone.
    """
    from dialoscope.engage import depth as measure_depth

    check_output(output, [*(corpus or ()), *reading.paths, *models.by_name().values()])
    data = reading.load(corpus, output)
    with progress_bar("predicting", quiet=output.is_quiet) as progress:
        result = measure_depth(data, settings=settings, models=models.by_name() or None, progress=progress)
    model = quote(models.model[0].rpartition("=")[2]) if models.model else "engaged"
    finish(result, output, next_command=f"dialoscope engage ratings dailydialog_human/ --model {model}")


def ratings(rated: Rated, settings: RatingsSettings, models: Predictors, output: Output) -> None:
    """Measure how far scores of turns agree with people, beside the word count and the people's own agreement."""
    from dialoscope.engage import ratings as measure_ratings

    if not rated:
        raise UsageError("Name rated turns: FED's JSON, DailyDialog-Human, or a table.")
    check_output(output, [*rated, *models.by_name().values()])
    with working("comparing with people", quiet=output.is_quiet):
        result = measure_ratings(rated, settings=settings, models=models.by_name() or None)
    shuffled = "dialoscope engage train chitchat --frozen --shuffled --out shuffled"
    finish(result, output, next_command=shuffled)


# --- Makers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrainOutput(BaseSettings):
    """Where a predictor goes."""

    out: str | None = option(None, "Folder for the predictor and its log.", group="Output", metavar="DIR")
    resume: bool = option(False, "Go on where the run in --out stopped.", group="Output")
    work: str | None = option(None, "Folder that keeps a frozen encoder's vectors.", group="Output", metavar="DIR")
    dry_run: bool = option(False, "Count the work and stop.", group="Output")
    json: bool = option(False, "Print the result as JSON.", group="Output")
    quiet: bool = option(False, "No progress bars.", group="Output")


def train(corpus: Corpus, settings: PredictorSettings, reading: Reading, output: TrainOutput) -> None:
    """Train a predictor of remaining depth; no ratings are needed. Several corpora are mixed.

    --frozen fits a linear layer on an encoder that stays as it is, in seconds; otherwise the encoder is tuned as well.
    """
    from dialoscope.engage import train as train_predictor
    from dialoscope.engage.fitting import material_for, shape_of
    from dialoscope.model.loading import require_torch

    require_torch("Training")
    if output.out is None:
        raise UsageError("Name a folder for the predictor: --out DIR.")
    how = Output(quiet=output.quiet, json=output.json)
    corpora = [reading.load([path], how) for path in corpus] if corpus else [reading.load(None, how)]
    if output.dry_run:
        from dialoscope.engage.planned import planned_training

        material = material_for(corpora, settings)
        print_counts(planned_training(material, shape_of(settings), settings), json=output.json)
        return
    with progress_bar("training", quiet=how.is_quiet) as progress:
        predictor = train_predictor(
            corpora,
            settings=settings,
            out=output.out,
            resume=output.resume,
            work=None if output.work is None else Path(output.work),
            progress=progress,
            on_moment=None if how.is_quiet else tell_moment,
        )
    print_predictor(
        predictor, output, next_command=f"dialoscope engage depth {_given(corpus, reading)} --model {quote(output.out)}"
    )


@dataclass(frozen=True, kw_only=True)
class ScoreOutput(BaseSettings):
    """Where scores go and where they are computed."""

    engine: str = option("here", "Where scores are computed.", group="Output", choices=("here", "spark"))
    master: str = option("local[*]", "Address of --engine spark: spark://HOST:PORT.", group="Output")
    out: str | None = option(
        None, "Parquet file for the scores; with spark, a folder. An interrupted run resumes.", group="Output"
    )
    overwrite: bool = option(False, "Replace earlier scores.", group="Output")
    dry_run: bool = option(False, "Count the work and stop.", group="Output")
    json: bool = option(False, "Print the scores as JSON.", group="Output")
    quiet: bool = option(False, "No progress bars.", group="Output")


def score(corpus: Corpus, settings: ScoreSettings, models: Predictors, reading: Reading, output: ScoreOutput) -> None:
    """Score every turn of every dialogue: how much is expected to remain. '-' reads messages from standard input."""
    from dialoscope.engage.predictors import open_predictor
    from dialoscope.engage.scoring import chosen_dialogues, score_corpus, write_scores
    from dialoscope.files import check_free

    how, out = Output(quiet=output.quiet, json=output.json), None if output.out is None else Path(output.out)
    check_free(out, overwrite=output.overwrite)
    model = the_model(models)
    if output.engine == "spark":
        score_on_spark(model, corpus, settings, reading, output)
        return
    predictor = open_predictor(model, settings)
    with readable(corpus) as paths:
        chosen = chosen_dialogues(reading.load(paths, how), settings)
    if output.dry_run:
        from dialoscope.engage.planned import planned_scores

        print_counts(planned_scores(predictor, chosen, out=out), json=output.json)
        return
    with progress_bar("scoring", quiet=how.is_quiet) as progress:
        if out is not None:
            write_scores(predictor, chosen, out, overwrite=output.overwrite, progress=progress)
            print_written({"model": predictor.name, "dialogues": len(chosen), "out": str(out)}, model, json=output.json)
            return
        tables = score_corpus(predictor, chosen, progress=progress)
        print_as_json(predictor.name, tables) if output.json else print_tables(tables, model)


command(app, "train", train, examples=["engage train chitchat --frozen --history 2 --out engaged",
                                       "engage train dailydialog/ empathetic_dialogues/ --out tuned"])  # fmt: skip
command(app, "score", score, examples=["engage score chats.jsonl --model engaged --out scores.parquet",
                                       "engage score - --model engaged --json < chats.jsonl"])  # fmt: skip
command(app, "depth", depth, examples=["engage depth dailydialog/ --model engaged --out depth/",
                                       "engage depth chitchat --history 2"])  # fmt: skip
command(app, "ratings", ratings, examples=["engage ratings dailydialog_human/ --model engaged --out ratings/",
                                           "engage ratings fed_data.json --model mine=engaged --json"])  # fmt: skip
add_live_commands(app)


# --- Training ---------------------------------------------------------------------------------------------------------


def tell_moment(moment: Moment) -> None:
    """One line on standard error for an evaluation."""
    human = "" if moment.human is None else f", with people {moment.human:.3f}"
    complain(f"step {moment.step}: MSE × 100 {moment.validation:.2f}, Pearson {moment.pearson or 0:.3f}{human}")


def print_predictor(predictor: Predictor, output: TrainOutput, *, next_command: str) -> None:
    """What was fitted, and how it does on validation dialogues."""
    about = (
        "penalty",
        "validation_mse",
        "validation_pearson",
        "mean_mse",
        "best_step",
        "steps",
        "dialogues",
        "left_out",
    )
    shown = {"model": predictor.name, **predictor.settings.to_dict()}
    shown |= {name: predictor.origin[name] for name in about if name in predictor.origin}
    if output.json:
        print_json({**shown, "out": output.out})
        return
    own, mean = (predictor.origin.get(name) for name in ("validation_mse", "mean_mse"))
    if own is not None and mean is not None and own > NO_GAIN * mean:  # such a layer gives every turn the same score
        errors = f"MSE × 100 {own:.2f} against {mean:.2f} on validation dialogues"
        complain(f"Hardly better than one score for all turns ({errors}): give more dialogues, or another corpus.")
    print_table(["", ""], [[name, value if isinstance(value, float) else str(value)] for name, value in shown.items()])
    typer.echo(f"Next: {next_command}")


def print_counts(counts: Mapping[str, Any], *, json: bool) -> None:
    """What a dry run counted."""
    if json:
        print_json(counts)
        return
    print_table(["what", "count"], [[*each] for each in counts.items()], title="Nothing was done (--dry-run)")


def _given(corpus: Sequence[str] | None, reading: Reading) -> str:
    """The data of a command, as another command takes it."""
    if corpus:
        return quote(corpus[0])
    return f"--train {quote(reading.train[0])}" + (f" --test {quote(reading.test[0])}" if reading.test else "")


# --- Scores -----------------------------------------------------------------------------------------------------------


def score_on_spark(
    model: str, corpus: Sequence[str] | None, settings: ScoreSettings, reading: Reading, output: ScoreOutput
) -> None:
    """Score Parquet files on Apache Spark."""
    from dialoscope.engage.spark import score_files
    from dialoscope.engage.storage import find, load
    from dialoscope.overlap.spark.parquet import parquet_at
    from dialoscope.overlap.spark.session import session_at

    ignored = {"--limit": settings.limit, "--format": reading.format, "--train": reading.train, "--test": reading.test}
    ignored |= {"--dry-run": output.dry_run, "--on-error": reading.on_error != "fail"}
    if given := [name for name, value in ignored.items() if value]:
        raise UsageError(f"--engine spark scores whole Parquet files: leave out {', '.join(given)}.")
    out = None if output.out is None else Path(output.out)
    if out is None or out.suffix:
        raise UsageError("--engine spark writes a folder of Parquet files: name it with --out, without an ending.")
    paths = list(corpus or ())
    files_found = None if not paths or INPUT in paths else parquet_at(paths)
    if files_found is None:
        shown = " ".join(paths) or "nothing"
        raise UsageError(
            f"--engine spark reads Parquet in our own columns; dialoscope corpus convert makes it of {shown}."
        )
    options = {"device": settings.device, "dtype": settings.dtype, "batch_size": settings.batch_size}
    name = load(model).using(dtype=settings.dtype).name
    with working("scoring", quiet=output.quiet or output.json), session_at(output.master) as session:
        files = dict(zip(files_found.files, files_found.file_splits, strict=True))
        only = [canonical_name(each) for each in settings.split]
        counts = score_files(session, files, find(model), out, only=only, overwrite=output.overwrite, **options)
    print_written({"model": name, **counts, "out": str(out)}, model, json=output.json)


def canonical_name(split: str) -> str:
    """The usual name of a split."""
    from dialoscope.corpus.split import canonical

    return canonical(split)


@contextmanager
def readable(corpus: Sequence[str] | None) -> Iterator[list[str] | None]:
    """The paths of a command, with a file of what standard input holds in the place of '-'."""
    if not corpus or INPUT not in corpus:
        yield None if corpus is None else list(corpus)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.jsonl"
        file.write_bytes(sys.stdin.buffer.read())
        yield [os.fspath(file) if path == INPUT else path for path in corpus]


def print_written(shown: Mapping[str, Any], model: str, *, json: bool) -> None:
    """Where scores are."""
    if json:
        print_json(shown)
        return
    typer.echo(f"Scores of {shown['dialogues']:,} dialogues are in {shown['out']}.")
    typer.echo(f"Next: dialoscope engage watch --model {quote(model)}")


def print_as_json(model: str, tables: Iterable[pa.Table]) -> None:
    """One JSON object, written as scores come: a corpus of them is never in memory."""
    import orjson

    write = sys.stdout.buffer.write
    write(b'{"model": ' + orjson.dumps(model) + b', "dialogues": [')
    for place, dialogue in enumerate(each for table in tables for each in _by_dialogue(table.to_pylist())):
        write((b",\n" if place else b"\n") + orjson.dumps(dialogue))
    write(b"\n]}\n")
    sys.stdout.buffer.flush()


def _by_dialogue(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of one dialogue together; the next one begins where turns are counted from 1 again."""
    dialogue: dict[str, Any] = {}
    for row in rows:
        if row["turn"] == 1:
            if dialogue:
                yield dialogue
            dialogue = {"dialogue": row["dialogue"], "split": row["split"], "turns": []}
        dialogue["turns"].append({key: row[key] for key in ("turn", "speaker", "score")})
    if dialogue:
        yield dialogue


def print_tables(tables: Iterable[pa.Table], model: str) -> None:
    """A table for each portion."""
    names = ("dialogue", "turn", "speaker", "score")
    for table in tables:
        rows = [[*(row[name] for name in names), bar(row["score"]), row["text"]] for row in table.to_pylist()]
        print_table([*names, "", "text"], rows)
    typer.echo(f"Next: dialoscope engage watch --model {quote(model)}")
