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

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as xml

from dialoscope.corpus.text import printable
from dialoscope.errors import UsageError
from dialoscope.instruments import INSTRUMENTS
from dialoscope.study.book import Step
from dialoscope.study.folders import Placed
from dialoscope.study.numbers import Number, model_place, numbers_of
from dialoscope.study.tables import read_table

SHOWN, LIKE = 5, 3  # paths in a complaint, and those of which one may be meant
SAID = {"failed": "failed", "skipped": "left out", "pending": "not yet run"}  # of steps that are not done


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
        given = [one for one in (self.min, self.max) if one is not None]
        if not given:
            raise UsageError(f"Gate {self.title}: expected min or max, found neither.")
        if not all(map(math.isfinite, given)):
            raise UsageError(f"Gate {self.title}: expected finite numbers for min and max, found {self.limits}.")
        if given[0] > given[-1]:
            raise UsageError(
                f"Gate {self.title}: expected min below max, found {self.limits}, which no number can keep."
            )

    @property
    def title(self) -> str:
        """What is tested, in one line: the number, and the end of its interval where that is asked for."""
        named = " · ".join(one for one in (self.instrument, self.corpus, self.model, self.set, self.value) if one)
        return named if self.bound == "value" else f"{named} ({self.bound} end)"

    @property
    def limits(self) -> str:
        """What the number must keep."""
        both = (("min", self.min), ("max", self.max))
        return ", ".join(f"{word} {value:g}" for word, value in both if value is not None)


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
        found = self.reason if self.number is None else f"{self.number:.6g}"
        said = f"{self.gate.title} = {found}, {self.gate.limits}"
        return printable(f"{'passed' if self.is_open else 'FAILED'}: {said}")

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
    except FileNotFoundError as error:
        told = "expected a TOML of gates, found no such file. Give its path by --gates."
        raise UsageError(f"{path}: {told}") from error
    except OSError as error:
        raise UsageError(f"{path}: expected a TOML of gates, found: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: expected a TOML of gates, found {' '.join(str(error).split())}.") from error
    gates = table.get("gate")
    if not isinstance(gates, list) or not gates or table.keys() != {"gate"}:
        raise UsageError(f"{path}: expected [[gate]] tables and nothing else.")
    try:
        return [read_table(Gate, one, f"gate {number}") for number, one in enumerate(gates, 1)]
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def pass_gates(gates: Sequence[Gate], runs: Sequence[Placed], missing: Sequence[Step] = ()) -> list[Passage]:
    """Test every gate on the numbers of runs.

    `missing` are steps of studies that are not done (see `folders.missing_steps`): a gate whose number one of them
    could hold is shut, and one that failed is a gate that is shut itself.
    """
    failed = [one for one in missing if one.state == "failed"]
    shut = [Passage(Gate(one.name, "done", min=1), None, f"the step failed ({one.reason})") for one in failed]
    return [*(_passed(gate, runs, missing) for gate in gates), *shut]


def _passed(gate: Gate, runs: Sequence[Placed], missing: Sequence[Step]) -> Passage:
    undone = [one for one in missing if _is_asked(gate, (one.instrument, one.name), one.corpus)]
    if undone:  # with its number there might be two, or another one
        return Passage(gate, None, "; ".join(_state(one) for one in undone))
    asked = [one for one in runs if _is_asked(gate, (one.run.instrument, one.name), one.corpus)]
    if not asked:
        return Passage(gate, None, _unmeasured(gate, runs, missing))
    found = [(run, number) for run in asked for number in _nearest(gate, run)]
    if len(found) == 1:
        return _tested(gate, *found[0])
    if not found:
        numbers = [(run, one) for run in asked for one in numbers_of(run.run.data) if one.value is not None]
        near = sorted(numbers, key=lambda one: -_likeness(gate, one[1]))[:LIKE]
        return Passage(
            gate, None, f"no such number; {f'the nearest are {_listed(near)}' if near else 'the run has none'}"
        )
    return Passage(gate, None, f"{len(found)} numbers are called so: {_listed(found)}; name model, set or corpus")


