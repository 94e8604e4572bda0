"""Steps are known by what was asked of which corpus, whatever a folder's name can show of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.corpus import Corpus, generate
from dialoscope.errors import UsageError
from dialoscope.study import Step, compare, plan_of, run_study
from dialoscope.study.steps import steps_of, trace_name

ALIKE = [("日本語", "中文"), ("a b", "a-b"), ("Chats", "chats"), ("x" * 70 + "1", "x" * 70 + "2"), ("!", "?")]


def names(*corpora: str, **more: Any) -> dict[tuple[str, str], str]:
    """The name of each step, by what is asked of which corpus."""
    plan = plan_of({"corpora": dict.fromkeys(corpora, "concierge"), "overlap": {}, **more})
    return {(ask.name, corpus): name for name, ask, corpus in steps_of(plan)}


@pytest.mark.parametrize(
    ("corpus", "name"),
    [("small", "overlap-small"), ("a-b", "overlap-a-b"), ("my_chats", "overlap-my-chats"), ("V 2", "overlap-v-2")],
)
def test_a_name_that_a_folder_can_have_is_the_steps(corpus: str, name: str) -> None:
    assert names(corpus)["overlap", corpus] == name


@pytest.mark.parametrize("corpora", ALIKE)
def test_corpora_whose_names_look_alike_in_a_folder_have_steps_of_their_own_in_any_order(
    corpora: tuple[str, str],
) -> None:
    found = names(*corpora)
    assert len(set(found.values())) == len(found) == 4
    assert names(*reversed(corpora)) == found
    assert all(len(one) <= 60 and one.isascii() for one in found.values())


def test_one_that_is_written_as_its_folder_keeps_its_name_beside_another() -> None:
    assert names("a b", "a-b")["overlap", "a-b"] == "overlap-a-b"


def test_the_name_of_a_corpus_in_other_letters_does_not_depend_on_the_others() -> None:
    assert names("日本語")["overlap", "日本語"] == names("中文", "日本語")["overlap", "日本語"]


def test_names_that_fall_together_only_when_joined_are_told_apart_in_any_order() -> None:
    asked = [{"name": "a", "corpora": ["b-c"]}, {"name": "a-b", "corpora": ["c"]}]
    found = names("b-c", "c", overlap=asked)
    assert len(set(found.values())) == len(found) == 4
    assert names("b-c", "c", overlap=asked[::-1]) == found


def test_an_instrument_that_is_called_as_the_corpus_or_the_comparison_is_has_names_of_its_own() -> None:
    for asked, corpus in (("corpus", "small"), ("compared", "!")):
        plan = plan_of({"corpora": {corpus: "concierge"}, "overlap": {"name": asked}})
        found = [name for name, _, _ in steps_of(plan)]
        assert len({*found, "compared"}) == 3


def test_a_corpus_that_is_named_twice_is_asked_once() -> None:
    plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {"corpora": ["small", "small"]}})
    assert [name for name, _, _ in steps_of(plan)] == ["corpus-small", "overlap-small"]


def test_traces_of_models_in_other_letters_are_files_of_their_own() -> None:
    assert trace_name("overlap-small") == "overlap-small.txt"
    assert len({trace_name(f"model {one}") for one in ("日本語", "中文", "a b", "a-b")}) == 4


@pytest.mark.parametrize("corpora", [("日本語", "中文"), ("a b", "a-b")])
def test_studies_are_paired_by_corpus_and_reused_whatever_the_order(
    small: Corpus, tmp_path: Path, corpora: tuple[str, str]
) -> None:
    given = dict(zip(corpora, (small, generate(dialogues=60, seed=5)), strict=True))
    plans = [plan_of({"corpora": dict.fromkeys(order, "x"), "overlap": {}}) for order in (corpora, corpora[::-1])]
    for number, plan in enumerate(plans):
        run_study(plan, tmp_path / f"u{number}", given=given)
    found = compare(tmp_path / "u0", tmp_path / "u1")
    assert (len(found.changes), found.identical, found.left_out) == (4, 4, [])
    again = run_study(plans[1], tmp_path / "u0", given=given)
    assert [one.is_reused for one in again.steps] == [True] * 4


def test_a_comparison_says_which_corpus_it_is_of_where_the_steps_name_does_not(small: Corpus, tmp_path: Path) -> None:
    for number in range(2):
        plan = plan_of({"corpora": {"日本語": "x", "small": "x"}, "overlap": {}})
        run_study(plan, tmp_path / f"u{number}", given={"日本語": small, "small": small})
    found = compare(tmp_path / "u0", tmp_path / "u1")
    assert list(dict.fromkeys(one.run for one in found.changes)) == ["overlap on 日本語", "overlap-small"]


def test_the_terminal_says_which_corpus_a_step_is_of(tmp_path: Path) -> None:
    words = ["study", "--corpus", "日本語=concierge", "--corpus", "中文=none.jsonl", "--limit", "9", "--quiet"]
    done = CliRunner().invoke(app, [*words, "--instruments", "overlap", "--out", str(tmp_path / "s")])
    told = [line.partition(": ")[0] for line in done.stdout.splitlines()]
    assert told[:2] == ["corpus on 日本語", "overlap on 日本語"]
    assert "dialoscope: corpus on 中文, overlap on 中文 failed: No corpus" in done.stderr


def test_studies_of_other_corpora_share_no_run_though_their_names_look_alike(small: Corpus, tmp_path: Path) -> None:
    for place, corpus in enumerate(("a b", "a-b")):
        run_study(plan_of({"corpora": {corpus: "x"}, "overlap": {}}), tmp_path / f"u{place}", given={corpus: small})
    with pytest.raises(UsageError, match=r"share no run: one has .*overlap on a b; the other .*overlap on a-b\."):
        compare(tmp_path / "u0", tmp_path / "u1")


def test_a_step_of_a_book_that_does_not_say_what_was_asked_is_paired_by_its_name(small: Corpus, tmp_path: Path) -> None:
    from dialoscope.study.book import Book, read_steps

    plan = plan_of({"corpora": {"small": "x"}, "overlap": {}})
    for name in ("old", "new"):
        run_study(plan, tmp_path / name, given={"small": small})
    book = Book(tmp_path / "old", read_steps(tmp_path / "old"), "old", {})
    for step in list(book.steps.values()):
        book.write(Step(step.name, step.instrument, step.corpus, "done", run=step.run))
    assert compare(tmp_path / "old", tmp_path / "new").identical == 2
