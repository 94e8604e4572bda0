from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dialoscope.errors import UsageError
from dialoscope.record import Origin
from dialoscope.report import Run, Section
from dialoscope.study import Gate, Placed, Step, pass_gates, read_gates, to_junit
from dialoscope.study.book import State
from dialoscope.study.numbers import Number, numbers_of

DISTRACT = {
    "models": {
        "org/ours": {
            "original": {"perplexity": 20.0, "intervals": {"perplexity": [18.0, 22.0]}},
            "sets": {
                "random-0.5": {"das_ratio": 0.9, "intervals": {"das_ratio": [0.8, 1.05]}, "samples": 40},
                "random-0.7": {"das_ratio": 1.1, "intervals": {"das_ratio": [1.0, 1.2]}, "samples": 40},
            },
        },
        "base": {"original": {"perplexity": 30.0}, "sets": {"random-0.5": {"das_ratio": 1.3}}},
    },
}
ENGAGE = {
    "models": {
        "m": {
            "spearman": {"value": 0.5, "n": 9, "interval": [0.4, 0.6]},
            "ends": {"1": {"spearman": {"value": 0.7, "n": 4, "interval": None}}},
        }
    }
}
OVERLAP = {"identical_share": 0.1, "share_over": {"0.5": 0.8, "0.8": 0.2}, "counts": [1, 2], "is_within": False}


def placed(instrument: str, data: dict[str, Any], corpus: str = "chats") -> Placed:
    section = Section(instrument, instrument, "?", [])
    return Placed(f"{instrument}-{corpus}", corpus, Path(), Run(instrument, data, section, Origin()))


OURS = {"instrument": "distract", "model": "org/ours"}
RUNS = [placed("distract", DISTRACT), placed("engage", ENGAGE), placed("overlap", OVERLAP)]


def one(**gate: Any) -> tuple[bool, float | None, str]:
    (found,) = pass_gates([Gate(**gate)], RUNS)
    return found.is_open, found.number, found.reason


def test_numbers_carry_their_path_and_their_interval() -> None:
    assert list(numbers_of(OVERLAP)) == [
        Number(("identical_share",), 0.1), Number(("share_over", "0.5"), 0.8), Number(("share_over", "0.8"), 0.2),
    ]  # fmt: skip
    assert next(numbers_of({"f1": 0.5, "interval": [0.4, 0.6], "n": 7})) == Number(("f1",), 0.5, (0.4, 0.6), 7)
    missing = {"a": {"value": None, "n": 0, "interval": None, "reason": "none"}, "b": None, "reasons": {"b": "few"}}
    assert list(numbers_of(missing)) == [Number(("a",), None, n=0, reason="none"), Number(("b",), None, reason="few")]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (
            {"attention_missing": 3, "das_ratio": 0.9, "interval": [0.8, 1.0]},
            [Number(("attention_missing",), 3.0), Number(("das_ratio",), 0.9, (0.8, 1.0))],
        ),
        ({"count": 3, "interval": [0.8, 1.0]}, [Number(("count",), 3.0)]),
        (
            {"groups": {"easy": 0.5, "hard": None}, "group_intervals": {"easy": [0.4, 0.6], "hard": None}},
            [Number(("groups", "easy"), 0.5, (0.4, 0.6)), Number(("groups", "hard"), None)],
        ),
        (
            {"f1": 0.5, "interval": None, "controls": {"random": 0.1}, "control_intervals": {"random": [0, 1]}, "n": 7},
            [Number(("f1",), 0.5, n=7), Number(("controls", "random"), 0.1, (0.0, 1.0), 7), Number(("n",), 7.0, n=7)],
        ),
        (
            {"share_over": {"0.8": 0.2}, "share_over_intervals": {"0.8": [0.1, 0.3]}, "n_test": 9},
            [Number(("share_over", "0.8"), 0.2, (0.1, 0.3), 9), Number(("n_test",), 9.0, n=9)],
        ),
        (  # perplexity is over contexts that the ratio leaves out
            {"das_ratio": 0.9, "perplexity": 20.0, "cut": 1, "counts": {"das_ratio": 38, "perplexity": 41}},
            [Number(("das_ratio",), 0.9, n=38), Number(("perplexity",), 20.0, n=41), Number(("cut",), 1.0)],
        ),
        (
            {"tasks": {"A": {"f1": 0.5, "n": 12}}, "groups": {"easy": 0.5}, "features": 8},
            [
                Number(("tasks", "A", "f1"), 0.5, n=12),
                Number(("tasks", "A", "n"), 12.0, n=12),
                Number(("groups", "easy"), 0.5, n=12),
                Number(("features",), 8.0),
            ],
        ),
        (
            {"n": {"clean": 7}, "threshold": 0.8},
            [Number(("n", "clean"), 7.0), Number(("threshold",), 0.8)],
        ),
    ],
)
def test_an_interval_and_a_count_belong_to_their_own_number(data: dict[str, Any], found: list[Number]) -> None:
    assert list(numbers_of(data)) == found


