"""`dialoscope study`, `report`, `gate`, `compare` and `export`: to one page, and on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.console import Json, Quiet, complain, print_json, print_table
from dialoscope.cli.model import named_paths
from dialoscope.cli.steps import StepBars
from dialoscope.errors import UsageError, unknown_name
from dialoscope.files import check_free, whole_file

if TYPE_CHECKING:
    from dialoscope.study import Compared, Step, Study
    from dialoscope.study.compare import Change
    from dialoscope.study.plan import Plan

STUDY_EPILOG = (
    "Try: dialoscope study init  ·  dialoscope study study.toml --out study  ·  "
    "dialoscope study --corpus chats.jsonl --model runs/ours --instruments overlap,distract --out study"
)
REPORT_EPILOG = (
    "Try: dialoscope report study --out report.html  ·  dialoscope report leak looked probed --out report.html"
)
GATE_EPILOG = "Try: dialoscope gate study --gates gates.toml --junit gates.xml"
COMPARE_EPILOG = "Try: dialoscope compare last-month study --out changed"
EXPORT_EPILOG = "Try: dialoscope export study --to model-card --out CARD.md  ·  … export study --to mlflow"


class RunFirst(typer.core.TyperGroup):
    """A group whose commands are `init` and `run`, where `run` need not be said."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in `run` where neither command nor help is asked for."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="study",
    cls=RunFirst,
    help="Instruments over corpora and models, one report: dialoscope study study.toml --out DIR. All options of that: "
    "dialoscope study run --help",
    epilog=STUDY_EPILOG,
    no_args_is_help=True,
)


