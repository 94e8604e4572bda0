"""Thresholds that numbers must keep, for use in CI: a TOML of `[[gate]]` tables, one check for each score, JUnit XML.

::

    [[gate]]
    score = "ratio/test/share_over_0.8"     # * stands for anything but a /
    max = 0.05

    [[gate]]
    instrument = "attention"
    verdict = "good"                        # every verdict has to be good
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

from dialoscope.corpus.text import printable
from dialoscope.errors import UsageError
from dialoscope.instruments import QUESTIONS
from dialoscope.record import Score, path
from dialoscope.report.verdict import Verdict
from dialoscope.settings import BaseSettings, option
from dialoscope.study.page import STATES
from dialoscope.study.plan import read_toml
from dialoscope.study.results import StoredResult
from dialoscope.study.steps import Step

NEAREST = 3  # paths that a complaint names
BOUNDS = ("value", "low", "high")


@dataclass(frozen=True, kw_only=True)
class Gate(BaseSettings):
    """The least or most that scores may be, or the verdicts that must be good."""

    score: str | None = option(None, "Path of the scores; * stands for anything but a /.")
    verdict: str | None = option(None, "What every verdict has to be.", choices=("good",))
    instrument: str | None = option(None, "Only results of this question, or the name of a step.")
    corpus: str | None = option(None, "Only results about this corpus.")
    min: float | None = option(None, "The least that the score may be.")
    max: float | None = option(None, "The most that the score may be.")
    bound: str = option("value", "What is tested: the value, or an end of its interval.", choices=BOUNDS)

    def check(self) -> None:
        """A gate has limits that some number can keep, or tests verdicts."""
        if self.verdict is not None:
            if (self.min, self.max, self.bound) != (None, None, "value"):
                raise UsageError("verdict is tested without min, max and bound.")
        elif self.score is None:
            raise UsageError("takes a score with min or max, or a verdict.")
        elif self.min is None and self.max is None:
            raise UsageError(f"{self.title} takes min or max, found neither.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise UsageError(f"{self.title} takes a min below max, found {self.limits}, which no number can keep.")
        if self.score is not None and self.score.count("/") != 2:
            raise UsageError(f"score takes SUBJECT/PART/NUMBER, found {self.score!r}.")

    @property
    def title(self) -> str:
        """What is tested, in one line."""
        what = self.score or "verdicts"
        named = " · ".join(each for each in (self.instrument, self.corpus, what) if each)
        return named if self.bound == "value" else f"{named} ({self.bound} end)"

    @property
    def limits(self) -> str:
        """What the number must keep."""
        if self.verdict is not None:
            return f"verdict {self.verdict}"
        both = (("min", self.min), ("max", self.max))
        return ", ".join(f"{word} {value:g}" for word, value in both if value is not None)

    def matches(self, path: str) -> bool:
        """Whether a path is meant; * never crosses a /."""
        pattern = "[^/]*".join(map(re.escape, (self.score or "*/*/*").split("*")))
        return re.fullmatch(pattern, path) is not None

    def may_be_of(self, subject: str) -> bool:
        """Whether a score of this model, corpus or system could be meant."""
        part, number = self.score.split("/")[1:] if self.score is not None else ("", "")
        return self.matches(path(subject, part, number))

    def keeps(self, number: float) -> bool:
        """Whether a number keeps the limits."""
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)


@dataclass(frozen=True)
class Check:
    """What a gate found for one score or verdict, or why there was nothing to test."""

    gate: Gate
    title: str  # the gate's, with the path that it matched
    has_passed: bool
    number: float | None = None
    reason: str = ""  # of a failure without a number; the text of a verdict

    @property
    def line(self) -> str:
        """The check in one line, for a log."""
        found = self.reason if self.number is None else f"{self.number:.6g}"
        return printable(f"{'passed' if self.has_passed else 'FAILED'}: {self.title} = {found}, {self.gate.limits}")

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON has it."""
        gate = {key: value for key, value in self.gate.to_dict().items() if value is not None}
        return {**gate, "title": self.title, "number": self.number, "passed": self.has_passed, "reason": self.reason}


def read_gates(path: str | Path) -> list[Gate]:
    """The gates of a TOML."""
    table = read_toml(path, "a TOML of gates", missing="Give its path with --gates.")
    gates = table.get("gate")
    if not isinstance(gates, list) or not gates or table.keys() != {"gate"}:
        raise UsageError(f"{path}: expected [[gate]] tables and nothing else.")
    return [Gate.from_table(gate, f"{path}: gate {number}:") for number, gate in enumerate(gates, 1)]


def check_gates(gates: Sequence[Gate], results: Sequence[StoredResult], missing: Sequence[Step] = ()) -> list[Check]:
    """Test every gate on every score that it matches.

    A gate fails, with the reason, where no score matches, where a score has no value, where one of the steps that are
    not done (`missing`) could hold its score, and where a model that its score could be of was left out of a step that
    is done. A step that failed is a failed check of its own.
    """
    checks = [check for gate in gates for check in _checks(gate, results, missing)]
    failed = [step for step in missing if step.state == "failed"]
    return [*checks, *(_failed_step(step) for step in failed)]


def _failed_step(step: Step) -> Check:
    gate = Gate(verdict="good", instrument=step.name)
    return Check(gate, step.shown_name, has_passed=False, reason=f"the step failed ({step.reason})")


