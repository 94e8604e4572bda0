"""`dialoscope study`, `report`, `gate`, `compare` and `export`: many questions on one page, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.arguments import Models, Output, command
from dialoscope.cli.console import MARKS, check_output, complain, print_json, print_table, print_text
from dialoscope.cli.steps import StepBars
from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, option
from dialoscope.study.settings import ExportSettings, GateSettings, StudySettings

if TYPE_CHECKING:
    from dialoscope.study.compare import CompareResult
    from dialoscope.study.plan import Plan
    from dialoscope.study.run import Study
    from dialoscope.study.steps import Step

Folders = Annotated[list[str], typer.Argument(help="Folders of results or studies.", metavar="DIR…")]
Given = Annotated[
    list[str] | None, typer.Argument(help="The study's TOML; or corpora, NAME=PATH.", metavar="[STUDY.toml | CORPUS…]")
]


@dataclass(frozen=True, kw_only=True)
class FileOutput(BaseSettings):
    """The output of a command that writes one file."""

    out: str | None = option(None, "File to write.", group="Output", metavar="FILE")
    overwrite: bool = option(False, "Replace what is there.", group="Output")
    json: bool = option(False, "Print the result as JSON.", group="Output")


@dataclass(frozen=True, kw_only=True)
class Printed(BaseSettings):
    """A command that writes nothing."""

    json: bool = option(False, "Print the result as JSON.", group="Output")


@dataclass(frozen=True, kw_only=True)
class Page(BaseSettings):
    """What the page is called."""

    title: str = option("Dialoscope report", "Title of the page.", group="Reports")


class RunFirst(typer.core.TyperGroup):
    """A group whose commands are `init` and `run`, where `run` need not be written."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in `run` where neither a command nor help is asked for."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="study",
    cls=RunFirst,
    help="Ask many questions of corpora and models, and write one page. All options: dialoscope study run --help",
    no_args_is_help=True,
)


def run(given: Given, settings: StudySettings, models: Models, output: Output) -> None:
    """Run what is missing of a study, reuse the rest, and write one page.

    A step that fails is shown on the page, and the others are run; the exit code is then 1. An interrupted study
    continues where it stopped when it is called again.
    """
    from dialoscope.study.run import planned
    from dialoscope.study.run import run as run_study

    plan, out = _plan(given or [], settings, models), output.folder or Path("study")
    if settings.dry_run:
        _show_steps(planned(plan, out), is_json=output.json)
        return
    with StepBars(quiet=output.is_quiet) as bars:
        study = run_study(plan, out, watcher=bars, on_problem=complain)
    finish_study(study, is_json=output.json)


def init(output: FileOutput) -> None:
    """Write an example of a study's TOML with a comment for every line; it runs as it is."""
    from dialoscope.files import whole_file

    out = Path(output.out or "study.toml")
    with whole_file(out, overwrite=output.overwrite) as unfinished:
        unfinished.write_text(example(), encoding="utf-8")
    if output.json:
        print_json({"written": str(out)})
        return
    typer.echo(f"Written: {out}\nNext: dialoscope study {quote(str(out))}")


def example() -> str:
    """The commented example."""
    from importlib.resources import files

    return (files("dialoscope.study") / "example.toml").read_text(encoding="utf-8")


def report(folders: Folders, page: Page, output: FileOutput) -> None:
    """Join results and studies into one page; nothing is run."""
    from dialoscope.files import check_free, whole_file
    from dialoscope.study.page import joined_page

    out = Path(output.out or "report.html")
    check_free(out, overwrite=output.overwrite)
    text = joined_page([Path(folder) for folder in folders], page.title)
    with whole_file(out, overwrite=output.overwrite) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
    if output.json:
        print_json({"report": str(out)})
        return
    typer.echo(f"The page is {out}.\nNext: dialoscope export {' '.join(map(quote, folders))} --to model-card")


