"""`dialoscope distract`: where models look when something is put in that does not belong there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.console import (
    Format,
    Json,
    OnErrorOption,
    Quiet,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
)
from dialoscope.cli.model import BatchSize, Dtype, load_models, named_paths
from dialoscope.cli.train import ContextTurns, Device
from dialoscope.errors import UsageError
from dialoscope.files import check_free

if TYPE_CHECKING:
    from dialoscope.distract.plan import Planned
    from dialoscope.distract.result import DistractResult
    from dialoscope.distract.sets import DistractingSet

MEASURE_EPILOG = (
    "Try: dialoscope distract measure run --corpus concierge --out looked  ·  "
    "… measure base=runs/a trained=runs/b --corpus chats.jsonl --sets random --json"
)
SETS_EPILOG = (
    "Try: dialoscope distract sets --corpus concierge --out sets  ·  … measure run --sets-dir sets --out looked"
)

# How sets are made where nothing else is asked for.
USUAL: dict[str, Any] = {
    "seed": 0, "split": "test", "context_turns": None, "is_last_only": False, "sentences": (), "responses": None,
}  # fmt: skip

app = typer.Typer(name="distract", help="Does the model look at what matters?", no_args_is_help=True)

Sets = Annotated[
    str, typer.Option("--sets", help="all, random, frequent, rare, or names such as random-0.7,rare-end-4 (four).")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of what is drawn and put in.")]
SplitOption = Annotated[str, typer.Option("--split", help="The split that is measured.")]
LastOnly = Annotated[bool, typer.Option("--last-only", help="Of each dialogue only its last response.")]
Sentence = Annotated[
    list[str] | None, typer.Option("--sentence", help="One to put in, for the sets called given; may be given again.")
]
Responses = Annotated[
    str | None, typer.Option("--responses", help="Only responses of this speaker, such as assistant.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many dialogues of the measured split.")]


@app.command(epilog=MEASURE_EPILOG)
def measure(
    models: Annotated[
        list[str], typer.Argument(help="Folders of dialoscope train, or Hugging Face models; NAME=PATH names one.")
    ],
    corpus: Annotated[str | None, typer.Option("--corpus", help="A file, a folder or a name.")] = None,
    sets: Sets = "all",
    sets_dir: Annotated[
        Path | None, typer.Option("--sets-dir", help="Sets written by dialoscope distract sets.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the report and the numbers.")] = None,
    seed: Seed = 0,
    split: SplitOption = "test",
    context_turns: ContextTurns = None,
    last_only: LastOnly = False,
    sentence: Sentence = None,
    responses: Responses = None,
    normalisation: Annotated[
        str, typer.Option("--normalisation", help="utterance (100 % is average), per_token or as_printed.")
    ] = "utterance",
    layer: Annotated[int | None, typer.Option("--layer", help="Only this layer of a transformer.")] = None,
    head: Annotated[int | None, typer.Option("--head", help="Only this head of a transformer.")] = None,
    has_influence: Annotated[
        bool, typer.Option("--influence", help="Also leave every utterance out in turn; takes many passes.")
    ] = False,
    has_behaviour: Annotated[
        bool, typer.Option("--behaviour", help="Also write responses with and without distractions.")
    ] = False,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = 64,
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be measured, and what is done.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The DAS ratio of models on distracting test sets: attention on what was put in, against History.

    Killed, it goes on where it was when called again with the same --out.
    """
    from dialoscope.distract.examine import Wish, examine
    from dialoscope.distract.measure import Scoring
    from dialoscope.distract.output import work_folder, write_result
    from dialoscope.distract.plan import plan
    from dialoscope.model.checkpoint import shared_turns
    from dialoscope.model.loading import check_model

    quiet = quiet or json
    check_free(out, overwrite=overwrite)
    scoring = Scoring(_known_normalisation(normalisation), layer, head)
    paths = named_paths(models)
    for path in paths.values():
        check_model(path)
    if sets_dir is None and context_turns is None:
        context_turns = shared_turns(paths)
    made = _sets(
        corpus,
        sets,
        sets_dir,
        quiet=quiet,
        reading={"format": format, "on_error": on_error},
        making={"seed": seed, "split": split, "context_turns": context_turns, "is_last_only": last_only,
                "sentences": sentence or (), "responses": responses},
        limit=limit,
    )  # fmt: skip
    loading: dict[str, Any] = {"device": device, "dtype": dtype, "batch_size": batch_size, "quiet": quiet}
    work = None if out is None else work_folder(out)
    wish = Wish(scoring, has_influence=has_influence, has_behaviour=has_behaviour)
    if dry_run:
        has_work = work is not None and work.is_dir()  # only what is done depends on weights
        known = load_models(models, **loading) if has_work else dict.fromkeys(paths)
        _show_plan(plan(known, made, wish=wish, work=work), work if has_work else None, json=json)
        return
    asked = load_models(models, **loading)
    with progress_bar("looking", quiet=quiet) as progress:
        found = examine(asked, made, wish=wish, work=work, progress=progress)
    if out is not None:
        write_result(found.result, found.measured, out, pictures=found.pictures, overwrite=overwrite)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    if json:
        print_json(found.result.to_dict())
        return
    _show(found.result)
    if out is not None:
        typer.echo(f"The report is at {out / 'report.html'}")