def test_a_number_that_is_missing_is_not_replaced_by_another() -> None:
    sets = {"random-0.5": {"das_ratio": 0.9}, "random-0.7": {"das_ratio": None}}
    own = {"spearman": {"value": None, "n": 1, "reason": "one turn"}, "first_and_last": ENGAGE["models"]["m"]["ends"]}
    runs = [placed("distract", {"models": {"ours": {"sets": sets}}}), placed("engage", {"models": {"m": own}})]
    gates = [
        Gate("distract", "das_ratio", model="ours", max=1),
        Gate("distract", "das_ratio", model="ours", set="random-0.7", max=1),
        Gate("engage", "spearman", model="m", min=0),
    ]
    found = pass_gates(gates, runs)
    assert [one.is_open for one in found] == [False] * 3
    assert [one.reason.partition(":")[0] for one in found] == [
        "2 numbers are called so", "it could not be computed", "it could not be computed (one turn)",
    ]  # fmt: skip


def test_a_task_that_could_not_be_measured_is_not_replaced_by_another() -> None:
    data = {"models": {"m": {"tasks": {"A": {"f1": 0.9}}}}, "skipped": {"B": "no labels"}}
    (found, named) = pass_gates(
        [Gate("probe", "f1", min=0), Gate("probe", "f1", set="A", min=0)], [placed("probe", data)]
    )
    assert (found.is_open, found.reason) == (False, "B was not measured (no labels), and is called so too; name set")
    assert named.is_open


@pytest.mark.parametrize("state", ["failed", "skipped", "pending"])
def test_a_step_that_is_not_done_shuts_the_gates_it_could_hold_the_number_of(state: State) -> None:
    step = Step("overlap-mail", "overlap", "mail", state, reason="no extra")
    gates = [Gate("overlap", "mean", corpus=name, max=1) for name in (None, "mail", "chats")]
    runs = [placed("overlap", {"mean": 0.5}), placed("overlap", {"mean": 0.1}, "mail")]  # one of an earlier plan
    found = pass_gates([*gates, Gate("overlap-mail", "mean", max=1)], runs, [step])
    assert [one.is_open for one in found][:4] == [False, False, True, False]
    assert "overlap-mail" in found[0].reason
    assert len(found) == (5 if state == "failed" else 4)


def test_a_gate_on_nothing_but_steps_that_are_not_done_says_so() -> None:
    (found,) = pass_gates(
        [Gate("engage", "mse", max=1)], RUNS[:1], [Step("engage-chats", "engage", "chats", "pending")]
    )
    assert found.reason == "engage-chats is not yet run"


@pytest.mark.parametrize("model", ["sets", "random-0.5", "models"])
def test_a_model_is_a_name_under_models(model: str) -> None:
    assert one(instrument="distract", model=model, set="random-0.7", value="das_ratio", max=9)[:2] == (False, None)