def gate(folders: Folders, settings: GateSettings, output: Printed) -> None:
    """Test scores against thresholds: the exit code is 1 where one is not kept, with the lines that failed."""
    from dialoscope.files import whole_file
    from dialoscope.study.gate import check_gates, read_gates, to_junit
    from dialoscope.study.results import missing_steps, read_results

    # Where every step failed there is no result, and CI still reads which gates fail.
    results = read_results(folders, may_be_none=True)
    checks = check_gates(read_gates(settings.gates), results, missing_steps(folders))
    has_passed = all(check.has_passed for check in checks)
    if settings.junit is not None:
        with whole_file(settings.junit) as unfinished:
            unfinished.write_text(to_junit(checks), encoding="utf-8")
    if output.json:
        print_json({"passed": has_passed, "gates": [check.to_dict() for check in checks]})
    else:
        for check in checks:
            typer.echo(check.line)
        typer.echo(f"Next: dialoscope report {' '.join(map(quote, folders))} --out joined.html")
    if not has_passed:
        raise typer.Exit(1)


def compare(
    before: Annotated[str, typer.Argument(help="The earlier result or study.", metavar="BEFORE")],
    after: Annotated[str, typer.Argument(help="The later one.", metavar="AFTER")],
    output: Output,
) -> None:
    """Test what has changed between two results or studies, on the items of both, with paired tests."""
    from dialoscope.study.compare import compare as compare_folders

    check_output(output, [before, after])
    result = compare_folders(before, after)
    if output.folder is not None:
        result.save(output.folder, overwrite=output.overwrite)
    if output.json:
        print_json(result.to_dict())
        return
    print_text(f"{MARKS[result.verdict.level]} {result.verdict.text}")
    _show_changes(result)
    for line in result.summary().notes:
        print_text(line)
    if output.folder is not None:
        typer.echo(f"The page is {output.folder / 'report.html'}.")
    typer.echo(f"Next: dialoscope report {quote(before)} {quote(after)} --out both.html")


def _show_changes(result: CompareResult) -> None:
    """A table for each step, subject and part, whose names would make one table too wide."""
    from dialoscope.report.cell import write
    from dialoscope.study.compare import written_p

    tables: dict[str, list[list[str]]] = {}
    for change in result.changes:
        head, _, number = change.shown_path.rpartition("/")
        difference = write(change.difference, ".3g")
        values = [write(value, ".4g").text or "–" for value in (change.first, change.second)]
        p = f"{written_p(change.p_holm) or '–'} {change.word or ('the same' if change.is_identical else '')}".strip()
        smallest = write(change.smallest, ".2g").text or "–"
        rows = tables.setdefault(f"{change.run} · {head}", [])
        rows.append([number, *values, f"{difference.text} {difference.interval}".strip(), p, smallest,
                     f"{change.items:,}"])  # fmt: skip
        if change.is_partly_shared:
            own = [write(value, ".4g").text or "–" for value in change.own]
            counts = " and ".join(f"{change.items + count:,}" for count in change.only)
            rows.append(["  over all items", *own, "", "", "", counts])
    for title, rows in tables.items():
        columns = ["number", "before", "after", "after minus before", "p (Holm)", "smallest to be found", "items"]
        print_table(columns, rows, title=title)


def export(folders: Folders, settings: ExportSettings, output: FileOutput) -> None:
    """Write results in the forms of other tools."""
    from dialoscope.files import check_free, whole_file
    from dialoscope.study.export import FORMS, log_to_mlflow, not_measured
    from dialoscope.study.results import missing_steps, read_results

    if (output.out if settings.to == "mlflow" else settings.uri) is not None:
        raise UsageError("--uri is for --to mlflow, and --out for the other forms.")
    out = None if output.out is None else Path(output.out)
    check_free(out, overwrite=output.overwrite)
    results, missing = read_results(folders), missing_steps(folders)
    if text := not_measured(missing, settings.model):  # the numbers alone would pass for everything that was asked
        complain(f"Not measured, and so not exported: {text}.")
    if settings.to == "mlflow":
        content = log_to_mlflow(results, settings.model, uri=settings.uri)
        print_json({"run": content}) if output.json else typer.echo(f"Logged as run {content}.")
        return
    content = FORMS[settings.to](results, settings.model, missing)
    if out is not None:
        with whole_file(out, overwrite=output.overwrite) as unfinished:
            unfinished.write_text(content, encoding="utf-8")
    if output.json:
        print_json({"to": settings.to, "content": content})
    elif out is None:
        typer.echo(content, nl=False)
    else:
        typer.echo(f"Written: {out}\nNext: dialoscope report {' '.join(map(quote, folders))} --out joined.html")


