from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dialoscope.errors import UsageError
from dialoscope.record import Score
from dialoscope.study.gate import Gate, check_gates, read_gates, to_junit
from dialoscope.study.page import STATES
from dialoscope.study.results import StoredResult
from dialoscope.study.steps import State, Step

ATTENTION = {
    "org_ours/original/perplexity": Score(20.0, 9, (18.0, 22.0)),
    "org_ours/random-0.5/das_ratio": Score(0.9, 40, (0.8, 1.05)),
    "org_ours/random-0.7/das_ratio": Score(1.1, 40, (1.0, 1.2)),
    "base/random-0.5/das_ratio": Score(1.3, 40, interval_reason="one dialogue"),
    "base/random-0.7/das_ratio": Score.missing("no context has a History"),
}
OVERLAP = {
    "ratio/test/identical_share": Score(0.1, 9, (0.05, 0.2)),
    "ratio/test/share_over_0.5": Score(0.8, 9),
    "ratio/test/share_over_0.8": Score(0.2, 9),
}
GOOD = {"level": "good", "text": "All is well.", "scores": ["ratio/test/share_over_0.8"], "against": None}


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., StoredResult]:
    def store(
        instrument: str, scores: dict[str, Score], corpus: str = "chats", verdicts: list[dict[str, Any]] | None = None
    ) -> StoredResult:
        name = f"{instrument}-{corpus}"
        (tmp_path / name).mkdir(parents=True)
        head = {
            "schema_version": 2, "instrument": instrument, "verdicts": verdicts or [],
            "origin": {"corpus": f"{corpus}@1", "settings": {}, "seed": 0, "version": "1"},
            "scores": {path: score.to_dict() for path, score in scores.items()},
        }  # fmt: skip
        (tmp_path / name / "result.json").write_text(json.dumps(head))
        return StoredResult(Step(name, instrument, corpus, "done", asked=instrument), name, tmp_path / name)

    return store


@pytest.fixture
def results(stored: Callable[..., StoredResult]) -> list[StoredResult]:
    return [stored("attention", ATTENTION), stored("overlap", OVERLAP)]


def outcome(results: list[StoredResult], **gate: Any) -> list[tuple[bool, float | None]]:
    return [(check.has_passed, check.number) for check in check_gates([Gate(**gate)], results)]


@pytest.mark.parametrize(
    ("gate", "found"),
    [
        ({"score": "ratio/test/share_over_0.8", "max": 0.2}, [(True, 0.2)]),
        ({"score": "ratio/test/share_over_0.8", "max": 0.19}, [(False, 0.2)]),
        (
            {"score": "ratio/test/identical_share", "instrument": "overlap-chats", "min": 0.05, "max": 0.2},
            [(True, 0.1)],
        ),
        ({"score": "org_ours/random-0.7/das_ratio", "max": 1}, [(False, 1.1)]),
        ({"score": "org_ours/random-0.5/das_ratio", "max": 1}, [(True, 0.9)]),
        ({"score": "org_ours/random-0.5/das_ratio", "max": 1, "bound": "high"}, [(False, 1.05)]),
        ({"score": "org_ours/random-0.5/das_ratio", "min": 0.8, "bound": "low"}, [(True, 0.8)]),
        ({"score": "org_ours/*/das_ratio", "max": 1}, [(True, 0.9), (False, 1.1)]),
        ({"score": "*/random-*/das_ratio", "max": 1}, [(True, 0.9), (False, 1.1), (False, 1.3), (False, None)]),
        ({"score": "ratio/test/share_over_*", "max": 1}, [(True, 0.8), (True, 0.2)]),
        ({"score": "ratio/*/*", "max": 1, "corpus": "chats"}, [(True, 0.1), (True, 0.8), (True, 0.2)]),
    ],
)
def test_a_gate_tests_every_score_that_it_matches(
    results: list[StoredResult], gate: dict[str, Any], found: list[tuple[bool, float | None]]
) -> None:
    assert outcome(results, **gate) == found