def test_models_held_against_people_are_named_too() -> None:
    data = {"sets": {"rated": {"models": {"ours": {"spearman": 0.5}}, "baselines": {"random": {"spearman": 0.9}}}}}
    found = pass_gates([Gate("engage", "spearman", model=name, min=0) for name in ("ours", "random")],
                       [placed("engage", data)])  # fmt: skip
    assert [each.number for each in found] == [0.5, None]


def test_two_runs_with_a_number_of_one_name_are_told_apart_however_deep_it_lies() -> None:
    runs = [placed("engage", ENGAGE), placed("engage", {"sets": {"rated": ENGAGE}}, "mail")]
    (found,) = pass_gates([Gate("engage", "spearman", model="m", min=0)], runs)
    assert found.reason.startswith("2 numbers are called so")


@pytest.mark.parametrize(
    ("gate", "found"),
    [
        ({"instrument": "overlap", "value": "share_over.0.8", "max": 0.2}, (True, 0.2)),
        ({"instrument": "overlap", "value": "0.8", "max": 0.19}, (False, 0.2)),
        ({"instrument": "overlap-chats", "value": "identical_share", "min": 0.05, "max": 0.2}, (True, 0.1)),
        ({"instrument": "distract", "model": "base", "value": "perplexity", "max": 29}, (False, 30.0)),
        ({**OURS, "set": "random-0.7", "value": "das_ratio", "max": 1}, (False, 1.1)),
        ({**OURS, "set": "random-0.5", "value": "das_ratio", "max": 1}, (True, 0.9)),
        ({**OURS, "set": "random-0.5", "value": "das_ratio", "max": 1, "bound": "high"}, (False, 1.05)),
        ({"instrument": "engage", "model": "m", "value": "spearman", "min": 0.4, "bound": "low"}, (True, 0.4)),
        ({"instrument": "engage", "model": "m", "set": "1", "value": "spearman", "min": 0.4}, (True, 0.7)),
    ],
)
def test_a_gate_tests_the_number_it_names(gate: dict[str, Any], found: tuple[bool, float]) -> None:
    assert one(**gate)[:2] == found


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ({"instrument": "probe", "value": "f1", "min": 0}, "not measured; the runs are distract on chats"),
        ({"instrument": "overlap", "corpus": "other", "value": "0.8", "min": 0}, "not measured"),
        ({"instrument": "overlpa", "value": "0.8", "min": 0}, "not measured (did you mean overlap?); the runs are"),
        ({"instrument": "overlap", "value": "share_ovr.0.8", "min": 0},
         "no such number; the nearest are share_over.0.8 of overlap-chats"),
        ({"instrument": "overlap", "value": "0.81", "min": 0}, "no such number; the nearest are share_over.0.8"),
        ({**OURS, "set": "random-0.8", "value": "das_ratio", "min": 0},
         "no such number; the nearest are models.org/ours.sets.random-0.5.das_ratio of distract-chats; "
         "models.org/ours.sets.random-0.7.das_ratio"),
        ({"instrument": "distract", "model": "bass", "value": "perplexity", "min": 0},
         "no such number; the nearest are models.base.original.perplexity"),
        ({"instrument": "distract", "set": "random-0.5", "value": "das_ratio", "min": 0}, "2 numbers are called so"),
        ({"instrument": "overlap", "value": "0.8", "min": 0, "bound": "low"},
         "share_over.0.8 has no interval to take the low end of; leave out bound"),
    ],
)  # fmt: skip
def test_a_number_that_is_not_there_does_not_pass(gate: dict[str, Any], reason: str) -> None:
    is_open, number, told = one(**gate)
    assert (is_open, number) == (False, None)
    assert told.startswith(reason)


