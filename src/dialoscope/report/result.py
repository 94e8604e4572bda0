"""One form of result for every question: scores by path, the items behind them, verdicts, a table, a section, files.

A result's folder::

    DIR/result.json      schema_version, instrument, origin, settings, parts, counts, scores, verdicts
    DIR/NAME.parquet     the result's tables; `table` says what each column means
    DIR/state.json       what is needed to show the result again; DIR/arrays.npz, its arrays
    DIR/report.html      the page, and DIR/tables/ with every table of it as CSV, LaTeX and Parquet
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dialoscope.errors import UsageError
from dialoscope.record import Origin, Score, Scores
from dialoscope.report.cell import Cell, in_one_line
from dialoscope.report.items import Items
from dialoscope.report.plain import origin_from
from dialoscope.report.run import RESULT, read_json, record_of, write_result_folder
from dialoscope.report.section import SEVERITY, Card, Chart, Part, Section, Table
from dialoscope.report.stored import Store, types_of
from dialoscope.report.verdict import Verdict
from dialoscope.settings import BaseSettings

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = ("settings", "parts", "used", "counts", "origin")  # fields that result.json holds itself
Kept = TypeVar("Kept")


def kept(method: Callable[[Any], Kept]) -> Callable[[Any], Kept]:
    """Compute once for each result; what a saved result had is taken from its file."""

    @wraps(method)
    def get(self: Any) -> Kept:
        known = self.__dict__.setdefault("_kept", {})
        if method.__name__ not in known:
            known[method.__name__] = method(self)
        value: Kept = known[method.__name__]
        return value

    return get


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """The answer to one question. Subclasses add what was measured, and define the methods that raise here.

    Subclasses are dataclasses with the same arguments as this one (`repr=False` keeps the one-line repr).
    """

    instrument: ClassVar[str]
    settings_class: ClassVar[type[BaseSettings]]
    has_keys_of_content: ClassVar[bool] = False  # whether a key of `items` changes with what the item is compared with

    settings: BaseSettings
    parts: Mapping[str, int]  # dialogues by the part that they played: {"train": 11118, "test": 1000}
    used: str  # one sentence: which dialogues were used for what
    counts: Mapping[str, Any]  # what was not measured: {"skipped": {reason: count}}
    origin: Origin

    def scores(self) -> Scores:
        """Every number by its path SUBJECT/PART/NUMBER. Define it with `@kept`."""
        raise NotImplementedError

    def items(self) -> dict[str, Items]:
        """The items behind the scores that a comparison can test, by path."""
        raise NotImplementedError

    def verdicts(self) -> list[Verdict]:
        """What was found, the most important first."""
        raise NotImplementedError

    def section(self) -> Section:
        """The result as a section of a page."""
        raise NotImplementedError

    @property
    def table(self) -> pa.Table:
        """One row for each thing measured; the fields' metadata say what each column means."""
        raise NotImplementedError

    def figures(self) -> list[Chart]:
        """The charts of the page, as Plotly figures with their titles."""
        return [block for block in self.section().blocks if isinstance(block, Chart)]

    def summary(self) -> Table:
        """What a terminal shows: by default every score."""
        rows: list[list[Cell]] = [[*name.split("/"), score] for name, score in self.scores().items()]
        return Table(["measured", "on", "number", "value"], rows, "Scores")

    def example(self) -> str:
        """A piece of the data that shows the finding, as text; empty where there is none."""
        return ""

    @property
    def verdict(self) -> Verdict:
        """The first finding."""
        return self.verdicts()[0]

    @property
    def card(self) -> Card:
        """The first finding as the page's card; the same number of several models or parts has a line for each."""
        scores, found = self.scores(), self.verdicts()
        alike = [each for each in found if _number_of(each) == _number_of(found[0])]
        if len(alike) == 1 or not found[0].scores:
            return Card(found[0].text, scores.get(found[0].scores[0]) if found[0].scores else None, found[0].level)
        worst = max(alike, key=lambda verdict: SEVERITY.index(verdict.level))
        names = _told_apart([verdict.scores[0] for verdict in alike])
        parts = [Part(name, scores.get(each.scores[0]), each.level) for name, each in zip(names, alike, strict=True)]
        return Card(worst.text, None, worst.level, parts=parts)

    def to_dict(self) -> dict[str, Any]:
        """The result as `result.json`, `--json` and other programs have it."""
        verdicts = [verdict.to_dict() for verdict in self.verdicts()]
        return {**record_of(self, self.instrument, self.scores()), "verdicts": verdicts}

    def save(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result's folder, whole or not at all; only an earlier result of the same question is replaced."""
        store = Store()
        names = [each.name for each in fields(self) if each.name not in HEAD]
        state = {name: store.encode(getattr(self, name), name) for name in names}
        return write_result_folder(
            out,
            head=self.to_dict(),
            section=self.section(),
            origin=self.origin,
            overwrite=overwrite,
            fill=lambda folder: store.write(state, folder),
        )

    @classmethod
    def load(cls, out: str | Path) -> Self:
        """Read a result back from its folder; nothing is computed again."""
        if not hasattr(cls, "instrument"):
            raise UsageError("Load a result by its class, such as OverlapResult.load, or with instruments.load_result.")
        folder = Path(out).parent if Path(out).name == RESULT else Path(out)
        head = read_json(folder / RESULT)
        if head.get("instrument") != cls.instrument:
            raise UsageError(f"{folder}: expected a result of {cls.instrument}, found {head.get('instrument')!r}.")
        store, state = Store.read(folder)
        types = types_of(cls)
        try:
            result = cls(
                settings=cls.settings_class.from_table(head["settings"]),
                parts=head["parts"],
                used=head["used"],
                counts=head["counts"],
                origin=origin_from(head["origin"]),
                **{name: store.decode(types[name], value) for name, value in state.items()},
            )
            scores = {name: Score.from_dict(each) for name, each in head["scores"].items()}
            verdicts = [Verdict(**each) for each in head["verdicts"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            found = " ".join(str(error).split())
            raise UsageError(f"{folder}: expected a whole result, found {type(error).__name__}: {found}.") from error
        result.__dict__["_kept"] = {"scores": scores, "verdicts": verdicts}
        return result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.origin.corpus.partition('@')[0]}: {self.verdict.text}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(in_one_line(score))}</td></tr>"
            for name, score in self.scores().items()
        )
        findings = "".join(f"<p><b>{verdict.level}</b>: {html.escape(verdict.text)}</p>" for verdict in self.verdicts())
        return f"{findings}<table><tr><th>score</th><th>value</th></tr>{rows}</table>"


def documented(table: pa.Table, meanings: Mapping[str, str]) -> pa.Table:
    """A table whose columns say what they mean and in which unit; one without a meaning is refused."""
    import pyarrow as pa

    columns = [each.with_metadata({"meaning": meanings[each.name]}) for each in table.schema]
    return table.cast(pa.schema(columns))


def skipped(*accounts: Mapping[str, int]) -> dict[str, Any]:
    """The account of everything that was not measured, by reason, as `counts` has it."""
    totals: dict[str, int] = {}
    for account in accounts:
        for reason, count in account.items():
            if count:
                totals[reason] = totals.get(reason, 0) + count
    return {"skipped": totals}


def _number_of(verdict: Verdict) -> str:
    """The last part of the path of the number that a verdict is about."""
    return verdict.scores[0].rpartition("/")[2] if verdict.scores else ""


def _told_apart(names: Sequence[str]) -> list[str]:
    """What differs between paths of one number: the subjects, the parts, or both."""
    split = [name.split("/")[:2] for name in names]
    differing = [place for place in (0, 1) if len({each[place] for each in split}) > 1] or [0]
    return [", ".join(each[place] for place in differing) for each in split]