@pytest.mark.parametrize("glob", ["ratio*/share_over_0.8/*", "*/*/share", "ratio/tes/share_over_0.8", "o/*/das_ratio"])
def test_a_star_never_crosses_a_slash_and_matches_whole_parts(results: list[StoredResult], glob: str) -> None:
    assert outcome(results, score=glob, min=0) == [(False, None)]


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ({"score": "base/random-0.7/das_ratio", "max": 9}, "there is no number (no context has a History)"),
        (
            {"score": "base/random-0.5/das_ratio", "max": 9, "bound": "high"},
            "there is no interval to take the high end of (one dialogue)",
        ),
        ({"score": "m/A/f1", "instrument": "probe", "min": 0}, "not measured; the results are attention on chats"),
        ({"score": "ratio/test/share_over_0.8", "corpus": "other", "min": 0}, "not measured"),
        (
            {"score": "ratio/test/share_over_0.8", "instrument": "overlpa", "min": 0},
            "not measured (did you mean overlap?); the results are",
        ),
        (
            {"score": "ratio/tset/share_over_0.8", "min": 0},
            "no such score; the nearest are ratio/test/share_over_0.8",
        ),
        (
            {"score": "org_ours/random-0.8/das_ratio", "min": 0},
            "no such score; the nearest are org_ours/random-0.",
        ),
    ],
)
def test_a_score_that_is_null_missing_or_not_matched_fails_with_the_reason(
    results: list[StoredResult], gate: dict[str, Any], reason: str
) -> None:
    (check,) = check_gates([Gate(**gate)], results)
    assert (check.has_passed, check.number) == (False, None)
    assert check.reason.startswith(reason)


@pytest.mark.parametrize(
    ("level", "has_passed"), [("good", True), ("concern", False), ("cannot_tell", False), ("not_measurable", False)]
)
def test_a_gate_on_verdicts_passes_only_where_they_are_good(
    stored: Callable[..., StoredResult], level: str, has_passed: bool
) -> None:
    results = [stored("overlap", OVERLAP, verdicts=[{**GOOD, "level": level}])]
    (check,) = check_gates([Gate(verdict="good", instrument="overlap")], results)
    assert check.has_passed is has_passed
    assert check.reason == f"{level.replace('_', ' ')}: All is well"
    (about,) = check_gates([Gate(verdict="good", score="ratio/test/*")], results)
    assert about.has_passed is has_passed
    (none,) = check_gates([Gate(verdict="good", score="ratio/train/*")], results)
    assert (none.has_passed, none.reason) == (False, "there is no such verdict")


@pytest.mark.parametrize("state", ["failed", "skipped", "pending"])
def test_a_step_that_is_not_done_fails_the_gates_it_could_hold_the_score_of(
    stored: Callable[..., StoredResult], state: State
) -> None:
    step = Step("overlap-mail", "overlap", "mail", state, reason="no extra", asked="overlap")
    score = "ratio/test/share_over_0.8"
    gates = [Gate(score=score, corpus=name, max=1) for name in (None, "mail", "chats")]
    results = [stored("overlap", OVERLAP), stored("overlap", OVERLAP, "mail")]  # one of an earlier plan
    found = check_gates([*gates, Gate(score=score, instrument="overlap-mail", max=1)], results, [step])
    assert [check.has_passed for check in found][:4] == [False, False, True, False]
    assert "overlap-mail" in found[0].reason
    assert len(found) == (5 if state == "failed" else 4)


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_a_model_that_was_left_out_of_a_step_fails_the_gates_that_mean_it(
    results: list[StoredResult], state: State
) -> None:
    attention, overlap = results
    attention = replace(attention, step=replace(attention.step, left_out=("org/more",)))
    model = Step("model org/more", "model", "", state, reason="no extra")
    gates = [
        Gate(score="*/random-0.5/das_ratio", max=9), Gate(score="org_*/random-0.5/das_ratio", max=9),
        Gate(score="base/random-0.5/das_ratio", max=9), Gate(score="org_ours/*/das_ratio", instrument="overlap", max=9),
        Gate(verdict="good", instrument="attention"), Gate(score="ratio/test/share_over_0.8", max=1),
        Gate(score="org_more/random-*/das_ratio", instrument="attention-chats", max=9),
    ]  # fmt: skip
    found = [next(check.reason for check in check_gates([gate], [attention, overlap], [model])) for gate in gates]
    said = f"attention-chats was measured without org/more: the model is {STATES[state]} (no extra)"
    assert [reason == said for reason in found] == [True, True, False, False, True, False, True]
    (check,) = check_gates([gates[0]], [attention, overlap])
    assert (check.has_passed, check.reason) == (False, said.partition(" is ")[0] + " was left out")


def test_scores_of_several_results_are_told_apart(stored: Callable[..., StoredResult]) -> None:
    results = [stored("overlap", OVERLAP), stored("overlap", OVERLAP, "mail")]
    found = check_gates([Gate(score="ratio/test/share_over_0.8", max=0.1)], results)
    assert [check.title.partition(" · ")[0] for check in found] == ["overlap-chats", "overlap-mail"]


