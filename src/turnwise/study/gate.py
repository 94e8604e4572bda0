"""Thresholds that numbers must keep, for use in CI: a TOML of `[[gate]]` tables, a verdict on each, JUnit XML.

::

    [[gate]]
    instrument = "distract"
    model = "ours"
    set = "random-0.7"
    value = "das_ratio_of_means"
    max = 1.0
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as xml

from turnwise.errors import UsageError
from turnwise.study.book import Step
from turnwise.study.folders import Placed
from turnwise.study.numbers import Number, numbers_of
from turnwise.study.tables import read_table

SHOWN = 5  # paths in a complaint


@dataclass(frozen=True)
class Gate:
    """One number and the least or most it may be; `bound` tests an end of its interval in its place."""

    instrument: str
    value: str  # the last parts of the number's path, joined by dots
    model: str | None = None
    set: str | None = None  # a set, a task, a group: whatever the number is of
    corpus: str | None = None
    min: float | None = None
    max: float | None = None
    bound: Literal["value", "low", "high"] = "value"

    def __post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise UsageError(f"Gate {self.title}: expected min or max, found neither.")

    @property
    def title(self) -> str:
        """In one line."""
        return " · ".join(one for one in (self.instrument, self.corpus, self.model, self.set, self.value) if one)


@dataclass(frozen=True)
class Passage:
    """How a gate was passed, or why not."""

    gate: Gate
    number: float | None
    reason: str = ""  # why there is no number to test

    @property
    def is_open(self) -> bool:
        """Whether the number keeps the threshold; one that is missing does not."""
        if self.number is None:
            return False
        low, high = self.gate.min, self.gate.max
        return (low is None or self.number >= low) and (high is None or self.number <= high)

    @property
    def line(self) -> str:
        """For a log."""
        limits = [f"{word} {value:g}" for word, value in (("min", self.gate.min), ("max", self.gate.max))
                  if value is not None]  # fmt: skip
        bound = "" if self.gate.bound == "value" else f" ({self.gate.bound} end)"
        found = self.reason if self.number is None else f"{self.number:.6g}"
        said = f"{self.gate.title}{bound} = {found}, {', '.join(limits)}"
        return _plain(f"{'passed' if self.is_open else 'FAILED'}: {said}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        gate = {key: value for key, value in vars(self.gate).items() if value is not None}
        return {
            **gate,
            "number": self.number,
            "passed": self.is_open,
            **({"reason": self.reason} if self.reason else {}),
        }


def read_gates(path: str | Path) -> list[Gate]:
    """The gates of a TOML."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: expected a TOML of gates, found {' '.join(str(error).split())}.") from error
    gates = table.get("gate")
    if not isinstance(gates, list) or not gates or table.keys() != {"gate"}:
        raise UsageError(f"{path}: expected [[gate]] tables and nothing else.")
    try:
        return [read_table(Gate, one, f"gate {number}") for number, one in enumerate(gates, 1)]
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def pass_gates(gates: Sequence[Gate], runs: Sequence[Placed], broken: Sequence[Step] = ()) -> list[Passage]:
    """Test every gate on the numbers of runs; a step of a study that failed is a gate that is shut."""
    failed = [Passage(Gate(one.name, "done", min=1), None, f"the step failed ({one.reason})") for one in broken]
    return [*(_passed(gate, runs) for gate in gates), *failed]


def _passed(gate: Gate, runs: Sequence[Placed]) -> Passage:
    asked = [one for one in runs if gate.instrument in (one.run.instrument, one.name)]
    asked = [one for one in asked if gate.corpus is None or one.corpus == gate.corpus]
    if not asked:
        known = ", ".join(dict.fromkeys(f"{one.run.instrument} on {one.corpus}" for one in runs))
        return Passage(gate, None, f"not measured; the runs are {known}")
    numbers = [(one.name, number) for one in asked for number in numbers_of(one.run.data)]
    found = [one for one in numbers if _is_meant(one[1], gate)]
    nearest = min((len(one.path) for _, one in found), default=0)  # a model's own number, not that of a part of it
    found = [one for one in found if len(one[1].path) == nearest]
    if len(found) == 1:
        return _tested(gate, found[0][1])
    if not found:
        near = [one for one in numbers if one[1].path[-1] == gate.value.split(".")[-1]] or numbers
        return Passage(gate, None, f"no such number; there are {_listed(near)}")
    return Passage(gate, None, f"{len(found)} numbers are called so: {_listed(found)}; name model, set or corpus")


def _is_meant(number: Number, gate: Gate) -> bool:
    """Whether a path ends in the value and has the model and the set before it, as whole parts."""
    words = _parts(gate.value, number.path)
    if words is None:
        return False
    rest = list(number.path[: len(number.path) - words])
    return all(one is None or one in rest for one in (gate.model, gate.set))


def _parts(value: str, path: tuple[str, ...]) -> int | None:
    """How many parts at a path's end the value names; parts may have dots of their own, as `0.8` does."""
    for count in range(1, len(path) + 1):
        if ".".join(path[-count:]) == value:
            return count
    return None


def _tested(gate: Gate, number: Number) -> Passage:
    if gate.bound == "value":
        return Passage(gate, number.value)
    if number.interval is None:
        return Passage(gate, None, "it has no interval to take an end of")
    return Passage(gate, number.interval[0 if gate.bound == "low" else 1])


def _listed(numbers: Sequence[tuple[str, Number]]) -> str:
    shown = [f"{'.'.join(one.path)} of {run}" for run, one in numbers[:SHOWN]]
    return "; ".join(shown) + (f"; and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")


def to_junit(passages: Sequence[Passage]) -> str:
    """What CI servers read."""
    failed = sum(not one.is_open for one in passages)
    counts = {"tests": str(len(passages)), "failures": str(failed)}
    suites = xml.Element("testsuites", counts)
    suite = xml.SubElement(suites, "testsuite", {"name": "turnwise gate", **counts})
    for one in passages:
        case = xml.SubElement(
            suite, "testcase", {"classname": _plain(one.gate.instrument), "name": _plain(one.gate.title)}
        )
        if not one.is_open:
            xml.SubElement(case, "failure", {"message": one.line})
    xml.indent(suites)
    return xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Without control characters, which XML cannot hold and terminals obey."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
