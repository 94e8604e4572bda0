"""`dialoscope probe`: what the encoding of a context knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from dialoscope.cli.arguments import LAST_GROUP, Corpus, Models, Output, Printing, Reading, command, words_of
from dialoscope.cli.console import check_output, finish, print_json, print_table, progress_bar
from dialoscope.errors import UsageError
from dialoscope.probe.settings import ProbeSettings, TasksSettings, TiesSettings
from dialoscope.settings import BaseSettings, option, options_of

app = typer.Typer(
    name="probe",
    help="What does the encoding of a context know?",
    epilog="Try: dialoscope probe tasks  ·  dialoscope probe measure concierge --model run --out probed",
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class Running(BaseSettings):
    """How a measurement is run; no number depends on it."""

    work: str | None = option(
        None, "Folder that keeps encodings. Default: in the user's cache.", group=LAST_GROUP, metavar="DIR"
    )
    dry_run: bool = option(False, "Only count the positions and the contexts to encode.", group=LAST_GROUP)


def measure(
    corpus: Corpus, settings: ProbeSettings, models: Models, reading: Reading, running: Running, output: Output
) -> None:
    """Measure what classifiers can read from a model's encodings, task by task, beside their controls.

    Name runs of one model NAME#0, NAME#1, … to see their mean. Encodings are kept and used again.
    """
    from dialoscope.files import user_cache
    from dialoscope.probe import measure as measure_probes
    from dialoscope.probe import planned

    if not models.model:
        raise UsageError("Give at least one model to probe: --model PATH.")
    check_output(output, [*(corpus or ()), *reading.paths])
    data = reading.load(corpus, output)
    if running.dry_run:
        _print_plan(planned(data, settings=settings, models=models.by_name()), as_json=output.json)
        return
    work = user_cache("encodings") if running.work is None else Path(running.work)
    with progress_bar("probing", quiet=output.is_quiet) as progress:
        result = measure_probes(data, settings=settings, models=models.by_name(), work=work, progress=progress)
    asked = words_of(settings, options_of(ProbeSettings))
    words = (reading.words(corpus), f"--model {quote(models.model[0])}", asked, "--out probed")
    following = f"dialoscope probe measure {' '.join(word for word in words if word)}"
    if output.folder is not None:
        following = f"dialoscope report {quote(str(output.folder))} --out report.html"
    finish(result, output, next_command=following)


def _print_plan(counts: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
        return
    names = counts["models"]
    typer.echo(f"{len(names)} model{'s'[: len(names) > 1]}: {', '.join(names)}")
    typer.echo(
        f"{counts['training_positions']:,} positions to learn from, {counts['held_out_positions']:,} to score on; "
        f"{counts['contexts_to_encode']:,} contexts to encode"
    )
    typer.echo(counts["used"])
    typer.echo("Next: the same command without --dry-run")


def tasks(corpus: Corpus, settings: TasksSettings, reading: Reading, printing: Printing) -> None:
    """List the probe tasks; of a corpus, say which it can carry, with the labels of each (without none)."""
    from dialoscope.probe.tasks import TASKS, carried, describe

    counts: Mapping[str, int | str] = {}
    if corpus or reading.paths:
        from dialoscope.probe.examples import examples

        data = reading.load(corpus, Output(json=printing.json))
        counts = carried(TASKS, examples(_counted(data, settings)))
    if printing.json:
        print_json({"tasks": [describe(name, counts) for name in TASKS]})
        return
    columns = ["task", "family", "labels", "difficulty", "needs", "asks"]
    rows = [
        [name, task.family, "a set" if task.is_multi else "one", task.difficulty, " or ".join(task.needs), task.asks]
        for name, task in TASKS.items()
    ]
    if counts:
        columns[-1:] = [f"in {data.name}"]
        rows = [[*row[:-1], _carried(counts[str(row[0])])] for row in rows]
    print_table(columns, rows)
    following = f"measure {reading.words(corpus)} --model PATH" if counts else "tasks concierge"
    typer.echo(f"Next: dialoscope probe {following}")


def _counted(corpus: Any, settings: TasksSettings) -> Any:
    """The dialogues whose labels are counted: the training split, or all of a corpus of one split."""
    from dialoscope.corpus.split import split_to_read

    return split_to_read(
        corpus, split=settings.train_split, usual="train", limit=settings.train_limit, option="train_split"
    )[0]


def _carried(count: int | str) -> str:
    return f"{count:,} labels" if isinstance(count, int) else count


Judgements = Annotated[
    str, typer.Argument(help="CSV with the columns item, annotator and choice (a, b or tie).", metavar="FILE")
]


def ties(file: Judgements, settings: TiesSettings, printing: Printing) -> None:
    """Measure how often people call two responses a tie, and how far a study of usual size strays from that."""
    from dialoscope.probe.ties import read_judgements, tie_study
    from dialoscope.report.cell import in_one_line

    result = tie_study(read_judgements(file), settings=settings)
    if printing.json:
        print_json(result.to_dict())
        return
    rows = [[name, in_one_line(score, ".3f")] for name, score in result.shares.items()]
    rows += [[f"ties of {name}", in_one_line(score, ".3f")] for name, score in result.by_annotator.items()]
    low, high = result.spread
    rows += [[f"ties in studies of {settings.size}", f"{low:.3f} to {high:.3f} (95 % of {settings.draws:,})"]]
    rows += [["agreement (Krippendorff's alpha)", in_one_line(result.agreement, ".3f")]]
    print_table(["judgement", "share"], rows)
    typer.echo(f"Next: dialoscope probe ties {quote(file)} --size {2 * settings.size}")


command(
    app, "measure", measure,
    examples=[
        "probe measure concierge --model run --out probed",
        "probe measure multiwoz21/ --model run --train-split validation --split test --checkpoints untrained,best,last",
    ],
)  # fmt: skip
command(app, "tasks", tasks, examples=["probe tasks", "probe tasks concierge"])
command(app, "ties", ties, examples=["probe ties judgements.csv --size 100", "probe ties judgements.csv --json"])