def add_commands(main: typer.Typer) -> None:
    """Add the commands of this file to the program."""
    main.add_typer(app, name="study")
    command(
        main, "report", report, examples=["report study --out joined.html", "report leak attention --out both.html"]
    )
    command(
        main,
        "gate",
        gate,
        examples=["gate study --gates gates.toml", "gate study --gates gates.toml --junit gates.xml"],
    )
    command(main, "compare", compare, examples=["compare last-month study", "compare last-month study --out changed"])
    command(
        main, "export", export, examples=["export study --to model-card --out CARD.md", "export study --to lm-eval"]
    )


command(
    app,
    "run",
    run,
    examples=["study study.toml --out study", "study chats.jsonl --model runs/ours --questions overlap,attention"],
)
command(app, "init", init, examples=["study init", "study init --out ours.toml"])


def _plan(given: Sequence[str], settings: StudySettings, models: Models) -> Plan:
    """The plan of a TOML, or of corpora and models that the command names."""
    from dataclasses import replace

    from dialoscope.corpus.load import name_of
    from dialoscope.study.plan import plan_of, read_plan

    own = {name: value for name in ("title", "against", "seed", "device")
           if (value := getattr(settings, name)) is not None}  # fmt: skip
    if len(given) == 1 and given[0].endswith(".toml"):
        if models.model or settings.questions:
            raise UsageError("A TOML names its own models and questions: give it, or corpora and options.")
        plan = read_plan(given[0])
        if {"seed", "device"} & own.keys():  # they fill settings, so they have to be there when these are made
            from dialoscope.study.plan import read_toml

            table = read_toml(given[0], "the TOML of a study", missing="")
            plan = plan_of({**table, **own}, root=Path(given[0]).parent)
        return replace(plan, **own)
    if not given:
        raise UsageError("Give the study's TOML, or corpora. Try: dialoscope study init")
    corpora: dict[str, str] = {}
    for word in given:
        name, sign, path = word.partition("=")
        name, path = (name, path) if sign and "/" not in name else (name_of([word]), word)
        if name in corpora:
            raise UsageError(f"Two corpora are called '{name}'. Name them: NAME={path}.")
        corpora[name] = path
    table = {"corpora": corpora, "models": models.by_name(), **own}
    return plan_of(table | ({"questions": list(settings.questions)} if settings.questions else {}))


def _show_steps(rows: Sequence[Mapping[str, Any]], *, is_json: bool) -> None:
    """The steps of a dry run; one that would fail makes the exit code 1."""
    if is_json:
        print_json({"steps": list(rows)})
    else:
        columns = ["step", "corpus", "models", "dialogues", "state"]
        cells = [[", ".join(row[name]) if name == "models" else row[name] for name in columns] for row in rows]
        print_table(columns, cells, title="Nothing was run (--dry-run)")
        left = sum(row["state"].startswith("to do") for row in rows)
        typer.echo(f"{left} of {len(rows)} steps are left to run.")
    if any(row["state"].startswith("would fail") for row in rows):
        raise typer.Exit(1)


def finish_study(study: Study, *, is_json: bool) -> None:
    """Say how a study went; one with a failed step ends with exit code 1."""
    if is_json:
        print_json(study.to_dict())
    else:
        for step in study.steps:
            if step.state == "done":
                _show_findings(step, study.results[step.name])
        for name, reasons in study.skipped.items():
            for reason, count in reasons.items():
                print_text(f"{name}: skipped {count:,} x {reason}")
        typer.echo(f"The page is {study.report}.\nNext: dialoscope export {quote(str(study.folder))} --to model-card")
    reasons_of: dict[str, list[str]] = {}
    for step in study.failed:  # what one corpus is to blame for is told once
        reasons_of.setdefault(step.reason, []).append(step.shown_name)
    for reason, names in reasons_of.items():
        complain(f"{', '.join(names)} failed: {reason}")
    if study.failed:
        raise typer.Exit(1)


def _show_findings(step: Step, result: Mapping[str, Any]) -> None:
    for verdict in result["verdicts"]:
        print_text(f"{step.shown_name}: {MARKS[verdict['level']]} {verdict['text']}")
    if not result["verdicts"]:
        print_text(f"{step.shown_name}: {result['used']}")