@app.command(epilog=STUDY_EPILOG)
def run(
    file: Annotated[Path | None, typer.Argument(help="The study's TOML.", metavar="[STUDY.toml]")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and the runs behind it.")] = Path("study"),
    corpus: Annotated[
        list[str] | None, typer.Option("--corpus", help="Without a TOML: a corpus; NAME=PATH names it.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Without a TOML: a model; NAME=PATH names it.")
    ] = None,
    instruments: Annotated[
        str | None, typer.Option("--instruments", help="Without a TOML: overlap,distract,probe,engage. Usual: all.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Without a TOML: dialogues of each split.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the report.")] = None,
    against: Annotated[str | None, typer.Option("--against", help="An earlier study to be compared with.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of what is drawn.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")] = None,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Only say which steps there are, and what is done.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of a study, reuse the rest, and write one page.

    A step that fails is shown on the page, and the others go on; the exit code is then 1. Killed, it goes on where it
    was when called again.
    """
    from dialoscope.study import run_study

    changes = {"title": title, "against": against, "seed": seed, "device": device}
    plan = _plan(file, corpus or [], model or [], instruments, limit, changes)
    if is_dry:
        _show_plan(plan, out, json=json)
        return
    with StepBars(quiet=quiet or json) as bars:
        study = run_study(plan, out, watcher=bars, on_problem=complain)
    end_with(study, json=json)


@app.command(epilog="Try: dialoscope study init && dialoscope study study.toml")
def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.toml"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Write an example with a comment for every line; it runs as it is."""
    with whole_file(file, overwrite=overwrite) as unfinished:
        unfinished.write_text(example(), encoding="utf-8")
    typer.echo(f"Written: {file}. Try: dialoscope study {file}")


def example() -> str:
    """The commented example."""
    return (files("dialoscope.study") / "example.toml").read_text(encoding="utf-8")


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs or studies.", metavar="DIR…")],
    out: Annotated[Path, typer.Option("--out", help="The page.")] = Path("report.html"),
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "Dialoscope report",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Join runs into one page, without running anything."""
    from dialoscope.report import render
    from dialoscope.study.folders import joined_sections
    from dialoscope.study.page import overall

    check_free(out, overwrite=overwrite)
    found = joined_sections(folders)
    shown = [section for _, section in found]
    page = render(title, shown, subtitle=", ".join(map(str, folders)), overall=overall(found))
    with whole_file(out, overwrite=overwrite) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    typer.echo(f"The report is at {out}")


def gate(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs or studies.", metavar="DIR…")],
    gates: Annotated[Path, typer.Option("--gates", help="A TOML of gates (see docs/study.md).")] = Path("gates.toml"),
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML.")] = None,
    json: Json = False,
) -> None:
    """Test numbers against thresholds: exit code 1 where one is not kept, with the lines that failed."""
    from dialoscope.study import pass_gates, read_gates, to_junit
    from dialoscope.study.folders import done_runs, missing_steps

    # Where every step failed there is no run, and CI still reads which gates are shut.
    found = pass_gates(read_gates(gates), done_runs(folders), missing_steps(folders))
    if junit is not None:
        with whole_file(junit) as unfinished:
            unfinished.write_text(to_junit(found), encoding="utf-8")
    if json:
        print_json({"passed": all(one.is_open for one in found), "gates": [one.to_dict() for one in found]})
    else:
        for one in found:
            typer.echo(one.line)
    if not all(one.is_open for one in found):
        raise typer.Exit(1)


def compare(
    first: Annotated[Path, typer.Argument(help="The earlier run or study.", metavar="BEFORE")],
    second: Annotated[Path, typer.Argument(help="The later one.", metavar="AFTER")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the page and the numbers.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    json: Json = False,
) -> None:
    """What has changed between two runs or studies, on the items of both, with paired tests."""
    from dialoscope.report import write_run
    from dialoscope.study.compare import compare as compared
    from dialoscope.study.compare import section_of

    check_free(out, overwrite=overwrite)
    found = compared(first, second)
    section = section_of(found)
    if out is not None:
        assert section.origin is not None
        write_run(out, instrument="compare", data=found.to_dict(), section=section, origin=section.origin,
                  overwrite=overwrite)  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    _show_changes(found, section.tables[0].footnotes)
    for line in found.left_out:
        typer.echo(line)
    typer.echo(section.lead)
    if out is not None:
        typer.echo(f"The report is at {out / 'report.html'}")


def export(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs or studies.", metavar="DIR…")],
    form: Annotated[str, typer.Option("--to", help="lm-eval, model-card or mlflow.")],
    out: Annotated[Path | None, typer.Option("--out", help="A file; usually printed.")] = None,
    model: Annotated[str, typer.Option("--model", help="Only this model.")] = "",
    uri: Annotated[str | None, typer.Option("--uri", help="For mlflow: where it tracks.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Results in the forms of other tools."""
    from dialoscope.study import read_runs
    from dialoscope.study.folders import missing_steps
    from dialoscope.study.interop import FORMS, log_to_mlflow

    if form not in FORMS and form != "mlflow":
        raise unknown_name("form", form, [*FORMS, "mlflow"])
    if (out if form == "mlflow" else uri) is not None:
        raise UsageError("--uri is for --to mlflow, and --out for the other forms.")
    check_free(out, overwrite=overwrite)
    runs, missing = read_runs(folders), missing_steps(folders)
    if form == "mlflow":
        typer.echo(f"Logged as run {log_to_mlflow(runs, model, uri=uri)}")
        _say_unmeasured(missing, model)
        return
    text = FORMS[form](runs, model, missing)
    _say_unmeasured(missing, model)
    if out is None:
        typer.echo(text, nl=False)
        return
    with whole_file(out, overwrite=overwrite) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    typer.echo(f"Written: {out}")


def _say_unmeasured(missing: Sequence[Step], model: str) -> None:
    """Say what an export cannot hold: its numbers alone would pass for all that was asked."""
    from dialoscope.study.interop import unmeasured

    if told := unmeasured(missing, model):
        complain(f"Not measured, and so not exported: {told}.")


def _plan(
    file: Path | None,
    corpora: Sequence[str],
    models: Sequence[str],
    instruments: str | None,
    limit: int | None,
    changes: dict[str, Any],
) -> Plan:
    from dataclasses import replace

    from dialoscope.corpus.load import name_of
    from dialoscope.study import plan_of, read_plan

    given = {key: value for key, value in changes.items() if value is not None}
    if file is not None:
        if corpora or models or instruments or limit:
            raise UsageError("A TOML names its own corpora, models and instruments: give it, or the options.")
        return replace(read_plan(file), **given)
    if not corpora:
        raise UsageError("Give the study's TOML, or --corpus with dialogues. Try: dialoscope study init")
    paths = named_paths(corpora, kind="corpora", label=lambda path, _: name_of([path]))
    named = {name: {"path": path, **({"limit": limit} if limit else {})} for name, path in paths.items()}
    table: dict[str, Any] = {"corpora": named, "models": named_paths(models), **given}
    if instruments is not None:
        table["instruments"] = instruments.replace(" ", "").split(",")
    return plan_of(table)


def _show_changes(found: Compared, letters: Mapping[str, str]) -> None:
    """A table for each run and model, whose names would make it too wide, then the reasons by letter."""
    tables: dict[str, list[list[str]]] = {}
    for one in found.changes:
        tables.setdefault(" · ".join(filter(None, (one.run, one.model))), []).extend(_rows(one, letters))
    for title, rows in tables.items():
        print_table(["number", "before", "after", "after minus before", "p (Holm)", "items"], rows, title=title)
    for reason, letter in letters.items():
        typer.echo(f"{letter}: {reason}")
    if found.partly:
        typer.echo("Before and after are of the items of both, and in the lines below them of all that each run has.")


def _rows(one: Change, letters: Mapping[str, str]) -> list[list[str]]:
    """A number over the items of both, and what each run says of all of its own where it has others."""
    from dialoscope.report.cell import write
    from dialoscope.study.compare import written_p

    by = write(one.comparison.difference, ".3g")
    p = written_p(one.comparison.p_holm) or f"– {letters.get(one.comparison.reason or '', '')}"
    values = [[write(value, ".4g").text or "–" for value in pair] for pair in ((one.first, one.second), one.own)]
    rows = [[one.what, *values[0], f"{by.text} {by.interval}".strip(), f"{p} {one.said}".strip(), f"{one.items:,}"]]
    if one.is_partly_shared:
        rows.append(["  over all items", *values[1], "", "", " and ".join(f"{count:,}" for count in one.of)])
    return rows


def _show_plan(plan: Plan, out: Path, *, json: bool) -> None:
    from dialoscope.study.dry_run import planned

    rows = planned(plan, out)
    if json:
        print_json({"steps": rows})
    else:
        _show_steps(rows)
    if any(row["state"].startswith("would fail") for row in rows):
        raise typer.Exit(1)


def _show_steps(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = ["step", "corpus", "models", "dialogues", "state"]
    print_table(columns, [[row[name] for name in columns] for row in rows], title="Nothing was run (--dry-run)")
    left = sum(row["state"].startswith("to do") for row in rows)
    typer.echo(f"{left} of {len(rows)} steps are left to run.")


def end_with(study: Study, *, json: bool) -> None:
    """Say how it went; a study with a failed step ends with 1."""
    from dialoscope.study.steps import shown_name

    names = {step.name: shown_name(step.name, step.asked, step.corpus) for step in study.steps}
    if json:
        print_json(study.to_dict())
    else:
        broken = {step.name for step in study.failed}
        for name, verdict in study.verdicts.items():
            if name not in broken:
                typer.echo(f"{names[name]}: {verdict}")
        for name, reasons in study.left_out.items():
            typer.echo(f"{name}: {_left_out(reasons)}")
        typer.echo(f"The report is at {study.report}")
    for reason, failed in _by_reason(study.failed).items():
        complain(f"{', '.join(names[one] for one in failed)} failed: {reason}")
    if study.failed:
        raise typer.Exit(1)


def _by_reason(failed: Sequence[Step]) -> dict[str, list[str]]:
    """Steps that failed: what one corpus is to blame for is said once."""
    found: dict[str, list[str]] = {}
    for step in failed:
        found.setdefault(step.reason, []).append(step.name)
    return found


def _left_out(reasons: Mapping[str, int]) -> str:
    """Records that were not read, counted."""
    total = sum(reasons.values())
    told = "; ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
    return f"{total:,} {'record was' if total == 1 else 'records were'} left out on reading ({told})."
