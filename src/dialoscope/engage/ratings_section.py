"""Agreement with people as a section of a page: a table of all raters, and a chart for each set."""

from __future__ import annotations

from collections.abc import Iterator

from dialoscope.engage.ratings_result import KINDS, PARTIAL, SELECTED, SHARE, RatedSet, RatingsResult
from dialoscope.metrics import CORRELATIONS
from dialoscope.report import Block, Column, Section, Table
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis, interval_bars


def section_of(result: RatingsResult) -> Section:
    """A result as a section of a page."""
    return Section(
        title="Ratings",
        anchor="ratings",
        question="Do scores agree with people?",
        blocks=[people_table(result), *(_bars(result, name) for name in result.sets)],
        lead=" ".join([result.verdict.text, *_compared(result), *map(_people, result.sets.items()), result.used]),
        verdict=result.card,
        origin=result.origin,
    )


def _people(named: tuple[str, RatedSet]) -> str:
    name, rated = named
    return f"{rated.n:,} turns of {name} were rated by {rated.annotators_per_item:g} people each."


def _compared(result: RatingsResult) -> Iterator[str]:
    """The difference that the verdict rests on, with its interval and p-value."""
    first = next(iter(result.sets.values()))
    compared = first.against_baseline(result.models[0]) if result.models else None
    if compared is None or compared.spearman.difference.value is None:
        return
    difference, p = compared.spearman.difference, compared.spearman.p_holm
    ends = "" if difference.interval is None else f" [{difference.interval[0]:.2f}, {difference.interval[1]:.2f}]"
    how = "" if p is None else f", {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'} (paired bootstrap, Holm)"
    yield f"{compared.first} minus {compared.second}: {difference.value:+.2f}{ends}{how}."


def people_table(result: RatingsResult) -> Table:
    """A row for each set's ceiling and each of its raters."""
    numbers = [*CORRELATIONS, "partial given length", "share of ceiling"]
    columns = [Column("set"), Column("kind"), Column("rater"), *(Column(name, ".3f") for name in numbers)]
    rows = [row for name, rated in result.sets.items() for row in _rows(name, rated)]
    return Table(columns, rows, "Agreement with people", notes=_notes(result), name="engage-people")


def summary_table(result: RatingsResult) -> Table:
    """The same for a terminal: Spearman's correlation with its interval, and the other values."""
    numbers = ("Spearman", "Pearson", "given length", "share of ceiling")
    columns = [Column("rater"), *(Column(name, ".3f") for name in numbers)]
    rows: list[list[Cell]] = []
    for name, rated in result.sets.items():
        where = f", {name}" if len(result.sets) > 1 else ""
        ceilings = (rated.ceilings["spearman"], rated.ceilings["pearson"].value, None, None)
        rows.append([f"one annotator against the others{where}", *ceilings])
        for kind, raters in rated.raters.items():
            for rater, each in raters.items():
                mark = f" ({SELECTED})" if each.is_selected else ""
                shown = f"{result.subject(name, kind, rater)}{mark}{where}"
                rows.append([shown, each["spearman"], *(each[number].value for number in ("pearson", PARTIAL, SHARE))])
    names = ", ".join(result.sets)
    return Table(columns, rows, f"Agreement with people on {names}", notes=_notes(result)[1:], name="engage-people")


def _notes(result: RatingsResult) -> list[str]:
    notes = [
        "Correlations with the mean rating. Ceiling: one annotator against the mean of the others. Partial: "
        "Spearman's with the number of words of the turn held fixed. Share: Spearman's over that of the ceiling. "
        "A rater is compared with the mean of all annotators, one annotator with the mean of the others, so a "
        "share above 1 is possible."
    ]
    notes += [result.note] if result.note else []
    notes += [f"{name}: {rated.note}" for name, rated in result.sets.items() if rated.note]
    notes += [
        f"{name}: left out {'; '.join(f'{count} ({reason})' for reason, count in rated.left_out.items())}."
        for name, rated in result.sets.items()
        if rated.left_out
    ]
    return notes


def _rows(name: str, rated: RatedSet) -> Iterator[list[Cell]]:
    yield [name, "ceiling", "annotators", *(rated.ceilings.get(kind) for kind in CORRELATIONS), None, None]
    for kind in KINDS:
        for rater, result in rated.raters[kind].items():
            shown = f"{rater} ({SELECTED})" if result.is_selected else rater
            yield [name, kind.removesuffix("s"), shown, *(result[key] for key in (*CORRELATIONS, PARTIAL, SHARE))]


def _bars(result: RatingsResult, name: str) -> Block:
    rated = result.sets[name]
    values = {
        result.subject(name, kind, rater): each["spearman"]
        for kind, raters in rated.raters.items()
        for rater, each in raters.items()
    }
    return interval_bars(
        values,
        title=f"Spearman's correlation with people, {name}",
        description=f"Raters on {name} with intervals over dialogues; baselines are grey.",
        x=Axis("Spearman", ".2f"),
        controls=[result.subject(name, "baselines", rater) for rater in rated.raters["baselines"]],
        marks={} if rated.ceiling.value is None else {"one annotator": rated.ceiling.value},
    )
