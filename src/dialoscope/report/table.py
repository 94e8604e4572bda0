"""A table that is one thing on the page, in LaTeX, in a spreadsheet and in Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from dialoscope.record import Score
from dialoscope.report import markup
from dialoscope.report.anchor import slug
from dialoscope.report.cell import Cell, Written, checked, checked_format, common_format, is_numeric, number_in, write

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how text begins that a spreadsheet takes for more than text
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # of footnotes that say why a score is missing


@dataclass(frozen=True)
class Column:
    """A column's name, how its numbers are written, and which end of it is the good one."""

    name: str
    number_format: str = ""  # Python's: ",d", ".3f", ".1%"; empty lets the numbers decide
    best: Literal["high", "low"] | None = None  # the best of the column is marked

    def __post_init__(self) -> None:
        checked_format(self.number_format)
        if self.best not in (None, "high", "low"):
            raise ValueError(f"the best of a column is 'high' or 'low', found {self.best!r}")


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns.

    A score is one cell to people and several columns to machines: ``bleu``, ``bleu low``, ``bleu high``,
    ``bleu n`` and, where some could not be computed, ``bleu reason``.

    >>> print(Table(["split", Column("turns")], [["train", 76052]], "Turns by split").to_csv(), end="")
    split,turns
    train,76052
    """

    kind: ClassVar[str] = "table"

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    notes: Sequence[str] = ()
    highlight: Sequence[int] = ()  # rows to emphasise
    name: str = ""  # of its files; made from the caption where empty

    def __post_init__(self) -> None:
        columns = tuple(Column(each) if isinstance(each, str) else each for each in self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", tuple(tuple(map(checked, row)) for row in self.rows))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "highlight", tuple(self.highlight))
        object.__setattr__(self, "name", slug(self.name or self.caption, default="table"))
        _check_shape(self)

    @cached_property
    def heads(self) -> tuple[Column, ...]:
        """The columns, all of them as `Column`."""
        return tuple(each for each in self.columns if isinstance(each, Column))

    def cells(self, place: int) -> list[Cell]:
        """The cells of one column."""
        return [row[place] for row in self.rows]

    @cached_property
    def is_number_column(self) -> tuple[bool, ...]:
        """Which columns hold numbers and nothing else (empty cells aside)."""
        return tuple(_all_numeric(self.cells(place)) for place in range(len(self.heads)))

    @cached_property
    def written(self) -> tuple[tuple[Written, ...], ...]:
        """The cells in words, row by row."""
        forms = [head.number_format or common_format(self.cells(place)) for place, head in enumerate(self.heads)]
        return tuple(tuple(write(cell, form) for cell, form in zip(row, forms, strict=True)) for row in self.rows)

    @cached_property
    def best_cells(self) -> frozenset[tuple[int, int]]:
        """Row and column of the best number of each column that has a good end, and of those written like it."""
        return frozenset(spot for place, head in enumerate(self.heads) for spot in _best(self, place, head))

    @cached_property
    def common_n(self) -> int | None:
        """The n behind every score of the table, where it is the same for all."""
        counts = {n for row in self.rows for n in _counts(row)}
        return counts.pop() if len(counts) == 1 else None

    @cached_property
    def row_n(self) -> tuple[int | None, ...] | None:
        """The n of each row, where it differs from row to row but never within one; then it is a column of its own."""
        counts = [_counts(row) for row in self.rows]
        if self.common_n is not None or not any(counts) or any(len(each) > 1 for each in counts):
            return None
        return tuple(next(iter(each), None) for each in counts)

    @property
    def has_n_in_cells(self) -> bool:
        """Whether every score has to tell its n itself."""
        return self.common_n is None and self.row_n is None

    @cached_property
    def footnotes(self) -> dict[str, str]:
        """Reason -> letter, for scores that could not be computed."""
        reasons = dict.fromkeys(each.reason for row in self.written for each in row if each.reason)
        return {reason: _letter(place) for place, reason in enumerate(reasons)}

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """All that stands below the table: the caller's notes and what the scores have in common."""
        shared = () if self.common_n is None else (f"n = {self.common_n:,d} for every score.",)
        return (*self.notes, *shared)

    def to_csv(self) -> str:
        """Comma-separated values at full precision, for machines and spreadsheets."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        names, columns = zip(*_flat_columns(self), strict=True)
        writer.writerow(map(_harmless, names))
        writer.writerows(map(_harmless, row) for row in zip(*columns, strict=True))
        return lines.getvalue()

    def to_arrow(self) -> pa.Table:
        """The same columns as `to_csv`, typed, for Parquet."""
        import pyarrow as pa

        names, columns = zip(*_flat_columns(self), strict=True)
        return pa.table(dict(zip(names, map(_arrow_column, columns), strict=True)))

    def to_latex(self) -> str:
        """A booktabs table, ready for a paper."""
        layout = "".join("r" if is_number else "l" for is_number in self.is_number_column) + "r" * bool(self.row_n)
        head = markup.latex_row([markup.latex(head.name) for head in self.heads] + ["$n$"] * bool(self.row_n))
        rows = [
            markup.latex_row([_latex_cell(self, *spot) for spot in spots] + _n_cell(self, spots))
            for spots in _spots(self)
        ]
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{markup.latex(self.caption)}}}"]
        lines += [rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule"]
        lines += [*rows, r"\bottomrule", r"\end{tabular}", *_latex_notes(self), r"\end{table}"]
        return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _check_shape(table: Table) -> None:
    if not table.columns:
        raise ValueError(f"table '{table.caption}': expected at least one column")
    for place, row in enumerate(table.rows):
        if len(row) != len(table.columns):
            raise ValueError(
                f"table '{table.caption}', row {place}: expected {len(table.columns)} cells, found {len(row)}"
            )
    names = [name for name, _ in _flat_columns(table)]
    if len(set(names)) < len(names):
        raise ValueError(f"table '{table.caption}': two columns have one name: {', '.join(names)}")


def _counts(row: Sequence[Cell]) -> set[int]:
    return {cell.n for cell in row if isinstance(cell, Score) and cell.value is not None}


def _all_numeric(cells: Sequence[Cell]) -> bool:
    present = [cell for cell in cells if cell is not None]
    return bool(present) and all(map(is_numeric, present))


def _best(table: Table, place: int, head: Column) -> Iterator[tuple[int, int]]:
    numbers = {row: number_in(cell) for row, cell in enumerate(table.cells(place))}
    present = {row: number for row, number in numbers.items() if number is not None}
    if head.best is None or len(present) < 2:  # alone is not best
        return
    target = max(present.values()) if head.best == "high" else min(present.values())
    best = {table.written[row][place].text for row, number in present.items() if number == target}
    yield from ((row, place) for row in present if table.written[row][place].text in best)


def _letter(place: int) -> str:
    return LETTERS[place % len(LETTERS)] * (place // len(LETTERS) + 1)


def _spots(table: Table) -> list[list[tuple[int, int]]]:
    return [[(row, place) for place in range(len(table.heads))] for row in range(len(table.rows))]


def _flat_columns(table: Table) -> Iterator[tuple[str, list[str | int | float | None]]]:
    """Columns without scores: a score's value, bounds, n and reason become columns of their own."""
    for place, head in enumerate(table.heads):
        cells = table.cells(place)
        scores = [cell if isinstance(cell, Score) else None for cell in cells]
        yield head.name, [cell.value if isinstance(cell, Score) else cell for cell in cells]
        if any(score and score.interval for score in scores):
            yield f"{head.name} low", [score.interval[0] if score and score.interval else None for score in scores]
            yield f"{head.name} high", [score.interval[1] if score and score.interval else None for score in scores]
        if any(scores):
            yield f"{head.name} n", [score.n if score else None for score in scores]
        if any(score and score.reason for score in scores):
            yield f"{head.name} reason", [score.reason if score else None for score in scores]