def _unmeasured(gate: Gate, runs: Sequence[Placed], missing: Sequence[Step]) -> str:
    """Why no run can hold the number: its name is a slip, or nobody measured it."""
    names = [
        *INSTRUMENTS,
        *(one for run in runs for one in (run.run.instrument, run.name)),
        *(one.name for one in missing),
    ]
    near = [] if gate.instrument in names else get_close_matches(gate.instrument, names, n=1)
    slip = f" (did you mean {near[0]}?)" if near else ""
    known = ", ".join(dict.fromkeys(f"{one.run.instrument} on {one.corpus}" for one in runs))
    return f"not measured{slip}; {f'the runs are {known}' if known else 'no run is done'}"


def _is_asked(gate: Gate, names: tuple[str, str], corpus: str) -> bool:
    return gate.instrument in names and gate.corpus in (None, corpus)


def _state(step: Step) -> str:
    return f"{step.name} is {SAID[step.state]}" + (f" ({step.reason})" if step.reason else "")


def _nearest(gate: Gate, run: Placed) -> list[Number]:
    """The numbers of a run that are meant: a model's own number, not that of a part of it."""
    meant = [one for one in numbers_of(run.run.data) if _is_meant(one, gate)]
    nearest = min((len(one.path) for one in meant), default=0)
    return [one for one in meant if len(one.path) == nearest]


def _is_meant(number: Number, gate: Gate) -> bool:
    """Whether a path ends in the value and has the model and the set before it, as whole parts."""
    words = _parts(gate.value, number.path)
    if words is None:
        return False
    rest = number.path[: len(number.path) - words]
    place = model_place(rest)
    is_models = gate.model is None or (place is not None and rest[place : place + 1] == (gate.model,))
    others = [part for number, part in enumerate(rest) if number != place]
    return is_models and (gate.set is None or gate.set in others)


def _parts(value: str, path: tuple[str, ...]) -> int | None:
    """How many parts at a path's end the value names; parts may have dots of their own, as `0.8` does."""
    for count in range(1, len(path) + 1):
        if ".".join(path[-count:]) == value:
            return count
    return None


def _likeness(gate: Gate, number: Number) -> float:
    """How near a number's names are to those that a gate gives, for complaints."""
    path, place = number.path, model_place(number.path)
    ends = [".".join(path[at:]) for at in range(len(path))]
    models = [] if place is None else path[place : place + 1]
    asked = ((gate.value, ends), (gate.model, models), (gate.set, path))
    return sum(max((_ratio(word, one) for one in known), default=0.0) for word, known in asked if word is not None)


def _ratio(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _tested(gate: Gate, run: Placed, number: Number) -> Passage:
    unmeasured = run.run.data.get("skipped") or {}  # tasks of probes
    if gate.set is None and "tasks" in number.path and unmeasured:
        name, why = next(iter(unmeasured.items()))
        return Passage(gate, None, f"{name} was not measured ({why}), and is called so too; name set")
    if number.value is None:
        why = f" ({number.reason})" if number.reason else ""
        return Passage(gate, None, f"it could not be computed{why}")
    if gate.bound == "value":
        return Passage(gate, number.value)
    if number.interval is None:
        name = ".".join(number.path)
        return Passage(gate, None, f"{name} has no interval to take the {gate.bound} end of; leave out bound")
    return Passage(gate, number.interval[0 if gate.bound == "low" else 1])


def _listed(numbers: Sequence[tuple[Placed, Number]]) -> str:
    shown = [f"{'.'.join(one.path)} of {run.name}" for run, one in numbers[:SHOWN]]
    return "; ".join(shown) + (f"; and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")


def to_junit(passages: Sequence[Passage]) -> str:
    """What CI servers read."""
    failed = sum(not one.is_open for one in passages)
    counts = {"tests": str(len(passages)), "failures": str(failed)}
    suites = xml.Element("testsuites", counts)
    suite = xml.SubElement(suites, "testsuite", {"name": "dialoscope gate", **counts})
    for one in passages:
        # CI servers tell cases apart by name alone: one number may have two gates.
        name = printable(f"{one.gate.title}, {one.gate.limits}")
        case = xml.SubElement(suite, "testcase", {"classname": printable(one.gate.instrument), "name": name})
        if not one.is_open:
            xml.SubElement(case, "failure", {"message": one.line})
    xml.indent(suites)
    return xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