def _checks(gate: Gate, results: Sequence[StoredResult], missing: Sequence[Step]) -> list[Check]:
    """One check for each score or verdict that a gate means, or one that says why there is none."""

    def failed(reason: str) -> list[Check]:
        return [Check(gate, gate.title, has_passed=False, reason=reason)]

    undone = [step for step in missing if _is_meant(gate, step.instrument, step.name, step.corpus)]
    if undone:  # one of them could hold the score
        states = (f"{step.shown_name} is {STATES[step.state]}" + (f" ({step.reason})" if step.reason else "")
                  for step in undone)  # fmt: skip
        return failed("; ".join(states))
    asked = [each for each in results if _is_meant(gate, each.instrument, each.name, each.corpus)]
    if not asked:
        return failed(_why_not_measured(gate, results, missing))
    if unmeasured := _unmeasured(gate, asked, missing):
        return failed("; ".join(unmeasured))
    if gate.verdict is not None:
        verdicts = [(each, verdict) for each in asked for verdict in each.verdicts if _is_about(gate, verdict)]
        return [_of_verdict(gate, *found) for found in verdicts] or failed("there is no such verdict")
    scores = [(each, path, score) for each in asked for path, score in each.scores.items() if gate.matches(path)]
    if not scores:
        paths = list(dict.fromkeys(path for each in asked for path in each.scores))
        near = get_close_matches(gate.score or "", paths, n=NEAREST, cutoff=0)
        listed = f"the nearest are {', '.join(near)}" if near else "the results have none"
        return failed(f"no such score; {listed}")
    is_alone = len({each.name for each, _, _ in scores}) == 1
    return [_of_score(gate, each, path, score, is_alone=is_alone) for each, path, score in scores]


def _is_meant(gate: Gate, instrument: str, name: str, corpus: str) -> bool:
    if instrument in ("corpus", "compare", "model") and gate.instrument not in (instrument, name):
        return False
    return gate.instrument in (None, instrument, name) and gate.corpus in (None, corpus)


def _unmeasured(gate: Gate, asked: Sequence[StoredResult], missing: Sequence[Step]) -> list[str]:
    """Why models that a score could be of have none, for each model that was left out of a step that is done."""
    models = {step.name: step for step in missing if step.instrument == "model"}
    found = []
    for each in asked:
        for name in each.step.left_out:
            step = models.get(f"model {name}")
            state = "was left out" if step is None else f"is {STATES[step.state]} ({step.reason})"
            if gate.may_be_of(name):
                found.append(f"{each.step.shown_name} was measured without {name}: the model {state}")
    return found


def _is_about(gate: Gate, verdict: Verdict) -> bool:
    return gate.score is None or any(gate.matches(path) for path in verdict.scores)


def _of_verdict(gate: Gate, result: StoredResult, verdict: Verdict) -> Check:
    title = f"{result.name} · {verdict.scores[0] if verdict.scores else 'verdict'}"
    reason = f"{verdict.level.replace('_', ' ')}: {verdict.text.rstrip('.')}"
    return Check(gate, title, has_passed=verdict.level == gate.verdict, reason=reason)


def _of_score(gate: Gate, result: StoredResult, path: str, score: Score, *, is_alone: bool) -> Check:
    """The check of one score; a score without a value, or without the end that is asked for, fails."""
    title = gate.title.replace(gate.score or "", path)
    title = title if is_alone or gate.instrument == result.name else f"{result.name} · {title}"
    if score.value is None:
        return Check(gate, title, has_passed=False, reason=f"there is no number ({score.reason})")
    if gate.bound == "value":
        return Check(gate, title, gate.keeps(score.value), score.value)
    if score.interval is None:
        why = f" ({score.interval_reason})" if score.interval_reason else ""
        return Check(gate, title, has_passed=False, reason=f"there is no interval to take the {gate.bound} end of{why}")
    end = score.interval[0 if gate.bound == "low" else 1]
    return Check(gate, title, gate.keeps(end), end)


def _why_not_measured(gate: Gate, results: Sequence[StoredResult], missing: Sequence[Step]) -> str:
    """Why no result can hold the score: the name is misspelt, or nobody measured it."""
    names = [*QUESTIONS, *(name for each in results for name in (each.instrument, each.name)),
             *(step.name for step in missing)]  # fmt: skip
    near = get_close_matches(gate.instrument or "", names, n=1) if gate.instrument not in names else []
    hint = f" (did you mean {near[0]}?)" if near else ""
    known = ", ".join(dict.fromkeys(f"{each.instrument} on {each.corpus}" for each in results))
    return f"not measured{hint}; {f'the results are {known}' if known else 'no result is done'}"


def to_junit(checks: Sequence[Check]) -> str:
    """The checks as CI servers read them."""
    counts = {"tests": str(len(checks)), "failures": str(sum(not check.has_passed for check in checks))}
    suites = xml.Element("testsuites", counts)
    suite = xml.SubElement(suites, "testsuite", {"name": "dialoscope gate", **counts})
    for check in checks:
        # CI servers tell cases apart by name alone: one score may have two gates.
        name = printable(f"{check.title}, {check.gate.limits}")
        case = xml.SubElement(
            suite, "testcase", {"classname": printable(check.gate.instrument or "gate"), "name": name}
        )
        if not check.has_passed:
            xml.SubElement(case, "failure", {"message": check.line})
    xml.indent(suites)
    return xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
