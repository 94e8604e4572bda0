"""Commands made from settings: their options, their help, and what they print."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from dialoscope.cli.arguments import Corpus, Models, Output, Reading, command, epilog
from dialoscope.errors import UsageError
from dialoscope.settings import GROUPS, BaseSettings, option


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Options in groups that are out of order."""

    a_name_that_is_rather_long: str | None = option(None, "A statistic.", group="Statistics")
    attention_reduction: str = option("mean", "How a loss is reduced.", choices=("mean", "sum"))
    interesting: bool = option(True, "On unless it is turned off.")
    maybe: bool | None = option(None, "On, off, or neither.")
    set: tuple[str, ...] = option((), "Changes.", metavar="KEY=VALUE", is_repeated=True)
    metrics: tuple[str, ...] = option(("x", "y"), "Metrics.")
    limit: int | None = option(None, "Dialogues.", group="Data", least=1)
    other: int = option(3, "Of no usual group.", group="Other")


def app_of(run: Callable[..., None], *, examples: tuple[str, ...] = ("run x",)) -> typer.Typer:
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})

    @app.callback()
    def root() -> None:
        """Make a group of one command."""

    command(app, "run", run, examples=list(examples))
    return app


def run_with(*words: str) -> dict[str, Any]:
    """What a command is given."""
    given: dict[str, Any] = {}

    def run(corpus: Corpus, settings: Settings, models: Models, reading: Reading, output: Output) -> None:
        """Run it."""
        given.update(corpus=corpus, settings=settings, models=models, reading=reading, output=output)

    done = CliRunner().invoke(app_of(run), ["run", *words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return given


def help_page(*words: str, width: int = 80) -> str:
    def run(corpus: Corpus, settings: Settings, reading: Reading, models: Models, output: Output) -> None:
        """Run it."""

    examples = ("run chats.jsonl", "run --train a.jsonl --test b.jsonl")
    done = CliRunner().invoke(app_of(run, examples=examples), ["run", *words], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return done.output


def test_every_option_is_whole_at_80_columns() -> None:
    shown = help_page("--help")
    assert max(map(len, shown.splitlines())) <= 80
    for flag in ("--a-name-that-is-rather-long", "--attention-reduction", "--no-interesting", "--no-maybe", "--set"):
        assert re.search(rf"{flag}\s", shown), flag
    assert "…" not in shown


def test_switches_have_no_type() -> None:
    shown = help_page("--help")
    assert "<bool>" not in shown
    assert re.search(r"--overwrite +Replace", shown)


def test_groups_are_in_the_order_that_people_think_in_and_output_is_last() -> None:
    panels = [found for found in re.findall(r"╭─ (\w+) ", help_page("-h")) if found != "Arguments"]
    usual = [group for group in (*GROUPS, "Other", "Output") if group in panels]
    assert panels == usual
    assert panels[-1] == "Output"


def test_help_is_in_the_last_group_and_has_a_short_form() -> None:
    shown = help_page("-h")
    last = shown[shown.index("╭─ Output") :]
    assert re.search(r"--help +-h", last)
    assert re.search(r"--quiet +-q", last)
    assert "╭─ Options" not in shown


def test_defaults_choices_and_lists_are_told() -> None:
    shown = " ".join(help_page("--help").replace("│", "").split())
    assert "One of: mean, sum. Default: mean." in shown
    assert "Metrics. Several: a,b. Default: x, y." in shown
    assert "Changes. May be repeated." in shown
    assert "Of no usual group. Default: 3." in shown


def test_help_ends_with_commands_that_can_be_pasted_each_on_its_own_line() -> None:
    lines = [line.strip() for line in help_page("--help").splitlines() if line.strip()]
    assert lines[-2:] == [
        "Try: dialoscope run chats.jsonl",
        "Try: dialoscope run --train a.jsonl --test b.jsonl",
    ]
    assert epilog("a", "b").split("\n\n") == ["Try: dialoscope a", "Try: dialoscope b"]


def test_words_become_settings_and_what_is_not_given_keeps_its_default() -> None:
    given = run_with("a.jsonl", "b.jsonl", "--limit", "3", "--metrics", "u,v", "-q")
    assert given["corpus"] == ["a.jsonl", "b.jsonl"]
    assert given["settings"] == Settings(limit=3, metrics=("u", "v"))
    assert given["reading"] == Reading()
    assert given["output"] == Output(quiet=True)


def test_a_corpus_may_be_left_out_for_two_sides() -> None:
    given = run_with("--train", "a.jsonl", "--train", "b,c.jsonl", "--test", "d.jsonl")
    assert given["corpus"] is None
    assert given["reading"] == Reading(train=("a.jsonl", "b,c.jsonl"), test=("d.jsonl",))
    assert given["reading"].words(None) == "--train a.jsonl --train b,c.jsonl --test d.jsonl"
    assert given["reading"].words(["a b.jsonl", "c"]) == "'a b.jsonl' c"


@pytest.mark.parametrize(
    ("words", "interesting", "maybe"),
    [((), True, None), (("--no-interesting", "--no-maybe"), False, False), (("--maybe",), True, True)],
)
def test_switches_can_be_turned_off(words: tuple[str, ...], interesting: bool, maybe: bool | None) -> None:
    settings = run_with(*words)["settings"]
    assert (settings.interesting, settings.maybe) == (interesting, maybe)


def test_repeated_options_keep_their_commas() -> None:
    assert run_with("--set", "a=1,2", "--set", "b=3")["settings"].set == ("a=1,2", "b=3")


def test_an_argument_that_is_needed_is_needed() -> None:
    def run(text: Annotated[str, typer.Argument(metavar="TEXT")], output: Output) -> None:
        """Run it."""

    done = CliRunner().invoke(app_of(run), ["run"])
    assert done.exit_code == 2
    assert "Missing argument 'TEXT'" in done.output


@pytest.mark.parametrize("given", [([], Reading()), (["x"], Reading(train=("a",), test=("b",)))])
def test_a_corpus_is_given_in_one_way(given: tuple[list[str], Reading]) -> None:
    words, reading = given
    with pytest.raises(UsageError, match="Give one corpus, or both --train and --test"):
        reading.load(words, Output(quiet=True))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("runs/mine",), {"mine": "runs/mine"}),
        (("first=runs/mine", "org/name"), {"first": "runs/mine", "name": "org/name"}),
        (("runs/rate=0.1/best",), {"best": "runs/rate=0.1/best"}),
    ],
)
def test_models_are_named(words: tuple[str, ...], named: dict[str, str]) -> None:
    assert Models(model=words).by_name() == named


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^Two models are called 'best'\. Name them: --model NAME=b/best\.$"):
        Models(model=("a/best", "b/best")).by_name()


def test_what_must_be_written_needs_a_place() -> None:
    with pytest.raises(UsageError, match=r"^Give a folder with --out\.$"):
        Output().required("a folder")


def test_choices_are_completed() -> None:
    def run(settings: Settings) -> None:
        """Run it."""

    words = {"_RUN_COMPLETE": "complete_bash", "COMP_WORDS": "root run --attention-reduction s", "COMP_CWORD": "3"}
    done = CliRunner().invoke(app_of(run), [], prog_name="run", env=words)
    assert done.output.split() == ["sum"]