@app.command(epilog=SETS_EPILOG)
def sets(
    corpus: Annotated[str, typer.Option("--corpus", help="A file, a folder or a name.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the sets.")],
    chosen: Sets = "all",
    seed: Seed = 0,
    split: SplitOption = "test",
    context_turns: ContextTurns = None,
    last_only: LastOnly = False,
    sentence: Sentence = None,
    responses: Responses = None,
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the original test set and its distracting sets, so that others are tested on the same."""
    from dialoscope.distract.stored import write_sets

    making = {
        "seed": seed, "split": split, "context_turns": context_turns, "is_last_only": last_only,
        "sentences": sentence or (), "responses": responses,
    }  # fmt: skip
    reading = {"format": format, "on_error": on_error}
    made = _sets(corpus, chosen, None, quiet=quiet or json, reading=reading, making=making, limit=limit)
    write_sets(made, out, overwrite=overwrite)
    if json:
        shown = {one.name: {"cases": len(one), "fingerprint": one.fingerprint, **one.about} for one in made}
        print_json({"out": str(out), "sets": shown})
        return
    rows = [[one.name, len(one), sum(len(case.distractions) for case in one.cases), _said(one)] for one in made]
    print_table(["set", "contexts", "distractions", "sentences"], rows)


def _show_plan(planned: Sequence[Planned], work: Path | None, *, json: bool) -> None:
    rows = [one.to_dict() for one in planned]
    if json:
        print_json({"planned": rows, "work": None if work is None else str(work)})
        return
    columns = ["model", "set", "contexts", "portions", "done"]
    print_table(columns, [[row[name] for name in columns] for row in rows], title="Nothing was measured (--dry-run)")
    if work is not None:
        typer.echo(f"What is done lies in {work}")


def _said(one: DistractingSet) -> str:
    return " · ".join(phrase["text"] for phrase in one.about.get("sentences", ()))


def _sets(
    corpus: str | None,
    names: str,
    folder: Path | None,
    *,
    quiet: bool,
    reading: dict[str, Any],
    making: dict[str, Any],
    limit: int | None,
) -> list[DistractingSet]:
    from dialoscope.distract.examine import make_sets
    from dialoscope.distract.stored import read_sets

    if folder is not None and corpus is not None:
        raise UsageError("Give --corpus to make sets, or --sets-dir to take some that were written; not both.")
    if folder is not None:
        return _stored(read_sets(folder), names, making, limit)
    if corpus is None:
        raise UsageError("Give --corpus with the dialogues to measure on, or --sets-dir with written sets.")
    data = load_corpus([corpus], quiet=quiet, **reading)
    return make_sets(data, names=names.replace(" ", "").split(","), limit=limit, **making)


def _stored(sets: list[DistractingSet], names: str, making: dict[str, Any], limit: int | None) -> list[DistractingSet]:
    """The stored sets that are wanted; what they are made of was settled when they were written."""
    if limit is not None or making != USUAL:
        raise UsageError(
            "Sets of --sets-dir are as they were written: of the options that make them, give --sets only."
        )
    if names == "all":
        return sets
    from dialoscope.distract.sets import ORIGINAL, chosen_names

    wanted = {ORIGINAL, *chosen_names(names.replace(" ", "").split(","))}
    missing = sorted(wanted - {ORIGINAL} - {one.name for one in sets})
    if missing:
        raise UsageError(f"The stored sets have no '{missing[0]}'; they are {', '.join(one.name for one in sets)}.")
    return [one for one in sets if one.name in wanted]


def _known_normalisation(name: str) -> Any:
    from dialoscope.distract.scores import NORMALISATIONS
    from dialoscope.errors import unknown_name

    if name not in NORMALISATIONS:
        raise unknown_name("normalisation", name, NORMALISATIONS)
    return name


def _show(result: DistractResult) -> None:
    columns = ["set", *result.models]
    shown = [("perplexity", "perplexity"), ("History %", "history_percent")]
    rows: list[list[Any]] = [
        [f"{label} (original)", *(_cell(one.original, key) for one in result.models.values())] for label, key in shown
    ]
    rows += [
        [name, *(_cell(one.sets.get(name), "das_ratio_of_means") for one in result.models.values())]
        for name in result.set_names
    ]
    print_table(columns, rows, title="DAS ratio, of means (lower is better)")


def _cell(found: Any, key: str) -> str:
    from dialoscope.report.cell import in_one_line

    return "–" if found is None else in_one_line(found[key], ".3f")