def test_gates_are_read_and_their_mistakes_told(file: Callable[[str, str], Path]) -> None:
    path = file("gates.toml", '[[gate]]\ninstrument = "overlap"\nvalue = "0.8"\nmax = 1\n')
    assert read_gates(path) == [Gate("overlap", "0.8", max=1.0)]
    for text, told in [
        ("", "expected [[gate]] tables and nothing else"),
        ("x = 1", "expected [[gate]] tables and nothing else"),
        ("[[gate]", "expected a TOML of gates"),
        ('[[gate]]\ninstrument = "a"\nvalue = "b"', "expected min or max, found neither"),
        ('[[gate]]\ninstrument = "a"\nvalue = "b"\nmaks = 1', "Did you mean 'max'?"),
        ('[[gate]]\nvalue = "b"\nmax = 1', "gate 1: expected 'instrument', found none"),
        (
            '[[gate]]\ninstrument = "a"\nvalue = "b"\nmin = 0.9\nmax = 0.1',
            "expected min below max, found min 0.9, max 0.1",
        ),
        (
            '[[gate]]\ninstrument = "a"\nvalue = "b"\nmax = nan',
            "expected finite numbers for min and max, found max nan",
        ),
        ('[[gate]]\ninstrument = "a"\nvalue = "b"\nmin = -inf', "expected finite numbers"),
    ]:
        with pytest.raises(UsageError) as caught:
            read_gates(file("gates.toml", text))
        assert told in str(caught.value)


def test_gates_that_are_not_there_are_told_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    with pytest.raises(UsageError) as caught:
        read_gates(path)
    assert str(caught.value) == f"{path}: expected a TOML of gates, found no such file. Give its path by --gates."
    with pytest.raises(UsageError, match=r"expected a TOML of gates, found: Is a directory\.$"):
        read_gates(tmp_path)


def test_junit_counts_failures_and_escapes_names() -> None:
    runs = [placed("over\x07", {"<b>&\x07": 1.0})]
    gates = [Gate("over\x07", "<b>&\x07", max=0.5), Gate("over\x07", "<b>&\x07", max=2)]
    root = ElementTree.fromstring(to_junit(pass_gates(gates, runs)))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    named = "over\N{REPLACEMENT CHARACTER} · <b>&\N{REPLACEMENT CHARACTER}"
    assert [case.get("name") for case in cases] == [f"{named}, max 0.5", f"{named}, max 2"]
    assert [len(case.findall("failure")) for case in cases] == [1, 0]


def test_gates_on_one_number_have_names_of_their_own() -> None:
    options: list[dict[str, Any]] = [{"min": 0}, {"max": 1}, {"max": 1, "bound": "high"}, {"min": 0, "max": 1}]
    gates = [Gate("distract", "das_ratio", model="org/ours", set="random-0.5", **more) for more in options]
    root = ElementTree.fromstring(to_junit(pass_gates(gates, RUNS)))
    named = "distract · org/ours · random-0.5 · das_ratio"
    assert [case.get("name") for case in root.iter("testcase")] == [
        f"{named}, min 0", f"{named}, max 1", f"{named} (high end), max 1", f"{named}, min 0, max 1",
    ]  # fmt: skip


def test_where_nothing_was_done_gates_are_shut_all_the_same() -> None:
    step = Step("overlap-chats", "overlap", "chats", "failed", reason="no file")
    gates = [Gate("overlap", "mean", max=1), Gate("probe", "f1", min=0), Gate("overlap-chat", "mean", max=1)]
    assert [one.line for one in pass_gates(gates, [], [step])] == [
        "FAILED: overlap · mean = overlap-chats is failed (no file), max 1",
        "FAILED: probe · f1 = not measured; no run is done, min 0",
        "FAILED: overlap-chat · mean = not measured (did you mean overlap-chats?); no run is done, max 1",
        "FAILED: overlap-chats · done = the step failed (no file), min 1",
    ]


def test_a_step_that_failed_is_a_gate_that_is_shut() -> None:
    step = Step("distract-chats", "distract", "chats", "failed", reason="no model")
    (found,) = pass_gates([], RUNS, [step])
    assert (found.is_open, found.reason) == (False, "the step failed (no model)")


def test_a_name_cannot_write_a_line_of_its_own() -> None:
    (found,) = pass_gates([Gate("overlap", "x\npassed: all", max=1)], RUNS)
    assert "\n" not in found.line