def test_gates_are_read_and_their_mistakes_told(file: Callable[[str, str], Path]) -> None:
    path = file("gates.toml", '[[gate]]\nscore = "ratio/test/share_over_0.8"\nmax = 1\n')
    assert read_gates(path) == [Gate(score="ratio/test/share_over_0.8", max=1)]
    for text, told in [
        ("", "expected [[gate]] tables and nothing else"),
        ("x = 1", "expected [[gate]] tables and nothing else"),
        ("[[gate]", "expected a TOML of gates"),
        ('[[gate]]\nscore = "a/b/c"', "a/b/c takes min or max, found neither"),
        ('[[gate]]\nscore = "a/b/c"\nmaks = 1', "Did you mean 'max'?"),
        ("[[gate]]\nmax = 1", "gate 1: takes a score with min or max, or a verdict"),
        ('[[gate]]\nscore = "a/b"\nmax = 1', "score takes SUBJECT/PART/NUMBER, found 'a/b'"),
        ('[[gate]]\nverdict = "concern"', "verdict is one of good; found 'concern'"),
        ('[[gate]]\nverdict = "good"\nmax = 1', "verdict is tested without min, max and bound"),
        ('[[gate]]\nscore = "a/b/c"\nmin = 0.9\nmax = 0.1', "a min below max, found min 0.9, max 0.1"),
        ('[[gate]]\nscore = "a/b/c"\nmax = nan', "max takes a number, found nan"),
        ('[[gate]]\nscore = "a/b/c"\nmin = -inf', "min takes a number, found -inf"),
        ('[[gate]]\nscore = "a/b/c"\nmax = 1\nbound = "top"', "bound is one of value, low, high; found 'top'"),
    ]:
        with pytest.raises(UsageError) as caught:
            read_gates(file("gates.toml", text))
        assert told in str(caught.value)


def test_gates_that_are_not_there_are_told_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    with pytest.raises(UsageError) as caught:
        read_gates(path)
    assert str(caught.value) == f"{path}: expected a TOML of gates, found no such file. Give its path with --gates."
    with pytest.raises(UsageError, match=r"expected a TOML of gates, found: Is a directory\.$"):
        read_gates(tmp_path)


def test_junit_counts_failures_and_escapes_names(stored: Callable[..., StoredResult]) -> None:
    results = [stored("overlap", {"<b>&\x07/b/share_over_1": Score(1.0, 3)})]
    gates = [Gate(score="<b>&\x07/b/share_over_1", max=limit) for limit in (0.5, 2)]
    root = ElementTree.fromstring(to_junit(check_gates(gates, results)))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    named = "<b>&\N{REPLACEMENT CHARACTER}/b/share_over_1"
    assert [case.get("name") for case in cases] == [f"{named}, max 0.5", f"{named}, max 2"]
    assert [len(case.findall("failure")) for case in cases] == [1, 0]


def test_gates_on_one_score_have_names_of_their_own(results: list[StoredResult]) -> None:
    options: list[dict[str, Any]] = [{"min": 0}, {"max": 1}, {"max": 1, "bound": "high"}, {"min": 0, "max": 1}]
    gates = [Gate(score="org_ours/random-0.5/das_ratio", **more) for more in options]
    root = ElementTree.fromstring(to_junit(check_gates(gates, results)))
    named = "org_ours/random-0.5/das_ratio"
    assert [case.get("name") for case in root.iter("testcase")] == [
        f"{named}, min 0", f"{named}, max 1", f"{named} (high end), max 1", f"{named}, min 0, max 1",
    ]  # fmt: skip


def test_where_nothing_was_done_gates_fail_all_the_same() -> None:
    step = Step("overlap-chats", "overlap", "chats", "failed", reason="no file", asked="overlap")
    gates = [
        Gate(score="ratio/test/mean_ratio", max=1), Gate(score="m/A/f1", instrument="probe", min=0),
        Gate(score="ratio/test/mean_ratio", instrument="overlap-chat", max=1),
    ]  # fmt: skip
    assert [check.line for check in check_gates(gates, [], [step])] == [
        "FAILED: ratio/test/mean_ratio = overlap-chats is failed (no file), max 1",
        "FAILED: probe · m/A/f1 = not measured; no result is done, min 0",
        "FAILED: overlap-chat · ratio/test/mean_ratio = not measured (did you mean overlap-chats?); no result is done, "
        "max 1",
        "FAILED: overlap-chats = the step failed (no file), verdict good",
    ]


def test_a_step_that_failed_is_a_gate_that_fails(results: list[StoredResult]) -> None:
    step = Step("attention-chats", "attention", "chats", "failed", reason="no model", asked="attention")
    (check,) = check_gates([], results, [step])
    assert (check.has_passed, check.reason) == (False, "the step failed (no model)")


def test_a_name_cannot_write_a_line_of_its_own(results: list[StoredResult]) -> None:
    (check,) = check_gates([Gate(score="a/b/x\npassed: all", max=1)], results)
    assert "\n" not in check.line
