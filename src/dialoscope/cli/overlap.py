"""`dialoscope overlap`: measure a leak, list near-copies, filter a test set, clean a corpus and split it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.arguments import LAST_GROUP, Corpus, Output, Printing, Reading, add_named, command
from dialoscope.cli.console import check_output, finish, print_json, print_table, print_text, working
from dialoscope.errors import UsageError
from dialoscope.overlap.settings import CleanSettings, FilterSettings, OverlapSettings, PairsSettings, threshold_text
from dialoscope.settings import BaseSettings, option

if TYPE_CHECKING:
    from dialoscope.overlap.made import Made
    from dialoscope.overlap.tables import TextTable

LISTED = 20  # pairs in the terminal

app = typer.Typer(
    help="Is the test set in the training set? Measure it, filter it, clean it, split it again.",
    epilog="Try: dialoscope overlap measure concierge  ·  dialoscope overlap pairs concierge --threshold 0.9",
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class TextReading(Reading):
    """How a corpus, or a column of texts, is read."""

    column: str | None = option(
        None, "Compare this column of texts of Parquet, JSONL or CSV tables.", group="Data", metavar="NAME"
    )

    def check(self) -> None:
        """Tables have no format to name."""
        super().check()
        if self.column is not None and self.format is not None:
            raise UsageError("column reads plain tables, which need no format.")

    def read(self, corpus: Sequence[str] | None, output: Output) -> Any:
        """Read dialogues, or the texts of a column as dialogues of one turn."""
        return self.load(corpus, output) if self.column is None else self.read_table(corpus, output).corpus

    def read_table(self, corpus: Sequence[str] | None, output: Output) -> TextTable:
        """Read the texts of a column, and the rows that they stand in."""
        from dialoscope.overlap.tables import read_texts

        assert self.column is not None
        with working("reading", quiet=output.is_quiet):
            return read_texts(corpus or (), column=self.column, train=self.train, test=self.test)

    def words(self, corpus: Sequence[str] | None) -> str:
        """What was read, as the next command has to name it."""
        return super().words(corpus) + (f" --column {quote(self.column)}" if self.column else "")


@dataclass(frozen=True, kw_only=True)
class Benchmarks(BaseSettings):
    """Benchmarks that are measured in place of the test split."""

    against: tuple[str, ...] = option(
        (),
        "Benchmarks to measure in place of the test split.",
        group="Data",
        metavar="[NAME=]PATH",
        is_repeated=True,
    )

    def read(self, reading: TextReading, output: Output) -> dict[str, Any] | None:
        """The benchmarks by name; one without a name is called as its path ends."""
        single = replace(reading, train=(), test=())
        return {name: single.read([path], output) for name, path in self.by_name().items()} or None

    def by_name(self) -> dict[str, str]:
        """Their paths by name."""
        named: dict[str, str] = {}
        for word in self.against:
            add_named(named, word, "against")
        return named


@dataclass(frozen=True, kw_only=True)
class Other(BaseSettings):
    """A second corpus."""

    against: str | None = option(None, "Another corpus to compare with.", group="Data", metavar="PATH")


@dataclass(frozen=True, kw_only=True)
class EngineOptions(BaseSettings):
    """Where units are compared; the numbers are the same."""

    engine: str = option(
        "here",
        "Where units are compared: in this process, or on Apache Spark.",
        group="Engine",
        choices=("here", "spark"),
    )
    master: str = option("local[*]", "Where Spark runs: local[2], spark://HOST:PORT, yarn.", group="Engine")

    def opened(self) -> AbstractContextManager[Any]:
        """The engine, for the length of a block; None stands for this process."""
        if self.engine == "here":
            return nullcontext()
        from dialoscope.overlap.spark.engine import spark

        return spark(self.master)

    def read(self, corpus: Sequence[str] | None, reading: TextReading, output: Output, *, is_whole: bool) -> Any:
        """Spark reads Parquet itself, unless only some of it is asked for; this process reads everything else."""
        is_plain = is_whole and reading.on_error == "fail" and reading.format in (None, "parquet")
        if self.engine == "spark" and is_plain:
            from dialoscope.overlap.spark.parquet import parquet_at, sides_at

            if corpus and not reading.paths:
                files: Any = parquet_at(corpus, column=reading.column)
            elif reading.train and reading.test and not corpus:
                files = sides_at(reading.train, reading.test, column=reading.column)
            else:
                files = None
            if files is not None:
                return files
        return reading.read(corpus, output)


@dataclass(frozen=True, kw_only=True)
class PairsOutput(Output):
    """Where pairs are written."""

    out: str | None = option(
        None, "Parquet or CSV file for the pairs; with --engine spark, a folder.", group=LAST_GROUP, metavar="FILE"
    )


@dataclass(frozen=True, kw_only=True)
class ShowOptions(BaseSettings):
    """How a result is shown again."""

    leak: float | None = option(None, "A unit over this ratio counts as leaked. Default: as measured.", least=0, most=1)
    matches: int = option(10, "How many of the closest matches to list.", least=0)


def measure(
    corpus: Corpus,
    settings: OverlapSettings,
    reading: TextReading,
    benchmarks: Benchmarks,
    engine: EngineOptions,
    output: Output,
) -> None:
    """Measure how much of the test set stands in the training set: the best match of every sample, exactly."""
    from dialoscope.overlap import measure as measure_overlap

    inputs = [*(corpus or ()), *reading.paths, *benchmarks.against, settings.hypotheses, settings.references]
    check_output(output, inputs)
    is_whole = settings.limit is None and settings.hypotheses is None
    data = engine.read(corpus, reading, output, is_whole=is_whole)
    against = benchmarks.read(reading, output)
    with working("counting shared words", quiet=output.is_quiet), engine.opened() as opened:
        result = measure_overlap(data, against=against, settings=settings, engine=opened)
    data_words = reading.words(corpus)
    if result.verdict.level == "not_measurable":
        following = f"measure {data_words} --unit turn"
    elif against:
        other = quote(next(iter(benchmarks.by_name().values())))
        following = (
            f"pairs {data_words} --against {other} --unit {result.unit} --threshold {threshold_text(settings.leak)}"
        )
    elif result.is_within:
        held_out = max(1, len(data) // 10)
        following = f"clean {data_words} --test-size {held_out} --validation-size {held_out} --out cleaned/"
    else:
        names = {"split": settings.split, "train-split": settings.train_split}
        options = [f"--{name} {quote(value)}" for name, value in names.items() if value is not None]
        options += (
            [f"--threshold {threshold_text(settings.leak)}"] if settings.leak != FilterSettings().threshold else []
        )
        following = " ".join(["filter", data_words, *options, "--out filtered/"])
    finish(result, output, next_command=f"dialoscope overlap {following}")


def show(
    run: Annotated[str, typer.Argument(help="Folder of a result of 'overlap measure'.", metavar="RUN")],
    options: ShowOptions,
    printing: Printing,
) -> None:
    """Show a result again, at any threshold, without measuring again."""
    from dialoscope.overlap import OverlapResult

    result = OverlapResult.load(run)
    if options.leak is not None:
        result = result.at(options.leak)
    if not printing.json and (rows := result.closest(options.matches).to_pylist()):
        cells = [[row["id"], row["match_id"], row["ratio"]] for row in rows]
        print_table(
            [result.unit, "match", "ratio"], cells, title=f"Closest matches over {threshold_text(result.settings.leak)}"
        )
    finish(result, Output(json=printing.json), next_command=f"dialoscope report {quote(run)}")


def pairs(
    corpus: Corpus,
    settings: PairsSettings,
    reading: TextReading,
    other: Other,
    engine: EngineOptions,
    output: PairsOutput,
) -> None:
    """List all pairs at or over a threshold, within one corpus or between two: exact, with no approximate hashing."""
    from dialoscope.overlap import pairs as find_pairs
    from dialoscope.overlap.pairs import check_ending

    check_output(output, [*(corpus or ()), *reading.paths, other.against])
    is_folder = engine.engine == "spark" and output.folder is not None and not output.folder.suffix
    if output.folder is not None and not is_folder:
        check_ending(output.folder)
    is_whole = settings.limit is None
    data = engine.read(corpus, reading, output, is_whole=is_whole)
    single = replace(reading, train=(), test=())
    against = engine.read([other.against], single, output, is_whole=is_whole) if other.against else None
    with working("joining", quiet=output.is_quiet), engine.opened() as opened:
        folder: dict[str, Any] = {"folder": output.folder, "overwrite": output.overwrite} if is_folder else {}
        result = find_pairs(data, against=against, settings=settings, engine=opened, **folder)
    if output.folder is not None and not is_folder:
        result.save(output.folder, overwrite=output.overwrite)
    if output.json:
        print_json(result.to_dict())
        return
    shown = result.closest(LISTED) if result.is_whole else result.table.slice(0, LISTED).to_pylist()
    order = "highest ratio first" if result.is_whole else "in the order of the corpus"
    part = f" (first {len(shown)}, {order})" if len(result) > len(shown) else ""
    cells = [[row["first"], row["second"], row["ratio"]] for row in shown]
    print_table(["first", "second", "ratio"], cells, title=f"{len(result):,} pairs{part}")
    print_account(result.used, result.counts)
    following = f"clean {reading.words(corpus)} --threshold {threshold_text(settings.threshold)} --out cleaned/"
    typer.echo(f"Next: dialoscope overlap {following}")


def filter(corpus: Corpus, settings: FilterSettings, reading: TextReading, output: Output) -> None:
    """Drop leaked test items without splitting again. Dropped items are written beside those that are kept."""
    from dialoscope.overlap import filter as filter_test

    check_output(output, [*(corpus or ()), *reading.paths])
    out = output.required("a folder for the data")
    table = None if reading.column is None else reading.read_table(corpus, output)
    data = reading.load(corpus, output) if table is None else table.corpus
    with working("filtering", quiet=output.is_quiet):
        filtered = filter_test(data, settings=settings)
    if table is not None:
        part, count = filtered.result.measured[0], len(filtered.result.table)
        filtered = filtered.with_rows(table.rows[part].slice(0, count))
    counts, unit = filtered.counts, filtered.result.unit
    finding = f"{counts['kept']:,} of {counts['measured']:,} {unit}s kept, {counts['dropped']:,} dropped"
    finish_made(filtered, f"{finding} for an overlap over {threshold_text(settings.threshold)}.", out, output)
    if not output.json:
        typer.echo(f"Next: head {quote(str(out / 'ledger.jsonl'))}")


def clean(corpus: Corpus, settings: CleanSettings, reading: TextReading, engine: EngineOptions, output: Output) -> None:
    """Drop near-copies until none is left, split by whole dialogue, and remove exact duplicates of samples."""
    from dialoscope.overlap import clean as clean_corpus

    check_output(output, [*(corpus or ()), *reading.paths])
    out = output.required("a folder for the data")
    data = reading.read(corpus, output)
    with working("cleaning", quiet=output.is_quiet), engine.opened() as opened:
        cleaned = clean_corpus(data, settings=settings, engine=opened)
    counts = cleaned.counts
    passes = f"{counts['passes']} {'pass' if counts['passes'] == 1 else 'passes'}"
    finish_made(cleaned, f"{counts['kept']:,} of {counts['dialogues']:,} dialogues kept after {passes}.", out, output)
    if output.json:
        return
    rows = [[turns, *by_split.values()] for turns, by_split in counts["samples"].items()]
    print_table(["context turns", *cleaned.parts], rows, title="Samples without duplicates")
    typer.echo(f"Next: dialoscope overlap measure {quote(str(out / 'corpus'))} --unit dialogue")


def finish_made(made: Made, finding: str, out: Path, output: Output) -> None:
    """Save data that was made, and print its record as JSON, or what was found and what was skipped."""
    made.save(out, overwrite=output.overwrite)
    if output.json:
        print_json(made.to_dict())
        return
    print_text(finding)
    print_account(made.used, made.counts)
    typer.echo(f"Written to {out}.")


def print_account(used: str, counts: Mapping[str, Any]) -> None:
    """Which dialogues were used, and what was skipped."""
    print_text(used)
    for reason, count in counts["skipped"].items():
        print_text(f"Skipped: {count:,} x {reason}")


command(
    app,
    "measure",
    measure,
    examples=["overlap measure dailydialog/", "overlap measure --train a.jsonl --test b.jsonl --out leak"],
)
command(app, "show", show, examples=["overlap measure concierge --out leak", "overlap show leak --leak 0.7"])
command(
    app,
    "pairs",
    pairs,
    examples=["overlap pairs concierge --threshold 0.9", "overlap pairs chats.jsonl --out pairs.parquet"],
)
command(
    app,
    "filter",
    filter,
    examples=["overlap filter concierge --out honest", "overlap filter --train a.csv --test b.csv --out honest"],
)
command(
    app,
    "clean",
    clean,
    examples=[
        "overlap clean concierge --test-size 50 --validation-size 50 --out clean",
        "overlap clean dailydialog/ --threshold 0.75 --test-size 1000 --validation-size 1000 --out clean",
    ],
)
