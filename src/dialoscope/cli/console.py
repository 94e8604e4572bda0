"""What people see: tables, progress bars, one-line complaints; and the same results as JSON for machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dialoscope.progress import Progress as OnProgress

if TYPE_CHECKING:
    from dialoscope.cli.arguments import Output
    from dialoscope.report.result import Result

LONGEST_NAME = 24  # characters of a first column that is never broken, so that names can be copied


def let_threads_sleep() -> None:
    """Let threads that wait for each other sleep; it has to be said before torch is imported.

    OpenMP's threads spin while they wait. On cores that other programs use too, they take the time of the very threads
    they wait for: a small model's epochs took 13 times as long beside a program that used both of two cores.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def complain(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"dialoscope: {' '.join(message.split(chr(10)))}", err=True)


def print_text(text: str) -> None:
    """Print sentences that may quote the user's data: a terminal would obey escape sequences in them."""
    from dialoscope.corpus.text import printable

    typer.echo(printable(text, keep="\n"))


def print_json(data: Mapping[str, Any]) -> None:
    """Print a result for machines, and nothing else."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    sys.stdout.buffer.write(orjson.dumps(data, option=options) + b"\n")
    sys.stdout.buffer.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table for people; numbers stand right, and text is never read as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dialoscope.corpus.text import printable

    table = Table(
        title=Text(printable(title, keep="\n")) if title else None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    rows = [list(row) for row in rows]
    for place, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[place], int | float) or row[place] is None for row in rows)
        is_name = place == 0 and all(len(_written(row[0])) <= LONGEST_NAME for row in rows)
        heading = Text(printable(column, keep="\n"))
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold", no_wrap=is_name)
    for row in rows:
        table.add_row(*(Text(_written(cell)) for cell in row))
    Console().print(table)


def _written(cell: Any) -> str:
    from dialoscope.corpus.text import printable

    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else printable(str(cell), keep="\n")


@contextmanager
def progress_bar(label: str, *, quiet: bool) -> Iterator[OnProgress | None]:
    """A bar on standard error while something runs; none where nobody is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def working(label: str, *, quiet: bool) -> Iterator[None]:
    """A sign of life on standard error while one long call runs that cannot say how far it is."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(label):
        yield


def check_output(output: Output, inputs: Iterable[str | Path | None] = ()) -> None:
    """Complain before the work of a result's folder that is taken, or that lies in what is read."""
    from dialoscope.files import check_apart, check_free

    check_apart(output.folder, list(inputs))
    check_free(output.folder, overwrite=output.overwrite)


def finish(result: Result, output: Output, *, next_command: str) -> None:
    """Save a result, and print it as JSON or for people: the finding, an example, the numbers, the next command."""
    if output.folder is not None:
        result.save(output.folder, overwrite=output.overwrite)
    if output.json:
        print_json(result.to_dict())
        return
    for verdict in result.verdicts():
        mark = MARKS[verdict.level]
        print_text(verdict.text if verdict.text.startswith(mark) else f"{mark} {verdict.text}")
    print_text(result.used)
    for reason, count in result.counts.get("skipped", {}).items():
        print_text(f"Skipped: {count:,} x {reason}")
    if example := result.example():
        print_text(f"\n{example}\n")
    table = result.summary()
    rows = [[*(written.text if not written.interval else f"{written.text} {written.interval}" for written in row)]
            for row in table.written]  # fmt: skip
    print_table([head.name for head in table.heads], rows, title=table.caption)
    for note in table.notes:
        print_text(note)
    if output.folder is not None:
        typer.echo(f"The page is {output.folder / 'report.html'}.")
    typer.echo(f"Next: {next_command}")


MARKS = {"good": "Good:", "concern": "Concern:", "cannot_tell": "Cannot tell:", "not_measurable": "Not measurable:"}