def _harmless(cell: str | int | float | None) -> str | int | float | None:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it, which makes it text there."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _arrow_column(cells: Sequence[str | int | float | None]) -> pa.Array:
    import pyarrow as pa

    present = [cell for cell in cells if cell is not None]
    if not present or any(isinstance(cell, str) for cell in present):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    if all(isinstance(cell, int) for cell in present):
        return pa.array(cells, pa.int64())
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())


def _aside(table: Table, written: Written) -> str:
    """What follows a score's value; n only where it differs from cell to cell."""
    n = f"(n={written.n})" if written.n and table.has_n_in_cells else ""
    return " ".join(part for part in (written.interval, n) if part)


def _n_cell(table: Table, spots: Sequence[tuple[int, int]]) -> list[str]:
    """The cell of the column n, where there is one."""
    n = table.row_n[spots[0][0]] if table.row_n else None
    return [] if table.row_n is None else ["" if n is None else f"{n:,d}"]


def _latex_cell(table: Table, row: int, place: int) -> str:
    written = table.written[row][place]
    text = markup.latex(written.text)
    if written.reason:
        return rf"{text}\textsuperscript{{{table.footnotes[written.reason]}}}"
    text = text.replace("-", "$-$") if is_numeric(table.rows[row][place]) else text
    text = rf"\textbf{{{text}}}" if (row, place) in table.best_cells else text
    aside = markup.latex(_aside(table, written)).replace("-", "$-$")
    return rf"{text} {{\footnotesize {aside}}}" if aside else text


def _latex_notes(table: Table) -> list[str]:
    notes = [markup.latex(note) for note in table.remarks]
    notes += [rf"\textsuperscript{{{letter}}} {markup.latex(reason)}" for reason, letter in table.footnotes.items()]
    return [r"\par\smallskip", rf"{{\footnotesize {' '.join(notes)}\par}}"] if notes else []
