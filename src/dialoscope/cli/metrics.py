"""`dialoscope metrics`: score responses against references, and against other systems' responses."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Annotated

import typer

from dialoscope.cli.arguments import Output, Printing, add_named, command, epilog
from dialoscope.cli.console import check_output, finish, print_json, print_table, working
from dialoscope.metrics.settings import GROUPED, MetricsSettings
from dialoscope.settings import BaseSettings, option

app = typer.Typer(
    help="Score responses against references, and compare systems.",
    epilog=epilog("metrics measure said.jsonl said.jsonl", "metrics list"),
    no_args_is_help=True,
)
Hypotheses = Annotated[
    str, typer.Argument(help="Responses: text (one a line), JSONL or Parquet.", metavar="HYPOTHESES")
]
References = Annotated[str, typer.Argument(help="References, in the same order.", metavar="REFERENCES")]


@dataclass(frozen=True, kw_only=True)
class Against(BaseSettings):
    """Other systems to compare with."""

    against: tuple[str, ...] = option(
        (), "Another system's responses to the same references.", group="Data", metavar="[NAME=]FILE", is_repeated=True
    )

    def by_name(self) -> dict[str, str]:
        """Files by name; one without a name is called as it is."""
        named: dict[str, str] = {}
        for word in self.against:
            add_named(named, word, "against")
        return named


def measure(
    hypotheses: Hypotheses, references: References, against: Against, settings: MetricsSettings, output: Output
) -> None:
    """Score responses against references: every number with its n and its interval."""
    others = against.by_name()
    check_output(output, [hypotheses, references, *others.values()])
    from dialoscope.metrics.measure import measure as measure_metrics

    with working("scoring", quiet=output.is_quiet):
        result = measure_metrics(hypotheses, references, against=others, settings=settings)
    files = f"{quote(hypotheses)} {quote(references)}"
    compared = f"dialoscope report {quote(output.out)}" if output.out else f"dialoscope metrics measure {files} --out m"
    alone = f"dialoscope metrics measure {files} --against OTHER"
    finish(result, output, next_command=compared if others else alone)


def show_list(printing: Printing) -> None:
    """List the metrics with their groups and units."""
    from dialoscope.metrics.score import METRICS

    if printing.json:
        shown = {
            name: {"group": group, "unit": METRICS[name].unit, "about": METRICS[name].about}
            for group, names in GROUPED.items()
            for name in names
        }
        print_json({"metrics": shown})
        return
    for group, names in GROUPED.items():
        rows = [(name, METRICS[name].unit, METRICS[name].about) for name in names]
        print_table(("metric", "unit", "meaning"), rows, title=group)
    typer.echo("Next: dialoscope metrics measure HYPOTHESES REFERENCES --metrics NAME,NAME")


command(
    app,
    "measure",
    measure,
    examples=["metrics measure said.txt meant.txt", "metrics measure a.jsonl meant.jsonl --against b.jsonl --out m"],
)
command(app, "list", show_list, examples=["metrics list", "metrics list --json"])
